"""Tests of what a job keeps: it is read back, and what is empty costs nothing further."""

import pytest

from ledgermq_spark.log.session import FILE_BATCH_RECORDS_MAX
from ledgermq_spark.log.store import ParquetRows, Store

pytestmark = pytest.mark.spark
WAYS = ("keep", "hold")


@pytest.mark.parametrize("way", WAYS)
def test_what_is_kept_is_read_back(spark, tmp_path, way):
    """Rows and columns are those of the frame."""
    kept = getattr(Store(spark, tmp_path), way)("few", spark.range(3))
    assert [row["id"] for row in kept.orderBy("id").collect()] == [0, 1, 2]


@pytest.mark.parametrize("way", WAYS)
def test_what_is_joined_with_nothing_is_planned_away(spark, tmp_path, way):
    """Spark knows that a kept frame is empty before it reads it."""
    kept = getattr(Store(spark, tmp_path), way)("none", spark.range(3).where("id > 7"))
    assert kept.columns == ["id"]
    joined = spark.range(100).join(kept, "id")
    plan = joined._jdf.queryExecution().optimizedPlan().toString()
    assert plan.startswith("LocalRelation <empty>")
    assert joined.collect() == []


def test_what_is_large_only_in_memory_is_not_held_whole_for_a_join(spark, tmp_path):
    """Half a million rows that are alike are small on disk; each join would hold 30 MB."""
    alike = spark.range(500_000).selectExpr("id", "repeat('moved', 5) AS cause")
    kept = Store(spark, tmp_path).keep("alike", alike)
    on_disk = sum(one.stat().st_size for one in (tmp_path / "alike").rglob("*.parquet"))
    assert on_disk < 10_000_000, "a frame that Spark would take for small"
    plan = kept.join(spark.range(10_000_000), "id")._jdf.queryExecution().executedPlan().toString()
    assert "BroadcastHashJoin" not in plan


def test_files_that_spark_told_of_are_read_below_a_directory_with_a_space(spark, tmp_path):
    """It tells of them by address, with %20 and so on, and takes no address back."""
    place = str(tmp_path / "my \u00fc 100% data")
    spark.range(3).write.parquet(place)
    told = spark.read.parquet(place).inputFiles()
    rows = ParquetRows(paths=told).frame(spark)
    assert sorted(row["id"] for row in rows.collect()) == [0, 1, 2]


@pytest.mark.parametrize("name", ["a[b]", "a?", "a*", "a{b,c}", "a\\b", "a[b"])
def test_a_directory_whose_name_is_a_pattern_is_read_as_it_is_called(spark, tmp_path, name):
    """Spark would read what fits the name in its place, or find nothing."""
    spark.range(9).write.parquet(str(tmp_path / "ab" / "few"))
    kept = Store(spark, tmp_path / name).keep("few", spark.range(3))
    rows = ParquetRows(paths=[str(tmp_path / name / "few")]).frame(spark)
    told = ParquetRows(paths=kept.inputFiles()).frame(spark)
    assert [one.count() for one in (kept, rows, told)] == [3, 3, 3]


def test_few_rows_of_a_file_are_in_memory_at_once(spark, tmp_path):
    """Each may be a record of 8 MiB; Spark held 4,096, so that a long log could not be archived."""
    spark.range(500).coalesce(1).write.parquet(str(tmp_path / "rows"))
    before = spark.conf.get("spark.sql.codegen.wholeStage")
    spark.conf.set("spark.sql.codegen.wholeStage", "true")
    try:
        rows = spark.read.parquet(str(tmp_path / "rows"))
        rows.collect()
        metrics = rows._jdf.queryExecution().executedPlan().metrics()
    finally:
        spark.conf.set("spark.sql.codegen.wholeStage", before)
    assert metrics.apply("numOutputRows").value() == 500
    assert metrics.apply("numInputBatches").value() >= 500 // FILE_BATCH_RECORDS_MAX
