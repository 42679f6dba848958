"""Messages in doubt: what a lost session held, and may have fallen over (H20).

When a session is lost, nobody knows which of its deliveries the application saw. Each of them is in
doubt until it leaves its queue. A consumer is given one such message at a time, and no other before
its session has said that it hands this one over; so when that is lost again, one message is known
to have been in the application's hands, and the others are not blamed.
"""

from __future__ import annotations

from ledgermq.core.message import Message
from ledgermq.core.state import Consumer, Session
from ledgermq.core.turn import Turn

__all__ = ["in_doubt", "leave_flight", "tell_handed_through", "tell_handing", "was_lost"]


def in_doubt(message: Message) -> bool:
    """Whether a session that was lost held the message."""
    return message.sequence in message.queue.doubts


def was_lost(session: Session, delivery: int, message: Message) -> None:
    """Puts a message in doubt whose session was lost; its backout counts if it was handed over."""
    doubts, sequence = message.queue.doubts, message.sequence
    handed = delivery <= session.handed_through or delivery in session.handed_doubts
    doubts[sequence] = doubts.get(sequence, 0) + (0 if handed else 1)


def tell_handed_through(turn: Turn, session: Session, through: int) -> None:
    """Notes up to which delivery, above what was told before, all was handed over."""
    session.handed_through = min(through, session.next_delivery - 1)
    for consumer in session.consumers.values():
        if 0 < consumer.doubt <= session.handed_through:
            _resolve(turn, consumer)


def tell_handing(turn: Turn, session: Session, delivery: int) -> None:
    """Notes that a delivery in doubt is about to be handed over; passes over any other."""
    message = session.deliveries.get(delivery)
    if message is not None and message.consumer is not None:
        consumer = message.consumer
        if consumer.doubt == delivery:
            for number in _unit_to(session, delivery):
                session.handed_doubts[number] = None
            _resolve(turn, consumer)


def _unit_to(session: Session, delivery: int) -> list[int]:
    """A delivery, and those right before it that brought the segments before this one."""
    segment = session.deliveries[delivery]
    found = [delivery]
    while segment.offset:
        before = session.deliveries.get(found[-1] - 1)
        if before is None or before.consumer is not segment.consumer:
            break
        if before.group is not segment.group or before.group_sequence != segment.group_sequence:
            break
        if before.offset + before.length != segment.offset:
            break
        found.append(found[-1] - 1)
        segment = before
    return found


def leave_flight(turn: Turn, consumer: Consumer, delivery: int) -> None:
    """Forgets what was known of a delivery that was settled or went back."""
    consumer.session.handed_doubts.pop(delivery, None)
    if consumer.doubt == delivery:
        _resolve(turn, consumer)


def _resolve(turn: Turn, consumer: Consumer) -> None:
    """Lets a consumer get messages again."""
    consumer.doubt = 0
    turn.touch(consumer.queue)
