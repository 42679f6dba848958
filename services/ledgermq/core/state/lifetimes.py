"""The queue manager's maximum lifetime: no message stays longer than this (DB-04, DB-18).

Messages of a queue are numbered in order of time, so the first one is the first whose lifetime
ends: a queue needs one deadline, not one for each message. `Queue.lifetime_sequence` is the first
number that may still be within its lifetime; what is left below it is over and in somebody's hands.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from ledgermq.core.state.records import Message, Queue
from ledgermq.core.structures.lazy_heap import LazyHeap
from ledgermq.protocol.rounding import MILLISECOND_US, rounded

MAXIMUM_LIFETIME_MS: Final = 30 * 24 * 3600 * 1000


class Lifetimes:
    """Queues by the moment at which the lifetime of their first message ends, in µs."""

    __slots__ = ("_entries", "_noted", "maximum_ms")

    def __init__(self) -> None:
        self.maximum_ms = MAXIMUM_LIFETIME_MS
        self._clear()

    def _clear(self) -> None:
        # By creation of the queue, the moment or an earlier one.
        self._noted: dict[int, int] = {}
        self._entries = LazyHeap[tuple[int, int]](self._is_noted)

    def _is_noted(self, entry: tuple[int, int]) -> bool:
        return self._noted.get(entry[1]) == entry[0]

    def ends_at(self, enqueued_at: int) -> int:
        """When the lifetime of a message ends; only where there is a maximum."""
        return rounded(enqueued_at + self.maximum_ms * MILLISECOND_US)

    def is_over(self, message: Message, time: int) -> bool:
        return bool(self.maximum_ms) and self.ends_at(message.enqueued_at) <= time

    def note(self, queue: Queue, enqueued_at: int) -> None:
        if self.maximum_ms and queue.created_position not in self._noted:
            self._add(self.ends_at(enqueued_at), queue.created_position)

    def _add(self, moment: int, created: int) -> None:
        self._noted[created] = moment
        self._entries.add((moment, created))

    def forget(self, queue: Queue) -> None:
        """Of a queue that is gone: its deadline may be a month away, and many come and go."""
        self._noted.pop(queue.created_position, None)

    def set_maximum(self, maximum_ms: int, stores: Iterable[Queue]) -> None:
        self.maximum_ms = maximum_ms
        self._clear()
        for queue in stores:
            queue.lifetime_sequence = queue.min_sequence
            if queue.messages:
                self.note(queue, queue.messages[queue.min_sequence].enqueued_at)

    def may_be_due(self, time: int) -> bool:
        """Whether a lifetime may have ended by a time, seen without a look at the queues."""
        first = self._entries.first()
        return first is not None and first[0] <= time

    def next(self, stores: Mapping[int, Queue], time: int) -> int | None:
        """The next moment after `time` at which a lifetime ends; those up to it were taken."""
        while (entry := self._entries.first()) is not None:
            noted, created = entry
            queue = stores.get(created)
            first = None if queue is None else self._first_within(queue, time)
            if first is None:
                del self._noted[created]
                continue
            due = self.ends_at(first.enqueued_at)
            if due == noted:
                return due
            self._add(due, created)
        return None

    def take_due(self, stores: Mapping[int, Queue], time: int) -> list[Message]:
        """The messages whose lifetime has ended since this was last asked, held ones too.

        In order of creation of their queues, then by number.
        """
        found: list[Message] = []
        for created in sorted(created for _, created in self._entries.take_through((time + 1,))):
            del self._noted[created]
            queue = stores.get(created)
            if queue is None:
                continue
            before = queue.lifetime_sequence
            first = self._first_within(queue, time)
            numbers = range(before, queue.lifetime_sequence)
            found.extend(queue.messages[one] for one in numbers if one in queue.messages)
            if first is not None:
                self.note(queue, first.enqueued_at)
        return found

    def _first_within(self, queue: Queue, time: int) -> Message | None:
        messages, number = queue.messages, queue.lifetime_sequence
        end = queue.next_sequence
        while number < end:
            message = messages.get(number)
            if message is not None and not self.is_over(message, time):
                queue.lifetime_sequence = number
                return message
            number += 1
        queue.lifetime_sequence = number
        return None
