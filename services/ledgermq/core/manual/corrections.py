"""Corrections: one message repaired by an administrator (PROTOCOL.md §5; H4)."""

from __future__ import annotations

from ledgermq.core.delivery.settling import end_flight, give_back
from ledgermq.core.destinations.administration import unknown_queue
from ledgermq.core.entry import Entry
from ledgermq.core.moves import move, state_of
from ledgermq.core.state.message_states import GONE, REMOVED
from ledgermq.core.state.records import Consumer, Message, Session
from ledgermq.protocol.operations import Correct
from ledgermq.protocol.reasons import Reason, Refusal


def correct(entry: Entry, session: Session, operation: Correct) -> Refusal | None:
    """Repairs one message by hand (H4); the audit lists it with actor and reason."""
    queue = entry.state.queues.get(operation.queue)
    if queue is None:
        return unknown_queue(operation.queue)
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
