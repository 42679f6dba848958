"""Delivery: who gets the next messages of a queue (PROTOCOL.md §5 Delivery, H23)."""

from __future__ import annotations

import heapq

from ledgermq.core.limits import DELIVERED_CONTENT_BYTES_MAX, DELIVERED_MESSAGES_MAX
from ledgermq.core.outcomes import Delivered, DeliveredMessage
from ledgermq.core.state import Consumer, Message, Queue
from ledgermq.core.turn import Turn

__all__ = ["deliver", "deliver_touched", "delivered_message"]


def deliver_touched(turn: Turn) -> None:
    """Serves the waiting consumers of every queue touched so far, in order of touch."""
    touched = turn.touched_queues
    if touched:
        for queue in touched.values():
            deliver(turn, queue)
        touched.clear()


def deliver(turn: Turn, queue: Queue) -> None:
    """Hands out what is available to those who wait, fewest in flight first."""
    if queue.suspended or not queue.available.count or not queue.ready:
        return
    ready = [one for one in queue.ready.values() if not one.session.suspected]
    if not ready:
        return
    if len(ready) == 1:
        consumer = ready[0]
        messages = queue.available.take(consumer.credit)
        _give(turn, consumer, messages)
        _number_and_emit(turn, consumer, messages)
        return
    for consumer, messages in _share(turn, queue, ready):
        _number_and_emit(turn, consumer, messages)


def _share(turn: Turn, queue: Queue, ready: list[Consumer]) -> list[tuple[Consumer, list[Message]]]:
    """Shares available messages one by one; ties go to whoever waits longest."""
    waiting = [(one.in_flight, one.waiting_since, one.session.handle, one.number) for one in ready]
    heapq.heapify(waiting)
    shares: dict[tuple[int, int], list[Message]] = {}
    consumers = queue.ready.copy()
    total = sum(one.credit for one in ready)
    for message in queue.available.take(total):
        _, _, handle, number = waiting[0]
        key = (handle, number)
        consumer = consumers[key]
        _give(turn, consumer, [message])
        shares.setdefault(key, []).append(message)
        if consumer.credit:
            entry = (consumer.in_flight, consumer.waiting_since, handle, number)
            heapq.heapreplace(waiting, entry)
        else:
            heapq.heappop(waiting)
    return [(consumers[key], messages) for key, messages in shares.items()]


def _give(turn: Turn, consumer: Consumer, messages: list[Message]) -> None:
    """Gives messages to a consumer; each costs one credit and puts it behind those who wait."""
    queue, count = consumer.queue, len(messages)
    for message in messages:
        message.consumer = consumer
    consumer.in_flight += count
    consumer.credit -= count
    turn.state.wait_order += count
    consumer.waiting_since = turn.state.wait_order
    if not consumer.credit:
        del queue.ready[consumer.key]
    if consumer.session.transacted:
        queue.uncommitted_gets += count
    else:
        queue.unacknowledged += count


def _number_and_emit(turn: Turn, consumer: Consumer, messages: list[Message]) -> None:
    """Makes messages deliveries of the session and tells them, cut so that no outcome grows.

    Numbers are given only here: two consumers of one session may share a queue, and each outcome
    numbers its messages one after the other.
    """
    session = consumer.session
    deliveries = session.deliveries
    delivery = session.next_delivery
    batch: list[DeliveredMessage] = []
    batch_bytes = 0
    for message in messages:
        batch_bytes += message.size_bytes
        if batch and (
            len(batch) == DELIVERED_MESSAGES_MAX or batch_bytes > DELIVERED_CONTENT_BYTES_MAX
        ):
            _emit_batch(turn, consumer, delivery - len(batch), batch)
            batch = []
            batch_bytes = message.size_bytes
        batch.append(delivered_message(message))
        deliveries[delivery] = message
        delivery += 1
    session.next_delivery = delivery
    _emit_batch(turn, consumer, delivery - len(batch), batch)


def _emit_batch(
    turn: Turn, consumer: Consumer, first_delivery: int, batch: list[DeliveredMessage]
) -> None:
    turn.emit(
        consumer.session.connection,
        Delivered(
            position=turn.position,
            index=turn.take_index(),
            session=consumer.session.handle,
            consumer=consumer.number,
            destination="queue:" + consumer.queue.name,
            first_delivery=first_delivery,
            messages=batch,
        ),
    )


def delivered_message(message: Message) -> DeliveredMessage:
    """What an outcome or a page of a browse says of a message; the shell adds the content."""
    return {
        "sequence": message.sequence,
        "put_position": message.put_position,
        "put_index": message.put_index,
        "message_id": message.message_id,
        "priority": message.priority,
        "persistent": message.persistent,
        "backout_count": message.backout_count,
        "enqueued_at": message.enqueued_at,
        "header": message.header,
        "content": b"",
    }
