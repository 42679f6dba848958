"""Delivery: what consumers are given, numbered and told to their sessions (PROTOCOL.md §5, H23)."""

from __future__ import annotations

from collections.abc import Sequence

from ledgermq.core.delivery.delivered_messages import delivered_message
from ledgermq.core.delivery.expiry import expire_due
from ledgermq.core.delivery.recipients import share_out
from ledgermq.core.destinations.subscriptions import retire
from ledgermq.core.entry import Entry
from ledgermq.core.moves import in_flight_of, move, report
from ledgermq.core.order.affinity import bond
from ledgermq.core.order.displacing import displace
from ledgermq.core.order.group_positions import follow, position_after
from ledgermq.core.state.message_states import AVAILABLE
from ledgermq.core.state.records import Consumer, Message, Queue
from ledgermq.core.unit_limits import take_part
from ledgermq.protocol.limits import DELIVERED_CONTENT_BYTES_MAX, DELIVERED_MESSAGES_MAX
from ledgermq.protocol.outcomes import Delivered, DeliveredMessage


def deliver_touched(entry: Entry) -> bool:
    """Serves the waiting consumers of every queue touched so far, in order of touch.

    What they leave may be too much (§23); returns whether something was displaced.
    """
    if entry.left:
        retire(entry)
    expire_due(entry)
    touched = entry.touched_queues
    if touched:
        for queue in touched.values():
            deliver(entry, queue)
        crowded = [one for one in touched.values() if one.newest is not None]
        touched.clear()
        displaced = [displace(entry, one) for one in crowded]
        return any(displaced)
    return False


def deliver(entry: Entry, queue: Queue) -> None:
    """Hands out what is available to those who wait, fewest in flight first."""
    if queue.gets_disabled or not queue.counts[AVAILABLE] or not queue.ready:
        return
    shares: dict[tuple[int, int], tuple[Consumer, list[Message]]] = {}
    for consumer, messages, cost in share_out(queue):
        if queue.affinity is not None:
            bond(queue.affinity, messages[0], consumer)
        if queue.single_active_consumer:
            queue.active = consumer
        _give(entry, consumer, messages, cost)
        if queue.doubts and any(one.sequence in queue.doubts for one in messages):
            # Numbered when all shares are known; until then, how many messages it is.
            consumer.doubt = -len(messages)
            queue.ready.pop(consumer.key, None)
        shares.setdefault(consumer.key, (consumer, []))[1].extend(messages)
    for order in list(queue.filled_orders):
        order.tidy(queue.counts[AVAILABLE])
        if not order.has_entries:
            del queue.filled_orders[order]
    for consumer, share in shares.values():
        _number_and_emit(entry, consumer, share)


def _give(entry: Entry, consumer: Consumer, messages: Sequence[Message], cost: int) -> None:
    """Gives messages to a consumer; they cost it credit, and it is behind those who wait."""
    queue, count = consumer.queue, len(messages)
    after = in_flight_of(consumer.session)
    move(entry, queue, messages, AVAILABLE, after, flight=(consumer, ()))
    follow(entry, consumer, position_after(messages[-1]))
    consumer.hold(count)
    consumer.credit -= cost
    entry.state.wait_order += count
    consumer.waiting_since = entry.state.wait_order
    if not consumer.credit:
        del queue.ready[consumer.key]


def _number_and_emit(entry: Entry, consumer: Consumer, messages: list[Message]) -> None:
    """Makes messages deliveries of the session and reports them, cut so that no outcome grows.

    Numbers are given only here: two consumers of one session may share a queue, and each outcome
    numbers its messages one after the other.
    """
    doubtful = -consumer.doubt
    if doubtful > 0:
        # What is in doubt comes alone, and nothing comes behind it.
        _number_batches(entry, consumer, messages[:-doubtful])
        consumer.doubt = consumer.session.next_delivery + doubtful - 1
        _number_batches(entry, consumer, messages[-doubtful:])
    else:
        _number_batches(entry, consumer, messages)


def _number_batches(entry: Entry, consumer: Consumer, messages: list[Message]) -> None:
    session = consumer.session
    deliveries = session.deliveries
    if session.transacted:
        take_part(entry, session)
    delivery = session.next_delivery
    if entry.listener is not None:
        flight = (consumer, range(delivery, delivery + len(messages)))
        what = (AVAILABLE, in_flight_of(session), "")
        report(entry, consumer.queue, messages, what, flight=flight)
    batch: list[DeliveredMessage] = []
    batch_bytes = 0
    for message in messages:
        batch_bytes += message.size_bytes
        if batch and (
            len(batch) == DELIVERED_MESSAGES_MAX or batch_bytes > DELIVERED_CONTENT_BYTES_MAX
        ):
            _emit_batch(entry, consumer, delivery - len(batch), batch)
            batch = []
            batch_bytes = message.size_bytes
        batch.append(delivered_message(message))
        deliveries[delivery] = message
        delivery += 1
    session.next_delivery = delivery
    if batch:
        _emit_batch(entry, consumer, delivery - len(batch), batch)


def _emit_batch(
    entry: Entry, consumer: Consumer, first_delivery: int, batch: list[DeliveredMessage]
) -> None:
    entry.emit(
        consumer.session.connection,
        Delivered(
            position=entry.position,
            index=entry.take_index(),
            session=consumer.session.handle,
            consumer=consumer.number,
            destination=consumer.queue.destination,
            first_delivery=first_delivery,
            messages=batch,
            in_doubt=first_delivery + len(batch) - 1 == consumer.doubt,
        ),
    )
