"""One backup of a journal at a time, without Spark: what is refused is refused before anything."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ledgermq_spark.journal import archive
from ledgermq_spark.journal.archive import Archive, JournalBusyError


def test_a_second_backup_at_once_is_refused_and_leaves_the_first_one_alone(tmp_path, monkeypatch):
    """Both would make their files in one place; another queue manager's is another place."""
    here = Archive(tmp_path)
    written = []

    def journal(queue_manager: str) -> Any:
        return SimpleNamespace(queue_manager=queue_manager, through=7)

    class WrittenError(Exception):
        pass

    def write(one, place, _):
        written.append(one.queue_manager)
        place.mkdir(parents=True)
        if one.queue_manager == "QM1":
            with pytest.raises(JournalBusyError, match="of QM1 to "):
                here.write(journal("QM1"), SimpleNamespace(counts={}))
            with pytest.raises(WrittenError):
                here.write(journal("QM2"), SimpleNamespace(counts={}))
            assert place.is_dir()
        raise WrittenError

    monkeypatch.setattr(archive, "_write_messages", write)
    with pytest.raises(WrittenError):
        here.write(journal("QM1"), SimpleNamespace(counts={}))
    assert written == ["QM1", "QM2"]
