"""Tests of what a job keeps: it is read back, and what is empty costs nothing further."""

import pytest

from ledgermq_spark.log.store import Store

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
