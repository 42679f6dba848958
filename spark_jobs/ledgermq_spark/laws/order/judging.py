"""Runs the pass of law F over all stores, each in one task, in the order of the log."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from ledgermq_spark.laws.order.store_events import EVENT_TYPES, KEYS
from ledgermq_spark.laws.order.store_pass import Event, Finding, StorePass
from ledgermq_spark.log.rows import LONG, TEXT, arrow_batch, spark_schema

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

FOUND_COLUMNS: Final = (
    ("queue_manager", TEXT),
    ("store", LONG),
    ("kind", TEXT),
    ("position", LONG),
    ("sequence", LONG),
    ("session", LONG),
    ("summary", TEXT),
    ("expected", TEXT),
    ("found", TEXT),
)
Row = tuple[Any, ...]


def judge_stores(query: Callable[[str], DataFrame]) -> DataFrame:
    """What is not as it is due, of all stores: rows of `FOUND_COLUMNS`."""
    columns = ", ".join((*KEYS, *EVENT_TYPES))
    events = query(f"SELECT {columns} FROM {{store_events}} WHERE store IS NOT NULL")
    partitions = int(events.sparkSession.conf.get("spark.sql.shuffle.partitions") or "2")
    ordered = events.repartition(partitions, *KEYS).sortWithinPartitions(*KEYS, "position", "step")
    return ordered.mapInArrow(_judge, spark_schema(FOUND_COLUMNS))


def _judge(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for place, rows in groupby(_rows(batches), key=lambda row: row[: len(KEYS)]):
        found = list(_findings(row[len(KEYS) :] for row in rows))
        if found:
            yield arrow_batch(FOUND_COLUMNS, [(*place, *finding) for finding in found])


def _findings(rows: Iterator[Row]) -> Iterator[Finding]:
    """What a store's pass finds; what is stated may be such that no pass can follow it."""
    one, position = StorePass(), -1
    try:
        for row in rows:
            event = Event(*row)
            position = event.position
            yield from one.take(event)
        yield from one.finish()
    except (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError):
        yield Finding(
            kind="state mismatch",
            position=position,
            sequence=-1,
            session=-1,
            summary="what is stated of this store contradicts itself: nothing after it was judged",
            expected="moves that follow from one another",
            found=traceback.format_exc(limit=-1).strip().splitlines()[-1],
        )
        for _ in rows:
            pass


def _rows(batches: Iterable[pa.RecordBatch]) -> Iterator[Row]:
    for batch in batches:
        columns = [column.to_pylist() for column in batch.columns]
        yield from zip(*columns, strict=True)
