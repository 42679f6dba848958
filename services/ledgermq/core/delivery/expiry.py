"""What has expired leaves, by log time alone (INF-01, SES-66)."""

from __future__ import annotations

from ledgermq.core.delivery.redelivery import follow_parked
from ledgermq.core.destinations.numbering import transfer
from ledgermq.core.entry import Entry
from ledgermq.core.moves import Flight, move, state_of
from ledgermq.core.state.message_states import EXPIRED, GONE
from ledgermq.core.state.records import Message


def is_over(entry: Entry, message: Message) -> bool:
    state = entry.state
    if message.times is not None and 0 <= message.times.expires_at <= state.time:
        return True
    return state.lifetimes.is_over(message, state.time)


def expire(entry: Entry, message: Message, before: int, flight: Flight | None = None) -> None:
    queue = message.queue
    move(entry, queue, (message,), before, GONE, cause=EXPIRED, flight=flight)
    if queue.settings.expiry_destination:
        transfer(entry, (message,), queue.settings.expiry_destination, EXPIRED)


def expire_due(entry: Entry) -> None:
    """Takes out what has expired and nobody holds; what is held expires when it comes back.

    Before that, and after it, what is in parked groups follows what went before (§15).
    """
    follow_parked(entry)
    state = entry.state
    due = state.expiries.first()
    if due is not None and due[0] <= state.time:
        over = state.expiries.take_through((state.time + 1,))
        _expire_all(entry, [message for *_, message in over])
    if state.lifetimes.may_be_due(state.time):
        _expire_all(entry, state.lifetimes.take_due(state.stores, state.time))
    follow_parked(entry)


def _expire_all(entry: Entry, over: list[Message]) -> None:
    for message in over:
        if message.consumer is None:
            expire(entry, message, state_of(message))
