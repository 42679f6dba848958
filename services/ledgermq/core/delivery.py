"""Delivery: who gets the next messages of a queue (PROTOCOL.md §5 Delivery, H23)."""

from __future__ import annotations

from collections.abc import Sequence

from ledgermq.core.affinity import bucket_of
from ledgermq.core.doubt import in_doubt
from ledgermq.core.fifo import first_received, is_serialized, note_received
from ledgermq.core.grouping import group_record
from ledgermq.core.message import GroupedMessage, Message, place_in_order
from ledgermq.core.places import follow, next_item, place_after
from ledgermq.core.state import Consumer, Queue
from ledgermq.core.subscribing import retire
from ledgermq.core.timing import expire_due
from ledgermq.core.turn import Turn
from ledgermq.core.turns import Turns, is_held_back, turn_of
from ledgermq.protocol.get_options import Options
from ledgermq.protocol.limits import DELIVERED_CONTENT_BYTES_MAX, DELIVERED_MESSAGES_MAX
from ledgermq.protocol.outcomes import EMPTY_HEADER, Delivered, DeliveredHeader, DeliveredMessage

__all__ = ["deliver", "deliver_touched", "delivered_message", "is_paused", "may_take"]

Shares = list[tuple[Consumer, list[Message]]]


def deliver_touched(turn: Turn) -> None:
    """Serves the waiting consumers of every queue touched so far, in order of touch."""
    if turn.left:
        retire(turn)
    expire_due(turn)
    touched = turn.touched_queues
    if touched:
        for queue in touched.values():
            deliver(turn, queue)
        touched.clear()


def deliver(turn: Turn, queue: Queue) -> None:
    """Hands out what is available to those who wait, fewest in flight first."""
    if queue.gets_disabled or not queue.available.count or not queue.ready:
        return
    same = _is_same_for_all(queue)
    if is_serialized(queue):
        queue.turns = None
        shares = _serve_serially(turn, queue)
    elif same and len(queue.ready) > 1:
        shares = _share(turn, queue)
    else:
        # Nobody keeps the turns while they are not asked for.
        queue.turns = None
        if same:
            shares = _serve_one(turn, queue)
        elif len(queue.ready) > 1 or queue.unacknowledged_max or queue.doubts or queue.affinity:
            shares = _choose(turn, queue)
        else:
            shares = _serve_by_order(turn, queue)
    for order in queue.orders.values():
        order.tidy(queue.available.count)
    for consumer, messages in shares:
        _number_and_emit(turn, consumer, messages)


def _is_same_for_all(queue: Queue) -> bool:
    """Whether every waiting consumer may take each message, whatever it took before."""
    if queue.unacknowledged_max or queue.doubts or queue.kept or queue.affinity is not None:
        return False
    if queue.group_order is not None and queue.group_order.delayed:
        return False
    return not queue.orders or all(one.order is None for one in queue.ready.values())


def _serve_one(turn: Turn, queue: Queue) -> Shares:
    """Gives the one consumer that waits as much as it may take."""
    (consumer,) = queue.ready.values()
    if is_held_back(consumer):
        return []
    messages = queue.available.take(consumer.credit)
    _give(turn, consumer, messages, len(messages))
    return [(consumer, messages)]


def _serve_by_order(turn: Turn, queue: Queue) -> Shares:
    """Gives the one consumer that waits what it selects, in its order, message by message."""
    (consumer,) = queue.ready.values()
    if is_held_back(consumer):
        return []
    messages: list[Message] = []
    credit = cost = consumer.credit
    options = consumer.options
    in_order = options.logical_order
    while credit:
        head = _head_for(consumer)
        if head is None:
            break
        for item in _unit_of(options, head):
            item.consumer = consumer
            if isinstance(item, GroupedMessage):
                item.group.went(item)
            messages.append(item)
        if in_order:
            follow(turn, consumer, place_after(messages[-1]))
        credit -= 1
    cost -= credit
    queue.available.leave(len(messages))
    _give(turn, consumer, messages, cost)
    return [(consumer, messages)]


def _choose(turn: Turn, queue: Queue) -> Shares:
    """Shares messages one by one where not every consumer may take each of them.

    The message that comes first of all that anybody waiting may take goes to one of those who may
    take it: whoever's order it leads.
    """
    shares: dict[tuple[int, int], list[Message]] = {}
    consumers = queue.ready.copy()
    waiting = _waiting(queue)
    while waiting:
        given = _give_first(turn, queue, [(one, _head_for(one)) for one in waiting])
        if given is None:
            break
        consumer, messages = given
        shares.setdefault(consumer.key, []).extend(messages)
        waiting = [one for one in waiting if not one.doubt and _room(one) > 0]
    return [(consumers[key], messages) for key, messages in shares.items()]


def _waiting(queue: Queue) -> list[Consumer]:
    return [one for one in queue.ready.values() if not is_held_back(one) and _room(one) > 0]


def _give_first(
    turn: Turn, queue: Queue, heads: list[tuple[Consumer, Message | None]]
) -> tuple[Consumer, list[Message]] | None:
    """Gives what comes first of what consumers would be given next, to whose turn it is."""
    first = min((head for _, head in heads if head is not None), key=place_in_order, default=None)
    if first is None:
        return None
    consumer = min((one for one, head in heads if head is first), key=turn_of)
    messages = _unit_of(consumer.options, first)
    if queue.affinity is not None:
        queue.affinity.bond(first, consumer)
    _give(turn, consumer, messages, 1)
    queue.available.leave(len(messages))
    if queue.doubts and any(in_doubt(one) for one in messages):
        # Numbered when all shares are known; until then, how many messages it is.
        consumer.doubt = -len(messages)
    return consumer, list(messages)


def _serve_serially(turn: Turn, queue: Queue) -> Shares:
    """Gives one message if nothing is in flight; what was received before comes first (DB-22)."""
    if queue.unacknowledged or queue.uncommitted_gets:
        return []
    waiting = _waiting(queue)
    back = first_received(queue)
    if back is None:
        heads = [(one, _head_for(one)) for one in waiting]
    else:
        heads = [(one, back) for one in waiting if may_take(one, back)]
    given = _give_first(turn, queue, heads)
    return [] if given is None else [given]


def may_take(consumer: Consumer, message: Message) -> bool:
    """Whether a consumer may be given a message of its queue now, whatever comes before that."""
    if not message.is_here:
        return False
    place, queue, order = consumer.place, consumer.queue, consumer.order
    if place is not None and consumer.options.logical_order:
        return next_item(consumer, place) is message
    if order is not None and not order.wants(message):
        return False
    if not (queue.available if order is None else order).stands(message):
        return False
    if queue.affinity is None:
        return True
    bucket = bucket_of(message)
    return bucket is None or queue.affinity.bonds.get(bucket, consumer) is consumer


def _head_for(consumer: Consumer) -> Message | None:
    """What a consumer would be given next: at its place in a group, else first in its order."""
    place = consumer.place
    if place is not None and consumer.options.logical_order:
        return next_item(consumer, place)
    queue = consumer.queue
    order = queue.available if consumer.order is None else consumer.order
    return order.first() if queue.affinity is None else queue.affinity.first(order, consumer)


def _unit_of(options: Options, head: Message) -> Sequence[Message]:
    """What is delivered at once: a message, or all segments of one that is got complete.

    Who is inside a logical message already gets the rest of it segment by segment.
    """
    if not options.complete_message or not isinstance(head, GroupedMessage) or head.offset:
        return [head]
    unit = head.group.unit_of(head)
    assert unit is not None, "what is got complete is whole"
    return unit


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


def _share(turn: Turn, queue: Queue) -> Shares:
    """Shares available messages one by one; ties go to whoever waits longest."""
    if queue.turns is None:
        queue.turns = Turns(queue.ready)
    turns = queue.turns
    shares: dict[tuple[int, int], tuple[Consumer, list[Message]]] = {}
    while queue.available.count:
        consumer = turns.first()
        if consumer is None:
            break
        messages = queue.available.take(1)
        _give(turn, consumer, messages, 1)
        shares.setdefault(consumer.key, (consumer, []))[1].extend(messages)
        if consumer.credit:
            turns.join(consumer)
    turns.rest()
    return list(shares.values())


def _give(turn: Turn, consumer: Consumer, messages: Sequence[Message], cost: int) -> None:
    """Gives messages to a consumer; they cost it credit, and it is behind those who wait."""
    queue, count = consumer.queue, len(messages)
    if not count:
        return
    size_bytes = 0
    for message in messages:
        message.consumer = consumer
        size_bytes += message.size_bytes
        if isinstance(message, GroupedMessage):
            message.group.went(message)
    if queue.received is not None:
        note_received(queue, messages)
    follow(turn, consumer, place_after(messages[-1]))
    consumer.in_flight += count
    consumer.credit -= cost
    turn.state.wait_order += count
    consumer.waiting_since = turn.state.wait_order
    if not consumer.credit:
        del queue.ready[consumer.key]
    if consumer.session.transacted:
        queue.uncommitted_gets += count
        queue.uncommitted_gets_bytes += size_bytes
    else:
        queue.unacknowledged += count
        queue.unacknowledged_bytes += size_bytes


def _number_and_emit(turn: Turn, consumer: Consumer, messages: list[Message]) -> None:
    """Makes messages deliveries of the session and tells them, cut so that no outcome grows.

    Numbers are given only here: two consumers of one session may share a queue, and each outcome
    numbers its messages one after the other.
    """
    doubtful = -consumer.doubt
    if doubtful > 0:
        # What is in doubt comes alone, and nothing comes behind it.
        _number_batches(turn, consumer, messages[:-doubtful])
        consumer.doubt = consumer.session.next_delivery + doubtful - 1
        _number_batches(turn, consumer, messages[-doubtful:])
    else:
        _number_batches(turn, consumer, messages)


def _number_batches(turn: Turn, consumer: Consumer, messages: list[Message]) -> None:
    session = consumer.session
    deliveries = session.deliveries
    if session.transacted:
        session.begin_unit_of_work(turn.state.time)
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
    if batch:
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
            destination=consumer.queue.destination,
            first_delivery=first_delivery,
            messages=batch,
            in_doubt=first_delivery + len(batch) - 1 == consumer.doubt,
        ),
    )


def delivered_message(message: Message) -> DeliveredMessage:
    """What an outcome or a page of a browse says of a message; the shell adds the content."""
    told: DeliveredMessage = {
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
        told["body"] = message.body
    if (
        message.header is not None
        or message.times is not None
        or message.origin is not None
        or message.group is not None
    ):
        header = _delivered_header(message)
        if header != EMPTY_HEADER:
            told["header"] = header
    return told


def _delivered_header(message: Message) -> DeliveredHeader:
    header, times = message.header, message.times
    return {
        "properties": {} if header is None else header["properties"],
        "correlation_id": None if header is None else header["correlation_id"],
        "type": None if header is None else header["type"],
        "expires_at": -1 if times is None else times.expires_at,
        "deliver_at": -1 if times is None else times.deliver_at,
        "group": group_record(message),
        "origin": message.origin,
    }
