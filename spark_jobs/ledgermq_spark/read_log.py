"""Reads the log into Spark between pinned offsets, and decodes its records into flat rows.

Start and end are resolved before Spark begins (`positions`), never "latest" inside it, so that a
job that is repeated reads the same records; `failOnDataLoss` stays on, so that a record that has
gone is an error and not a shorter table.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from ledgermq.core.operations import Operation, Unreadable
from ledgermq.core.reasons import TIMESTAMP_UNTRUSTED
from ledgermq.wire.codec import UndecodableError, decode_chunk, decode_operation
from ledgermq.wire.schemas import by_fingerprint
from ledgermq_spark.outcome_rows import OUTCOME_COLUMNS, outcome_row
from ledgermq_spark.rows import (
    BYTES,
    LONG,
    OPERATION_COLUMNS,
    arrow_batch,
    operation_row,
    spark_schema,
)

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from ledgermq_spark.positions import PartitionRange

__all__ = [
    "LOG_APPEND_TIME",
    "RECORDED_COLUMNS",
    "as_operation",
    "read_operations",
    "read_outcomes",
    "read_raw",
]

LOG_APPEND_TIME = 1
ANSWER = "ledgermq.question.Answer"
# Where on the lanes a recorded outcome stands, beside what it says.
RECORDED_COLUMNS = (
    *OUTCOME_COLUMNS,
    ("ordinal", LONG),
    ("lane_partition", LONG),
    ("lane_offset", LONG),
    ("chain_digest", BYTES),
)


def read_raw(
    spark: SparkSession,
    bootstrap: str,
    ranges: list[PartitionRange],
    *,
    split: int = 0,
    headers: bool = False,
) -> DataFrame:
    """Read records between pinned offsets.

    Columns: `partition`, `offset`, `append_time_ms`, `timestamp_type`, `key`, `value` and, if asked
    for, `headers`. Without `split` each partition is one task that sees its records in order;
    with it, they are spread over at least so many tasks.
    """
    topics = {one.topic for one in ranges}
    assert len(topics) == 1, "one log topic at a time"
    topic = topics.pop()
    numbers = [one.partition for one in ranges]
    reader = (
        spark.read.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("assign", json.dumps({topic: numbers}))
        .option("startingOffsets", _offsets(topic, {one.partition: one.start for one in ranges}))
        .option("endingOffsets", _offsets(topic, {one.partition: one.end for one in ranges}))
        .option("failOnDataLoss", "true")
        .option("includeHeaders", str(headers).lower())
        .option("kafka.isolation.level", "read_uncommitted")
        .option("kafka.max.partition.fetch.bytes", str(16 * 1024 * 1024))
        .option("kafka.fetch.max.bytes", str(64 * 1024 * 1024))
    )
    if split:
        reader = reader.option("minPartitions", str(split))
    chosen = [
        f.col("partition").cast("long").alias("partition"),
        f.col("offset"),
        f.unix_millis("timestamp").alias("append_time_ms"),
        f.col("timestampType").cast("long").alias("timestamp_type"),
        f.col("key"),
        f.col("value"),
    ]
    frame = reader.load()
    return frame.select(*chosen, "headers") if headers else frame.select(*chosen)


def _offsets(topic: str, by_partition: dict[int, int]) -> str:
    return json.dumps({topic: {str(number): at for number, at in by_partition.items()}})


def as_operation(value: bytes | None, timestamp_type: int) -> Operation:
    """The operation in a record, or why it is none: what every fold of this log agrees on."""
    if timestamp_type != LOG_APPEND_TIME:
        return Unreadable(
            reason=TIMESTAMP_UNTRUSTED,
            detail="the record is not stamped with the time of its append; "
            "set message.timestamp.type=LogAppendTime on the operations topic",
        )
    return decode_operation(value)


def read_operations(
    spark: SparkSession, bootstrap: str, log: PartitionRange, *, split: int = 2
) -> DataFrame:
    """Read a queue manager's operations as rows of `rows.OPERATION_COLUMNS`, one per record."""
    raw = read_raw(spark, bootstrap, [log], split=split)
    chosen = raw.select("offset", "append_time_ms", "timestamp_type", "value")
    return chosen.mapInArrow(_decode_operations, spark_schema(OPERATION_COLUMNS))


def _decode_operations(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        columns = [column.to_pylist() for column in batch.columns]
        yield arrow_batch(
            OPERATION_COLUMNS,
            [
                operation_row(
                    as_operation(value, kind), offset, time_ms * 1000, kind == LOG_APPEND_TIME
                )
                for offset, time_ms, kind, value in zip(*columns, strict=True)
            ],
        )


def read_outcomes(
    spark: SparkSession, bootstrap: str, lanes: list[PartitionRange], *, split: int = 0
) -> DataFrame:
    """Read the outcomes on a queue manager's lanes as rows of `RECORDED_COLUMNS`.

    Chunks are taken apart, answers to questions left out; a chunk that does not decode becomes a
    row of kind `Unreadable`, position -1, whose detail says why. Repeats stay, for the audit.
    """
    raw = read_raw(spark, bootstrap, lanes, split=max(split, len(lanes)))
    lane_zero = min(one.partition for one in lanes)
    chosen = raw.select(
        (f.col("partition") - lane_zero).alias("lane"), "partition", "offset", "key", "value"
    )
    return chosen.mapInArrow(_decode_outcomes, spark_schema(RECORDED_COLUMNS))


def _decode_outcomes(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        rows: list[tuple[object, ...]] = []
        columns = [column.to_pylist() for column in batch.columns]
        for lane, partition, offset, key, value in zip(*columns, strict=True):
            found, chain = _chunk_rows(lane, key, value)
            last = len(found) - 1
            rows.extend(
                (*row, at, partition, offset, chain if at == last else None)
                for at, row in enumerate(found)
            )
        yield arrow_batch(RECORDED_COLUMNS, rows)


def _is_answer(value: bytes | None) -> bool:
    """Whether a record of the lanes is an answer to a question, which is not part of history."""
    known = by_fingerprint().get((value or b"")[2:10])
    return known is not None and known.full_name == ANSWER


def _chunk_rows(
    lane: int, key: bytes | None, value: bytes | None
) -> tuple[list[tuple[object, ...]], bytes | None]:
    """The outcomes of a chunk as rows, and the digest chain at the last of them."""
    try:
        if _is_answer(value):
            return [], None
        chunk = decode_chunk(value or b"")
    except UndecodableError as error:
        nothing = (None,) * (len(OUTCOME_COLUMNS) - 11)
        row = (-1, -1, None, lane, -1, -1, "Unreadable", -1, None, None, str(error), *nothing)
        return [row], None
    try:
        connection = bytes.fromhex((key or b"").decode("ascii")) or None
    except ValueError:
        connection = key
    previous = (chunk.previous_position, chunk.previous_index)
    chained = chunk.previous_index != -2
    rows = []
    for outcome in chunk.outcomes:
        rows.append(outcome_row(outcome, connection, lane, previous, with_content=True))
        if chained:
            previous = (outcome.position, outcome.index)
    return rows, chunk.chain
