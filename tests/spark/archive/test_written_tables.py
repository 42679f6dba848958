"""Tests of tables that grow with an archive: they are those of the log, whatever came between."""

import shutil
from collections import Counter

import pytest

from ledgermq_spark.archive import written_tables
from ledgermq_spark.archive.log_archive import LogArchive
from ledgermq_spark.archive.written_tables import ADDED_TO, Written, write_new
from ledgermq_spark.jobs.run import run_tables
from ledgermq_spark.laws.engines.choice import dataframe_engine
from ledgermq_spark.tables.all_tables import TABLES
from ledgermq_spark.tables.writing import (
    TablesBusyError,
    TablesOtherwiseError,
    write_tables,
    writing_in,
)

pytestmark = [pytest.mark.long, pytest.mark.spark, pytest.mark.kafka, pytest.mark.slow]


class KilledError(Exception):
    """Stands for a process that is killed."""


@pytest.fixture(scope="module")
def folded(spark, log):
    """What the log itself tells."""
    told = {"tunes": False, "choice": dataframe_engine}
    return run_tables(log.bootstrap, "QM1", spark=spark, **told, **log.where)


@pytest.fixture(scope="module")
def grown(tmp_path_factory):
    """The directory in which tables grow, for all tests here in turn."""
    return tmp_path_factory.mktemp("tables")


@pytest.fixture
def killed(spark, path, grown, monkeypatch):
    """Writes until one of the module's functions is called for the so many-th time."""

    def write(function, calls):
        left = iter(range(1, calls))
        known = getattr(written_tables, function)

        def counted(*given, **named):
            if next(left, None) is None:
                raise KilledError
            return known(*given, **named)

        with monkeypatch.context() as patched:
            patched.setattr(written_tables, function, counted)
            with pytest.raises(KilledError):
                write_new(path, "QM1", grown, spark=spark)

    return write


def rows(frame):
    """All rows of a frame, in no order, whatever the order of its columns."""
    return Counter(map(str, frame.select(*sorted(frame.columns)).collect()))


def assert_whole(spark, grown, folded):
    """All tables are those of the log, each row as often as there."""
    for name, text in TABLES.items():
        written = spark.read.parquet(str(grown / name))
        assert rows(written) == rows(folded.query(text)), name


def test_tables_that_grow_are_those_of_the_log(spark, path, grown, folded, killed):
    """Killed at each kind of place, and begun again: all is there, and nothing twice."""
    stretches, lives_on = len(LogArchive(path, "QM1").stretches()), len(TABLES) - len(ADDED_TO)
    # In the second stretch: one table has it, of the next one a part of the files, maybe.
    killed("settled", 5)
    # Events of all stretches are there and noted, and nothing of what lives on.
    killed("archived_facts", 1)
    # Two of these tables are written, the second one's note is not; none had anything before.
    killed("write_durably", lives_on + 2)
    kept = [one.stat().st_mtime_ns for one in (grown / "operations").rglob("*.parquet")]
    assert len(kept) >= stretches
    mended = [name for name in TABLES if name not in (*ADDED_TO, "messages")]
    assert write_new(path, "QM1", grown, spark=spark) == Written(stretches=0, mended=mended)
    assert write_new(path, "QM1", grown, spark=spark) == Written(stretches=0, mended=[])
    assert kept == [one.stat().st_mtime_ns for one in (grown / "operations").rglob("*.parquet")]
    assert_whole(spark, grown, folded)


def test_a_table_that_was_taken_away_is_made_again(spark, path, grown, folded, killed):
    """A whole one and one queue manager's part of one; also by a run that is killed first."""
    shutil.rmtree(grown / "operations")
    shutil.rmtree(grown / "messages" / "queue_manager=QM1")
    killed("settled", 2)
    mended = ["operations", "messages"]
    assert write_new(path, "QM1", grown, spark=spark) == Written(stretches=0, mended=mended)
    assert_whole(spark, grown, folded)


def test_tables_that_grow_are_not_mixed_with_whole_ones(spark, path, grown, folded, tmp_path):
    """Neither is written over the other, and what is there stays."""
    with pytest.raises(TablesOtherwiseError, match="grow with an archive"):
        write_tables(folded, grown)
    assert write_new(path, "QM1", grown, spark=spark) == Written(stretches=0, mended=[])
    write_tables(folded, tmp_path)
    with pytest.raises(TablesOtherwiseError, match="another way"):
        write_new(path, "QM1", tmp_path, spark=spark)


def test_one_at_a_time_writes_tables_in_a_directory(spark, path, folded, tmp_path):
    """Whoever comes second writes nothing, whether from an archive or all of it."""
    with writing_in(tmp_path):
        for write in (
            lambda: write_new(path, "QM1", tmp_path, spark=spark),
            lambda: write_tables(folded, tmp_path),
        ):
            with pytest.raises(TablesBusyError, match="at this moment; wait"):
                write()
    assert [one.name for one in tmp_path.iterdir()] == [".lock"]
