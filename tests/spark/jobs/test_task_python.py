"""Tasks have the fold from the process that Spark forks them from: none imports it again."""

import sys

import pyarrow as pa


def what_is_there(batches):
    """Whether a task has the fold before it has asked for it."""
    for _ in batches:
        pass
    names = ["ledgermq_spark.rebuild.fold", "ledgermq_spark.archive.proving"]
    yield pa.RecordBatch.from_pylist([{"there": all(name in sys.modules for name in names)}])


def test_a_task_has_what_tasks_import(spark):
    """Without it each new process of a job took most of a second for that."""
    found = spark.range(2).mapInArrow(what_is_there, "there boolean").collect()
    assert {row["there"] for row in found} == {True}
