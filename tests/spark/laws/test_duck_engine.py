"""DuckDB as what answers laws: long logs on disk, odd places, and too little room."""

import re
import subprocess
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ledgermq_spark.laws.engines import duck_engine
from ledgermq_spark.laws.engines.duck_engine import DuckEngine, QueryUnansweredError
from ledgermq_spark.laws.engines.engine import Pass
from ledgermq_spark.log.rows import LONG, arrow_batch, arrow_table
from ledgermq_spark.log.store import ParquetRows, Store

COLUMNS = (("store", LONG), ("position", LONG))
FOUND = (("store", LONG), ("first", LONG), ("rows", LONG))
ROWS = [(store, position) for position in range(50) for store in (2, 1, 3)]


def rows_of(engine, answer):
    """Return the rows of a query over one frame, sorted."""
    return sorted(tuple(row.values()) for row in engine.rows(answer))


def take(batches):
    """Yield how many rows each store has and the first of them, which must come in order."""
    seen = {}
    for batch in batches:
        for store, position in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            first, count = seen.get(store, (position, 0))
            assert position >= first + count
            seen[store] = first, count + 1
    if seen:
        yield arrow_batch(FOUND, [(store, *told) for store, told in seen.items()])


COUNTING = Pass(query="", keys=("store",), order=("position",), take=take, columns=FOUND)


@pytest.mark.spark
@pytest.mark.parametrize("rows_here_max", [0, 1_000], ids=["by Spark", "here"])
def test_a_pass_gets_each_store_in_its_order(spark, tmp_path, monkeypatch, rows_here_max):
    """In this process, or in Spark's if there are many rows."""
    monkeypatch.setattr(duck_engine, "ROWS_HERE_MAX", rows_here_max)
    engine = DuckEngine(spark, Store(spark, tmp_path), is_long=True)
    given = engine.taken({"events": arrow_table(COLUMNS, ROWS)})
    found = engine.passed("counted", engine.ask("SELECT * FROM {events}", given), COUNTING)
    expected = [(store, 0, 50) for store in (1, 2, 3)]
    assert rows_of(engine, engine.ask("SELECT * FROM {found}", {"found": found})) == expected


def test_a_pass_over_nothing_finds_nothing(tmp_path):
    """Its frame has its columns."""
    engine = DuckEngine(None, Store(None, tmp_path), is_long=False)
    given = engine.taken({"events": arrow_table(COLUMNS, [])})
    found = engine.passed("counted", engine.ask("SELECT * FROM {events}", given), COUNTING)
    assert engine.rows(engine.ask("SELECT first FROM {found}", {"found": found})) == []


@pytest.mark.spark
def test_a_frame_is_read_and_written_wherever_it_is(spark, tmp_path):
    """A path may have what would end a text of SQL."""
    place = tmp_path / "it's (there)"
    engine = DuckEngine(spark, Store(spark, place), is_long=True)
    frame = spark.createDataFrame(ROWS, "store BIGINT, position BIGINT")
    given = engine.taken({"events": frame})
    asked = engine.ask("SELECT store FROM {events} WHERE position = 7", given)
    assert rows_of(engine, asked) == [(1,), (2,), (3,)]
    engine.write(asked, str(place / "written"))
    assert sorted(spark.read.parquet(str(place / "written")).collect()) == [(1,), (2,), (3,)]


@pytest.mark.parametrize("by", [(), ("a",)])
def test_a_table_is_written_below_a_name_with_a_backslash(tmp_path, by):
    """DuckDB takes one for a slash, and would write elsewhere."""
    place = tmp_path / "a\\b" / "written"
    engine = DuckEngine(None, Store(None, tmp_path / "store"), is_long=False)
    engine.write(engine.ask("SELECT 1 AS a, 2 AS b", {}), str(place), by)
    (written,) = place.rglob("*.parquet")
    assert pq.ParquetFile(written).read(columns=["b"]).to_pylist() == [{"b": 2}]


@pytest.mark.spark
@pytest.mark.parametrize("name", ["a\\b[1]", "[1]"])
def test_what_duckdb_finds_by_no_name_is_read_by_spark(spark, tmp_path, name):
    """In a pattern it takes a backslash for a slash, also in what a path stands beside."""
    (tmp_path / "\\beside").mkdir()
    place = tmp_path / name
    place.mkdir()
    pq.write_table(pa.table({"a": [1, 2]}), place / "part.parquet")
    engine = DuckEngine(spark, Store(spark, tmp_path / "store"), is_long=False)
    rows = ParquetRows(paths=[str(place)], query="SELECT a FROM {rows}")
    assert rows_of(engine, engine.ask("SELECT * FROM {rows}", engine.taken({"rows": rows}))) == [
        (1,),
        (2,),
    ]


def test_too_little_room_is_told_with_what_to_do(tmp_path, monkeypatch):
    """Neither memory nor disk suffices: the command says so, and where."""
    monkeypatch.setenv("LEDGERMQ_SPARK_MEMORY", "512m")
    blocked = tmp_path / "store"
    engine = DuckEngine(None, Store(None, blocked), is_long=False)
    blocked.write_text("", encoding="utf-8")
    many = "SELECT repeat(CAST(id AS STRING), 300) AS a FROM {ids}"
    ids = engine.taken({"ids": pa.table({"id": pa.array(range(10_000_000, 11_000_000))})})
    with pytest.raises(
        QueryUnansweredError, match=r"LEDGERMQ_SPARK_MEMORY, or make room in .*store"
    ):
        engine.keep("wide", engine.ask(many, ids))


def test_what_is_short_leaves_nothing_behind(tmp_path):
    """Everything is in memory."""
    engine = DuckEngine(None, Store(None, tmp_path / "none"), is_long=False)
    engine.keep("one", engine.ask("SELECT 1 AS a", {}))
    assert not Path(tmp_path / "none").exists()


@pytest.mark.parametrize("relative", [False, True], ids=["absolute", "relative"])
def test_a_full_disk_is_told_by_the_file_that_did_not_fit(tmp_path, monkeypatch, relative):
    """More memory would not help, nor room for scratch files."""
    monkeypatch.chdir(tmp_path)
    place = Path("disk") if relative else tmp_path / "disk"
    place.mkdir()
    try:
        mounted = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", place]
        subprocess.run(mounted, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("only root may mount a small disk")
    try:
        engine = DuckEngine(None, Store(None, tmp_path / "store"), is_long=False)
        ids = engine.taken({"ids": pa.table({"id": pa.array(range(500_000))})})
        many = engine.ask("SELECT md5(CAST(id AS STRING)) AS a FROM {ids}", ids)
        with pytest.raises(QueryUnansweredError) as caught:
            engine.write(many, str(place / "written"))
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)
    assert re.fullmatch(
        rf"{place}/written/\S+ cannot be written: No space left on device; "
        "make room there, and call the command again",
        str(caught.value),
    )


def test_spark_goes_on_with_an_answer(spark, tmp_path):
    """Its rows and types are those of Spark's own answer, also where it has no rows."""
    engine = DuckEngine(spark, Store(spark, tmp_path), is_long=False)
    query = "SELECT TIMESTAMP '2026-11-20 10:00:00' AS at, array('a', NULL) AS t, sum(1) AS n"
    for condition in ("TRUE", "FALSE"):
        text = f"SELECT * FROM ({query}) WHERE {condition}"
        found, expected = engine.frame(engine.ask(text, {})), spark.sql(text)
        assert found.dtypes == expected.dtypes
        assert found.collect() == expected.collect()
