"""State time: what PROTOCOL.md §6 makes of the append times, entry by entry.

Whether an advance counts depends on the time that the entry before left standing, so this is one
pass in order, over three columns; no window function expresses it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ledgermq_spark.rows import FLAG, LONG, arrow_batch, spark_schema

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

__all__ = ["TIMELINE_COLUMNS", "state_times", "timeline"]

LEAP_US = 60_000_000
AGREEMENT_US = 10_000_000
TIMELINE_COLUMNS = (("position", LONG), ("state_time", LONG), ("agreed", FLAG))


def timeline(operations: DataFrame) -> DataFrame:
    """State time at every position, and whether a TimeAgreed agreed with its append time."""
    chosen = operations.select("position", "append_time_us", "trusted", "kind", "number")
    ordered = chosen.repartition(1).sortWithinPartitions("position")
    return ordered.mapInArrow(_scan, spark_schema(TIMELINE_COLUMNS))


def _scan(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    now = -1
    for batch in batches:
        positions, times, trusted, kinds, numbers = (one.to_pylist() for one in batch.columns)
        agreed = [
            kind == "TimeAgreed" and abs(number - time) <= AGREEMENT_US
            for kind, number, time in zip(kinds, numbers, times, strict=True)
        ]
        found = list(state_times(now, zip(times, trusted, agreed, strict=True)))
        if found:
            now = found[-1]
        yield arrow_batch(TIMELINE_COLUMNS, zip(positions, found, agreed, strict=True))


def state_times(now: int, entries: Iterable[tuple[int, bool, bool]]) -> Iterator[int]:
    """State time after each entry of (append time, trusted, agreed), beginning at `now` (µs).

    Time never falls; an advance of more than 60 s does not count unless the entry is a TimeAgreed
    that agrees; a time stamp that nobody trusts moves nothing.
    """
    for time, trusted, agreed in entries:
        if trusted and time > now and (now < 0 or agreed or time - now <= LEAP_US):
            now = time
        yield now
