"""Groups: logical messages and their segments, and what of them is there (PROTOCOL.md §13).

A group is a function of the items that are in the queue: of these, by sequence number, each that
does not clash with the members before it is a member. Counters tell at once whether the group is
complete and whether all of it is available, so that a delivery never looks through a group.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Final, Generic, Protocol, TypeVar

# What an item is; small enough that Python shares the numbers.
IN_GROUP: Final = 1
LAST_IN_GROUP: Final = 2
SEGMENT: Final = 4
LAST_SEGMENT: Final = 8
IN_UNIT_OF_WORK: Final = 16
# Of a numbered one: it is a member of its group; it is one and not available.
MEMBER: Final = 32
AWAY: Final = 64


class Item(Protocol):
    """A message of a group, as far as the group looks at it."""

    flags: int
    group_sequence: int
    length: int
    offset: int
    priority: int
    sequence: int

    @property
    def is_available(self) -> bool:
        """Whether nobody holds it and it does not wait."""


T = TypeVar("T", bound=Item)
SEQUENCE: Final = attrgetter("sequence")


@dataclass(slots=True, eq=False, repr=False)
class Segments(Generic[T]):
    """The segments of one logical message; their data never overlap."""

    items: dict[int, T] = field(default_factory=dict)
    offsets: list[int] = field(default_factory=list)
    covered: int = 0
    # Where the last segment ends; -1 while it is not there.
    end: int = -1
    away: int = 0

    @property
    def is_whole(self) -> bool:
        return self.covered == self.end

    @property
    def is_available(self) -> bool:
        return self.covered == self.end and not self.away

    def clash(self, item: T) -> str | None:
        offset, end = item.offset, item.offset + item.length
        where = f"segment {offset}..{end - 1}"
        if item.flags & LAST_SEGMENT:
            if self.end >= 0:
                return f"{where} is a second last segment"
            if self.offsets and self._end_of(self.offsets[-1]) > end:
                return f"{where} is the last, but there are data behind it"
        elif 0 <= self.end < end:
            return f"{where} lies behind the last segment"
        at = bisect_left(self.offsets, offset)
        if at and self._end_of(self.offsets[at - 1]) > offset:
            return f"{where} overlaps the one at offset {self.offsets[at - 1]}"
        if at < len(self.offsets) and self.offsets[at] < end:
            return f"{where} overlaps the one at offset {self.offsets[at]}"
        return None

    def _end_of(self, offset: int) -> int:
        return offset + self.items[offset].length

    def add(self, item: T) -> None:
        insort(self.offsets, item.offset)
        self.items[item.offset] = item
        self.covered += item.length
        if item.flags & LAST_SEGMENT:
            self.end = item.offset + item.length

    def remove(self, item: T) -> None:
        del self.offsets[bisect_left(self.offsets, item.offset)]
        del self.items[item.offset]
        self.covered -= item.length
        if item.flags & LAST_SEGMENT:
            self.end = -1

    def in_order(self, behind: int = -1) -> list[T]:
        """Segments by offset, those behind one."""
        offsets = self.offsets[bisect_right(self.offsets, behind) :]
        return [self.items[offset] for offset in offsets]


@dataclass(slots=True, eq=False, repr=False)
class Group(Generic[T]):
    """The items of one group id in one queue, or of one unit of work before numbering.

    `in_group`: it is a group; else one logical message in segments.
    """

    group_id: bytes
    in_group: bool = False
    # Logical messages by group sequence.
    slots: dict[int, T | Segments[T]] = field(default_factory=dict)
    # By rising sequence number.
    clashing: list[T] = field(default_factory=list)
    # Group sequence of the last message; 0 while it is not there.
    last: int = 0
    whole: int = 0
    # Members: all, those put in units of work, those that are not available.
    count: int = 0
    in_units_of_work: int = 0
    away: int = 0

    @property
    def is_complete(self) -> bool:
        return self.whole == (self.last if self.in_group else 1) > 0

    @property
    def is_available(self) -> bool:
        return not self.away and self.is_complete

    def members(self, after: tuple[int, int] = (0, -1)) -> Iterator[T]:
        """The members in logical order, behind a group sequence and offset."""
        numbers = sorted(self.slots)
        for number in numbers[bisect_left(numbers, after[0]) :]:
            slot, behind = self.slots[number], after[1] if number == after[0] else -1
            if isinstance(slot, Segments):
                yield from slot.in_order(behind)
            elif behind < 0:
                yield slot

    def items(self) -> Iterator[T]:
        yield from self.members()
        yield from self.clashing

    @property
    def first(self) -> T:
        """The item with the lowest number."""
        found = self.clashing[:1]
        for slot in self.slots.values():
            if not isinstance(slot, Segments):
                # What is in the slots behind it came later.
                return min([*found, slot], key=SEQUENCE)
            found.append(next(iter(slot.items.values())))
        return min(found, key=SEQUENCE)

    def item_at(self, group_sequence: int, offset: int) -> T | None:
        slot = self.slots.get(group_sequence)
        if isinstance(slot, Segments):
            return slot.items.get(offset)
        return slot if not offset else None

    def unit_of(self, item: T) -> list[T] | None:
        """A message, or all segments of a member's; None unless all of it is available."""
        if not item.flags & SEGMENT:
            return [item] if item.is_available else None
        slot = self.slots.get(item.group_sequence)
        if not item.flags & MEMBER or not isinstance(slot, Segments):
            return None
        return slot.in_order() if slot.is_available else None

    def clash(self, item: T) -> str | None:
        if not self.slots:
            return None
        number, flags = item.group_sequence, item.flags
        if self.in_group != bool(flags & IN_GROUP):
            return "the group id is used both for a group and for a message in no group"
        here = self.slots.get(number)
        if isinstance(here, Segments):
            some = next(iter(here.items.values()))
            if not flags & SEGMENT:
                return f"message {number} is there already, in segments"
            if (some.flags ^ flags) & LAST_IN_GROUP:
                return f"segments of message {number} differ in whether it is the last"
            reason = here.clash(item)
            if reason is not None:
                return f"of message {number}, {reason}"
        elif here is not None:
            return f"message {number} is there already"
        if flags & LAST_IN_GROUP:
            if self.last not in (0, number):
                return f"message {number} is a second last one, after {self.last}"
            if not self.last and max(self.slots) > number:
                return f"message {number} is the last, but there is {max(self.slots)}"
        elif self.last and number > self.last:
            return f"message {number} comes behind the last one, {self.last}"
        return None

    def other_priority(self, item: T) -> int | None:
        """The priority of message 1, else of the message before, if an item has another one."""
        for number in (1, item.group_sequence, item.group_sequence - 1):
            slot = self.slots.get(number)
            if slot is not None:
                some = next(iter(slot.items.values())) if isinstance(slot, Segments) else slot
                return None if some.priority == item.priority else some.priority
        return None

    def differs_in_unit_of_work(self, item: T) -> bool:
        """Whether an item is put in a unit of work and a member was not, or the other way."""
        if item.flags & IN_UNIT_OF_WORK:
            return self.in_units_of_work < self.count
        return self.in_units_of_work > 0

    def add(self, item: T) -> None:
        if self.clash(item) is None:
            self._join(item)
        else:
            self.clashing.append(item)

    def _join(self, item: T) -> None:
        number = item.group_sequence
        if not self.slots:
            self.in_group = bool(item.flags & IN_GROUP)
        self.count += 1
        self.in_units_of_work += item.flags & IN_UNIT_OF_WORK != 0
        if item.flags & SEGMENT:
            slot = self.slots.get(number)
            if slot is None:
                slot = self.slots[number] = Segments()
            assert isinstance(slot, Segments), "a segment joins segments"
            slot.add(item)
            self.whole += slot.is_whole
        else:
            self.slots[number] = item
            self.whole += 1
        if item.flags & LAST_IN_GROUP:
            self.last = number
        item.flags |= MEMBER
        if not item.is_available:
            self.went(item)

    def remove(self, item: T) -> None:
        """Takes an item out for good; what clashed with it may become a member."""
        if not item.flags & MEMBER:
            self.clashing.remove(item)
            return
        self._part(item)
        if self.clashing:
            # Those that are members stay or go by what comes before them: all is worked out anew.
            found = sorted(self.items(), key=lambda one: one.sequence)
            for one in list(self.members()):
                self._part(one)
            self.clashing = []
            for one in found:
                self.add(one)

    def _part(self, item: T) -> None:
        if item.flags & AWAY:
            self.came(item)
        item.flags &= ~MEMBER
        self.count -= 1
        self.in_units_of_work -= item.flags & IN_UNIT_OF_WORK != 0
        number = item.group_sequence
        slot = self.slots[number]
        if isinstance(slot, Segments):
            self.whole -= slot.is_whole
            slot.remove(item)
            if not slot.items:
                del self.slots[number]
        else:
            self.whole -= 1
            del self.slots[number]
        if item.flags & LAST_IN_GROUP and number not in self.slots:
            self.last = 0

    def went(self, item: T) -> None:
        if item.flags & (MEMBER | AWAY) == MEMBER:
            item.flags |= AWAY
            self.away += 1
            slot = self.slots[item.group_sequence]
            if isinstance(slot, Segments):
                slot.away += 1

    def came(self, item: T) -> None:
        if item.flags & AWAY:
            item.flags &= ~AWAY
            self.away -= 1
            slot = self.slots[item.group_sequence]
            if isinstance(slot, Segments):
                slot.away -= 1
