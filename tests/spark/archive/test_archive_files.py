"""Archives whose files are not there, or are something else: told without Spark and a broker."""

import errno
import hashlib
import json
import math
import os
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import unquote

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ledgermq.cli.main import main
from ledgermq.protocol.operations import CreateQueue, OpenConsumer
from ledgermq.system_refusals import DirectoryUnwritableError
from ledgermq_spark.archive.archived import archived_position
from ledgermq_spark.archive.judged import _place
from ledgermq_spark.archive.log_archive import ArchiveMissingError, LogArchive
from ledgermq_spark.archive.proving import _are_kept, _is_as_told, _operations
from ledgermq_spark.archive.stretch import ArchiveBrokenError
from ledgermq_spark.archive.written_tables import PARQUET, _Tables
from ledgermq_spark.log import durable_files
from ledgermq_spark.log.durable_files import (
    alone_in,
    bounded_name,
    check_replaceable,
    partition_of,
    plain_name,
    unreadable,
    write_durably,
)
from ledgermq_spark.log.headers import header_text
from ledgermq_spark.log.rows import OPERATION_COLUMNS, operation_row
from ledgermq_spark.log.store import Store


@pytest.fixture
def archive(tmp_path) -> LogArchive:
    """An archive with one stretch of ten positions, of which the records' file is no Parquet."""
    archive = LogArchive(tmp_path / "kept", "QM1")
    file = archive.home / f"{0:019}" / "records" / "part-0.parquet"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"cut")
    manifest = {
        "format": 1,
        "queue_manager": "QM1",
        "first": 0,
        "last": 9,
        "newest_ms": 1_000,
        "begins_with": None,
        "digest": "d0",
        "chain": bytes(32).hex(),
        "skipped": [],
        "fold_seconds": 0.1,
        "files": {"records/part-0.parquet": hashlib.sha256(b"whole").hexdigest()},
    }
    (archive.home / f"{0:019}" / "manifest.json").write_text(json.dumps(manifest))
    return archive


@pytest.mark.parametrize("name", [".", "..", "a/../b", "%2E", "-", "Q" * 128])
def test_what_is_kept_of_a_queue_manager_lies_in_the_archive(tmp_path, name):
    """Whatever it is called: its directory is one of its own there."""
    with LogArchive(tmp_path / "archive", name).adding():
        pass
    assert [one.name for one in tmp_path.iterdir()] == ["archive"]
    (home,) = (tmp_path / "archive").iterdir()
    assert unquote(home.name) == name


def test_names_that_are_too_long_for_a_file_are_kept_apart(tmp_path):
    """Written as a path they take three characters for each slash; both begin in the same way."""
    for name in ("/" * 128, "/" * 127 + "a"):
        with LogArchive(tmp_path, name).adding():
            pass
    assert len(list(tmp_path.iterdir())) == 2


def test_a_name_is_cut_only_where_the_rest_of_the_files_name_leaves_no_room():
    """What was written under a name before is found under it."""
    assert bounded_name("Q" * 128, "-" * 127) == "Q" * 128
    assert len(bounded_name("Q" * 128, "-" * 128)) == 127
    assert len(bounded_name("/" * 128, "-" * 60)) == 195


@pytest.mark.spark
@pytest.mark.parametrize(
    "name",
    [
        *("007", "1e5", "2024-01-01", "-5", ".5", "0x1p3", "1d", "NaN", "Infinity", "inf", "epoch"),
        *("null", "true", "__HIVE_DEFAULT_PARTITION__", "QM1", "a/b", "%2F", "..", "_QM"),
    ],
)
def test_a_partition_tells_spark_and_duckdb_the_queue_managers_name_as_text(spark, tmp_path, name):
    """Whatever number, date or nothing it looks like; leading zeros are a part of it."""
    place = tmp_path / "rows" / partition_of(plain_name(name))
    place.mkdir(parents=True)
    pq.write_table(pa.table({"position": [1]}), place / "0.parquet")
    (read,) = spark.read.parquet(str(tmp_path / "rows")).collect()
    glob = str(tmp_path / "rows" / "*" / "*.parquet")
    asked = "SELECT queue_manager FROM read_parquet(?, hive_partitioning = true)"
    assert (read["queue_manager"], duckdb.execute(asked, [glob]).fetchall()) == (name, [(name,)])
    assert place.name in ("queue_manager=QM1", "queue_manager=true") or "%" in place.name


def test_tables_of_a_name_too_long_for_a_directory_are_refused_with_another_way(tmp_path):
    """Cut, it would be another name to all who read the tables."""
    with pytest.raises(DirectoryUnwritableError, match="without --archive tables need none"):
        _Tables(None, tmp_path, "/" * 128, PARQUET, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_cannot_be_looked_at_is_not_taken_for_an_empty_one(archive):
    """As that of another user: an update would begin a new archive."""
    archive.home.rename(archive.path / "elsewhere")
    with pytest.raises(ArchiveMissingError):
        archive.there()
    archive.home.write_text("in its place")
    with pytest.raises(ArchiveBrokenError, match="QM1 cannot be read: Not a directory"):
        archive.there()


def test_a_file_in_whose_place_is_something_else_is_told(archive):
    """A directory, or a link to nowhere."""
    (stretch,) = archive.stretches()
    file = stretch.path / "records" / "part-0.parquet"
    assert "is not as it was written" in stretch.damage()
    file.unlink()
    file.symlink_to("nowhere")
    assert "is missing" in stretch.damage()
    file.unlink()
    file.mkdir()
    assert "cannot be read: Is a directory" in stretch.damage()


def test_a_time_is_not_looked_up_in_records_that_were_changed(archive):
    """It would be another position, or an error of whatever reads Parquet."""
    with pytest.raises(ArchiveBrokenError, match="is not as it was written; take the stretch"):
        archived_position(archive.stretches(), datetime.fromtimestamp(0.5, UTC))


def test_who_may_not_read_is_told_so():
    """A copy would be no better for such a user."""
    denied = PermissionError(errno.EACCES, os.strerror(errno.EACCES), "there")
    assert unreadable(denied, "take a copy").endswith("as a user who may read it")
    assert unreadable(IsADirectoryError(errno.EISDIR, "Is a directory"), "take a copy") == (
        "cannot be read: Is a directory; take a copy"
    )


def test_a_place_where_nothing_can_be_written_is_told_before_anything_is_done(archive):
    """It says what was to be written where."""
    (archive.path / "file").write_text("")
    wrong = LogArchive(archive.path / "file", "QM1")
    with (
        pytest.raises(DirectoryUnwritableError, match=r"an archive cannot be written in .*/file/"),
        wrong.adding(),
    ):
        pass


def test_a_lock_that_another_user_left_is_locked_all_the_same(tmp_path):
    """Whoever may write the directory need not be able to write that file."""
    (tmp_path / ".lock").touch(mode=0o444)
    again = alone_in(tmp_path, "tables", RuntimeError("busy"))
    with alone_in(tmp_path, "tables", RuntimeError()), pytest.raises(RuntimeError, match="busy"):
        again.__enter__()
    with alone_in(tmp_path, "tables", RuntimeError("busy")):
        pass


def test_a_full_disk_is_told_with_the_file_that_did_not_fit(tmp_path, monkeypatch, capsys):
    """What was there before stays; the command says where to make room."""

    def full(_descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = tmp_path / "note.json"
    write_durably(path, "before")
    monkeypatch.setattr(durable_files.os, "fsync", full)
    with pytest.raises(OSError, match="No space left") as caught:
        write_durably(path, "after")
    assert path.read_text() == "before"

    def refused(*_given, **_named):
        raise caught.value

    monkeypatch.setattr("ledgermq_spark.archive.log_archive.LogArchive.there", refused)
    assert main(["archive", "list", str(tmp_path)]) == 1
    assert capsys.readouterr().err == (
        f"error: {path}: No space left on device; make room there, and call the command again\n"
    )


def test_a_file_is_written_where_a_link_leads_and_into_a_device_as_it_is(tmp_path):
    """Nothing takes the place of a link, of /dev/null, or of a directory."""
    link, pipe = tmp_path / "link", tmp_path / "pipe"
    link.symlink_to("file")
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    for path in (link, pipe):
        check_replaceable(path)
        write_durably(path, "whole")
    assert (os.read(reader, 9), (tmp_path / "file").read_text()) == (b"whole", "whole")
    os.close(reader)
    assert (link.is_symlink(), pipe.is_fifo()) == (True, True)
    for place, why in ((tmp_path, "Is a directory"), (Path("/dev/full"), "No space left")):
        with pytest.raises(OSError, match=f"{why}.*'{place}'"):
            write_durably(place, "whole")
    with pytest.raises(FileExistsError, match=f"'{tmp_path}/file'$"):
        write_durably(tmp_path / "file" / "below", "whole")
    assert len(list(tmp_path.iterdir())) == 3


def test_what_standard_output_went_to_is_not_lost_to_a_file_of_that_name(tmp_path):
    """`--html /dev/stdout` into a file: that goes behind what is there."""
    output = tmp_path / "output"
    write = "write_durably(Path('/dev/stdout'), 'whole')"
    program = f"from pathlib import Path\nfrom {write_durably.__module__} import write_durably\n"
    program += f"print('before', flush=True)\n{write}"
    with output.open("w") as handle:
        subprocess.run([sys.executable, "-c", program], stdout=handle, check=True)
    assert output.read_text() == "before\nwhole"


def test_what_was_kept_of_a_stretch_is_not_taken_for_that_of_another(archive, monkeypatch):
    """One that was made anew ends elsewhere; whoever may not write there keeps it for the job."""
    (stretch,) = archive.stretches()
    store = Store(None, archive.path / "scratch")
    kept = _place(stretch, store)
    assert kept.is_relative_to(archive.home)
    assert _place(replace(stretch, last=20, chain=b"\1" * 32), store) != kept
    monkeypatch.setattr("ledgermq_spark.archive.judged.os.access", lambda *_: False)
    assert _place(stretch, store).is_relative_to(store.path)


def test_headers_of_older_archives_are_those_of_their_records():
    """They have numbers that JSON does not know as they are; whatever else differs was changed."""
    header = {"properties": {"a": math.nan, "b": 1.5}, "correlation_id": "x", "type": None}
    text = header_text(header | {"time_to_live_ms": 7, "delivery_delay_ms": 0, "age_ms": 0})
    older = '{"p":{"a":NaN,"b":1.5},"c":"x","t":null,"l":7}'
    column = [name for name, _ in OPERATION_COLUMNS].index("headers")

    def operations(headers):
        row = [None] * len(OPERATION_COLUMNS)
        row[column] = headers
        return _operations([tuple(row)])

    told = operations([text, None])
    assert _are_kept(told, operations([text, None]))
    assert _are_kept(told, operations([older, None]))
    for changed in (older.replace("NaN", "1"), older.replace("7", "8"), None, "[" * 100_000):
        assert not _are_kept(told, operations([changed, None]))


def test_settings_of_older_archives_lack_at_most_those_that_came_later():
    """An operation that leaves them as they are told nothing of them before there were any."""
    created = CreateQueue(
        session=0, session_sequence=1, answered_through=0, queue="a", available_max=7
    )
    told = _operations([operation_row(created, 1, 1, trusted=True)])
    column = [name for name, _ in OPERATION_COLUMNS].index("settings")
    given = json.loads(told.field(column)[0].as_py())

    def kept(settings):
        row = [one[0].as_py() for one in told.flatten()]
        row[column] = settings
        return _operations([tuple(row)])

    older = {name: one for name, one in given.items() if name != "last_value_key"}
    assert _are_kept(told, kept(json.dumps(older)))
    assert _are_kept(told, kept(json.dumps({"available_max": 7})))
    for changed in ({**older, "available_max": 8}, {}, {**older, "single_active_consumer": 0}, [7]):
        assert not _are_kept(told, kept(json.dumps(changed)))
    assert not _are_kept(told, kept(None))
    assert not _are_kept(told, kept("[" * 100_000))


def test_settings_of_older_archives_may_lack_all_that_came_later():
    """Before an operation had any of them, nothing stood in their place."""
    ids = {"session": 0, "session_sequence": 1, "answered_through": 0}
    column = [name for name, _ in OPERATION_COLUMNS].index("settings")
    for ring, is_kept in ((0, True), (7, False)):
        row = operation_row(CreateQueue(**ids, queue="a", available_max=ring), 1, 1, trusted=True)
        for kept, fits in ((None, is_kept), ("", False)):
            older = (*row[:column], kept, *row[column + 1 :])
            assert _are_kept(_operations([row]), _operations([older])) is fits


def test_columns_that_older_archives_lack_hold_what_says_nothing():
    """A consumer that asks for a priority was opened by a program that has the column."""
    ids = {"session": 0, "session_sequence": 1, "answered_through": 0}
    column = [name for name, _ in OPERATION_COLUMNS].index("consumer_priority")
    for priority, is_kept in ((0, True), (3, False)):
        opened = OpenConsumer(**ids, consumer=1, destination="queue:a", consumer_priority=priority)
        row = operation_row(opened, 1, 1, trusted=True)
        older = (*row[:column], None, *row[column + 1 :])
        assert _are_kept(_operations([row]), _operations([older])) is is_kept


def test_statuses_of_older_archives_may_say_less_and_nothing_else():
    """What a later program tells besides is not held against them."""

    def row(part, said):
        return {"part": part, "queue": None, "payload": json.dumps(said).encode()}

    told = row("statuses", [{"name": "q", "message_count": 1, "new": True}])
    assert _is_as_told(row("statuses", [{"name": "q", "message_count": 1}]), told)
    for said in ([{"name": "q", "message_count": 2}], [], [{"name": "q", "old": 1}], {}, [1]):
        assert not _is_as_told(row("statuses", said), told)
    assert not _is_as_told(row("topics", [{"name": "q", "message_count": 1}]), told)
    assert not _is_as_told({**told, "payload": b"["}, told)
