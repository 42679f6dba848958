"""Folds the records of an archive: from the state before a stretch on, in one task of Spark."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from ledgermq_spark.archive.archived import opened
from ledgermq_spark.archive.stretch import FOLD, Stretch
from ledgermq_spark.log.rows import spark_schema
from ledgermq_spark.log.scratch import directory_until_exit
from ledgermq_spark.log.session import spark_session
from ledgermq_spark.log.store import Make, write_made
from ledgermq_spark.rebuild.fold import FOLD_COLUMNS, Fold, FoldPlan
from ledgermq_spark.rebuild.rebuild import Progress
from ledgermq_spark.rebuild.rebuilt import Rebuilt, rebuilt_from

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession


def plan_of(stretch: Stretch, before: Stretch | None, tells: tuple[str, ...] = ()) -> FoldPlan:
    """How a stretch is folded, from the state that the one before ends with.

    Raises:
        ArchiveBrokenError: That state is not the one that was written.
    """
    base = None if before is None else before.state()
    return FoldPlan(
        partition=0,
        start=stretch.first,
        root=None if base is None else base.root,
        blocks=[] if base is None else base.blocks,
        chain=bytes(32) if base is None else base.manifest["chain"],
        tells=tells,
        skips=stretch.skipped,
        looked_ahead=True,
    )


def rebuild_archived(
    path: Path,
    queue_manager: str,
    at: int | str | datetime | None = None,
    *,
    spark: SparkSession | None = None,
    directory: Path | None = None,
    progress: Progress | None = None,
) -> Rebuilt:
    """The state at a position or time, from an archive alone: one stretch is folded at most.

    Raises:
        ArchiveMissingError: There is nothing of this queue manager.
        ArchiveBrokenError: The archive is not whole.
        PositionOutOfRangeError: `at` lies before the archive's start or after its end.
    """
    started = time.monotonic()
    stretches, position = opened(path, queue_manager, at, progress)
    spark = spark or spark_session()
    number = next(at for at, one in enumerate(stretches) if position <= one.last)
    stretch, before = stretches[number], stretches[number - 1] if number else None
    stretch.check()
    read = spark.read.schema(spark_schema(FOLD_COLUMNS))
    if position == stretch.last:
        rows = read.parquet(stretch.part(FOLD))
        return rebuilt_from(queue_manager, position + 1, position, rows, started)
    place = (directory or directory_until_exit()) / FOLD
    task = spark.createDataFrame([(position,)], "position long").coalesce(1)
    write_made(task, _folding(stretch, before), FOLD_COLUMNS, place)
    rows = read.parquet(str(place))
    return rebuilt_from(queue_manager, stretch.first, position, rows, started)


def _folding(stretch: Stretch, before: Stretch | None) -> Make:
    """What a task does: fold a stretch up to the position that it is given."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for position in batch.column(0).to_pylist():
                fold = Fold(plan_of(stretch, before))
                for columns in stretch.records(position):
                    fold.take(*columns)
                fold.end()
                yield from fold.told()

    return run
