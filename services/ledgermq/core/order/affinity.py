"""Group affinity: all messages of a group go to one consumer while it is there (PROTOCOL.md §13).

Groups fall into buckets, so that what is remembered is bounded however many groups there are. A
message that comes up in an order but belongs to another consumer is put aside for that one, so
that it is looked at once.
"""

from __future__ import annotations

import zlib

from ledgermq.core.state.group_order import SortKey
from ledgermq.core.state.records import Affinity, Consumer, Message, Queue
from ledgermq.core.structures.available import Available
from ledgermq.core.structures.lazy_heap import LazyHeap
from ledgermq.protocol.limits import AFFINITY_BUCKETS


def bucket_of(message: Message) -> int | None:
    key = message.group_key
    return None if key is None else zlib.crc32(key) % AFFINITY_BUCKETS


def bond(affinity: Affinity, message: Message, consumer: Consumer) -> None:
    bucket = bucket_of(message)
    if bucket is not None:
        affinity.bonds.setdefault(bucket, consumer)


def first_bonded(
    affinity: Affinity, order: Available[Message], consumer: Consumer
) -> Message | None:
    """What comes first of an order for a consumer; what belongs to others is put aside."""
    mine = _first_aside(affinity, order, consumer)
    while True:
        message = order.first()
        if message is None:
            return mine
        if mine is not None and message.sort_key > mine.sort_key:
            return mine
        bucket = bucket_of(message)
        bonded = None if bucket is None else affinity.bonds.get(bucket)
        if bonded is None or bonded is consumer:
            return message
        order.pop_head(message.priority)
        asides = affinity.aside.setdefault(order, {})
        if bonded.key not in asides:
            asides[bonded.key] = _new_aside(order, consumer.queue)
        asides[bonded.key].add(message.sort_key)


def _new_aside(order: Available[Message], queue: Queue) -> LazyHeap[SortKey]:
    def may_be_taken(key: SortKey) -> bool:
        message = queue.messages.get(key[1])
        return message is not None and order.may_be_taken(message)

    return LazyHeap(may_be_taken)


def _first_aside(
    affinity: Affinity, order: Available[Message], consumer: Consumer
) -> Message | None:
    asides = affinity.aside.get(order)
    aside = None if asides is None else asides.get(consumer.key)
    first = None if aside is None else aside.first()
    return None if first is None else consumer.queue.messages[first[1]]


def drop_bonds(consumer: Consumer) -> None:
    """Ends the bonds of a consumer that goes; what was put aside for it is anybody's."""
    affinity = consumer.queue.affinity
    if affinity is not None:
        bonds = affinity.bonds
        affinity.bonds = {bucket: one for bucket, one in bonds.items() if one is not consumer}
        for order, asides in affinity.aside.items():
            if consumer.key in asides:
                _offer(consumer.queue, order, asides.pop(consumer.key))


def set_affinity(queue: Queue, on: bool) -> None:
    if on and queue.affinity is None:
        queue.affinity = Affinity()
    elif not on and queue.affinity is not None:
        for order, asides in queue.affinity.aside.items():
            for aside in asides.values():
                _offer(queue, order, aside)
        queue.affinity = None


def forget_aside(queue: Queue, order: Available[Message]) -> None:
    if queue.affinity is not None:
        queue.affinity.aside.pop(order, None)


def _offer(queue: Queue, order: Available[Message], aside: LazyHeap[SortKey]) -> None:
    for sequence in dict.fromkeys(number for _, number in aside):
        message = queue.messages.get(sequence)
        if message is not None and message.is_available:
            order.offer(message)
