"""Positions that were declared skipped (PROTOCOL.md §8)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from ledgermq.protocol.administration import PositionsSkipped
from ledgermq.protocol.operations import Unreadable
from ledgermq_spark.log.rows import OPERATION_COLUMNS, operation_row, spark_schema

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import DataFrame


SKIPPED = Unreadable(reason="position-skipped", detail="declared skipped")
NOTES_MAX = 50


@dataclass(frozen=True, slots=True)
class Skipped:
    """Positions that the fold passed over, first to last; `hole`: there is no record."""

    first: int
    last: int
    hole: bool


def operations_of(operations: DataFrame, skipped: Sequence[Skipped]) -> DataFrame:
    """The operations as the fold read them, with what it passed over in its place."""
    if not skipped:
        return operations
    spark = operations.sparkSession
    rows = [
        operation_row(SKIPPED, position, 0, False)
        for one in skipped
        if one.hole
        for position in range(one.first, one.last + 1)
    ]
    entries = [one.first for one in skipped if not one.hole]
    times = operations.where(f.col("position").isin(entries))
    rows += [
        operation_row(SKIPPED, row["position"], row["append_time_us"], row["trusted"])
        for row in times.select("position", "append_time_us", "trusted").collect()
    ]
    kept = operations.where(~f.col("position").isin(entries))
    return kept.unionByName(spark.createDataFrame(rows, spark_schema(OPERATION_COLUMNS)))


def recorded_of(recorded: DataFrame, skipped: Sequence[Skipped]) -> DataFrame:
    """The outcomes on the lanes, without what was answered before an entry was declared skipped."""
    entries = [one.first for one in skipped if not one.hole]
    if not entries:
        return recorded
    return recorded.where(~(f.col("position").isin(entries) & f.col("kind").isin("Accepted")))


def declaration_notes(operations: DataFrame) -> list[str]:
    """Who declared what skipped, in the order of the log; of declarations that count, the first."""
    return [
        f"positions {one.first} to {one.last} were declared skipped at position {position} by "
        f"{one.actor}: {one.reason}"
        for position, one in islice(_declarations(operations), NOTES_MAX)
    ]


def _declarations(operations: DataFrame) -> Iterator[tuple[int, PositionsSkipped]]:
    """Declarations that count, with where they stand."""
    rows = (
        operations.where("kind = 'PositionsSkipped'")
        .select("position", "range_first", "range_last", "actor", "why")
        .orderBy("position")
        .toLocalIterator()
    )
    for row in rows:
        (first,), (last,) = row["range_first"], row["range_last"]
        one = PositionsSkipped(first=first, last=last, actor=row["actor"], reason=row["why"])
        if one.counts_at(row["position"]):
            yield row["position"], one
