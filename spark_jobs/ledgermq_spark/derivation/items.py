"""Items of groups and what of a group is there, read off PROTOCOL.md §13 without the fold.

Of a group's items, by sequence number, each that does not clash with the members before it is a
member. Where nothing clashes, which is nearly always, an item that comes or goes changes but its
own logical message; else the members are worked out anew.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

# Group id in hexadecimal, group sequence, offset.
Place = tuple[str, int, int]


@dataclass(slots=True, eq=False)
class Item:
    """A message as groups see it; `group_id` is empty outside of groups.

    `place` is where it stands in delivery order, `here` whether it is available, `in_unit` whether
    it was put in a unit of work; `header` is the text of `headers.header_text` taken apart.
    """

    place: tuple[int, int] = (0, -1)
    message_id: bytes = b""
    header: dict[str, Any] = field(default_factory=dict)
    in_unit: bool = False
    here: bool = False
    member: bool = False
    group_id: str = ""
    number: int = 1
    offset: int = 0
    length: int = 0
    flags: str = ""

    def __post_init__(self) -> None:
        group = self.header.get("g")
        if group is not None:
            self.group_id, self.flags = group["i"], group["f"]
            self.number, self.offset, self.length = group["n"], group["o"], group["l"]

    @property
    def segment(self) -> bool:
        """Whether it is a segment."""
        return "s" in self.flags

    @property
    def end(self) -> int:
        """Where its data end in the logical message."""
        return self.offset + self.length

    def is_like(self, other: Item, flag: str) -> bool:
        """Whether both have a flag or neither has it."""
        return (flag in self.flags) == (flag in other.flags)


def place_of(item: Item) -> Place | None:
    """What comes next after an item; None outside of groups and after their last messages."""
    if item.segment and "e" not in item.flags:
        return (item.group_id, item.number, item.end)
    if "g" in item.flags and "m" not in item.flags:
        return (item.group_id, item.number + 1, 0)
    return None


class _Logical:
    """A logical message: its one item, or its segments by offset, which do not overlap."""

    def __init__(self) -> None:
        self.offsets: list[int] = []
        self.items: dict[int, Item] = {}
        self.covered = 0
        self.end: int | None = None

    @property
    def first(self) -> Item:
        return self.items[self.offsets[0]]

    @property
    def whole(self) -> bool:
        if not self.first.segment:
            return True
        return self.end is not None and self.covered == self.end

    def clashes(self, item: Item) -> bool:
        some = self.first
        if not (item.segment and some.segment) or not item.is_like(some, "m"):
            return True
        if self.end is not None and ("e" in item.flags or item.end > self.end):
            return True
        last = self.items[self.offsets[-1]]
        if "e" in item.flags and last.end > item.end:
            return True
        at = bisect_left(self.offsets, item.offset)
        before = at > 0 and self.items[self.offsets[at - 1]].end > item.offset
        return before or (at < len(self.offsets) and self.offsets[at] < item.end)

    def add(self, item: Item) -> None:
        insort(self.offsets, item.offset)
        self.items[item.offset] = item
        self.covered += item.length
        if "e" in item.flags:
            self.end = item.end

    def remove(self, item: Item) -> None:
        self.offsets.remove(item.offset)
        del self.items[item.offset]
        self.covered -= item.length
        if "e" in item.flags:
            self.end = None


class Group:
    """The items of one group id that are in a queue, in a unit of work, or in one Put."""

    def __init__(self) -> None:
        self.messages: dict[int, _Logical] = {}
        self.clashing: list[Item] = []
        self.last = 0
        self._whole = 0
        self._away = 0
        self._count = 0
        self._in_units = 0

    @property
    def complete(self) -> bool:
        """Whether its members are whole logical messages 1 to the last one."""
        some = self._some()
        if some is None:
            return False
        wanted = self.last if "g" in some.flags else 1
        return self._whole == wanted > 0

    @property
    def available(self) -> bool:
        """Whether it is complete and all of it is available."""
        return not self._away and self.complete

    def _some(self) -> Item | None:
        for message in self.messages.values():
            return message.first
        return None

    def items(self) -> Iterator[Item]:
        """The members in logical order, then what clashes with them."""
        for _, message in sorted(self.messages.items()):
            for offset in message.offsets:
                yield message.items[offset]
        yield from self.clashing

    def at(self, number: int, offset: int) -> Item | None:
        """The member with that group sequence and offset."""
        message = self.messages.get(number)
        return None if message is None else message.items.get(offset)

    def whole_message(self, item: Item) -> list[Item] | None:
        """The items of a member's logical message, if it is whole and all of it is available."""
        message = self.messages[item.number]
        items = [message.items[offset] for offset in message.offsets]
        return items if message.whole and all(one.here for one in items) else None

    def clashes(self, item: Item) -> bool:
        """Whether an item clashes with the members."""
        some = self._some()
        if some is None:
            return False
        if not item.is_like(some, "g"):
            return True
        message = self.messages.get(item.number)
        if message is not None and message.clashes(item):
            return True
        if "m" not in item.flags:
            return 0 < self.last < item.number
        if self.last:
            return self.last != item.number
        return max(self.messages) > item.number

    def other_priority(self, item: Item) -> bool:
        """Whether message 1, or else the one that it follows, has another priority.

        Of segments, the one that was there first tells.
        """
        for number in (1, item.number, item.number - 1):
            if number in self.messages:
                earliest = next(iter(self.messages[number].items.values()))
                return earliest.place[0] != item.place[0]
        return False

    def other_unit(self, item: Item) -> bool:
        """Whether it is put in a unit of work and a member was not, or the other way."""
        return self._in_units < self._count if item.in_unit else self._in_units > 0

    def add(self, item: Item) -> None:
        """Takes an item in that has the highest sequence number so far."""
        if self.clashes(item):
            self.clashing.append(item)
            return
        message = self.messages.setdefault(item.number, _Logical())
        self._whole -= bool(message.offsets) and message.whole
        message.add(item)
        self._whole += message.whole
        self._count += 1
        self._in_units += item.in_unit
        self._away += not item.here
        if "m" in item.flags:
            self.last = item.number
        item.member = True

    def remove(self, item: Item) -> None:
        """Takes an item out; what clashed with it may be a member now."""
        if not item.member:
            self.clashing.remove(item)
            return
        if not self.clashing:
            self._part(item)
            return
        rest = sorted((one for one in self.items() if one is not item), key=_sequence)
        for one in rest:
            one.member = False
        item.member = False
        Group.__init__(self)
        for one in rest:
            self.add(one)

    def _part(self, item: Item) -> None:
        message = self.messages[item.number]
        self._whole -= message.whole
        message.remove(item)
        if message.offsets:
            self._whole += message.whole
        else:
            del self.messages[item.number]
            if "m" in item.flags:
                self.last = 0
        self._count -= 1
        self._in_units -= item.in_unit
        self._away -= not item.here
        item.member = False

    def set_here(self, item: Item, here: bool) -> None:
        """Notes that an item is available now, or no longer."""
        if item.here != here:
            item.here = here
            self._away += (-1 if here else 1) if item.member else 0


def _sequence(item: Item) -> int:
    return item.place[1]
