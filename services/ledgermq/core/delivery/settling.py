"""Settling: deliveries consumed for good, or returned to their places (SEQ-16, INF-06..08)."""

from __future__ import annotations

from collections.abc import Sequence

from ledgermq.core.delivery.doubt import leave_flight, was_lost
from ledgermq.core.delivery.expiry import expire, is_over
from ledgermq.core.delivery.redelivery import back_out, send_away_rejected
from ledgermq.core.entry import Entry
from ledgermq.core.moves import in_flight_of, move
from ledgermq.core.order.fifo import check_order
from ledgermq.core.order.group_positions import follow, position_after, settle_position
from ledgermq.core.order.waiting_consumers import join_waiting
from ledgermq.core.state.message_states import AVAILABLE, CONSUMED, GONE
from ledgermq.core.state.records import Consumer, Message, Session
from ledgermq.protocol.limits import BLOCK_MESSAGES
from ledgermq.protocol.operations import Acknowledge, DeliveryRange, deliveries_in
from ledgermq.protocol.reasons import Reason, Refusal


def check_deliveries(
    session: Session, ranges: list[DeliveryRange], consumer: Consumer | None = None
) -> Refusal | None:
    """Refuses ranges that do not rise or name what is not in flight (of the consumer, if given)."""
    deliveries = session.deliveries
    highest = 0
    for one in ranges:
        first, last = one["first"], one["last"]
        if first <= highest or last < first:
            return Refusal(Reason.DELIVERY_UNKNOWN, f"delivery range {first}..{last} does not rise")
        if last - first >= len(deliveries):
            return Refusal(
                Reason.DELIVERY_UNKNOWN, f"not all deliveries {first}..{last} are in flight here"
            )
        for delivery in range(first, last + 1):
            message = deliveries.get(delivery)
            if message is None or (consumer is not None and message.consumer is not consumer):
                where = "in this session" if consumer is None else f"of consumer {consumer.number}"
                return Refusal(
                    Reason.DELIVERY_UNKNOWN,
                    f"delivery {delivery} is not in flight {where}: it was never got, "
                    "or is settled or returned already",
                )
        highest = last
    return None


def end_flight(
    entry: Entry, session: Session, consumer: Consumer, deliveries: Sequence[int]
) -> list[Message]:
    messages = [session.deliveries.pop(one) for one in deliveries]
    if consumer.doubt or session.handed_doubts:
        for delivery in deliveries:
            leave_flight(entry, consumer, delivery)
    consumer.hold(-len(messages))
    join_waiting(consumer)
    if not consumer.open and not consumer.in_flight:
        del session.consumers[consumer.number]
    return messages


def consume(entry: Entry, session: Session, ranges: list[DeliveryRange]) -> int:
    numbers = deliveries_in(ranges)
    receivers = [session.deliveries[number].consumer for number in numbers]
    at, count = 0, len(numbers)
    while at < count:
        # What one consumer got is settled at once.
        consumer, first = receivers[at], at
        while at < count and receivers[at] is consumer:
            at += 1
        assert consumer is not None, "a delivery in flight has a consumer"
        deliveries = numbers[first:at]
        messages = end_flight(entry, session, consumer, deliveries)
        if consumer.options.logical_order:
            settle_position(consumer)
        else:
            consumer.settled_position = position_after(messages[-1])
        queue, before = consumer.queue, in_flight_of(session)
        flight = (consumer, deliveries)
        move(entry, queue, messages, before, GONE, cause=CONSUMED, flight=flight)
        if queue.unacknowledged_max or queue.single_active_consumer:
            entry.touch(queue)
        if queue.retires:
            entry.leave(queue)
    return count


def give_back(
    entry: Entry,
    session: Session,
    delivery: int,
    *,
    backed_out: bool,
    rejected: bool = False,
    delay_ms: int = -1,
) -> None:
    """Returns one delivery to its place, counting the backout if the application saw it (D7).

    What was backed out may have to wait, or go elsewhere (INF-09); what was rejected goes. -1: it
    waits as the settings say.
    """
    consumer = session.deliveries[delivery].consumer
    assert consumer is not None, "a delivery in flight has a consumer"
    flight = (consumer, (delivery,))
    (message,) = end_flight(entry, session, *flight)
    queue, before = message.queue, in_flight_of(session)
    if backed_out:
        message.backout_count += 1
        queue.touched_blocks[message.sequence // BLOCK_MESSAGES] = None
    entry.touch(queue)
    if is_over(entry, message):
        expire(entry, message, before, flight)
    elif rejected:
        send_away_rejected(entry, message, flight)
    elif backed_out:
        back_out(entry, message, flight, delay_ms)
    else:
        move(entry, queue, (message,), before, AVAILABLE, flight=flight)
    if queue.retires:
        entry.leave(queue)


def give_back_all(entry: Entry, session: Session, seen: list[DeliveryRange] | None) -> int:
    """Returns every delivery of a session.

    `seen` None: it was lost, or others ended its unit of work, and all are in doubt.
    """
    marked = None if seen is None else set(deliveries_in(seen))
    numbers = list(session.deliveries)
    for delivery in numbers:
        if marked is None:
            was_lost(session, delivery, session.deliveries[delivery])
        give_back(entry, session, delivery, backed_out=marked is None or delivery in marked)
    for consumer in session.consumers.values():
        if consumer.group_position is not None or consumer.settled_position is not None:
            follow(entry, consumer, consumer.settled_position)
    return len(numbers)


def acknowledge(entry: Entry, session: Session, operation: Acknowledge) -> Refusal | None:
    """Settles deliveries for good (INF-06)."""
    if session.transacted:
        return Refusal(
            Reason.TRANSACTED, "a transacted session settles by commit, not by acknowledge"
        )
    refusal = check_deliveries(session, operation.deliveries)
    refusal = refusal or check_order(session, operation.deliveries)
    if refusal is not None:
        return refusal
    consume(entry, session, operation.deliveries)
    return None
