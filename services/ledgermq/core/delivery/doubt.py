"""Messages in doubt: what a session held that was lost, and may have fallen over (H20).

When a session is lost, or a limit or an administrator ends its unit of work, nobody knows which of
its deliveries the application saw. Each of them is in doubt until it leaves its queue. A consumer
is given one such message at a time, and no other before its session has said that it hands this one
over; so when that is lost again, one message is known to have been in the application's hands, and
the others are not blamed.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Final

from ledgermq.core.entry import Entry
from ledgermq.core.order.waiting_consumers import join_ready
from ledgermq.core.state.records import Consumer, Message, Session

NUMBER: Final = attrgetter("number")


def was_lost(session: Session, delivery: int, message: Message) -> None:
    """Puts in doubt what others took from a session; its backout counts if it was handed over."""
    doubts, sequence = message.queue.doubts, message.sequence
    handed = delivery <= session.handed_through or delivery in session.handed_doubts
    doubts[sequence] = doubts.get(sequence, 0) + (0 if handed else 1)


def tell_handed_through(entry: Entry, session: Session, through: int) -> None:
    """Notes that all deliveries through this number were handed to the application."""
    before, session.handed_through = session.handed_through, min(through, session.next_delivery - 1)
    # What is in doubt was not handed over before.
    numbers = range(before + 1, session.handed_through + 1)
    told = [session.deliveries[one].consumer for one in numbers if one in session.deliveries]
    doubting = {one for one in told if one is not None and one.doubt}
    for consumer in sorted(doubting, key=NUMBER):
        if consumer.doubt <= session.handed_through:
            _resolve(entry, consumer)


def tell_handing(entry: Entry, session: Session, delivery: int) -> None:
    """Notes that the application was handed a delivery, and those before it of the same consumer.

    A consumer is handed its deliveries in their order, so one number tells of all of them, also
    where `handed_through` has to wait for another consumer.
    """
    message = session.deliveries.get(delivery)
    if message is None or message.consumer is None:
        return
    consumer, handed = message.consumer, session.handed_doubts
    for number in reversed(session.deliveries):
        if number <= session.handed_through:
            break
        if number <= delivery and session.deliveries[number].consumer is consumer:
            if number in handed:
                break
            handed[number] = None
    if 0 < consumer.doubt <= delivery:
        _resolve(entry, consumer)


def leave_flight(entry: Entry, consumer: Consumer, delivery: int) -> None:
    consumer.session.handed_doubts.pop(delivery, None)
    if consumer.doubt == delivery:
        _resolve(entry, consumer)


def _resolve(entry: Entry, consumer: Consumer) -> None:
    consumer.doubt = 0
    join_ready(consumer)
    entry.touch(consumer.queue)
