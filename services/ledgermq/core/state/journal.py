"""What the state knows of the journal: where journaling was on, and what of that is still there."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

LIFETIME_MS_DEFAULT: Final = 7 * 24 * 3600 * 1000
# The end of an interval that has none yet.
ON: Final = -1


class Backup(NamedTuple):
    """What a backup said: its own position and time in µs, and the positions that it named."""

    position: int
    time: int
    through: int
    kept_from: int
    needed_from: int


@dataclass(slots=True, eq=False, repr=False)
class Journal:
    """Where journaling was on, as intervals [first, end), and what of that is still there.

    What came into the journal below `kept_from` has left it; no Put below `needed_from` brought
    anything that is in it, or may yet come into it. Both mean nothing while it is empty.
    """

    lifetime_ms: int = LIFETIME_MS_DEFAULT
    intervals: list[tuple[int, int]] = field(default_factory=list)
    kept_from: int = 0
    needed_from: int = 0
    backup: Backup | None = None

    @property
    def is_on(self) -> bool:
        """Whether what is put now is journaled (DB-17)."""
        return bool(self.intervals) and self.intervals[-1][1] == ON

    @property
    def needs_from(self) -> int | None:
        """From where on it needs the log; None: it is empty."""
        return max(self.needed_from, self.intervals[0][0]) if self.intervals else None

    def switch(self, position: int, *, on: bool) -> None:
        if on == self.is_on:
            return
        if not on:
            self.intervals[-1] = (self.intervals[-1][0], position)
            return
        if not self.intervals:
            self.kept_from = self.needed_from = position
        self.intervals.append((position, ON))

    def backed_up(self, backup: Backup) -> None:
        """Takes in a backup that was checked: what has expired leaves (DB-19)."""
        self.backup = backup
        self.kept_from, self.needed_from = backup.kept_from, backup.needed_from
        self.intervals = [
            (first, end) for first, end in self.intervals if end == ON or end > backup.needed_from
        ]
