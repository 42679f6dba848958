"""Queues: creation on request or on first use, settings, deletion, corrections."""

from __future__ import annotations

from ledgermq.core.affinity import Affinity
from ledgermq.core.configuring import check_not_named, checked_settings
from ledgermq.core.destinations import check_new_name, check_owner, configure, forget, keep
from ledgermq.core.group_order import begin_group_order
from ledgermq.core.journal import check_journal, configure_journal
from ledgermq.core.message import Message
from ledgermq.core.quoting import shown_name
from ledgermq.core.settling import give_back, take_delivery
from ledgermq.core.state import Queue, Session
from ledgermq.core.storing import check_storage, configure_storage
from ledgermq.core.turn import Turn
from ledgermq.protocol.limits import (
    CONTENT_BYTES_MAX,
    CREDIT_MAX,
    DESCRIPTION_CHARACTERS_MAX,
    QUOTA_MAX,
    TIMING_MS_MAX,
)
from ledgermq.protocol.operations import (
    AlterQueue,
    AlterQueueManager,
    Correct,
    CreateQueue,
    DeleteQueue,
)
from ledgermq.protocol.reasons import (
    CORRECTION_INVALID,
    QUEUE_EXISTS,
    QUEUE_IN_USE,
    QUEUE_NOT_EMPTY,
    QUEUE_UNKNOWN,
    SEQUENCE_UNKNOWN,
    SETTING_INVALID,
    Refusal,
)

__all__ = [
    "alter_queue",
    "alter_queue_manager",
    "check_settings",
    "correct",
    "create_queue",
    "delete_queue",
    "restore_group_order",
    "set_affinity",
]


def _unknown(name: str) -> Refusal:
    return Refusal(QUEUE_UNKNOWN, f"queue {shown_name(name)} does not exist")


def check_settings(
    description: str | None, message_bytes_max: int | None, unacknowledged_max: int | None = None
) -> Refusal | None:
    """Refuses settings of a queue or topic that are out of range."""
    if description is not None and len(description) > DESCRIPTION_CHARACTERS_MAX:
        return Refusal(
            SETTING_INVALID,
            f"description has {len(description)} characters, "
            f"at most {DESCRIPTION_CHARACTERS_MAX} fit",
        )
    if message_bytes_max is not None and not 0 <= message_bytes_max <= CONTENT_BYTES_MAX:
        return Refusal(
            SETTING_INVALID,
            f"message_bytes_max is {message_bytes_max}, must be 0 to {CONTENT_BYTES_MAX}",
        )
    if unacknowledged_max is not None and not 0 <= unacknowledged_max <= CREDIT_MAX:
        return Refusal(
            SETTING_INVALID,
            f"unacknowledged_max is {unacknowledged_max}, must be 0 to {CREDIT_MAX}",
        )
    return None


def create_queue(turn: Turn, session: Session, operation: CreateQueue) -> Refusal | None:
    """Creates a queue; its first message gets number 0 (SEQ-10, SEQ-11)."""
    name = operation.queue
    refusal = check_new_name("queue", name)
    if refusal is not None:
        return refusal
    if name in turn.state.queues:
        return Refusal(QUEUE_EXISTS, f"queue {name} exists already")
    refusal = check_settings(
        operation.description, operation.message_bytes_max, operation.unacknowledged_max
    )
    if refusal is not None:
        return refusal
    queue = Queue(name, turn.position)
    settings = checked_settings(turn.state, queue, operation.settings)
    if isinstance(settings, Refusal):
        return settings
    configure(turn.state, queue, settings)
    queue.description = operation.description
    queue.message_bytes_max = operation.message_bytes_max
    queue.unacknowledged_max = operation.unacknowledged_max
    set_affinity(queue, operation.group_affinity)
    keep(turn.state, queue)
    return None


def alter_queue(turn: Turn, session: Session, operation: AlterQueue) -> Refusal | None:
    """Changes settings; a resumed queue delivers what has waited."""
    queue = turn.state.queues.get(operation.queue)
    if queue is None:
        return _unknown(operation.queue)
    refusal = check_settings(
        operation.description, operation.message_bytes_max, operation.unacknowledged_max
    )
    if refusal is not None:
        return refusal
    settings = checked_settings(turn.state, queue, operation.settings)
    if isinstance(settings, Refusal):
        return settings
    configure(turn.state, queue, settings)
    if operation.description is not None:
        queue.description = operation.description
    if operation.message_bytes_max is not None:
        queue.message_bytes_max = operation.message_bytes_max
    if operation.gets_disabled is not None:
        queue.gets_disabled = operation.gets_disabled
    if operation.unacknowledged_max is not None:
        queue.unacknowledged_max = operation.unacknowledged_max
    if operation.group_affinity is not None:
        set_affinity(queue, operation.group_affinity)
    turn.touch(queue)
    return None


def set_affinity(queue: Queue, on: bool) -> None:
    """Turns group affinity on or off; turning it off ends all bonds."""
    if on and queue.affinity is None:
        queue.affinity = Affinity()
    elif not on and queue.affinity is not None:
        queue.affinity.end(queue)
        queue.affinity = None


def restore_group_order(queue: Queue) -> None:
    """Finds what is held back among messages that came after the settings."""
    order = queue.group_order
    if order is not None:
        begin_group_order(queue).parked = order.parked


def delete_queue(turn: Turn, session: Session, operation: DeleteQueue) -> Refusal | None:
    """Deletes a queue that has no consumers and no work in flight."""
    name = operation.queue
    queue = turn.state.queues.get(name)
    if queue is None:
        return _unknown(name)
    refusal = check_owner(queue, session)
    if refusal is not None:
        return refusal
    held = queue.unacknowledged + queue.uncommitted_gets
    if queue.consumers or queue.uncommitted_puts or held:
        return Refusal(
            QUEUE_IN_USE,
            f"queue {name} has {len(queue.consumers)} consumers, {queue.uncommitted_puts} "
            f"uncommitted puts and {held} deliveries in flight; end them first",
        )
    refusal = check_not_named(turn.state, queue)
    if refusal is not None:
        return refusal
    if queue.messages and not operation.purge:
        return Refusal(
            QUEUE_NOT_EMPTY, f"queue {name} holds {len(queue.messages)} messages; purge to remove"
        )
    forget(turn.state, queue)
    return None


def alter_queue_manager(
    turn: Turn, session: Session, operation: AlterQueueManager
) -> Refusal | None:
    """Changes settings of the queue manager."""
    refusal = check_storage(turn.state, operation) or check_journal(operation)
    if refusal is not None:
        return refusal
    lifetime_ms = operation.maximum_lifetime_ms
    if lifetime_ms is not None and not 0 <= lifetime_ms <= TIMING_MS_MAX:
        return Refusal(
            SETTING_INVALID, f"maximum_lifetime_ms is {lifetime_ms}, must be 0 to {TIMING_MS_MAX}"
        )
    quotas = {"messages_max": operation.messages_max, "bytes_max": operation.bytes_max}
    for name, quota in quotas.items():
        if quota is not None and not 0 <= quota <= QUOTA_MAX:
            return Refusal(SETTING_INVALID, f"{name} is {quota}, must be 0 to {QUOTA_MAX}")
    if lifetime_ms is not None:
        turn.state.lifetimes.set_maximum(lifetime_ms, turn.state.stores.values())
    if operation.messages_max is not None:
        turn.state.messages_max = operation.messages_max
    if operation.bytes_max is not None:
        turn.state.bytes_max = operation.bytes_max
    if operation.automatic_creation is not None:
        turn.state.automatic_creation = operation.automatic_creation
    configure_storage(turn.state, operation)
    configure_journal(turn, operation)
    return None


def correct(turn: Turn, session: Session, operation: Correct) -> Refusal | None:
    """Repairs one message by hand (H4); the audit lists it with actor and reason."""
    queue = turn.state.queues.get(operation.queue)
    if queue is None:
        return _unknown(operation.queue)
    message = queue.messages.get(operation.sequence)
    if message is None:
        return Refusal(
            SEQUENCE_UNKNOWN, f"queue {queue.name} holds no message {operation.sequence}"
        )
    if operation.action == "REMOVE":
        if message.consumer is not None:
            take_delivery(turn, message.consumer.session, _delivery_of(message))
            if queue.unacknowledged_max:
                turn.touch(queue)
        else:
            turn.withdraw(message)
        turn.ends_clash(message)
        queue.remove(message)
        return None
    if operation.action == "RELEASE" and message.consumer is not None:
        give_back(turn, message.consumer.session, _delivery_of(message), backed_out=True)
        return None
    return Refusal(
        CORRECTION_INVALID,
        f"{operation.action} does not apply to message {operation.sequence} of {queue.name}",
    )


def _delivery_of(message: Message) -> int:
    assert message.consumer is not None, "only for a message in flight"
    deliveries = message.consumer.session.deliveries
    return next(number for number, one in deliveries.items() if one is message)
