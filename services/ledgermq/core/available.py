"""Messages that wait to be delivered, in delivery order: priority 9 first, then sequence number.

New messages always carry the highest sequence number so far, so each priority is a deque that
grows at its end. Messages that come back belong before some that were never delivered; they wait
in a heap beside it. The next message is the lower of the two heads, so taking costs O(1) for new
messages and O(log n) for returned ones.

A queue has one such order of all its available messages, and one more for each selector that its
consumers use, of those that match. A message that is taken from one order stays behind in the
others as an entry that is passed over when it comes up, so taking never searches; when such
entries outnumber the messages, the order is made anew.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ledgermq.core.limits import PRIORITY_MAX

if TYPE_CHECKING:
    from ledgermq.core.state import Message

__all__ = ["Available"]

SPARE_ENTRIES = 64


def _stands(message: Message) -> bool:
    """Whether an entry's message is available: in its queue, and in nobody's hands."""
    return message.consumer is None and message.queue.messages.get(message.sequence) is message


class Available:
    """Available messages of one queue, or those of them that a selector matches.

    `count` says how many there are in the order of all; the owner tells it what is taken
    elsewhere.
    """

    __slots__ = ("_entries", "_fresh", "_returned", "count")

    def __init__(self) -> None:
        self._fresh: list[deque[Message]] = [deque() for _ in range(PRIORITY_MAX + 1)]
        self._returned: list[list[tuple[int, Message]]] = [[] for _ in range(PRIORITY_MAX + 1)]
        self._entries = 0
        self.count = 0

    def extend(self, messages: Iterable[Message]) -> None:
        """Adds newly numbered messages; their numbers are above all numbers seen before."""
        fresh = self._fresh
        added = 0
        for message in messages:
            fresh[message.priority].append(message)
            added += 1
        self.count += added
        self._entries += added

    def give_back(self, message: Message) -> None:
        """Adds a message that was delivered before, at the place of its number."""
        heapq.heappush(self._returned[message.priority], (message.sequence, message))
        self.count += 1
        self._entries += 1

    def leave(self, count: int = 1) -> None:
        """Notes that messages were taken through another order, or removed."""
        self.count -= count
        self.tidy(self.count)

    def tidy(self, standing_max: int) -> None:
        """Makes the order anew if it has many more entries than messages can be available."""
        if self._entries > 2 * standing_max + SPARE_ENTRIES:
            kept = list(self)
            self._fresh = [deque() for _ in range(PRIORITY_MAX + 1)]
            self._returned = [[] for _ in range(PRIORITY_MAX + 1)]
            self._entries = self.count = 0
            self.extend(kept)

    def take(self, count: int) -> list[Message]:
        """Removes and returns the first `count` messages, or as many as there are."""
        if self._entries != self.count:
            return self._take_standing(count)
        taken: list[Message] = []
        missing = min(count, self.count)
        self.count -= missing
        self._entries -= missing
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

    def _take_standing(self, count: int) -> list[Message]:
        taken: list[Message] = []
        while len(taken) < count:
            message = self.first()
            if message is None:
                break
            self._pop_head(message.priority)
            # A message may have two entries: one left behind when it was taken, one of its return.
            if not taken or taken[-1] is not message:
                taken.append(message)
        self.count -= len(taken)
        return taken

    def first(self) -> Message | None:
        """The message that comes first, without taking it."""
        for priority in range(PRIORITY_MAX, -1, -1):
            fresh, returned = self._fresh[priority], self._returned[priority]
            while fresh or returned:
                from_fresh = not returned or (fresh and fresh[0].sequence < returned[0][0])
                message = fresh[0] if from_fresh else returned[0][1]
                if _stands(message):
                    return message
                self._pop_head(priority)
        return None

    def _pop_head(self, priority: int) -> None:
        fresh, returned = self._fresh[priority], self._returned[priority]
        if not returned or (fresh and fresh[0].sequence < returned[0][0]):
            fresh.popleft()
        else:
            heapq.heappop(returned)
        self._entries -= 1

    def has_priority(self, priority: int) -> bool:
        """Whether there may be messages of a priority."""
        return bool(self._fresh[priority] or self._returned[priority])

    def _merged(self, priority: int) -> Iterator[Message]:
        back = (message for _, message in sorted(self._returned[priority], key=_number))
        return _standing(heapq.merge(back, self._fresh[priority], key=_sequence))

    def __iter__(self) -> Iterator[Message]:
        for priority in range(PRIORITY_MAX, -1, -1):
            yield from self._merged(priority)


def _standing(messages: Iterable[Message]) -> Iterator[Message]:
    """Those that are available, each once."""
    last = None
    for message in messages:
        if message is not last and _stands(message):
            last = message
            yield message


def _number(pair: tuple[int, Message]) -> int:
    return pair[0]


def _sequence(message: Message) -> int:
    return message.sequence
