"""The journal: which part of the log is kept apart from consumption (PROTOCOL.md §21, DB-17..19).

The log has every message, so the journal is a view of it. The state knows only where journaling
was on, from where on the journal begins, and what the last backup said.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ledgermq.core.actors import check_actor
from ledgermq.protocol.limits import TIMING_MS_MAX
from ledgermq.protocol.reasons import BACKUP_INVALID, JOURNAL_EMPTY, SETTING_INVALID, Refusal

if TYPE_CHECKING:
    from ledgermq.core.state import QueueManager, Session
    from ledgermq.core.turn import Turn
    from ledgermq.protocol.administration import BackUpJournal
    from ledgermq.protocol.operations import AlterQueueManager

__all__ = [
    "Journal",
    "back_up_journal",
    "check_journal",
    "configure_journal",
    "journal_status",
]

LIFETIME_MS_DEFAULT: Final = 7 * 24 * 3600 * 1000
# The end of an interval that has none yet.
ON: Final = -1

Record = dict[str, Any]


class Backup(NamedTuple):
    """What a backup said: its own position and time in µs, and the positions that it named."""

    position: int
    time: int
    through: int
    kept_from: int
    needed_from: int


class Journal:
    """Where journaling was on, as intervals [first, end), and what of that is still there.

    What came into the journal below `kept_from` has left it; no Put below `needed_from` brought
    anything that is in it, or may yet come into it. Both mean nothing while it is empty.
    """

    __slots__ = ("backup", "intervals", "kept_from", "lifetime_ms", "needed_from")

    def __init__(self) -> None:
        self.lifetime_ms = LIFETIME_MS_DEFAULT
        self.intervals: list[tuple[int, int]] = []
        self.kept_from = 0
        self.needed_from = 0
        self.backup: Backup | None = None

    @property
    def is_on(self) -> bool:
        """Whether what is put now is journaled (DB-17)."""
        return bool(self.intervals) and self.intervals[-1][1] == ON

    @property
    def needs_from(self) -> int | None:
        """From where on it needs the log; None: it is empty."""
        return max(self.needed_from, self.intervals[0][0]) if self.intervals else None

    def turn(self, position: int, *, on: bool) -> None:
        """Turns journaling on or off at an entry; nothing changes if it is so already."""
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

    def record(self) -> Record | None:
        """As a checkpoint writes it; None: it is as it was at the first."""
        if not self.intervals and self.backup is None and self.lifetime_ms == LIFETIME_MS_DEFAULT:
            return None
        return {
            "lifetime_ms": self.lifetime_ms,
            "intervals": [{"first": first, "end": end} for first, end in self.intervals],
            "kept_from": self.kept_from,
            "needed_from": self.needed_from,
            "backup": None if self.backup is None else self.backup._asdict(),
        }

    @classmethod
    def restored(cls, record: Record | None) -> Journal:
        """The inverse of `record`."""
        journal = cls()
        if record is not None:
            journal.lifetime_ms = record["lifetime_ms"]
            journal.intervals = [(one["first"], one["end"]) for one in record["intervals"]]
            journal.kept_from = record["kept_from"]
            journal.needed_from = record["needed_from"]
            backup = record["backup"]
            journal.backup = None if backup is None else Backup(**backup)
        return journal


def check_journal(operation: AlterQueueManager) -> Refusal | None:
    """Refuses a lifetime that is out of range."""
    lifetime_ms = operation.journal_lifetime_ms
    if lifetime_ms is None or 0 <= lifetime_ms <= TIMING_MS_MAX:
        return None
    return Refusal(
        SETTING_INVALID, f"journal_lifetime_ms is {lifetime_ms}, must be 0 to {TIMING_MS_MAX}"
    )


def configure_journal(turn: Turn, operation: AlterQueueManager) -> None:
    """Changes those settings of the journal that are given, and were checked."""
    journal = turn.state.journal
    if operation.journal_lifetime_ms is not None:
        journal.lifetime_ms = operation.journal_lifetime_ms
    if operation.journaling is not None:
        journal.turn(turn.position, on=operation.journaling)


def back_up_journal(turn: Turn, session: Session, operation: BackUpJournal) -> Refusal | None:
    """Takes what has expired out of the journal, now that all of it was archived (DB-19)."""
    refusal = check_actor(operation.actor, operation.reason)
    if refusal is not None:
        return refusal
    journal = turn.state.journal
    if not journal.intervals:
        return Refusal(JOURNAL_EMPTY, "the journal is empty: there is nothing to back up")
    through, kept_from, needed_from = (
        operation.through,
        operation.kept_from,
        operation.needed_from,
    )
    if not 0 <= needed_from <= kept_from <= through <= turn.position:
        return Refusal(
            BACKUP_INVALID,
            f"needed_from {needed_from}, kept_from {kept_from} and through {through} must rise, "
            f"from 0 to {turn.position}",
        )
    before = 0 if journal.backup is None else journal.backup.through
    rises = needed_from >= journal.needed_from and kept_from >= journal.kept_from
    if not rises or through < before:
        return Refusal(
            BACKUP_INVALID,
            f"the journal is kept from {journal.kept_from} on, needs the log from "
            f"{journal.needed_from} on and was backed up through {before}; begin the backup again",
        )
    journal.backed_up(Backup(turn.position, turn.state.time, through, kept_from, needed_from))
    return None


def journal_status(state: QueueManager) -> Record:
    """What the queue manager's status tells of its journal."""
    journal = state.journal
    return {
        "journaling": journal.is_on,
        "journal_lifetime_ms": journal.lifetime_ms,
        "journal_from": journal.kept_from if journal.intervals else None,
        "journal_needed_from": journal.needs_from,
        "journal_backup": None if journal.backup is None else journal.backup._asdict(),
    }
