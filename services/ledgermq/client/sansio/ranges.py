"""Delivery numbers as ranges: compact, and written as the protocol wants them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ledgermq.protocol.limits import LIST_ENTRIES_MAX
from ledgermq.protocol.operations import DeliveryRange


class DeliveryRanges:
    """A set of delivery numbers; adding the number after the last one added is the fast path."""

    __slots__ = ("_runs",)

    def __init__(self, runs: Iterable[tuple[int, int]] = ()) -> None:
        self._runs: list[list[int]] = [list(run) for run in runs] if runs else []

    @classmethod
    def of(cls, numbers: Iterable[int]) -> DeliveryRanges:
        """Those of numbers that rise."""
        made = cls()
        for number in numbers:
            made.add_range(number, number)
        return made

    def add_range(self, first: int, last: int) -> None:
        """Adds the numbers first to last, none of which is in the set."""
        runs = self._runs
        if runs and runs[-1][1] == first - 1:
            runs[-1][1] = last
        else:
            runs.append([first, last])

    def add_all(self, other: DeliveryRanges) -> None:
        for first, last in other._runs:
            self.add_range(first, last)

    def discard(self, number: int) -> bool:
        for place, run in enumerate(self._runs):
            first, last = run
            if first <= number <= last:
                parts = [[first, number - 1], [number + 1, last]]
                self._runs[place : place + 1] = [part for part in parts if part[0] <= part[1]]
                return True
        return False

    def keep_only(self, numbers: set[int]) -> None:
        kept = DeliveryRanges.of(one for one in sorted(self.numbers()) if one in numbers)
        self._runs = kept._runs

    def take_all(self) -> DeliveryRanges:
        taken = DeliveryRanges()
        taken._runs, self._runs = self._runs, []
        return taken

    def numbers(self) -> Iterator[int]:
        for first, last in self._runs:
            yield from range(first, last + 1)

    def halves(self) -> tuple[DeliveryRanges, DeliveryRanges]:
        numbers, middle = sorted(self.numbers()), len(self) // 2
        return DeliveryRanges.of(numbers[:middle]), DeliveryRanges.of(numbers[middle:])

    def as_list(self) -> list[DeliveryRange]:
        """The ranges in rising order, neighbours joined."""
        joined: list[DeliveryRange] = []
        for first, last in sorted(self._runs):
            if joined and joined[-1]["last"] == first - 1:
                joined[-1]["last"] = last
            else:
                joined.append({"first": first, "last": last})
        return joined

    def above(self, number: int) -> DeliveryRanges:
        runs = self._runs
        return DeliveryRanges((max(one, number + 1), last) for one, last in runs if last > number)

    def up_to(self, number: int) -> DeliveryRanges:
        runs = self._runs
        return DeliveryRanges((first, min(last, number)) for first, last in runs if first <= number)

    def common(self, other: DeliveryRanges) -> DeliveryRanges:
        found = DeliveryRanges()
        ours, theirs = sorted(self._runs), sorted(other._runs)
        here = there = 0
        while here < len(ours) and there < len(theirs):
            first = max(ours[here][0], theirs[there][0])
            last = min(ours[here][1], theirs[there][1])
            if first <= last:
                found.add_range(first, last)
            if ours[here][1] == last:
                here += 1
            else:
                there += 1
        return found

    def parts(self) -> list[DeliveryRanges]:
        """The set in parts that rise, each of as many ranges as one operation may have."""
        if len(self._runs) <= LIST_ENTRIES_MAX:
            return [self]
        ranges = [(one["first"], one["last"]) for one in self.as_list()]
        starts = range(0, len(ranges), LIST_ENTRIES_MAX)
        return [DeliveryRanges(ranges[at : at + LIST_ENTRIES_MAX]) for at in starts]

    def as_seen(self) -> list[DeliveryRange]:
        """The ranges of deliveries that go back as seen; of very many the oldest that may be named.

        The others go back too, and do not count as backed out.
        """
        return self.parts()[0].as_list()

    @property
    def lowest(self) -> int:
        return min(first for first, _ in self._runs)

    @property
    def highest(self) -> int:
        return max(last for _, last in self._runs)

    def __contains__(self, number: int) -> bool:
        return any(first <= number <= last for first, last in self._runs)

    def __bool__(self) -> bool:
        return bool(self._runs)

    def __len__(self) -> int:
        return sum(last - first + 1 for first, last in self._runs)

    def __repr__(self) -> str:
        inside = ", ".join(f"{run['first']}..{run['last']}" for run in self.as_list())
        return f"DeliveryRanges({inside})"
