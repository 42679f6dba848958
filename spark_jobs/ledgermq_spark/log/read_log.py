"""Reads the log between pinned offsets, by Spark or here, and decodes it into flat rows.

Start and end are resolved before Spark begins (`positions`), never "latest" inside it, so that a
job that is repeated reads the same records; `failOnDataLoss` stays on, so that a record that has
gone is an error and not a shorter table. Of few records none is worth a Java: this process reads
them, with the client that workers read with (docs/decisions/0048).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

from ledgermq.protocol.operations import Operation
from ledgermq.wire.framing.codec import (
    NOT_STAMPED,
    UndecodableError,
    decode_chunk,
    decode_operation,
    decode_record,
)
from ledgermq.wire.framing.confluent import (
    CONFLUENT,
    CONFLUENT_BYTES,
    NOT_TEXT,
    SCHEMA_HEADER,
    SINGLE_OBJECT,
    SINGLE_OBJECT_BYTES,
    readable_headers,
)
from ledgermq.wire.framing.schemas import ANSWER, CHUNK, by_fingerprint
from ledgermq.wire.topics.reading import LogDamagedError, LogUnreadableError, PartitionReader
from ledgermq_spark.log.outcome_rows import OUTCOME_COLUMNS, outcome_row
from ledgermq_spark.log.positions import LogUnreachableError, PartitionRange, cut_meanwhile
from ledgermq_spark.log.record_headers import denials_of_operation, denials_of_outcomes, sender
from ledgermq_spark.log.rows import (
    BYTES,
    LONG,
    OPERATION_COLUMNS,
    TEXT,
    Columns,
    arrow_batch,
    operation_row,
)
from ledgermq_spark.log.session import (
    ARROW_BATCH_BYTES_MAX,
    ARROW_BATCH_RECORDS_MAX,
    LazySession,
    Spark,
    SparkUnavailableError,
    is_spared,
    session_of,
)
from ledgermq_spark.log.skipped import SKIPPED, Skipped, entries_in, holes_in
from ledgermq_spark.log.spark_options import spark_options
from ledgermq_spark.log.store import Make, ParquetRows, write_made, write_made_here, write_rows

# What there is to read of a record.
RAW_COLUMNS = (
    ("partition", LONG),
    ("offset", LONG),
    ("append_time_ms", LONG),
    ("timestamp_type", LONG),
    ("key", BYTES),
    ("value", BYTES),
    (
        "headers",
        t.ArrayType(t.StructType([t.StructField("key", TEXT), t.StructField("value", BYTES)])),
    ),
)
OPERATION_PARTS = ("offset", "append_time_ms", "timestamp_type", "key", "value", "headers")
OUTCOME_PARTS = ("partition", "offset", "key", "value", "headers")
LOG_APPEND_TIME = 1
FINGERPRINT_DIGITS = 2 * (SINGLE_OBJECT_BYTES - len(SINGLE_OBJECT))
# What the headers of an operation say of its sender, and what they say against it.
READ_COLUMNS = (
    *OPERATION_COLUMNS,
    ("header_connection", TEXT),
    ("header_source", TEXT),
    ("header_lane", TEXT),
    ("denials", TEXT),
)
# Behind a slow network an answer that is too large never comes in time; a larger one is no quicker.
FETCH_BYTES = 2 * 1024 * 1024
# The largest record comes through 1.2 Mbit/s.
REQUEST_TIMEOUT_MS = 60_000
NO_HEADERS = (None, None, None, None)
# The file with rows of positions at which there is no record.
HOLES = "holes.parquet"
# Where on the lanes a recorded outcome stands, beside what it says; the last of a record has what
# its headers say against it.
RECORDED_COLUMNS = (
    *OUTCOME_COLUMNS,
    ("ordinal", LONG),
    ("lane_partition", LONG),
    ("lane_offset", LONG),
    ("chain_digest", BYTES),
    ("denials", TEXT),
)


class HeadersTornError(Exception):
    """A header's name is no UTF-8: the client of workers reads no header of that record then."""


def write_read(
    spark: Spark,
    bootstrap: str,
    ranges: list[PartitionRange],
    parts: Sequence[str],
    make: Make,
    columns: Columns,
    directory: Path,
    *,
    in_order: bool = True,
) -> int:
    """Writes what is made of some `RAW_COLUMNS` of records (`write_made`): how many rows."""
    by_one_task = in_order and len(ranges) == 1
    if is_spared(spark, sum(one.end - one.start for one in ranges), by_one_task=by_one_task):
        with suppress(HeadersTornError):
            batches = read_here(bootstrap, ranges, parts, spark)
            return write_made_here(batches, make, columns, directory)
    headers = "headers" in parts
    raw = read_raw(session_of(spark), bootstrap, ranges, in_order=in_order, headers=headers)
    return write_made(raw.select(*parts), make, columns, directory)


def read_here(
    bootstrap: str,
    ranges: Iterable[PartitionRange],
    parts: Sequence[str],
    spark: Spark | None = None,
) -> Iterator[pa.RecordBatch]:
    """Read some `RAW_COLUMNS` of records between pinned offsets as Spark does, in this process.

    `spark` is in whose place it does, and says when it is given up.

    Raises:
        CancelledError: It was given up.
        LogUnreachableError: Kafka does not answer.
        LogDamagedError: A record is damaged.
        PositionOutOfRangeError: Records were cut off meanwhile.
        HeadersTornError: Headers are wanted, and Spark alone can read them.
    """
    chosen = [one for one in RAW_COLUMNS if one[0] in parts]
    with PartitionReader(
        bootstrap, REQUEST_TIMEOUT_MS / 1000, answered_within_ms=REQUEST_TIMEOUT_MS
    ) as reader:
        for one in ranges:
            rows: list[tuple[Any, ...]] = []
            size_bytes = 0
            for record in _records_of(reader, one):
                told = _raw_row(record, headers="headers" in parts)
                rows.append(tuple(told[name] for name in parts))
                size_bytes += len(told["value"] or b"")
                if len(rows) == ARROW_BATCH_RECORDS_MAX or size_bytes > ARROW_BATCH_BYTES_MAX:
                    if isinstance(spark, LazySession) and spark.given_up.is_set():
                        raise CancelledError
                    yield arrow_batch(chosen, rows)
                    rows, size_bytes = [], 0
            yield arrow_batch(chosen, rows)


def _records_of(reader: PartitionReader, one: PartitionRange) -> Iterator[Any]:
    """All that stands there; what was there and is gone is an error."""
    where, reached = f"{one.topic}-{one.partition}", one.start
    try:
        for record in reader.records(one.topic, one.partition, one.start, one.end):
            reached = int(record.offset() or 0) + 1
            yield record
        if reached < one.end and reader.ends(one.topic, one.partition)[1] < one.end:
            raise cut_meanwhile(where, one.end - 1)
    except LogDamagedError:
        raise
    except LogUnreadableError as error:
        if reader.ends(one.topic, one.partition)[0] > reached:
            raise cut_meanwhile(where, reached) from error
        raise LogUnreachableError(f"log topic {error}") from error


def _raw_row(record: Any, *, headers: bool) -> dict[str, Any]:
    kind, time_ms = record.timestamp()
    row = {
        "partition": record.partition(),
        "offset": record.offset(),
        "append_time_ms": time_ms,
        # Java counts from what has no time, librdkafka begins with it.
        "timestamp_type": kind - 1,
        "key": record.key(),
        "value": record.value(),
    }
    if headers:
        given = readable_headers(record)
        if given is None:
            raise HeadersTornError
        row["headers"] = [{"key": key, "value": value} for key, value in given] or None
    return row


def read_raw(
    spark: SparkSession,
    bootstrap: str,
    ranges: list[PartitionRange],
    *,
    in_order: bool = True,
    headers: bool = False,
) -> DataFrame:
    """Read records between pinned offsets.

    Columns: `partition`, `offset`, `append_time_ms`, `timestamp_type`, `key`, `value` and, if asked
    for, `headers`. Values are in single-object framing, however they were written. Each partition
    is one task that sees its records `in_order`, unless that does not matter: then they are spread
    over as many tasks as there are processors, or as a short log is divided into.

    Raises:
        SparkUnavailableError: The session has no connector for Kafka.
    """
    topics = {one.topic for one in ranges}
    assert len(topics) == 1, "one log topic at a time"
    topic = topics.pop()
    numbers = [one.partition for one in ranges]
    reader = (
        spark.read.format("kafka")
        .options(**spark_options())
        .option("kafka.bootstrap.servers", bootstrap)
        .option("assign", json.dumps({topic: numbers}))
        .option("startingOffsets", _offsets(topic, {one.partition: one.start for one in ranges}))
        .option("endingOffsets", _offsets(topic, {one.partition: one.end for one in ranges}))
        .option("failOnDataLoss", "true")
        .option("includeHeaders", "true")
        .option("kafka.isolation.level", "read_uncommitted")
        .option("kafka.max.partition.fetch.bytes", str(FETCH_BYTES))
        .option("kafka.fetch.max.bytes", str(FETCH_BYTES))
        .option("kafka.request.timeout.ms", str(REQUEST_TIMEOUT_MS))
    )
    if not in_order:
        divided = spark.conf.get("spark.sql.leafNodeDefaultParallelism", None)
        pieces = int(divided or spark.sparkContext.defaultParallelism)
        reader = reader.option("minPartitions", str(max(pieces, len(ranges))))
    chosen = [
        f.col("partition").cast("long").alias("partition"),
        f.col("offset"),
        f.unix_millis("timestamp").alias("append_time_ms"),
        f.col("timestampType").cast("long").alias("timestamp_type"),
        f.col("key"),
        _single_object().alias("value"),
    ]
    try:
        frame = reader.load()
    except AnalysisException as cause:
        # Spark's Python workers import this file, and do without the broker's package.
        from ledgermq.embedded.jars import SPARK_CONNECTOR

        raise SparkUnavailableError(
            "this Spark session cannot read Kafka: before it starts, set spark.jars.packages to "
            f"{':'.join(SPARK_CONNECTOR.modules[0])}, or spark.jars to the files that "
            "ledgermq.embedded.spark_connector_jars() returns, with commas between them"
        ) from cause
    return frame.select(*chosen, "headers") if headers else frame.select(*chosen)


def _single_object() -> Column:
    """A record's value in single-object framing, by the rule of `wire.framing.confluent`.

    Spark's own functions do it, so that no value goes through Python for it.
    """
    value = f.col("value")
    given = f.filter("headers", lambda one: (one.key == SCHEMA_HEADER) & one.value.isNotNull())
    fingerprint = f.try_element_at(given, f.lit(-1))["value"]
    explained = (
        ~f.exists("headers", lambda one: one.key.contains(NOT_TEXT))
        & (f.length(value) >= CONFLUENT_BYTES)
        & (f.length(fingerprint) == FINGERPRINT_DIGITS)
        & fingerprint.cast("string").rlike(f"^[0-9a-f]{{{FINGERPRINT_DIGITS}}}$")
    )
    datum = f.expr(f"substring(value, {CONFLUENT_BYTES + 1})")
    framed = f.concat(f.lit(SINGLE_OBJECT), f.unhex(fingerprint.cast("string")), datum)
    # One inside the other, so that Spark looks at headers of no other record.
    return f.when(
        f.substring(value, 1, len(CONFLUENT)) == f.lit(CONFLUENT),
        f.when(explained, framed).otherwise(value),
    ).otherwise(value)


def _offsets(topic: str, by_partition: dict[int, int]) -> str:
    return json.dumps({topic: {str(number): at for number, at in by_partition.items()}})


def as_operation(value: bytes | None, timestamp_type: int) -> Operation:
    """The operation in a record, or why it is none: what every fold of this log agrees on."""
    if timestamp_type != LOG_APPEND_TIME:
        return NOT_STAMPED
    return decode_operation(value)


def read_operations(
    spark: Spark,
    bootstrap: str,
    log: PartitionRange,
    queue_manager: str,
    directory: Path,
    skipped: Sequence[Skipped] = (),
) -> ParquetRows:
    """Read a queue manager's operations as rows of `READ_COLUMNS`, one per position."""
    decode = decoding(queue_manager, skipped)
    write_read(
        spark, bootstrap, [log], OPERATION_PARTS, decode, READ_COLUMNS, directory, in_order=False
    )
    write_holes(directory, READ_COLUMNS, skipped)
    return ParquetRows(paths=[str(directory)], columns=READ_COLUMNS)


def decoding(queue_manager: str, skipped: Sequence[Skipped] = ()) -> Make:
    """What makes rows of `READ_COLUMNS` of the `OPERATION_PARTS` of records.

    What the fold passed over stands there as such.
    """
    return partial(decode_operations, queue_manager=queue_manager, passed=entries_in(skipped))


def write_holes(directory: Path, columns: Columns, skipped: Sequence[Skipped]) -> None:
    """Write what stands, beside operations, where there is no record."""
    holes = [(*one, *NO_HEADERS) for one in hole_rows(skipped)]
    if holes:
        write_rows(directory / HOLES, columns, [arrow_batch(READ_COLUMNS, holes)])


def hole_rows(skipped: Sequence[Skipped]) -> list[tuple[Any, ...]]:
    """What stands, as rows of `OPERATION_COLUMNS`, where there is no record."""
    return [operation_row(SKIPPED, at, 0, False) for at in holes_in(skipped)]


def decode_operations(
    batches: Iterable[pa.RecordBatch], queue_manager: str, passed: frozenset[int] = frozenset()
) -> Iterator[pa.RecordBatch]:
    """Raw records as rows of `READ_COLUMNS`; `passed` are positions that the fold passed over."""
    for batch in batches:
        rows = []
        columns = [column.to_pylist() for column in batch.columns]
        for offset, time_ms, kind, key, value, headers in zip(*columns, strict=True):
            operation = SKIPPED if offset in passed else as_operation(value, kind)
            rows.append(
                (
                    *operation_row(operation, offset, time_ms * 1000, kind == LOG_APPEND_TIME),
                    *sender(headers),
                    denials_of_operation(queue_manager, key, headers, operation),
                )
            )
        yield arrow_batch(READ_COLUMNS, rows)


def read_outcomes(
    spark: Spark,
    bootstrap: str,
    lanes: list[PartitionRange],
    queue_manager: str,
    directory: Path,
) -> ParquetRows:
    """Read the outcomes on a queue manager's lanes as rows of `RECORDED_COLUMNS`.

    Chunks are taken apart. An answer to a question is one row of kind `Answer`, position -1, whose
    number is the position that it is true at; what does not decode one of kind `Unreadable`,
    position -1, whose detail says why. Repeats stay, for the audit.
    """
    lane_zero = min(one.partition for one in lanes)
    decode = partial(decode_outcomes, queue_manager=queue_manager, lane_zero=lane_zero)
    write_read(
        spark, bootstrap, lanes, OUTCOME_PARTS, decode, RECORDED_COLUMNS, directory, in_order=False
    )
    return ParquetRows(paths=[str(directory)], columns=RECORDED_COLUMNS)


def decode_outcomes(
    batches: Iterable[pa.RecordBatch], queue_manager: str, lane_zero: int = 0
) -> Iterator[pa.RecordBatch]:
    """Raw records as rows of `RECORDED_COLUMNS`; `lane_zero` is the partition of the first lane."""
    for batch in batches:
        rows: list[tuple[object, ...]] = []
        columns = [column.to_pylist() for column in batch.columns]
        for partition, offset, key, value, headers in zip(*columns, strict=True):
            lane = partition - lane_zero
            found, chain, denials = _record_rows(queue_manager, lane, key, value, headers)
            last = len(found) - 1
            rows.extend(
                (*row, at, partition, offset, *((chain, denials) if at == last else NOTHING_SAID))
                for at, row in enumerate(found)
            )
        yield arrow_batch(RECORDED_COLUMNS, rows)


Read = tuple[list[tuple[object, ...]], bytes | None, str | None]
NOTHING_SAID = (None, None)


def _record_rows(
    queue_manager: str, lane: int, key: bytes | None, value: bytes | None, headers: Any
) -> Read:
    """The rows of a record, the digest chain at the last of them, and what its headers deny."""
    try:
        if _is_answer(value):
            position = decode_record(value)[1]["position"]
            denials = denials_of_outcomes(queue_manager, key, headers, ANSWER, (position, 0))
            return [_row_of_none("Answer", lane, number=position)], None, denials
        chunk = decode_chunk(value or b"")
    except UndecodableError as error:
        return [_row_of_none("Unreadable", lane, detail=str(error))], None, None
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
    if not rows:
        return [], None, None
    place = (chunk.outcomes[0].position, chunk.outcomes[0].index)
    denials = denials_of_outcomes(
        queue_manager, key, headers, CHUNK, place, chain_due=chunk.chain is None
    )
    return rows, chunk.chain, denials


def _is_answer(value: bytes | None) -> bool:
    """Whether a record of the lanes is an answer to a question, which is not part of history."""
    known = by_fingerprint().get((value or b"")[2:10])
    return known is not None and known.full_name == ANSWER


def _row_of_none(kind: str, lane: int, **fields: Any) -> tuple[object, ...]:
    """The row of a record that holds no outcomes."""
    told = {"position": -1, "index": -1, "lane": lane, "kind": kind, **fields}
    return tuple(told.get(name) for name, _ in OUTCOME_COLUMNS)
