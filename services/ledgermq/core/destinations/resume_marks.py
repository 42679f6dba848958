"""Resume marks: how far a quota drains before puts that wait for it go on (PROTOCOL.md §16)."""

from __future__ import annotations

from ledgermq.core.ranges import check_range
from ledgermq.core.state.resume_mark import ResumeMark
from ledgermq.protocol.limits import QUOTA_MAX
from ledgermq.protocol.reasons import Reason, Refusal


def checked_mark(
    given: tuple[int | None, int | None], mark: ResumeMark | None, limits: tuple[int, int]
) -> tuple[int, int] | Refusal:
    """Resume marks of messages and bytes as a quota would have them; None: as it has."""
    has = mark or ResumeMark(0, 0)
    named = (("messages", given[0], has.messages), ("bytes", given[1], has.bytes))
    found: list[int] = []
    for (what, value, before), limit in zip(named, limits, strict=True):
        refusal = check_range(f"{what}_resume", value, 0, QUOTA_MAX)
        if refusal is not None:
            return refusal
        found.append(before if value is None else value)
        if found[-1] > limit:
            return Refusal(
                Reason.SETTING_INVALID,
                f"{what}_resume would be {found[-1]}, above {what}_max, which would be {limit}",
            )
    return found[0], found[1]


def changed_mark(mark: ResumeMark | None, messages: int, size_bytes: int) -> ResumeMark | None:
    """A mark as it was checked; whether it holds puts up stays as it was."""
    if not messages and not size_bytes:
        return None
    return ResumeMark(messages, size_bytes, holds_up=mark is not None and mark.holds_up)
