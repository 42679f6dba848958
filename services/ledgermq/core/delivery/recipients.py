"""Recipients: who gets the next messages of a queue (PROTOCOL.md §5 Delivery, H23).

Either the only consumer that waits takes as much as it may, or several share what there is, unit by
unit: a message, or all segments of one that is got complete.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence

from ledgermq.core.order.affinity import bucket_of, first_bonded
from ledgermq.core.order.fifo import first_received, is_serialized
from ledgermq.core.order.group_positions import next_item, unit_of
from ledgermq.core.order.single_active import ready_consumers
from ledgermq.core.order.waiting_consumers import (
    first_waiting,
    join_waiting,
    waiting_key,
)
from ledgermq.core.state.group_order import SortKey
from ledgermq.core.state.message_states import AVAILABLE
from ledgermq.core.state.records import SORT_KEY, Consumer, Message, Queue
from ledgermq.core.structures.available import Available
from ledgermq.protocol.get_options import PLAIN

# A consumer, what it is given at once, and how much credit that costs it.
Given = tuple[Consumer, Sequence[Message], int]
# What a consumer would be given next.
Head = tuple[Consumer, Message | None]


def share_out(queue: Queue) -> Iterator[Given]:
    """Who is given what, one after the other; it goes on once what it yielded was given."""
    choose = _chooser_for(queue)
    if choose is not _one_by_one:
        # Nobody keeps that order while it is not asked for.
        queue.waiting = None
    return choose(queue)


def _chooser_for(queue: Queue) -> Callable[[Queue], Iterator[Given]]:
    if is_serialized(queue):
        return _one_at_a_time
    plain = not queue.unacknowledged_max and queue.affinity is None
    ready = ready_consumers(queue)
    if plain and not queue.doubts and len(ready) == 1 and next(iter(ready)).options == PLAIN:
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
    if consumer.order is not None:
        messages = consumer.order.take(consumer.credit)
    else:
        available = -1 if _keeps_back(queue) else queue.counts[AVAILABLE]
        messages = queue.available.take(consumer.credit, available)
    if messages:
        yield consumer, messages, len(messages)


def _one_by_one(queue: Queue) -> Iterator[Given]:
    """Every waiting consumer may take each message; ties go to whoever waits longest."""
    while queue.counts[AVAILABLE] and (consumer := first_waiting(queue)) is not None:
        messages = queue.available.take(1, queue.counts[AVAILABLE])
        assert messages, "what is counted is there"
        yield consumer, messages, 1
        join_waiting(consumer)


def _by_what_they_select(queue: Queue) -> Iterator[Given]:
    """As `_by_what_they_may_have`, where only selectors and match options tell consumers apart.

    What nobody wants to have costs nothing, however many wait for something else.
    """
    ready = queue.ready
    orders = [(one, one.users) for one in queue.filled_orders]
    heads: list[tuple[SortKey, int, list[Consumer]]] = []
    filled: list[Available[Message]] = []
    for order, users in [*orders, (queue.available, queue.unselecting)]:
        first = order.first()
        if first is None:
            continue
        few, others = (users, ready) if len(users) < len(ready) else (ready, users)
        # Whoever is inside of a group waits for the rest of it, whatever else is there.
        waiting = [one for key, one in few.items() if key in others and _head_for(one) is first]
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
            if consumer.key not in queue.ready and consumer in waiting:
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
        if queue.unacknowledged_max or given[0].key not in queue.ready:
            waiting = [one for one in waiting if one.key in queue.ready and _room(one) > 0]


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
    return [one for one in ready if _room(one) > 0]


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
    held = consumer.session.in_flight.get(consumer.queue.created_position, 0)
    return min(consumer.credit, limit - held)


def is_paused(consumer: Consumer) -> bool:
    """Whether a consumer waits for acknowledgements, because its session is at the limit."""
    return consumer.open and consumer.credit > 0 and _room(consumer) <= 0
