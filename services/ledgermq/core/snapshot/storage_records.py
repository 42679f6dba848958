"""The storage and the journal in a checkpoint, and back."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Final

from ledgermq.core.snapshot.fields import Fields, Record
from ledgermq.core.state.journal import LIFETIME_MS_DEFAULT, Backup, Journal
from ledgermq.core.state.storage import Segment, Storage, StorageSettings

SEGMENT: Final = Fields("number", "bytes")
JOURNAL: Final = Fields("lifetime_ms", "kept_from", "needed_from")


def storage_entry(storage: Storage) -> Record:
    return {
        **asdict(storage.settings),
        "next_number": storage.next_number,
        "active": storage.active.number,
        "segments": [SEGMENT.of(one) for one in storage.segments.values()],
    }


def storage_from(entry: Record) -> Storage:
    """The storage without its messages; which segments are free follows from these."""
    storage = Storage()
    names = [one.name for one in fields(StorageSettings)]
    storage.settings = StorageSettings(**{name: entry[name] for name in names})
    segments = [Segment(one["number"], storage.emptied, one["bytes"]) for one in entry["segments"]]
    storage.segments = {one.number: one for one in segments}
    storage.active = storage.segments[entry["active"]]
    storage.next_number = entry["next_number"]
    return storage


def journal_entry(journal: Journal) -> Record | None:
    """None: it is as it was at the first."""
    backup = journal.backup
    if not journal.intervals and backup is None and journal.lifetime_ms == LIFETIME_MS_DEFAULT:
        return None
    return {
        **JOURNAL.of(journal),
        "intervals": [{"first": first, "end": end} for first, end in journal.intervals],
        "backup": None if backup is None else backup._asdict(),
    }


def restore_journal(journal: Journal, entry: Record | None) -> None:
    if entry is not None:
        JOURNAL.restore(journal, entry)
        journal.intervals = [(one["first"], one["end"]) for one in entry["intervals"]]
        journal.backup = None if entry["backup"] is None else Backup(**entry["backup"])
