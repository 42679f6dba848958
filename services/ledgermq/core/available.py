"""The available messages of one queue, in delivery order: priority 9 first, then sequence number.

New messages always carry the highest sequence number so far, so each priority is a deque that
grows at its end. Messages that come back belong before some that were never delivered; they wait
in a heap beside it. The next message is the lower of the two heads, so taking costs O(1) for new
messages and O(log n) for returned ones.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ledgermq.core.limits import PRIORITY_MAX

if TYPE_CHECKING:
    from ledgermq.core.state import Message

__all__ = ["Available"]


class Available:
    """Available messages of one queue."""

    __slots__ = ("_fresh", "_returned", "count")

    def __init__(self) -> None:
        self._fresh: list[deque[Message]] = [deque() for _ in range(PRIORITY_MAX + 1)]
        self._returned: list[list[tuple[int, Message]]] = [[] for _ in range(PRIORITY_MAX + 1)]
        self.count = 0

    def extend(self, messages: list[Message]) -> None:
        """Adds newly numbered messages; their numbers are above all numbers seen before."""
        fresh = self._fresh
        for message in messages:
            fresh[message.priority].append(message)
        self.count += len(messages)

    def give_back(self, message: Message) -> None:
        """Adds a message that was delivered before, at the place of its number."""
        heapq.heappush(self._returned[message.priority], (message.sequence, message))
        self.count += 1

    def take(self, count: int) -> list[Message]:
        """Removes and returns the first `count` messages, or as many as there are."""
        taken: list[Message] = []
        missing = min(count, self.count)
        self.count -= missing
        for priority in range(PRIORITY_MAX, -1, -1):
            if not missing:
                break
            fresh, returned = self._fresh[priority], self._returned[priority]
            while missing and returned:
                if fresh and fresh[0].sequence < returned[0][0]:
                    taken.append(fresh.popleft())
                else:
                    taken.append(heapq.heappop(returned)[1])
                missing -= 1
            here = min(missing, len(fresh))
            take_next = fresh.popleft
            taken.extend([take_next() for _ in range(here)])
            missing -= here
        return taken

    def remove(self, message: Message) -> None:
        """Removes one message wherever it stands; costs O(n), for administration only."""
        priority = message.priority
        kept = [one for one in self.of_priority(priority) if one is not message]
        self.count -= 1
        self._fresh[priority] = deque(kept)
        self._returned[priority] = []

    def of_priority(self, priority: int) -> Iterator[Message]:
        """The messages of one priority by sequence number."""
        fresh = self._fresh[priority]
        returned = self._returned[priority]
        if not returned:
            return iter(fresh)
        back = (message for _, message in sorted(returned, key=_number))
        return heapq.merge(back, fresh, key=_sequence)

    def __iter__(self) -> Iterator[Message]:
        for priority in range(PRIORITY_MAX, -1, -1):
            yield from self.of_priority(priority)


def _number(pair: tuple[int, Message]) -> int:
    return pair[0]


def _sequence(message: Message) -> int:
    return message.sequence
