"""How much of a queue cannot be got in logical order now, and why (GRP-46, PROTOCOL.md §13).

A consumer that is in no group gets the first item of a group if that is there and nobody has it,
then one item after the other as long as the next one is there. Everything else of the group counts
here under what stands in its way, and so does, of the whole queue, what is held or not due yet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from ledgermq.cli.printing.output import count_of
from ledgermq.protocol.documents.destinations import QueueStatus
from ledgermq.protocol.documents.groups import GroupMember, GroupState

WITHOUT_FIRST: Final = "without_first_item"
BEHIND_MISSING: Final = "behind_missing"
BEHIND_UNAVAILABLE: Final = "behind_unavailable"
KEPT: Final = "kept_for_a_consumer"
CLASHING: Final = "clashing"
HELD: Final = "held"
UNBORN: Final = "unborn"
DELAYED: Final = "delayed"

# In words, after a number.
REASONS: Final[Mapping[str, str]] = {
    WITHOUT_FIRST: "in groups without their first item",
    BEHIND_MISSING: "behind missing ones",
    BEHIND_UNAVAILABLE: "behind ones that are held or not due yet",
    KEPT: "in groups kept for a consumer",
    CLASHING: "clashing with others of their group",
    HELD: "held",
    UNBORN: "not due yet",
    DELAYED: "waiting to be redelivered",
}
AVAILABLE: Final = "available"


def is_wholly_there(group: GroupState) -> bool:
    """Whether all of a group can be got in logical order."""
    return group.available and not group.clashing


def counted(status: QueueStatus, groups: Iterable[GroupState]) -> dict[str, int]:
    """Messages that cannot be got, by reason; of `groups` those not wholly there, with members."""
    found = Counter({HELD: status.unacknowledged + status.uncommitted_gets})
    found.update({UNBORN: status.unborn, DELAYED: status.delayed})
    for group in groups:
        found.update(_reasons(group))
    return {reason: found[reason] for reason in REASONS if found[reason]}


def _reasons(group: GroupState) -> Iterable[str]:
    """A reason for each item that is available in itself and cannot be got in logical order."""
    expected: tuple[int, int] | None = (1, 0)
    why = KEPT if group.holder is not None else ""
    for item in group.members:
        if item.state == CLASHING:
            yield CLASHING
            continue
        if item.sequence in group.clashing:
            continue
        place = (item.group_sequence, item.offset)
        if not why and place != expected:
            why = WITHOUT_FIRST if expected == (1, 0) else BEHIND_MISSING
        if item.state == AVAILABLE and why:
            yield why
        elif item.state != AVAILABLE and not why:
            why = BEHIND_UNAVAILABLE
        expected = _behind(item)


def _behind(item: GroupMember) -> tuple[int, int]:
    if item.segment and not item.last_segment:
        return (item.group_sequence, item.offset + item.length)
    return (item.group_sequence + 1, 0)


def sentence(depth: int, reasons: Mapping[str, int], *, at_least: bool = False) -> str:
    total = sum(reasons.values())
    if not depth:
        return "the queue holds no messages"
    messages = count_of(depth, "message")
    if not total and not at_least:
        return f"{messages}, all can be got in logical order"
    why = ", ".join(f"{count} {REASONS[reason]}" for reason, count in reasons.items())
    beginning = "at least " if at_least else ""
    return f"{beginning}{total} of {messages} cannot be got in logical order now: {why}"
