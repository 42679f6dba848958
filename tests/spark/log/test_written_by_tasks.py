"""Tests of rows that tasks write themselves: each once, whole, with nothing else beside them."""

import pyarrow as pa
import pytest
from pyarrow.parquet import ParquetFile
from pyspark.errors import PythonException

from ledgermq_spark.log.rows import LONG, TEXT
from ledgermq_spark.log.store import ROW_GROUP_ROWS, ParquetRows, write_made, write_rows

pytestmark = pytest.mark.spark
COLUMNS = (("id", LONG), ("name", TEXT))


def named(batches):
    """Rows of `COLUMNS`, and a column that nobody wants."""
    for batch in batches:
        ids = batch.column(0)
        names = pa.array([f"name {one}" for one in ids])
        yield pa.RecordBatch.from_arrays([names, ids, ids], names=["name", "id", "more"])


def test_rows_are_those_that_tasks_made(spark, tmp_path):
    """In files that are numbered, of the columns that were asked for; empty tasks leave none."""
    frame = spark.range(0, 100, 1, 4).where("id < 25 OR id >= 50")
    assert write_made(frame, named, COLUMNS, tmp_path / "made") == 75
    names = sorted(one.name for one in (tmp_path / "made").iterdir())
    assert names == ["part-00000.parquet", "part-00002.parquet", "part-00003.parquet"]
    read = spark.read.parquet(str(tmp_path / "made"))
    assert read.dtypes == [("id", "bigint"), ("name", "string")]
    told = {(row["id"], row["name"]) for row in read.collect()}
    assert told == {(one, f"name {one}") for one in range(100) if not 25 <= one < 50}


def test_what_stood_there_goes(spark, tmp_path):
    """Also what tasks of a run that was killed had not finished."""
    place = tmp_path / "made"
    write_made(spark.range(0, 10, 1, 3), named, COLUMNS, place)
    (place / ".unfinished").write_bytes(b"PAR1")
    write_made(spark.range(0, 5, 1, 1), named, COLUMNS, place)
    assert [one.name for one in place.iterdir()] == ["part-00000.parquet"]
    assert spark.read.parquet(str(place)).count() == 5


def test_a_task_that_ran_twice_counts_once(spark, tmp_path):
    """The first attempt leaves a file, which nobody reads."""
    place, tried = tmp_path / "made", tmp_path / "tried"

    def made(batches):
        yield from named(batches)
        if not tried.exists():
            tried.touch()
            with (place / ".of-the-first").open("wb") as left:
                left.write(b"PAR1")
            again = list(named([pa.RecordBatch.from_pydict({"id": [7]})]))
            write_rows(place / ".whole", COLUMNS, again)

    assert write_made(spark.range(0, 10, 1, 1), made, COLUMNS, place) == 10
    assert [one.name for one in place.iterdir()] == ["part-00000.parquet"]
    assert spark.read.parquet(str(place)).count() == 10


def test_a_task_that_fails_is_told(spark, tmp_path):
    """With what it said; nothing is there to be read for whole."""

    def fails(batches):
        yield from named(batches)
        raise ValueError("the seventh is missing")

    with pytest.raises(PythonException, match="the seventh is missing"):
        write_made(spark.range(0, 10, 1, 1), fails, COLUMNS, tmp_path / "made")
    assert list((tmp_path / "made").glob("*.parquet")) == []


def test_of_nothing_there_are_columns(spark, tmp_path):
    """A directory without a row can be read as any other."""
    assert write_made(spark.range(0), named, COLUMNS, tmp_path / "none") == 0
    read = spark.read.parquet(str(tmp_path / "none"))
    assert read.dtypes == [("id", "bigint"), ("name", "string")]
    rows = ParquetRows(paths=[str(tmp_path / "none")], columns=COLUMNS)
    assert rows.frame(spark).collect() == []
    assert rows.rows_in_files() == 0


def test_small_batches_are_read_together(tmp_path):
    """So many rows make a group of a file, however few come at a time; large ones fewer."""
    few = [pa.RecordBatch.from_pydict({"id": [1] * 1_000, "name": ["a"] * 1_000})]
    rows = write_rows(tmp_path / "few", COLUMNS, few * 250)
    assert rows == 250_000
    groups = ParquetFile(tmp_path / "few").metadata
    sizes = [groups.row_group(at).num_rows for at in range(groups.num_row_groups)]
    assert sizes == [ROW_GROUP_ROWS, ROW_GROUP_ROWS, 50_000]
    large = [pa.RecordBatch.from_pydict({"id": [1], "name": ["a" * 20_000_000]})]
    write_rows(tmp_path / "large", COLUMNS, large * 5)
    groups = ParquetFile(tmp_path / "large").metadata
    assert [groups.row_group(at).num_rows for at in range(groups.num_row_groups)] == [2, 2, 1]
