"""Tests of tables that grow with an archive: they are those of the log, whatever came between."""

from collections import Counter

import pytest

from ledgermq_spark.archive import written_tables
from ledgermq_spark.archive.log_archive import LogArchive
from ledgermq_spark.archive.written_tables import TablesOtherwiseError, write_new
from ledgermq_spark.jobs.run import run_tables
from ledgermq_spark.tables.all_tables import TABLES
from ledgermq_spark.tables.writing import write_tables

pytestmark = [pytest.mark.long, pytest.mark.spark, pytest.mark.kafka, pytest.mark.slow]


class KilledError(Exception):
    """Stands for a process that is killed."""


def rows(frame):
    """All rows of a frame, in no order, whatever the order of its columns."""
    return Counter(map(str, frame.select(*sorted(frame.columns)).collect()))


def test_tables_that_grow_are_those_of_the_log(spark, log, path, tmp_path, monkeypatch):
    """Killed in the middle of the second stretch, and begun again: nothing is there twice."""
    move, moved = written_tables.settled, []

    def killed(directory):
        moved.append(directory)
        if len(moved) == 5:
            raise KilledError
        return move(directory)

    monkeypatch.setattr(written_tables, "settled", killed)
    with pytest.raises(KilledError):
        write_new(path, "QM1", tmp_path, spark=spark)
    monkeypatch.setattr(written_tables, "settled", move)
    left = len(LogArchive(path, "QM1").stretches()) - 1
    assert write_new(path, "QM1", tmp_path, spark=spark) == left
    assert write_new(path, "QM1", tmp_path, spark=spark) == 0
    folded = run_tables(log.bootstrap, "QM1", spark=spark, tunes=False, **log.where)
    for name, text in TABLES.items():
        written = spark.read.parquet(str(tmp_path / name))
        assert rows(written) == rows(folded.query(text)), name
    write_tables(folded, tmp_path / "whole")
    with pytest.raises(TablesOtherwiseError, match="another way"):
        write_new(path, "QM1", tmp_path / "whole", spark=spark)
