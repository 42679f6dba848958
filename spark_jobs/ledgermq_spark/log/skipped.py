"""Positions that were declared skipped (PROTOCOL.md §8)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ledgermq.protocol.operations import Unreadable

SKIPPED = Unreadable(reason="position-skipped", detail="declared skipped")


@dataclass(frozen=True, slots=True)
class Skipped:
    """Positions that the fold passed over, first to last; `hole`: there is no record."""

    first: int
    last: int
    hole: bool


def holes_in(skipped: Sequence[Skipped]) -> list[int]:
    """The positions at which there is no record."""
    return [at for one in skipped if one.hole for at in range(one.first, one.last + 1)]


def entries_in(skipped: Sequence[Skipped]) -> frozenset[int]:
    """The positions at which there is one that the fold passed over."""
    return frozenset(one.first for one in skipped if not one.hole)


def answered_before(skipped: Sequence[Skipped]) -> str:
    """A condition of what was answered before its entry was declared skipped."""
    entries = ", ".join(map(str, sorted(entries_in(skipped))))
    return f"position IN ({entries}) AND kind = 'Accepted'" if entries else "FALSE"
