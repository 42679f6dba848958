"""Messages by hand: many that nobody holds are removed, moved or copied (§17), one is repaired.

An operation on many does bounded work and says how far it came, so that its writer can go on from
there.
"""

from __future__ import annotations

from ledgermq.core.delivery.settling import end_flight, give_back
from ledgermq.core.destinations.by_name import find_given
from ledgermq.core.destinations.changes import unknown
from ledgermq.core.destinations.numbering import COPIED, MOVED_BY_HAND, RETRIED, transfer
from ledgermq.core.entry import Entry
from ledgermq.core.manual.choice import Chosen, administered, choose
from ledgermq.core.moves import move, state_of
from ledgermq.core.ranges import check_actor
from ledgermq.core.state.message_states import GONE, MOVED, REMOVED
from ledgermq.core.state.records import Consumer, Message, Queue, Session
from ledgermq.protocol.administration import (
    CopyMessages,
    DeleteMessages,
    HandlingOperation,
    MoveMessages,
    PurgeQueue,
)
from ledgermq.protocol.operations import Correct
from ledgermq.protocol.outcomes import Administered
from ledgermq.protocol.reasons import Reason, Refusal
from ledgermq.selector import parse_selector


def remove_messages(
    entry: Entry, session: Session, operation: PurgeQueue | DeleteMessages
) -> Administered | Refusal:
    found = _choose(entry, operation)
    if isinstance(found, Refusal):
        return found
    queue, chosen = found
    for message in chosen.messages:
        move(entry, queue, (message,), state_of(message), GONE, cause=REMOVED)
    return administered(entry, operation, chosen)


def move_messages(
    entry: Entry, session: Session, operation: MoveMessages
) -> Administered | Refusal:
    found = _choose(entry, operation, to_origin=operation.to_origin)
    if isinstance(found, Refusal):
        return found
    queue, chosen = found
    if operation.to_origin:
        if operation.target:
            return Refusal(
                Reason.DESTINATION_INVALID, "a target is given, but each goes to its origin"
            )
    else:
        refusal = _check_target(entry, queue, operation.target)
        if refusal is not None:
            return refusal
    for message in chosen.messages:
        move(entry, queue, (message,), state_of(message), GONE, cause=MOVED)
        if operation.to_origin:
            assert message.origin is not None, "only what came from somewhere was chosen"
            transfer(entry, (message,), message.origin["destination"], RETRIED)
        else:
            transfer(entry, (message,), operation.target, MOVED_BY_HAND)
    return administered(entry, operation, chosen)


def copy_messages(
    entry: Entry, session: Session, operation: CopyMessages
) -> Administered | Refusal:
    found = _choose(entry, operation)
    if isinstance(found, Refusal):
        return found
    queue, chosen = found
    refusal = _check_target(entry, queue, operation.target)
    if refusal is not None:
        return refusal
    for message in chosen.messages:
        transfer(entry, (message,), operation.target, COPIED)
    return administered(entry, operation, chosen)


def _choose(
    entry: Entry, operation: HandlingOperation, *, to_origin: bool = False
) -> tuple[Queue, Chosen] | Refusal:
    found = choose(entry.state, operation.selection, to_origin=to_origin)
    if isinstance(found, Refusal):
        return found
    selection = operation.selection
    named = parse_selector(selection["selector"]) is not None or selection["sequences"]
    if isinstance(operation, DeleteMessages) and not named:
        return Refusal(
            Reason.SELECTION_INVALID,
            "messages to delete are named by selector or number; purge for all",
        )
    refusal = check_actor(operation.actor, operation.reason)
    if refusal is not None:
        return refusal
    return found


def _check_target(entry: Entry, source: Queue, target: str) -> Refusal | None:
    found = find_given(entry.state, target)
    if isinstance(found, Refusal):
        return found
    if found.destination == source.destination:
        return Refusal(Reason.DESTINATION_INVALID, f"{target} is where the messages are")
    return None


def correct(entry: Entry, session: Session, operation: Correct) -> Refusal | None:
    """Repairs one message by hand (H4); the audit lists it with actor and reason."""
    queue = entry.state.queues.get(operation.queue)
    if queue is None:
        return unknown("queue", operation.queue)
    message = queue.messages.get(operation.sequence)
    if message is None:
        return Refusal(
            Reason.SEQUENCE_UNKNOWN, f"queue {queue.name} holds no message {operation.sequence}"
        )
    consumer = message.consumer
    if operation.action == "REMOVE":
        before, flight = state_of(message), None
        if consumer is not None:
            flight = (consumer, (_delivery_of(consumer, message),))
            end_flight(entry, consumer.session, *flight)
            if queue.unacknowledged_max:
                entry.touch(queue)
        move(entry, queue, (message,), before, GONE, cause=REMOVED, flight=flight)
        return None
    if operation.action == "RELEASE" and consumer is not None:
        give_back(entry, consumer.session, _delivery_of(consumer, message), backed_out=True)
        return None
    return Refusal(
        Reason.CORRECTION_INVALID,
        f"{operation.action} does not apply to message {operation.sequence} of {queue.name}",
    )


def _delivery_of(consumer: Consumer, message: Message) -> int:
    deliveries = consumer.session.deliveries
    return next(number for number, one in deliveries.items() if one is message)
