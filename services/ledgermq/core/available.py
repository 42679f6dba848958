"""Messages that wait to be delivered, in delivery order: priority 9 first, then sequence number.

New messages always carry the highest sequence number so far, so each priority is a deque that
grows at its end. Messages that come back belong before some that were never delivered; they wait
in a heap beside it. The next message is the lower of the two heads, so taking costs O(1) for new
messages and O(log n) for returned ones.

A queue has one such order of all its available messages, and others (`orders.py`) for what its
consumers select. A message that is taken from one order stays behind in the others as an entry
that is passed over when it comes up, so taking never searches; when such entries outnumber the
messages, the order is made anew. What comes up but may not be given yet, because its group is kept
for a consumer or waits for a delayed message, is passed over too, and offered again when that
changes.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ledgermq.protocol.limits import PRIORITY_MAX

if TYPE_CHECKING:
    from ledgermq.core.state import Message

__all__ = ["Available"]

SPARE_ENTRIES = 64


class Available:
    """Available messages of one queue, or some of them.

    `count` says how many there are in the order of all; the owner tells it what is taken
    elsewhere.
    """

    __slots__ = ("_entries", "_fresh", "_returned", "count")

    def __init__(self) -> None:
        self._fresh: list[deque[Message]] = [deque() for _ in range(PRIORITY_MAX + 1)]
        self._returned: list[list[tuple[int, Message]]] = [[] for _ in range(PRIORITY_MAX + 1)]
        self._entries = 0
        self.count = 0

    def stands(self, message: Message) -> bool:
        """Whether an entry's message may be given: it is in its queue, in nobody's hands, not
        delayed, behind no delayed one of its group that keeps its order, and its group is kept for
        nobody.
        """
        queue = message.queue
        if message.consumer is not None or queue.messages.get(message.sequence) is not message:
            return False
        if message.waits:
            return False
        if queue.group_order is not None and queue.group_order.holds_back(message):
            return False
        return not queue.kept or message.group is None or message.group.group_id not in queue.kept

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
        self.offer(message)
        self.count += 1

    def offer(self, message: Message) -> None:
        """Adds an entry for a message that counts already, but may have been passed over."""
        heapq.heappush(self._returned[message.priority], (message.sequence, message))
        self._entries += 1

    def leave(self, count: int = 1) -> None:
        """Notes that messages were taken through another order, or removed."""
        self.count -= count
        self.tidy(self.count)

    def tidy(self, standing_max: int) -> None:
        """Makes the order anew if it has many more entries than messages can be available."""
        if self._entries > 2 * standing_max + SPARE_ENTRIES:
            kept, count = list(self), self.count
            self._fresh = [deque() for _ in range(PRIORITY_MAX + 1)]
            self._returned = [[] for _ in range(PRIORITY_MAX + 1)]
            self._entries = 0
            self.extend(kept)
            self.count = count

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
            self.pop_head(message.priority)
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
                if self.stands(message):
                    return message
                self.pop_head(priority)
        return None

    def pop_head(self, priority: int) -> None:
        """Takes out the first entry of a priority."""
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
        last = None
        for message in heapq.merge(back, self._fresh[priority], key=_sequence):
            # A message may have two entries.
            if message is not last and self.stands(message):
                last = message
                yield message

    def __iter__(self) -> Iterator[Message]:
        for priority in range(PRIORITY_MAX, -1, -1):
            yield from self._merged(priority)


def _number(pair: tuple[int, Message]) -> int:
    return pair[0]


def _sequence(message: Message) -> int:
    return message.sequence
