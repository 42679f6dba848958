"""What waits to be taken, in order of delivery: priority 9 first, then by rising number.

New items always carry the highest number so far, so each priority is a deque that grows at its
end. Items that come back belong before some that were never taken; they wait in a heap beside it.
The next item is the lower of the two heads, so taking costs O(1) for new items and O(log n) for
returned ones.

There are several such orders of the same items: one of all, and others of what somebody selects. An
item that is taken from one order stays behind in the others as an entry that is passed over when it
comes up, so taking never searches; when such entries outnumber the items, the order is made anew.
What comes up but may not be taken yet is passed over too, and has to be offered again when that
changes.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter, itemgetter
from typing import Any, Final, Generic, Protocol, TypeVar

PRIORITIES: Final = 10
SPARE_ENTRIES: Final = 64
# In the place of those that nothing was in yet: ten of each would be most of an empty queue.
NONE_FRESH: Final[deque[Any]] = deque(maxlen=0)
NONE_RETURNED: Final[list[Any]] = []


class Placed(Protocol):
    """What has a place in order of delivery."""

    priority: int
    sequence: int


P = TypeVar("P", bound=Placed)


class Available(Generic[P]):
    """Items in order of delivery; `may_be_taken` says whether one still may be, or already."""

    __slots__ = ("_entries", "_fresh", "_returned", "may_be_taken")

    def __init__(self, may_be_taken: Callable[[P], bool]) -> None:
        self.may_be_taken = may_be_taken
        self._clear()

    def _clear(self) -> None:
        self._fresh: list[deque[P]] = [NONE_FRESH] * PRIORITIES
        self._returned: list[list[tuple[int, P]]] = [NONE_RETURNED] * PRIORITIES
        self._entries = 0

    def extend(self, items: Iterable[P]) -> None:
        """Adds newly numbered items; their numbers are above all numbers seen before."""
        fresh = self._fresh
        added = 0
        for item in items:
            behind = fresh[item.priority]
            if behind is NONE_FRESH:
                behind = fresh[item.priority] = deque()
            behind.append(item)
            added += 1
        self._entries += added

    def offer(self, item: P) -> None:
        """Adds an item that came back or may have been passed over, at the place of its number."""
        if self._returned[item.priority] is NONE_RETURNED:
            self._returned[item.priority] = []
        heapq.heappush(self._returned[item.priority], (item.sequence, item))
        self._entries += 1

    @property
    def has_entries(self) -> bool:
        """Whether something may be in it."""
        return self._entries > 0

    def tidy(self, count_max: int) -> None:
        """Makes the order anew if it has many more entries than items can be available."""
        if self._entries > 2 * count_max + SPARE_ENTRIES:
            found = list(self)
            self._clear()
            self.extend(found)

    def take(self, count: int, available: int = -1) -> list[P]:
        """Removes and returns the first `count` items, or as many as there are.

        `available` is how many may be taken, if all that have an entry here may be once each.
        """
        if self._entries != available:
            return self._take_one_by_one(count)
        taken: list[P] = []
        missing = min(count, available)
        self._entries -= missing
        for priority in range(PRIORITIES - 1, -1, -1):
            if not missing:
                break
            fresh, returned = self._fresh[priority], self._returned[priority]
            while missing and returned:
                if fresh and fresh[0].sequence < returned[0][0]:
                    taken.append(fresh.popleft())
                else:
                    taken.append(heapq.heappop(returned)[1])
                missing -= 1
            if missing and fresh:
                here = min(missing, len(fresh))
                take_next = fresh.popleft
                taken.extend([take_next() for _ in range(here)])
                missing -= here
        return taken

    def _take_one_by_one(self, count: int) -> list[P]:
        taken: list[P] = []
        while len(taken) < count:
            item = self.first()
            if item is None:
                break
            self.pop_head(item.priority)
            # An item may have two entries: one left behind when it was taken, one of its return.
            if not taken or taken[-1] is not item:
                taken.append(item)
        return taken

    def first(self) -> P | None:
        for priority in range(PRIORITIES - 1, -1, -1):
            fresh, returned = self._fresh[priority], self._returned[priority]
            while fresh or returned:
                from_fresh = not returned or (fresh and fresh[0].sequence < returned[0][0])
                item = fresh[0] if from_fresh else returned[0][1]
                if self.may_be_taken(item):
                    return item
                self.pop_head(priority)
        return None

    def pop_head(self, priority: int) -> None:
        fresh, returned = self._fresh[priority], self._returned[priority]
        if not returned or (fresh and fresh[0].sequence < returned[0][0]):
            fresh.popleft()
        else:
            heapq.heappop(returned)
        self._entries -= 1

    def has_priority(self, priority: int) -> bool:
        """Whether there may be items of a priority."""
        return bool(self._fresh[priority] or self._returned[priority])

    def _merged(self, priority: int) -> Iterator[P]:
        back = (item for _, item in sorted(self._returned[priority], key=itemgetter(0)))
        last = None
        for item in heapq.merge(back, self._fresh[priority], key=attrgetter("sequence")):
            # An item may have two entries.
            if item is not last and self.may_be_taken(item):
                last = item
                yield item

    def __iter__(self) -> Iterator[P]:
        for priority in range(PRIORITIES - 1, -1, -1):
            yield from self._merged(priority)
