"""The journal: which part of the log is kept apart from consumption (PROTOCOL.md §21, DB-17..19).

The log has every message, so the journal is a view of it. The state knows only where journaling
was on, from where on the journal begins, and what the last backup said.
"""

from __future__ import annotations

from ledgermq.core.entry import Entry
from ledgermq.core.ranges import check_actor
from ledgermq.core.state.journal import Backup
from ledgermq.core.state.records import Session
from ledgermq.protocol.administration import BackUpJournal
from ledgermq.protocol.reasons import Reason, Refusal


def back_up_journal(entry: Entry, session: Session, operation: BackUpJournal) -> Refusal | None:
    """Takes what has expired out of the journal, now that all of it was archived (DB-19)."""
    refusal = check_actor(operation.actor, operation.reason)
    if refusal is not None:
        return refusal
    journal = entry.state.journal
    if not journal.intervals:
        return Refusal(Reason.JOURNAL_EMPTY, "the journal is empty: there is nothing to back up")
    through, kept_from = operation.through, operation.kept_from
    needed_from = operation.needed_from
    # What is below 0 is below what the journal needs, too.
    if not needed_from <= kept_from <= through <= entry.position:
        return Refusal(
            Reason.BACKUP_INVALID,
            f"needed_from {needed_from}, kept_from {kept_from} and through {through} must rise, "
            f"to {entry.position} at most",
        )
    before = 0 if journal.backup is None else journal.backup.through
    rises = needed_from >= journal.needed_from and kept_from >= journal.kept_from
    if not rises or through < before:
        return Refusal(
            Reason.BACKUP_INVALID,
            f"the journal is kept from {journal.kept_from} on, needs the log from "
            f"{journal.needed_from} on and was backed up through {before}; begin the backup again",
        )
    journal.backed_up(Backup(entry.position, entry.state.time, through, kept_from, needed_from))
    return None
