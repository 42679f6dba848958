"""Folds the records of an archive: from the state before a stretch on, in one task."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Unpack

import pyarrow as pa

from ledgermq_spark.archive.archived import opened
from ledgermq_spark.archive.stretch import FOLD, REMEDY, ArchiveBrokenError, Stretch
from ledgermq_spark.log.session import is_spared, session_of
from ledgermq_spark.log.store import Make, write_made, write_made_here
from ledgermq_spark.rebuild.fold import FOLD_COLUMNS, Fold, FoldPlan
from ledgermq_spark.rebuild.rebuilt import Rebuilt, rebuilt_from
from ledgermq_spark.rebuild.running import JobOptions, Running


def plan_of(stretch: Stretch, before: Stretch | None, tells: tuple[str, ...] = ()) -> FoldPlan:
    """How a stretch is folded, from the state that the one before ends with.

    Raises:
        ArchiveBrokenError: That state is not the one that was written.
    """
    base = None if before is None else before.state()
    return FoldPlan.behind(base, partition=0, tells=tells, skips=stretch.skipped, looked_ahead=True)


def why_not_on(stopped: dict[str, Any]) -> str:
    """Why the records of a stretch could not be folded to its end: once, all of them were."""
    if stopped["why"] == "version":
        return f"entries need protocol version {stopped['version']}: this program is too old"
    return (
        f"the record of position {stopped['position']} is not where it was: it was left out or "
        "moved, or another was put in"
    )


def rebuild_archived(
    path: Path,
    queue_manager: str,
    at: int | str | datetime | None = None,
    **options: Unpack[JobOptions],
) -> Rebuilt:
    """The state at a position or time, from an archive alone: one stretch is folded at most.

    Raises:
        ArchiveMissingError: There is nothing of this queue manager.
        ArchiveBrokenError: The archive is not whole.
        PositionOutOfRangeError: `at` lies before the archive's start or after its end.
    """
    started = time.monotonic()
    running = Running(**options)
    stretches, position = opened(path, queue_manager, at, running)
    number = next(at for at, one in enumerate(stretches) if position <= one.last)
    stretch, before = stretches[number], stretches[number - 1] if number else None
    stretch.check()
    if position == stretch.last:
        return _as_kept(stretch, started)
    place = running.place / FOLD
    spark, folding = running.when_needed(), _folding(stretch, before)
    if is_spared(spark, position - stretch.first):
        batch = pa.record_batch({"position": [position]})
        write_made_here([batch], folding, FOLD_COLUMNS, place)
    else:
        task = session_of(spark).createDataFrame([(position,)], "position long").coalesce(1)
        write_made(task, folding, FOLD_COLUMNS, place)
    rebuilt = rebuilt_from(queue_manager, stretch.first, position, [str(place)], started)
    if rebuilt.stopped is not None:
        raise ArchiveBrokenError(f"in {stretch.path} {why_not_on(rebuilt.stopped)}; {REMEDY}")
    return rebuilt


def _as_kept(stretch: Stretch, started: float) -> Rebuilt:
    """The state that a stretch ends with, as its manifest knows it."""
    name, last = stretch.queue_manager, stretch.last
    where = f"the state at position {last} in {stretch.path}"
    try:
        rebuilt = rebuilt_from(name, last + 1, last, [stretch.part(FOLD)], started)
    except (pa.ArrowException, ValueError, KeyError) as error:
        raise ArchiveBrokenError(f"{where} cannot be read: {error}; {REMEDY}") from error
    if rebuilt.digest != stretch.digest:
        raise ArchiveBrokenError(f"{where} does not add up to its digest; {REMEDY}")
    return rebuilt


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
