"""Tasks have the fold from the process that Spark forks them from: none imports it again."""

import importlib
import sys
import zipimport
from unittest.mock import patch

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


def what_is_read(batches):
    """How many archives a task has on its path, and how many are read where it forgets them."""
    for _ in batches:
        pass
    finders = sys.path_importer_cache.values()
    archives = sum(isinstance(one, zipimport.zipimporter) for one in finders)
    with patch.object(zipimport, "_read_directory", return_value={}) as read:
        importlib.invalidate_caches()
    yield pa.RecordBatch.from_pylist([{"archives": archives, "read": read.call_count}])


def test_a_task_does_not_read_archives_on_its_path_again(spark):
    """Spark has it forget them before every task, and to read them took longer than most tasks."""
    found = spark.range(2).mapInArrow(what_is_read, "archives bigint, read bigint").collect()
    assert all(row["archives"] > 0 for row in found)
    assert {row["read"] for row in found} == {0}
