"""Groups of a store: their members, what may be put into them, what is parked (§13, §15)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from ledgermq.protocol.get_options import GroupPosition, Options
from ledgermq.protocol.reasons import Reason
from ledgermq_spark.laws.order.store_records import AVAILABLE, IN_FLIGHT, GroupPlace, Message


class Group:
    """The items of one group. Items that clash are as rare as they are slow to look at here."""

    def __init__(self) -> None:
        self._items: dict[int, Message] = {}
        self._logical: dict[int, dict[int, Message]] = {}
        self._has_clashing = False
        # Numbers of those that are the last of the group: one, unless there is none.
        self._last: set[int] = set()
        # How many items were put in units of work.
        self._in_units = 0

    def add(self, item: Message) -> None:
        """An item is numbered: it is a member unless it clashes with one."""
        self._items[item.sequence] = item
        self._in_units += item.is_in_unit
        self._join(item)

    def remove(self, item: Message) -> bool:
        """An item leaves; returns whether it was the last one."""
        del self._items[item.sequence]
        self._in_units -= item.is_in_unit
        if self._has_clashing:
            self._logical, self._last, self._has_clashing = {}, set(), False
            for one in sorted(self._items.values(), key=lambda one: one.sequence):
                self._join(one)
        else:
            parts = self._logical[item.number]
            del parts[item.start]
            if not parts:
                del self._logical[item.number]
                self._last.discard(item.number)
        return not self._items

    def _join(self, item: Message) -> None:
        assert item.group is not None
        if self._clashes(item.group):
            self._has_clashing = True
        else:
            self._logical.setdefault(item.number, {})[item.start] = item
            if item.group.is_last:
                self._last.add(item.number)

    def _clashes(self, mine: GroupPlace) -> bool:
        """Whether an item contradicts a member; the members do not contradict each other."""
        if not self._logical:
            return False
        parts = self._logical.get(mine.number, {})
        known = [one.group for one in parts.values() if one.group is not None]
        some = next(iter(next(iter(self._logical.values())).values())).group
        if some is not None and some.in_group != mine.in_group:
            return True
        last = next(iter(self._last), None)
        if last is not None and last != mine.number and (mine.is_last or mine.number > last):
            return True
        if mine.is_last and max(self._logical) > mine.number:
            return True
        return any(_contradict(one, mine) or _contradict(mine, one) for one in known)

    def refuses(self, item: Message) -> bool:
        """Whether a Put of an item is a clash with what is there."""
        assert item.group is not None
        if self._clashes(item.group):
            return True
        if item.keeps_order:
            for number in (1, item.number, item.number - 1):
                known = next(iter(self._logical.get(number, {}).values()), None)
                if known is not None:
                    return known.rank[0] != item.rank[0]
        return False

    def has_other_than(self, *, in_unit: bool) -> bool:
        """Whether members were put outside of units of work, or in one, as an item was not."""
        if not self._has_clashing:
            return self._in_units < len(self._items) if in_unit else self._in_units > 0
        found = (one for parts in self._logical.values() for one in parts.values())
        return any(one.is_in_unit != in_unit for one in found)

    def members(self) -> list[Message]:
        """All that do not clash."""
        return [one for parts in self._logical.values() for one in parts.values()]

    def is_member(self, item: Message) -> bool:
        return self._logical.get(item.number, {}).get(item.start) is item

    def parts(self, item: Message) -> list[Message]:
        """The members of an item's logical message, by offset."""
        parts = self._logical.get(item.number, {})
        return [parts[start] for start in sorted(parts)]

    def is_unit_available(self, item: Message) -> bool:
        """Whether an item's logical message is whole, and all of it available."""
        parts = self.parts(item)
        return (
            self.is_member(item) and _is_whole(parts) and all(_is_available(one) for one in parts)
        )

    def is_available(self) -> bool:
        """Whether whole logical messages 1 to the last one are there, all of them available."""
        numbers = sorted(self._logical)
        if not numbers or (numbers[0], numbers[-1]) != (1, len(numbers)):
            return False
        for number in numbers:
            parts = self.parts(next(iter(self._logical[number].values())))
            if not _is_whole(parts) or not all(_is_available(one) for one in parts):
                return False
        last = next(iter(self._logical[numbers[-1]].values())).group
        return last is not None and (last.is_last or not last.in_group)

    def item_at(self, position: GroupPosition, options: Options) -> Message | None:
        """What is available at a group position, as far as options ask for the rest of it."""
        item = self._logical.get(position[1], {}).get(position[2])
        if item is None or not _is_available(item):
            return None
        asks = options.needs_segments and position[2] == 0 and item.is_segment
        return None if asks and not self.is_unit_available(item) else item


def _is_available(item: Message) -> bool:
    return item.state == AVAILABLE


def _is_whole(parts: list[Message]) -> bool:
    """Whether parts are one message, or segments from 0 to the end of the last one."""
    end = 0
    for one in parts:
        assert one.group is not None
        if not one.group.is_segment:
            return True
        if one.group.start != end:
            return False
        end = one.group.end
    last = parts[-1].group if parts else None
    return last is not None and last.is_last_segment


def _contradict(one: GroupPlace, other: GroupPlace) -> bool:
    """Whether two items cannot both be of one logical message."""
    if not one.is_segment or one.is_last != other.is_last:
        return True
    if one.is_last_segment and other.end > one.end:
        return True
    return one.start <= other.start < one.end


class GroupPuts:
    """The groups of open puts, by session; those that are numbered are with their store."""

    def __init__(self) -> None:
        self.open_groups: dict[int, dict[bytes, Group]] = {}

    def end_unit(self, session: int) -> None:
        """The open puts of a session are numbered or gone, as they are at once."""
        self.open_groups.pop(session, None)

    def reasons(
        self, session: int, messages: Iterable[Message], members: Callable[[bytes], Group]
    ) -> Iterator[tuple[Message, Reason]]:
        """Which messages of a Put are to be refused, and why; `members` is what is there before."""
        before: dict[bytes, Group] = {}
        opened = self.open_groups.get(session, {})
        for message in messages:
            if message.group is None:
                continue
            group_id = message.group.group_id
            there = members(group_id)
            known = [there, opened.get(group_id, Group()), before.setdefault(group_id, Group())]
            if any(one.refuses(message) for one in known):
                yield message, Reason.GROUP_CLASH
            elif message.keeps_order and there.has_other_than(in_unit=message.is_in_unit):
                yield message, Reason.UNIT_OF_WORK_INCONSISTENT
            before[group_id].add(message)

    def open(self, session: int, messages: Iterable[Message]) -> None:
        """A Put is there; what has no number yet is kept here."""
        for message in messages:
            if message.is_in_unit and message.group is not None:
                mine = self.open_groups.setdefault(session, {})
                mine.setdefault(message.group.group_id, Group()).add(message)


PARKED_MAX: Final = 10_000


class ParkedGroups:
    """Behind which number each key is parked, and what of it must be gone when the entry is over.

    Whatever of a key comes from elsewhere ends its parking here, though not every reason does so:
    moves do not tell the reason.
    """

    def __init__(self) -> None:
        self.behind: dict[bytes, int] = {}
        self._left: dict[int, Message] = {}

    def park(self, message: Message, others: Iterable[Message]) -> None:
        """A message went to the error destination; it was that or followed another one."""
        key = message.key
        if key is None:
            return
        if message.group is not None and message.group.is_last:
            self.behind.pop(key, None)
            return
        self.behind[key] = min(self.behind.get(key, message.sequence), message.sequence)
        if len(self.behind) > PARKED_MAX:
            del self.behind[next(iter(self.behind))]
        for one in others:
            self.look_at(one)

    def unpark(self, message: Message) -> None:
        """Something of a key came from elsewhere."""
        if message.key is not None:
            self.behind.pop(message.key, None)

    def unpark_all(self) -> None:
        """Nothing asks for it any longer."""
        self.behind = {}

    def look_at(self, message: Message) -> None:
        """A message may have to follow before the entry is over."""
        if self.behind and self._is_behind(message):
            self._left[message.sequence] = message

    def _is_behind(self, message: Message) -> bool:
        key = message.key
        return key is not None and message.sequence > self.behind.get(key, message.sequence)

    def take_left(self) -> Iterator[Message]:
        """What nobody holds and did not follow in the entry that is over."""
        left, self._left = self._left, {}
        for message in left.values():
            if message.state not in (*IN_FLIGHT, "gone") and self._is_behind(message):
                yield message
