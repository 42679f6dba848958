"""What an archive has of a log, as laws and tables ask for it: nothing is folded for that."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Unpack

from pyspark.sql import SparkSession

from ledgermq.protocol.instants import utc_text
from ledgermq_spark.archive.log_archive import LogArchive
from ledgermq_spark.archive.stretch import FOLD, OPERATIONS, REMEDY, ArchiveBrokenError, Stretch
from ledgermq_spark.laws.engines.choice import Choice, quickest_engine
from ledgermq_spark.laws.engines.spark_engine import SparkEngine
from ledgermq_spark.laws.facts import Facts
from ledgermq_spark.log.positions import (
    Position,
    PositionOutOfRangeError,
    before_first,
    last_ms,
    moment_of,
    other_log,
)
from ledgermq_spark.log.rows import OPERATION_COLUMNS, TEXT, spark_schema
from ledgermq_spark.log.store import ParquetRows, Store
from ledgermq_spark.rebuild.fold import TOLD
from ledgermq_spark.rebuild.frames import (
    HIGHEST,
    OF_THE_END,
    POSITIONED,
    ROWS_IN_MEMORY_MAX,
    operation_frame,
    told_frames,
)
from ledgermq_spark.rebuild.running import JobOptions, Running


def archived_facts(
    path: Path,
    queue_manager: str,
    at: int | str | datetime | None = None,
    *,
    choice: Choice = quickest_engine,
    **options: Unpack[JobOptions],
) -> Facts:
    """What happened up to a position or time, from an archive alone, for tables to be asked of.

    `choice` says what answers.

    Raises:
        ArchiveMissingError: There is nothing of this queue manager.
        ArchiveBrokenError: The archive is not whole.
        PositionOutOfRangeError: `at` lies before the archive's start or after its end.
    """
    running = Running(**options)
    stretches, position = opened(path, queue_manager, at, running)
    spark = running.when_needed()
    reached = [one for one in stretches if one.first <= position]
    for one in reached:
        one.check()
    frames = frames_of(reached, f"'{queue_manager}'", ends=reached[-1:], position=position)
    engine = choice(spark, Store(spark, running.place), is_long=is_long(reached))
    return Facts(engine, engine.taken(frames))


def is_long(stretches: Sequence[Stretch]) -> bool:
    """Whether what is made of some stretches is too much for the memory of one machine."""
    return sum(one.fold_rows() for one in stretches) > ROWS_IN_MEMORY_MAX


def opened(
    path: Path, queue_manager: str, at: int | str | datetime | None, running: Running
) -> tuple[list[Stretch], int]:
    """An archive's stretches, and the position of a moment in it.

    Raises what `archived_facts` raises.
    """
    running.tell("reading the archive", 0, 1)
    stretches = LogArchive(path, queue_manager).sealed()
    return stretches, archived_position(stretches, at)


def frames_of(
    stretches: Sequence[Stretch],
    queue_manager: str,
    *,
    ends: Sequence[Stretch],
    position: int = HIGHEST,
) -> dict[str, ParquetRows]:
    """The frames of `Facts`, of some stretches; those that tell of an end are of the `ends`.

    Above a `position` there is nothing, and nothing is told of an end above it.
    """
    told = told_frames(
        [one.part(FOLD) for one in stretches],
        queue_manager,
        position,
        ends=[one.part(FOLD) for one in ends],
        is_end=position >= ends[-1].last,
    )
    operations = [one.part(OPERATIONS) for one in stretches]
    return {"operations": operation_frame(operations, queue_manager, position), **told}


def facts_of_nothing(spark: SparkSession) -> Facts:
    """What a log without a record tells: tables of it have their columns, and no rows."""
    told = {name: TOLD[part] for name, part in (POSITIONED | OF_THE_END).items()}
    frames = {
        name: spark.createDataFrame([], spark_schema([*columns, ("queue_manager", TEXT)]))
        for name, columns in {"operations": OPERATION_COLUMNS, **told}.items()
    }
    engine = SparkEngine(spark, lambda _, frame: spark.createDataFrame([], frame.schema))
    return Facts(engine, frames)


def archived_position(
    stretches: Sequence[Stretch], at: int | str | datetime | None, *, before: bool = False
) -> int:
    """Turn a position, a time (up to the first record after it) or nothing into a position.

    With `before` a time means the last record before it, which is -1 if there is none.

    Raises:
        PositionOutOfRangeError: It lies before the archive's start or after its end, or is on the
            log of another queue manager.
    """
    moment = moment_of(at)
    last, queue_manager = stretches[-1].last, stretches[-1].queue_manager
    if isinstance(moment, Position) and not moment.is_of(queue_manager):
        raise PositionOutOfRangeError(other_log(moment, queue_manager))
    if moment is None:
        return last
    if isinstance(moment, datetime):
        return _position_by(stretches, moment, before=before)
    if not 0 <= moment <= last:
        raise PositionOutOfRangeError(
            f"position {moment} is not in the archive, which has 0 to {last}; "
            "`ledgermq archive update` adds what came since"
        )
    return int(moment)


def _position_by(stretches: Sequence[Stretch], moment: datetime, *, before: bool) -> int:
    text = utc_text(moment)
    time_ms = last_ms(moment, before=before)
    later = (one for one in stretches if one.newest_ms > time_ms)
    stretch = next(later, None)
    if stretch is None:
        newest_ms = max(one.newest_ms for one in stretches)
        if time_ms == newest_ms:
            return stretches[-1].last
        until = utc_text(max(one.newest_at for one in stretches))
        raise PositionOutOfRangeError(
            f"{text} lies after the end of the archive, which has the log up to {until}; "
            "`ledgermq archive update` adds what came since"
        )
    stretch.check()
    above = (
        offset
        for offsets, times_ms, *_ in stretch.records()
        for offset, one_ms in zip(offsets, times_ms, strict=True)
        if one_ms > time_ms
    )
    after = next(above, None)
    if after is None:
        raise ArchiveBrokenError(f"{stretch.path} has no record of its newest time; {REMEDY}")
    if after == 0 and not before:
        raise before_first(text, "the archive", 0)
    return int(after) - 1
