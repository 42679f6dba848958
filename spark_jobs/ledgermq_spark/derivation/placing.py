"""Which places in groups a Put may name, and which a Get may ask for (PROTOCOL.md §13)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ledgermq_spark.derivation.get_options import Options
from ledgermq_spark.derivation.items import Group, Item, Place

GROUP_ID_DIGITS = 48
GROUP_SEQUENCE_MAX = 999_999_999
OFFSET_MAX = 2**53
Groups = dict[str, Group]


class Placed(NamedTuple):
    """What match options compare of a message; ids in hexadecimal."""

    message_id: str
    correlation_id: str | None
    group_id: str
    group_sequence: int
    offset: int
    urgency: int
    sequence: int

    def has(self, options: Options) -> bool:
        """Whether a message has all values that match options name."""
        asked = (
            (options.message_id, self.message_id, ""),
            (options.correlation_id, self.correlation_id, None),
            (options.group_id, self.group_id, ""),
            (options.group_sequence, self.group_sequence, 0),
            (max(options.offset, -1), self.offset, -1),
            (max(options.sequence, -1), self.sequence, -1),
        )
        return all(wanted in (nothing, found) for wanted, found, nothing in asked)


def put_refusal(items: Iterable[Item], known: tuple[Groups, ...], fresh: Groups) -> str | None:
    """Why a Put to a queue is refused for what it says of groups, or None.

    Args:
        items: Its messages with groups; they join `fresh`.
        known: The groups of the queue, of the unit of work, and `fresh`.
        fresh: The groups of the Put itself.
    """
    numbered = known[0]
    for item in items:
        if _invalid(item):
            return "group-invalid"
        ordered = bool(item.header.get("k"))
        for groups in known:
            group = groups.get(item.group_id)
            if group is None:
                continue
            if group.clashes(item) or (ordered and group.other_priority(item)):
                return "group-clash"
        there = numbered.get(item.group_id)
        if ordered and there is not None and there.other_unit(item):
            return "unit-of-work-inconsistent"
        fresh.setdefault(item.group_id, Group()).add(item)
    return None


def _invalid(item: Item) -> bool:
    """Whether a place is out of range, or says what does not go together."""
    group_id, flags = item.group_id, item.flags
    if len(group_id) != GROUP_ID_DIGITS or not group_id.strip("0"):
        return True
    if not 1 <= item.number <= GROUP_SEQUENCE_MAX:
        return True
    if "g" not in flags and ("s" not in flags or "m" in flags or item.number != 1):
        return True
    if "s" not in flags:
        return "e" in flags or item.offset != 0 or item.length != 0
    return not (0 <= item.offset <= OFFSET_MAX and 1 <= item.length <= OFFSET_MAX)


def agrees(options: Options, place: Place, found: Placed | None) -> bool:
    """Whether match options agree with what logical order brings next; `found`: if it is there."""
    asked = (
        options.group_id or place[0],
        options.group_sequence or place[1],
        options.offset if options.offset >= 0 else place[2],
    )
    return asked == place and (found is None or found.has(options))
