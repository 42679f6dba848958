"""Settling: deliveries consumed for good, or returned to their places (SEQ-16, INF-06..08)."""

from __future__ import annotations

from ledgermq.core.doubt import leave_flight, was_lost
from ledgermq.core.message import Message
from ledgermq.core.places import follow, place_after
from ledgermq.core.redelivery import come_back
from ledgermq.core.state import Consumer, Session
from ledgermq.core.timing import expire, is_over
from ledgermq.core.turn import Turn
from ledgermq.protocol.limits import BLOCK_MESSAGES
from ledgermq.protocol.operations import DeliveryRange
from ledgermq.protocol.reasons import DELIVERY_UNKNOWN, Refusal

__all__ = ["check_deliveries", "consume", "give_back", "give_back_all", "take_delivery"]


def check_deliveries(
    session: Session, ranges: list[DeliveryRange], consumer: Consumer | None = None
) -> Refusal | None:
    """Refuses ranges that do not rise or name what is not in flight (of the consumer, if given)."""
    deliveries = session.deliveries
    highest = 0
    for one in ranges:
        first, last = one["first"], one["last"]
        if first <= highest or last < first:
            return Refusal(DELIVERY_UNKNOWN, f"delivery range {first}..{last} does not rise")
        if last - first >= len(deliveries):
            return Refusal(
                DELIVERY_UNKNOWN, f"not all deliveries {first}..{last} are in flight here"
            )
        for delivery in range(first, last + 1):
            message = deliveries.get(delivery)
            if message is None or (consumer is not None and message.consumer is not consumer):
                where = "in this session" if consumer is None else f"of consumer {consumer.number}"
                return Refusal(
                    DELIVERY_UNKNOWN,
                    f"delivery {delivery} is not in flight {where}: it was never got, "
                    "or is settled or returned already",
                )
        highest = last
    return None


def take_delivery(turn: Turn, session: Session, delivery: int) -> Message:
    """Takes a message out of flight."""
    message = session.deliveries.pop(delivery)
    consumer = message.consumer
    assert consumer is not None, "a delivery in flight has a consumer"
    message.consumer = None
    if consumer.doubt or session.handed_doubts:
        leave_flight(turn, consumer, delivery)
    consumer.in_flight -= 1
    queue = message.queue
    turns = queue.turns
    if turns is not None and consumer.credit:
        turns.join(consumer)
    if session.transacted:
        queue.uncommitted_gets -= 1
        queue.uncommitted_gets_bytes -= message.size_bytes
    else:
        queue.unacknowledged -= 1
        queue.unacknowledged_bytes -= message.size_bytes
    if not consumer.open and not consumer.in_flight:
        del session.consumers[consumer.number]
    return message


def consume(turn: Turn, session: Session, ranges: list[DeliveryRange]) -> int:
    """Removes checked deliveries from the system; returns how many."""
    count = 0
    for one in ranges:
        first, last = one["first"], one["last"]
        for delivery in range(first, last + 1):
            consumer = session.deliveries[delivery].consumer
            message = take_delivery(turn, session, delivery)
            queue = message.queue
            if consumer is not None and (consumer.settled_place or message.group):
                consumer.settled_place = place_after(message)
            turn.ends_clash(message)
            queue.consume(message)
            if queue.unacknowledged_max:
                turn.touch(queue)
            if queue.retires:
                turn.leave(queue)
        count += last - first + 1
    return count


def give_back(turn: Turn, session: Session, delivery: int, *, backed_out: bool) -> None:
    """Returns one delivery to its place, counting the backout if the application saw it (D7).

    What was backed out may have to wait, or go elsewhere (INF-09).
    """
    consumer = session.deliveries[delivery].consumer
    assert consumer is not None, "a delivery in flight has a consumer"
    message = take_delivery(turn, session, delivery)
    queue = message.queue
    if backed_out:
        message.backout_count += 1
        queue.touched_blocks[message.sequence // BLOCK_MESSAGES] = None
    turn.touch(queue)
    if is_over(turn, message):
        expire(turn, message)
    elif backed_out:
        come_back(turn, message, consumer)
    else:
        queue.give_back(message)
    if queue.retires:
        turn.leave(queue)


def give_back_all(turn: Turn, session: Session, seen: list[DeliveryRange] | None) -> int:
    """Returns every delivery of a session; `seen` None: it was lost, and all are in doubt."""
    marked = (
        {number for one in seen for number in range(one["first"], one["last"] + 1)}
        if seen is not None
        else None
    )
    numbers = list(session.deliveries)
    for delivery in numbers:
        if marked is None:
            was_lost(session, delivery, session.deliveries[delivery])
        give_back(turn, session, delivery, backed_out=marked is None or delivery in marked)
    for consumer in session.consumers.values():
        if consumer.place is not None or consumer.settled_place is not None:
            follow(turn, consumer, consumer.settled_place)
    return len(numbers)
