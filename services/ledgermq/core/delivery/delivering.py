"""Delivery: who gets the next messages of a queue (PROTOCOL.md §5 Delivery, H23).

Either the only consumer that waits takes as much as it may, or several share what there is, unit by
unit: a message, or all segments of one that is got complete.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence

from ledgermq.core.delivery.expiry import expire_due
from ledgermq.core.destinations.subscriptions import retire
from ledgermq.core.entry import Entry
from ledgermq.core.moves import in_flight_of, move, report
from ledgermq.core.order.affinity import bond, bucket_of, first_bonded
from ledgermq.core.order.displacing import displace
from ledgermq.core.order.fifo import first_received, is_serialized
from ledgermq.core.order.group_positions import follow, next_item, position_after, unit_of
from ledgermq.core.order.single_active import ready_consumers
from ledgermq.core.order.waiting_consumers import (
    first_waiting,
    is_held_back,
    join_waiting,
    waiting_key,
)
from ledgermq.core.puts.grouping import group_record
from ledgermq.core.state.group_order import SortKey
from ledgermq.core.state.message_states import AVAILABLE
from ledgermq.core.state.records import (
    SORT_KEY,
    Consumer,
    GroupedMessage,
    Message,
    Queue,
    WaitingKey,
)
from ledgermq.core.structures.available import Available
from ledgermq.core.unit_limits import take_part
from ledgermq.protocol.get_options import PLAIN
from ledgermq.protocol.limits import DELIVERED_CONTENT_BYTES_MAX, DELIVERED_MESSAGES_MAX
from ledgermq.protocol.outcomes import EMPTY_HEADER, Delivered, DeliveredHeader, DeliveredMessage

# A consumer, what it is given at once, and how much credit that costs it.
Given = tuple[Consumer, Sequence[Message], int]
# What a consumer would be given next.
Head = tuple[Consumer, Message | None]


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
    choose = _chooser_for(queue)
    if choose is not _one_by_one:
        # Nobody keeps that order while it is not asked for.
        queue.waiting = None
    shares: dict[tuple[int, int], tuple[Consumer, list[Message]]] = {}
    for consumer, messages, cost in choose(queue):
        if queue.affinity is not None:
            bond(queue.affinity, messages[0], consumer)
        if queue.single_active_consumer:
            queue.active = consumer
        _give(entry, consumer, messages, cost)
        if queue.doubts and any(one.sequence in queue.doubts for one in messages):
            # Numbered when all shares are known; until then, how many messages it is.
            consumer.doubt = -len(messages)
        shares.setdefault(consumer.key, (consumer, []))[1].extend(messages)
    for order in list(queue.filled_orders):
        order.tidy(queue.counts[AVAILABLE])
        if not order.has_entries:
            del queue.filled_orders[order]
    for consumer, share in shares.values():
        _number_and_emit(entry, consumer, share)


def _chooser_for(queue: Queue) -> Callable[[Queue], Iterator[Given]]:
    """How messages are shared out; an iterator goes on once what it yielded was given."""
    if is_serialized(queue):
        return _one_at_a_time
    plain = not queue.unacknowledged_max and not queue.doubts and queue.affinity is None
    ready = ready_consumers(queue)
    if plain and len(ready) == 1 and next(iter(ready)).options == PLAIN:
        return _all_at_once
    plain = plain and not queue.single_active_consumer
    alike = not queue.orders or all(one.order is None for one in queue.ready.values())
    if plain and alike and not _keeps_back(queue):
        return _one_by_one
    if plain and not queue.groups:
        return _by_what_they_select
    return _by_what_they_may_have


def _keeps_back(queue: Queue) -> bool:
    """Whether what is available may have to wait for another message of its group."""
    return bool(queue.reserved) or (
        queue.group_order is not None and bool(queue.group_order.delayed)
    )


def _all_at_once(queue: Queue) -> Iterator[Given]:
    """The one consumer that waits gets as much of what it selects as it may take."""
    (consumer,) = ready_consumers(queue)
    if is_held_back(consumer):
        return
    if consumer.order is not None:
        messages = consumer.order.take(consumer.credit)
    else:
        available = -1 if _keeps_back(queue) else queue.counts[AVAILABLE]
        messages = queue.available.take(consumer.credit, available)
    if messages:
        yield consumer, messages, len(messages)


def _one_by_one(queue: Queue) -> Iterator[Given]:
    """Every waiting consumer may take each message; ties go to whoever waits longest."""
    passed_over: list[WaitingKey] = []
    while queue.counts[AVAILABLE]:
        consumer = first_waiting(queue, passed_over)
        if consumer is None:
            break
        messages = queue.available.take(1, queue.counts[AVAILABLE])
        assert messages, "what is counted is there"
        yield consumer, messages, 1
        join_waiting(consumer)
    for key in passed_over:
        assert queue.waiting is not None, "they were in it"
        queue.waiting.add(key)


def _by_what_they_select(queue: Queue) -> Iterator[Given]:
    """As `_by_what_they_may_have`, where only selectors and match options tell consumers apart.

    What nobody wants to have costs nothing, however many wait for something else.
    """
    orders = [(one, one.users) for one in queue.filled_orders]
    heads: list[tuple[SortKey, int, list[Consumer]]] = []
    filled: list[Available[Message]] = []
    for order, users in [*orders, (queue.available, queue.unselecting)]:
        first = order.first()
        if first is None:
            continue
        waiting = _waiting(one for one in users.values() if one.key in queue.ready)
        # Whoever is inside of a group waits for the rest of it, whatever else is there.
        waiting = [one for one in waiting if _head_for(one) is first]
        if waiting:
            heads.append((first.sort_key, len(filled), waiting))
            filled.append(order)
    heapq.heapify(heads)
    while heads:
        # Several orders may have the same message first.
        leading = [heapq.heappop(heads)]
        while heads and heads[0][0] == leading[0][0]:
            leading.append(heapq.heappop(heads))
        first = filled[leading[0][1]].first()
        assert first is not None, "only its own consumers have taken of it"
        consumer = min((one for _, _, waiting in leading for one in waiting), key=waiting_key)
        yield consumer, [first], 1
        for _, number, waiting in leading:
            if not consumer.credit and consumer in waiting:
                waiting.remove(consumer)
            following = filled[number].first()
            if waiting and following is not None:
                heapq.heappush(heads, (following.sort_key, number, waiting))


def _by_what_they_may_have(queue: Queue) -> Iterator[Given]:
    """Not every consumer may take each message.

    The message that comes first of all that anybody waiting may take goes to one of those who may
    take it: whoever's order it leads.
    """
    waiting = _waiting(ready_consumers(queue))
    while waiting and (given := _first_of([(one, _head_for(one)) for one in waiting])):
        yield given
        if queue.single_active_consumer:
            waiting = [given[0]]
        if given[0].doubt or queue.unacknowledged_max or not given[0].credit:
            waiting = [one for one in waiting if not one.doubt and _room(one) > 0]


def _one_at_a_time(queue: Queue) -> Iterator[Given]:
    """One message if nothing is in flight; what was received before comes first (DB-22)."""
    if queue.in_flight:
        return
    waiting = _waiting(ready_consumers(queue))
    back = first_received(queue)
    if back is None:
        heads = [(one, _head_for(one)) for one in waiting]
    else:
        heads = [(one, back) for one in waiting if may_take(one, back)]
    if heads and (given := _first_of(heads)):
        yield given


def _waiting(ready: Iterable[Consumer]) -> list[Consumer]:
    return [one for one in ready if not is_held_back(one) and _room(one) > 0]


def _first_of(heads: list[Head]) -> Given | None:
    """The first message of all heads, for whichever consumer comes first of those it heads."""
    if len(heads) == 1:
        ((consumer, first),) = heads
    else:
        first = min((head for _, head in heads if head is not None), key=SORT_KEY, default=None)
        consumer = min((one for one, head in heads if head is first), key=waiting_key)
    return None if first is None else (consumer, unit_of(consumer.options, first), 1)


def may_take(consumer: Consumer, message: Message) -> bool:
    """Whether a consumer may be given a message of its queue now, even if others come before it."""
    if not message.is_available:
        return False
    position, queue, order = consumer.group_position, consumer.queue, consumer.order
    if position is not None and consumer.options.logical_order:
        return next_item(consumer, position) is message
    if order is not None and not order.wants(message):
        return False
    if not (queue.available if order is None else order).may_be_taken(message):
        return False
    if queue.affinity is None:
        return True
    bucket = bucket_of(message)
    return bucket is None or queue.affinity.bonds.get(bucket, consumer) is consumer


def _head_for(consumer: Consumer) -> Message | None:
    """What a consumer would be given next: at its position in a group, else first in its order."""
    position = consumer.group_position
    if position is not None and consumer.options.logical_order:
        return next_item(consumer, position)
    queue = consumer.queue
    order = queue.available if consumer.order is None else consumer.order
    affinity = queue.affinity
    return order.first() if affinity is None else first_bonded(affinity, order, consumer)


def _room(consumer: Consumer) -> int:
    """How many more messages a consumer may take: its credit, and its session's limit (SES-07)."""
    limit = consumer.queue.unacknowledged_max
    if not limit:
        return consumer.credit
    others = consumer.session.consumers.values()
    held = sum(one.in_flight for one in others if one.queue is consumer.queue)
    return min(consumer.credit, limit - held)


def is_paused(consumer: Consumer) -> bool:
    """Whether a consumer waits for acknowledgements, because its session is at the limit."""
    return consumer.open and consumer.credit > 0 and _room(consumer) <= 0


def _give(entry: Entry, consumer: Consumer, messages: Sequence[Message], cost: int) -> None:
    """Gives messages to a consumer; they cost it credit, and it is behind those who wait."""
    queue, count = consumer.queue, len(messages)
    after = in_flight_of(consumer.session)
    move(entry, queue, messages, AVAILABLE, after, flight=(consumer, ()))
    follow(entry, consumer, position_after(messages[-1]))
    consumer.in_flight += count
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


def delivered_message(message: Message) -> DeliveredMessage:
    """What an outcome or a page of a browse says of a message; the shell adds the content."""
    record: DeliveredMessage = {
        "sequence": message.sequence,
        "put_position": message.put_position,
        "put_index": message.put_index,
        "message_id": message.message_id,
        "priority": message.priority,
        "persistent": message.persistent,
        "backout_count": message.backout_count,
        "enqueued_at": message.enqueued_at,
        "content": b"",
    }
    if message.body is not None:
        record["body"] = message.body
    if (
        message.header is not None
        or message.times is not None
        or message.origin is not None
        or message.group is not None
    ):
        header = _delivered_header(message)
        if header != EMPTY_HEADER:
            record["header"] = header
    return record


def _delivered_header(message: Message) -> DeliveredHeader:
    header, times = message.header, message.times
    return {
        "properties": {} if header is None else header["properties"],
        "correlation_id": None if header is None else header["correlation_id"],
        "type": None if header is None else header["type"],
        "expires_at": -1 if times is None else times.expires_at,
        "deliver_at": -1 if times is None else times.deliver_at,
        "group": group_record(message) if isinstance(message, GroupedMessage) else None,
        "origin": message.origin,
    }
