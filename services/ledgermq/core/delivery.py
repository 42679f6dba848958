"""Delivery: who gets the next messages of a queue (PROTOCOL.md §5 Delivery, H23)."""

from __future__ import annotations

from ledgermq.core.available import Available
from ledgermq.core.doubt import in_doubt
from ledgermq.core.limits import DELIVERED_CONTENT_BYTES_MAX, DELIVERED_MESSAGES_MAX
from ledgermq.core.outcomes import Delivered, DeliveredMessage
from ledgermq.core.state import Consumer, Message, Queue
from ledgermq.core.subscribing import retire
from ledgermq.core.timing import expire_due
from ledgermq.core.turn import Turn
from ledgermq.core.turns import Turns, is_held_back, turn_of

__all__ = ["deliver", "deliver_touched", "delivered_message", "is_paused"]

# Of a delivery in doubt that was chosen; it is numbered when all shares are known.
NOT_NUMBERED = -1


def deliver_touched(turn: Turn) -> None:
    """Serves the waiting consumers of every queue touched so far, in order of touch."""
    if turn.left:
        retire(turn)
    expire_due(turn.state)
    touched = turn.touched_queues
    if touched:
        for queue in touched.values():
            deliver(turn, queue)
        touched.clear()


def deliver(turn: Turn, queue: Queue) -> None:
    """Hands out what is available to those who wait, fewest in flight first."""
    if queue.suspended or not queue.available.count or not queue.ready:
        return
    special = _is_special(queue)
    if not special and len(queue.ready) > 1:
        shares = _share(turn, queue)
    else:
        # Nobody keeps the turns while they are not asked for.
        queue.turns = None
        if special:
            shares = _choose(turn, queue)
        else:
            shares = _serve_one(turn, queue)
    for _, order in queue.selected.values():
        order.tidy(queue.available.count)
    for consumer, messages in shares:
        _number_and_emit(turn, consumer, messages)


def _serve_one(turn: Turn, queue: Queue) -> list[tuple[Consumer, list[Message]]]:
    """Gives the one consumer that waits as much as it may take."""
    (consumer,) = queue.ready.values()
    if is_held_back(consumer):
        return []
    messages = queue.available.take(consumer.credit)
    _give(turn, consumer, messages)
    return [(consumer, messages)]


def _is_special(queue: Queue) -> bool:
    """Whether not every waiting consumer may take each message."""
    if queue.unacknowledged_max or queue.doubts:
        return True
    selected = queue.selected
    return bool(selected) and any(one.selector is not None for one in queue.ready.values())


def _choose(turn: Turn, queue: Queue) -> list[tuple[Consumer, list[Message]]]:
    """Shares messages one by one where not every consumer may take each of them.

    The message that comes first of all that anybody waiting may take goes to one of those who may
    take it: whoever's order it leads.
    """
    shares: dict[tuple[int, int], list[Message]] = {}
    consumers = queue.ready.copy()
    waiting = [one for one in consumers.values() if not is_held_back(one) and _room(one) > 0]
    while waiting:
        heads = {one.key: _order(queue, one).first() for one in waiting}
        first = min((one for one in heads.values() if one is not None), key=_place, default=None)
        if first is None:
            break
        takers = [one for one in waiting if heads[one.key] is first]
        consumer = min(takers, key=turn_of)
        _give(turn, consumer, [first])
        queue.available.leave()
        if in_doubt(first):
            consumer.doubt = NOT_NUMBERED
        shares.setdefault(consumer.key, []).append(first)
        waiting = [one for one in waiting if not one.doubt and _room(one) > 0]
    return [(consumers[key], messages) for key, messages in shares.items()]


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


def _order(queue: Queue, consumer: Consumer) -> Available:
    """The order in which a consumer takes: of all messages, or of those it selects."""
    selector = consumer.selector
    return queue.available if selector is None else queue.selected[selector.text][1]


def _place(message: Message) -> tuple[int, int]:
    return (-message.priority, message.sequence)


def _share(turn: Turn, queue: Queue) -> list[tuple[Consumer, list[Message]]]:
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
        _give(turn, consumer, messages)
        shares.setdefault(consumer.key, (consumer, []))[1].extend(messages)
        if consumer.credit:
            turns.join(consumer)
    turns.rest()
    return list(shares.values())


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
    if messages and in_doubt(messages[-1]):
        # What is in doubt comes alone, and nothing comes behind it.
        *plain, doubtful = messages
        _number_batches(turn, consumer, plain)
        consumer.doubt = consumer.session.next_delivery
        _number_batches(turn, consumer, [doubtful])
    else:
        _number_batches(turn, consumer, messages)


def _number_batches(turn: Turn, consumer: Consumer, messages: list[Message]) -> None:
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
            in_doubt=first_delivery == consumer.doubt,
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
    header, times = message.header, message.times
    if header is not None:
        told["header"] = {
            "properties": header["properties"],
            "correlation_id": header["correlation_id"],
            "type": header["type"],
            "expires_at": -1 if times is None else times.expires_at,
            "deliver_at": -1 if times is None else times.deliver_at,
        }
    return told
