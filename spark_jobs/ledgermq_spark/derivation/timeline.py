"""State time: what PROTOCOL.md §6 makes of the append times, entry by entry.

Whether an append time counts depends on the time and the reference that the entry before left, so
this is one pass in order, over three columns; no window function expresses it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ledgermq_spark.log.rows import FLAG, LONG, arrow_batch, spark_schema

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame


Clock = tuple[int, int]

LEAP_US = 60_000_000
AGREEMENT_US = 10_000_000
TIMELINE_COLUMNS = (("position", LONG), ("state_time", LONG), ("agreed", FLAG))


def timeline(operations: DataFrame) -> DataFrame:
    """State time at every position, and whether a TimeAgreed agreed with its append time."""
    chosen = operations.select("position", "append_time_us", "trusted", "kind", "number")
    ordered = chosen.repartition(1).sortWithinPartitions("position")
    return ordered.mapInArrow(_scan, spark_schema(TIMELINE_COLUMNS))


def _scan(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    clock = (-1, -1)
    for batch in batches:
        positions, times, trusted, kinds, numbers = (one.to_pylist() for one in batch.columns)
        agreed = [
            kind == "TimeAgreed" and abs(number - time) <= AGREEMENT_US
            for kind, number, time in zip(kinds, numbers, times, strict=True)
        ]
        found = list(clocks(clock, zip(times, trusted, agreed, strict=True)))
        if found:
            clock = found[-1]
        state_times = (time for time, _ in found)
        yield arrow_batch(TIMELINE_COLUMNS, zip(positions, state_times, agreed, strict=True))


def clocks(clock: Clock, entries: Iterable[tuple[int, bool, bool]]) -> Iterator[Clock]:
    """State time and reference (µs; -1: none) after each entry of (append time, trusted, agreed).

    Time never falls. An append time over 60 s from the reference, or from state time without one,
    does not count unless the entry is a TimeAgreed that agrees, or state time is at most 60 s
    below it; a time stamp that nobody trusts moves nothing.
    """
    now, reference = clock
    for time, trusted, agreed in entries:
        passed = time - (now if reference < 0 else reference)
        if not trusted or -LEAP_US <= passed < 0:
            pass
        elif now < 0:
            now = time
        elif 0 <= passed <= LEAP_US:
            now = max(time, now + passed * 7 // 8)
            reference = time if time < now else -1
        elif agreed or 0 <= time - now <= LEAP_US:
            now = max(time, now)
            reference = time if time < now else -1
        yield now, reference
