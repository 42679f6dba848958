"""Queues and topics created, altered and deleted by name (PROTOCOL.md §5; SEQ-10, SEQ-11, SEQ-17).

What is said of both is done in one way; the settings that only one has are named in its operations.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ledgermq.core.destinations.altering import check_not_named, checked_settings
from ledgermq.core.destinations.by_name import (
    add_destination,
    check_new_name,
    check_owner,
    configure,
    find_destination,
    new_destination,
    remove_destination,
)
from ledgermq.core.entry import Entry
from ledgermq.core.order.affinity import set_affinity
from ledgermq.core.quoting import shown_name
from ledgermq.core.state.message_states import UNCOMMITTED
from ledgermq.core.state.records import Queue, Session, Topic
from ledgermq.protocol.limits import CONTENT_BYTES_MAX, CREDIT_MAX, DESCRIPTION_CHARACTERS_MAX
from ledgermq.protocol.operations import (
    AlterQueue,
    AlterTopic,
    CreateQueue,
    CreateTopic,
    DeleteQueue,
    DeleteTopic,
)
from ledgermq.protocol.reasons import Reason, Refusal

# Settings that have a field of that name in the operations, None where they stay as they are.
SETTINGS: Final = ("description", "message_bytes_max", "unacknowledged_max", "gets_disabled")


class _Reasons(NamedTuple):
    unknown: Reason
    exists: Reason
    in_use: Reason
    not_empty: Reason


REASONS: Final = {
    "queue": _Reasons(
        Reason.QUEUE_UNKNOWN, Reason.QUEUE_EXISTS, Reason.QUEUE_IN_USE, Reason.QUEUE_NOT_EMPTY
    ),
    "topic": _Reasons(
        Reason.TOPIC_UNKNOWN, Reason.TOPIC_EXISTS, Reason.TOPIC_IN_USE, Reason.TOPIC_NOT_EMPTY
    ),
}


def create_queue(entry: Entry, session: Session, operation: CreateQueue) -> Refusal | None:
    """Creates a queue; its first message gets number 0 (SEQ-10, SEQ-11)."""
    return _create(entry, "queue", operation.queue, operation)


def create_topic(entry: Entry, session: Session, operation: CreateTopic) -> Refusal | None:
    """Creates a topic; its first message gets number 0 (SEQ-10, SEQ-17)."""
    return _create(entry, "topic", operation.topic, operation)


def alter_queue(entry: Entry, session: Session, operation: AlterQueue) -> Refusal | None:
    return _alter(entry, "queue", operation.queue, operation)


def alter_topic(entry: Entry, session: Session, operation: AlterTopic) -> Refusal | None:
    return _alter(entry, "topic", operation.topic, operation)


def delete_queue(entry: Entry, session: Session, operation: DeleteQueue) -> Refusal | None:
    return _delete(entry, session, "queue", operation.queue, purge=operation.purge)


def delete_topic(entry: Entry, session: Session, operation: DeleteTopic) -> Refusal | None:
    return _delete(entry, session, "topic", operation.topic, purge=operation.purge)


def _create(
    entry: Entry, kind: str, name: str, operation: CreateQueue | CreateTopic
) -> Refusal | None:
    refusal = check_new_name(kind, name)
    if refusal is not None:
        return refusal
    made = new_destination(f"{kind}:{name}", entry.position)
    if find_destination(entry.state, made.destination) is not None:
        return Refusal(REASONS[kind].exists, f"{kind} {name} exists already")
    refusal = _change(entry, made, operation)
    if refusal is None:
        add_destination(entry.state, made)
    return refusal


def _alter(
    entry: Entry, kind: str, name: str, operation: AlterQueue | AlterTopic
) -> Refusal | None:
    found = find_destination(entry.state, f"{kind}:{name}")
    if found is None:
        return _unknown(kind, name)
    refusal = _change(entry, found, operation)
    if refusal is not None:
        return refusal
    for store in _stores_of(found):
        store.unacknowledged_max = found.unacknowledged_max
        entry.touch(store)
    return None


def _stores_of(found: Queue) -> list[Queue]:
    return list(found.subscriptions.values()) if isinstance(found, Topic) else [found]


def _change(
    entry: Entry, found: Queue, operation: CreateQueue | AlterQueue | CreateTopic | AlterTopic
) -> Refusal | None:
    refusal = _check_ranges(
        operation.description, operation.message_bytes_max, operation.unacknowledged_max
    )
    if refusal is not None:
        return refusal
    settings = checked_settings(entry.state, found, operation.settings)
    if isinstance(settings, Refusal):
        return settings
    configure(entry.state, found, settings)
    for name in SETTINGS:
        value = getattr(operation, name, None)
        if value is not None:
            setattr(found, name, value)
    affinity = getattr(operation, "group_affinity", None)
    if affinity is not None:
        set_affinity(found, affinity)
    return None


def _check_ranges(
    description: str | None, message_bytes_max: int | None, unacknowledged_max: int | None
) -> Refusal | None:
    if description is not None and len(description) > DESCRIPTION_CHARACTERS_MAX:
        return Refusal(
            Reason.SETTING_INVALID,
            f"description has {len(description)} characters, "
            f"at most {DESCRIPTION_CHARACTERS_MAX} fit",
        )
    if message_bytes_max is not None and not 0 <= message_bytes_max <= CONTENT_BYTES_MAX:
        return Refusal(
            Reason.SETTING_INVALID,
            f"message_bytes_max is {message_bytes_max}, must be 0 to {CONTENT_BYTES_MAX}",
        )
    if unacknowledged_max is not None and not 0 <= unacknowledged_max <= CREDIT_MAX:
        return Refusal(
            Reason.SETTING_INVALID,
            f"unacknowledged_max is {unacknowledged_max}, must be 0 to {CREDIT_MAX}",
        )
    return None


def _delete(entry: Entry, session: Session, kind: str, name: str, *, purge: bool) -> Refusal | None:
    found = find_destination(entry.state, f"{kind}:{name}")
    if found is None:
        return _unknown(kind, name)
    refusal = check_owner(found, session)
    if refusal is not None:
        return refusal
    stores = _stores_of(found)
    consumers = sum(len(one.consumers) for one in stores)
    held = sum(one.in_flight for one in stores)
    open_puts = found.counts[UNCOMMITTED]
    if consumers or open_puts or held:
        return Refusal(
            REASONS[kind].in_use,
            f"{kind} {name} has {consumers} consumers, {open_puts} "
            f"uncommitted puts and {held} deliveries in flight; end them first",
        )
    refusal = check_not_named(entry.state, found)
    if refusal is not None:
        return refusal
    holds = f"holds {len(found.messages)} messages" if found.messages else ""
    if isinstance(found, Topic) and found.subscriptions:
        holds = f"has {len(found.subscriptions)} durable subscriptions"
    if holds and not purge:
        return Refusal(REASONS[kind].not_empty, f"{kind} {name} {holds}; purge to remove")
    remove_destination(entry, found)
    return None


def _unknown(kind: str, name: str) -> Refusal:
    return Refusal(REASONS[kind].unknown, f"{kind} {shown_name(name)} does not exist")


def unknown_queue(name: str) -> Refusal:
    return _unknown("queue", name)
