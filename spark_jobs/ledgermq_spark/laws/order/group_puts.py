"""Puts into groups of a store: what contradicts what is there is to be refused (§13, law M)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from ledgermq.protocol.reasons import Reason
from ledgermq_spark.laws.order.store_groups import Group
from ledgermq_spark.laws.order.store_records import Message


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
