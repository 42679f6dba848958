"""Positions that were declared skipped (PROTOCOL.md §8)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from ledgermq.protocol.administration import PositionsSkipped
from ledgermq.protocol.operations import Unreadable
from ledgermq_spark.laws.engines.frame import Frame

SKIPPED = Unreadable(reason="position-skipped", detail="declared skipped")
NOTES_MAX = 50
DECLARED: Final = """
SELECT position, range_first, range_last, actor, why FROM {rows} WHERE kind = 'PositionsSkipped'
ORDER BY position
"""


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


def declaration_notes(operations: Frame) -> list[str]:
    """Who declared what skipped, in the order of the log; of declarations that count, the first."""
    return [
        f"positions {one.first} to {one.last} were declared skipped at position {position} by "
        f"{one.actor}: {one.reason}"
        for position, one in islice(_declarations(operations), NOTES_MAX)
    ]


def _declarations(operations: Frame) -> Iterator[tuple[int, PositionsSkipped]]:
    """Declarations that count, with where they stand."""
    for row in operations.rows(DECLARED):
        (first,), (last,) = row["range_first"], row["range_last"]
        one = PositionsSkipped(first=first, last=last, actor=row["actor"], reason=row["why"])
        if one.counts_at(row["position"]):
            yield row["position"], one
