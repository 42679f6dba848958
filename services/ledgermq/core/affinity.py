"""Group affinity: all messages of a group go to one consumer while it is there (PROTOCOL.md §13).

Groups fall into buckets, so that what is remembered is bounded however many groups there are. A
message that comes up in an order but belongs to another consumer is put aside for that one, so
that it is looked at once.
"""

from __future__ import annotations

import heapq
import zlib
from typing import TYPE_CHECKING

from ledgermq.core.group_order import group_key
from ledgermq.core.message import Message, place_in_order
from ledgermq.protocol.limits import AFFINITY_BUCKETS

if TYPE_CHECKING:
    from ledgermq.core.available import Available
    from ledgermq.core.queue import Queue
    from ledgermq.core.state import Consumer

__all__ = ["Affinity", "bucket_of"]

# Heaps of places: priority negated, sequence number.
Aside = list[tuple[int, int]]


def bucket_of(message: Message) -> int | None:
    """The bucket of a message's group: JMSXGroupID if it is text, else the group id."""
    key = group_key(message)
    return None if key is None else zlib.crc32(key) % AFFINITY_BUCKETS


class Affinity:
    """Which consumer of a queue each bucket is bonded to."""

    __slots__ = ("_aside", "bonds")

    def __init__(self) -> None:
        self.bonds: dict[int, Consumer] = {}
        # What came up in an order that others use too, for whom it belongs to.
        self._aside: dict[tuple[Available, tuple[int, int]], Aside] = {}

    def bond(self, message: Message, consumer: Consumer) -> None:
        """Bonds the bucket of a message that a consumer is given, unless it is bonded already."""
        bucket = bucket_of(message)
        if bucket is not None:
            self.bonds.setdefault(bucket, consumer)

    def first(self, order: Available, consumer: Consumer) -> Message | None:
        """What comes first of an order for a consumer; what belongs to others is put aside."""
        mine = self._first_aside(order, consumer)
        while True:
            message = order.first()
            if message is None:
                return mine
            if mine is not None and place_in_order(message) > place_in_order(mine):
                return mine
            bucket = bucket_of(message)
            bonded = None if bucket is None else self.bonds.get(bucket)
            if bonded is None or bonded is consumer:
                return message
            order.pop_head(message.priority)
            aside = self._aside.setdefault((order, bonded.key), [])
            heapq.heappush(aside, place_in_order(message))

    def _first_aside(self, order: Available, consumer: Consumer) -> Message | None:
        aside = self._aside.get((order, consumer.key))
        while aside:
            message = consumer.queue.messages.get(aside[0][1])
            if message is not None and order.stands(message):
                return message
            heapq.heappop(aside)
        return None

    def drop(self, consumer: Consumer) -> None:
        """Ends the bonds of a consumer that goes; what was put aside for it is anybody's."""
        self.bonds = {bucket: one for bucket, one in self.bonds.items() if one is not consumer}
        for key in [one for one in self._aside if one[1] == consumer.key]:
            self._offer(consumer.queue, key)

    def end(self, queue: Queue) -> None:
        """Offers all that was put aside."""
        for key in list(self._aside):
            self._offer(queue, key)

    def forget(self, order: Available) -> None:
        """Drops what was put aside from an order that nobody uses any longer."""
        for key in [one for one in self._aside if one[0] is order]:
            del self._aside[key]

    def _offer(self, queue: Queue, key: tuple[Available, tuple[int, int]]) -> None:
        for sequence in dict.fromkeys(number for _, number in self._aside.pop(key)):
            message = queue.messages.get(sequence)
            if message is not None and message.is_here:
                key[0].offer(message)
