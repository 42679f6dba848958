"""A heap whose entries may outlive what they are for: such are passed over when they come up.

So nothing is ever searched for to take it out. When the heap has grown to twice what was left of it
the last time, it is made anew of what stands.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

T = TypeVar("T", bound=tuple[Any, ...])


class LazyHeap(Generic[T]):
    """Entries, the least first; `stands` says whether one is still for something."""

    __slots__ = ("_entries", "_entries_max", "_spare", "_stands")

    def __init__(
        self, stands: Callable[[T], bool], entries: Iterable[T] = (), *, spare: int = 64
    ) -> None:
        self._stands = stands
        self._spare = spare
        self._entries: list[T] = []
        self._make(entries)

    def _make(self, entries: Iterable[T]) -> None:
        self._entries = list(entries)
        heapq.heapify(self._entries)
        self._entries_max = 2 * len(self._entries) + self._spare

    def add(self, entry: T) -> None:
        """Adds an entry; the same may be there twice."""
        heapq.heappush(self._entries, entry)
        if len(self._entries) > self._entries_max:
            self._make(filter(self._stands, self._entries))

    def first(self) -> T | None:
        entries, stands = self._entries, self._stands
        while entries:
            if stands(entries[0]):
                return entries[0]
            heapq.heappop(entries)
        return None

    def pop(self) -> T:
        return heapq.heappop(self._entries)

    def take_through(self, limit: tuple[Any, ...]) -> list[T]:
        """Takes out all that stand and are less than a limit, in order."""
        entries, stands = self._entries, self._stands
        found: list[T] = []
        while entries and entries[0] < limit:
            entry = heapq.heappop(entries)
            if stands(entry):
                found.append(entry)
        return found

    def __iter__(self) -> Iterator[T]:
        return iter(self._entries)
