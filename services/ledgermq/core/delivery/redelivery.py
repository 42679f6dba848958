"""Redelivery: what came back waits, comes again, or has come too often (PROTOCOL.md §15).

A message that is backed out waits the redelivery delay of that moment (INF-09, INF-15). When that
is over, or at once without one, it is available again, unless its counted backouts exceed the
limit that it has had since it was put: then it goes to the error destination, or is dropped where
there is none (INF-11, INF-12). Backouts of which nobody knows whether the application saw the
message do not count (H20).

Where the order of groups is kept, others of its group wait for what is delayed; what is numbered
behind a message that came too often follows it to the error destination (INF-12, INF-16): at once
what nobody holds, the rest when it returns or is numbered. All of it goes at one point of an entry,
before anything can be delivered.
"""

from __future__ import annotations

from ledgermq.core.destinations.numbering import REDELIVERY_LIMIT, REJECTED, transfer
from ledgermq.core.entry import Entry
from ledgermq.core.moves import Flight, in_flight_of, move, state_of
from ledgermq.core.state.group import LAST_IN_GROUP
from ledgermq.core.state.group_order import GROUP_PARKED
from ledgermq.core.state.message_states import AVAILABLE, DELAYED, DROPPED, GONE, MOVED, UNBORN
from ledgermq.core.state.records import CREATED_POSITION, Consumer, Message, Queue
from ledgermq.protocol.limits import TIMING_MS_MAX
from ledgermq.protocol.rounding import MILLISECOND_US, rounded
from ledgermq.protocol.settings import RedeliveryStep


def back_out(entry: Entry, message: Message, flight: Flight, delay_ms: int) -> None:
    """Lets it wait for so long (-1: as the settings say), or makes it available at once."""
    consumer = flight[0]
    before = in_flight_of(consumer.session)
    if delay_ms < 0:
        delay_ms = _delay_ms(message, consumer)
    if not delay_ms:
        _offer_again(entry, message, before, flight)
        return
    until = rounded(entry.begins + delay_ms * MILLISECOND_US)
    move(entry, message.queue, (message,), before, DELAYED, until=until, flight=flight)


def send_away_rejected(entry: Entry, message: Message, flight: Flight) -> None:
    """What its application will not have goes at once, whatever its limit (§5 Reject)."""
    _send_away(entry, message, in_flight_of(flight[0].session), flight, REJECTED)


def end_wait(entry: Entry, message: Message) -> None:
    """Makes a message available whose moment has come: it is born, or its delay is over."""
    queue, before = message.queue, state_of(message)
    entry.touch(queue)
    if before == UNBORN:
        move(entry, queue, (message,), before, AVAILABLE)
    else:
        _offer_again(entry, message, before)


def _counted_backouts(message: Message) -> int:
    return message.backout_count - message.queue.doubts.get(message.sequence, 0)


def _delay_ms(message: Message, consumer: Consumer) -> int:
    """The redelivery delay of what comes back now: that of the destination before the consumer's
    before the session's, or its step, growing with each further backout.
    """
    settings, backouts = message.queue.settings, _counted_backouts(message)
    step = _step_for(settings.redelivery_steps, backouts)
    if step is not None:
        delay_ms, further = step["delay_ms"], backouts - 1 - step["retries"]
    else:
        delay_ms, further = settings.redelivery_delay_override_ms, backouts - 1
        if delay_ms < 0:
            delay_ms = consumer.redelivery_delay_ms
        if delay_ms < 0:
            delay_ms = consumer.session.redelivery_delay_ms
    longest_ms = settings.redelivery_delay_max_ms or TIMING_MS_MAX
    percent = settings.redelivery_delay_multiplier_percent
    while further > 0 and delay_ms < longest_ms:
        longer_ms = delay_ms * percent // 100
        if longer_ms == delay_ms:
            # It grows no further, however often it came back.
            break
        delay_ms = longer_ms
        further -= 1
    return min(delay_ms, longest_ms)


def _step_for(steps: list[RedeliveryStep], backouts: int) -> RedeliveryStep | None:
    """The last step whose retries have failed; the first backout is no failed retry (DB-21)."""
    return next((one for one in reversed(steps) if one["retries"] < backouts), None)


def _offer_again(entry: Entry, message: Message, before: int, flight: Flight | None = None) -> None:
    """Makes a message available again, unless it has come back too often."""
    queue, times = message.queue, message.times
    if times is not None and 0 <= times.redelivery_limit < _counted_backouts(message):
        _send_away(entry, message, before, flight, REDELIVERY_LIMIT)
    else:
        move(entry, queue, (message,), before, AVAILABLE, flight=flight)


def _send_away(
    entry: Entry, message: Message, before: int, flight: Flight | None, reason: str
) -> None:
    """To the error destination, which parks its group where order is kept; or it is dropped."""
    queue = message.queue
    destination = queue.settings.error_destination
    if destination and queue.group_order is not None:
        queue.group_order.park(message)
    cause = MOVED if destination else DROPPED
    move(entry, queue, (message,), before, GONE, cause=cause, flight=flight)
    if destination:
        transfer(entry, (message,), destination, reason)


def follow_parked(entry: Entry) -> None:
    """Lets what nobody holds of parked groups follow, by creation of its queue and by number."""
    touched = entry.touched_queues
    if not touched:
        return
    queues = [one for one in touched.values() if one.group_order and one.group_order.following]
    for queue in sorted(queues, key=CREATED_POSITION):
        if queue.created_position in entry.state.stores:
            _follow_in(entry, queue)


def _follow_in(entry: Entry, queue: Queue) -> None:
    order = queue.group_order
    assert order is not None, "something of it is to follow"
    for message in order.take_following():
        if not order.is_parked(message):
            continue
        if message.flags & LAST_IN_GROUP:
            key = message.group_key
            assert key is not None, "its group is parked"
            del order.parked[key]
        move(entry, queue, (message,), state_of(message), GONE, cause=MOVED)
        transfer(entry, (message,), queue.settings.error_destination, GROUP_PARKED)
