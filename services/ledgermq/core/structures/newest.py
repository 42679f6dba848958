"""What is available where only the newest is kept: by number, and by the value of a key (§23).

Nothing is searched for to take it out: what is available no longer is passed over when it comes up.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Final, Generic, Protocol, TypeVar

from ledgermq.core.structures.lazy_heap import LazyHeap

SPARE_VALUES: Final = 64


class Numbered(Protocol):
    """What has a number in its queue."""

    sequence: int


N = TypeVar("N", bound=Numbered)


class Newest(Generic[N]):
    """Items; `is_available` says whether one still is, `value_of` its value, None for none."""

    __slots__ = ("_by_number", "_by_value", "_is_available", "_outdated", "_value_of")

    def __init__(
        self, is_available: Callable[[N], bool], value_of: Callable[[N], Hashable | None] | None
    ) -> None:
        self._is_available = is_available
        self._value_of = value_of
        self._by_number: LazyHeap[tuple[int, N]] = LazyHeap(lambda entry: is_available(entry[1]))
        # The newest of each value; by number those that are not, or may be once it is gone.
        self._by_value: dict[Hashable, N] = {}
        self._outdated: dict[int, tuple[Hashable, N]] = {}

    def add(self, items: Iterable[N]) -> None:
        """Items are available, now or again."""
        for item in items:
            self._by_number.add((item.sequence, item))
            value = None if self._value_of is None else self._value_of(item)
            if value is not None:
                self._note(value, item)

    def _note(self, value: Hashable, item: N) -> None:
        known = self._by_value.get(value)
        if known is None or not self._is_available(known) or known is item:
            self._by_value[value] = item
            return
        older, newer = sorted((known, item), key=lambda one: one.sequence)
        self._by_value[value] = newer
        self._outdated[older.sequence] = (value, older)

    def take_outdated(self) -> list[N]:
        """Takes out those that are not the newest of their value, by number."""
        outdated, self._outdated = self._outdated, {}
        found: list[N] = []
        # The newest first: it is kept where the one that was newer is not available any more.
        for _, (value, item) in sorted(outdated.items(), reverse=True):
            if not self._is_available(item):
                continue
            newest = self._by_value[value]
            if newest is item or not self._is_available(newest):
                self._by_value[value] = item
            else:
                found.append(item)
        return found[::-1]

    def take_oldest(self, count: int) -> list[N]:
        """Takes out so many, those with the lowest numbers; there are as many."""
        found: dict[int, N] = {}
        while len(found) < count:
            first = self._by_number.first()
            assert first is not None, "what is counted is there"
            # An item that came back has an entry for each time.
            self._by_number.pop()
            found[first[0]] = first[1]
        return [*found.values()]

    def tidy(self, count: int) -> None:
        """Lets go of values whose newest is gone, if there are many more than items, `count`."""
        if len(self._by_value) > 2 * count + SPARE_VALUES:
            here = self._by_value.items()
            self._by_value = {value: one for value, one in here if self._is_available(one)}
