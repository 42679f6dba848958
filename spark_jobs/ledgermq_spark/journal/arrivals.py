"""What came in: the moves by which messages that were put got numbers, and what their Puts say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

from ledgermq.protocol.operations import Put
from ledgermq.wire.content import replayed
from ledgermq.wire.framing.codec import encode_record
from ledgermq.wire.topics.registry import Claim
from ledgermq_spark.log.headers import properties_text
from ledgermq_spark.log.positions import PartitionRange
from ledgermq_spark.log.read_log import as_operation
from ledgermq_spark.log.rows import BYTES, FLAG, LONG, TEXT, arrow_batch, spark_schema
from ledgermq_spark.rebuild.checkpoints import Checkpoint
from ledgermq_spark.rebuild.frames import told_frame
from ledgermq_spark.rebuild.rebuild import fold_log
from ledgermq_spark.rebuild.rebuilt import FoldStoppedError, Rebuilt, why_stopped

HEADER: Final = "ledgermq.message.Header"
# Moves by which messages that were put get their numbers; what comes from elsewhere nobody puts.
ARRIVALS: Final = (
    "before IN ('new', 'uncommitted put') AND sequence >= 0 AND session >= 0 "
    "AND kind <> 'subscription'"
)
# What each Put says, message by message in parallel lists.
PUT_COLUMNS: Final = (
    ("put_position", LONG),
    ("message_ids", t.ArrayType(TEXT)),
    ("priorities", t.ArrayType(LONG)),
    ("persistents", t.ArrayType(FLAG)),
    ("properties", t.ArrayType(TEXT)),
    ("headers", t.ArrayType(BYTES)),
    ("contents", t.ArrayType(BYTES)),
    ("replays", t.ArrayType(TEXT)),
    ("replayed_froms", t.ArrayType(TEXT)),
)


def moves_told(
    spark: SparkSession,
    bootstrap: str,
    claim: Claim,
    log: PartitionRange,
    checkpoint: Checkpoint | None,
    directory: Path,
) -> Rebuilt:
    """Fold a log to its end, from a checkpoint on, so that it tells each move and the digest chain.

    Raises:
        FoldStoppedError: The log has a hole, or an entry of an unknown protocol version.
    """
    rebuilt = fold_log(
        spark,
        bootstrap,
        claim,
        log,
        log.end - 1,
        checkpoint=checkpoint,
        tells=("move", "links"),
        directory=directory,
    )
    if rebuilt.stopped is not None:
        raise FoldStoppedError(why_stopped(claim.queue_manager, rebuilt.stopped))
    return rebuilt


def arrivals_in(spark: SparkSession, rebuilt: Rebuilt) -> DataFrame:
    """The moves of a fold by which messages came in."""
    told = told_frame(rebuilt.files, "move", f"'{rebuilt.queue_manager}'")
    return told.frame(spark).where(ARRIVALS)


def messages_of(arrivals: DataFrame, raw: DataFrame) -> DataFrame:
    """One row per message: where it came in, and what its Put says of it; nulls: it is not there.

    Beside the columns of a journal, by which move it came in (`step`), and of a copy that a replay
    put, which one that was (`replay`) and of what (`replayed_from`).
    """
    chosen = raw.select("offset", "timestamp_type", "value")
    puts = chosen.mapInArrow(_decode_puts, spark_schema(PUT_COLUMNS))
    at = f.col("put_index").cast("int")
    told = [name for name, _ in PUT_COLUMNS[1:]]
    return (
        arrivals.join(puts, "put_position", how="left")
        .select(
            "position",
            "step",
            "put_position",
            "put_index",
            "destination",
            "sequence",
            f.timestamp_micros("time_us").alias("enqueued_at"),
            *(f.get(name, at).alias(name) for name in told),
        )
        .withColumnsRenamed(dict(zip(told, _OF_PUT, strict=True)))
    )


def in_turn(rows: DataFrame) -> Iterator[dict[str, Any]]:
    """The rows of a frame one after another, with times in UTC.

    Spark hands times over in the zone of this machine, without saying so.
    """
    for row in rows.toLocalIterator():
        yield {
            name: value.astimezone(UTC) if isinstance(value, datetime) else value
            for name, value in row.asDict().items()
        }


_OF_PUT: Final = (
    *("message_id", "priority", "persistent", "properties", "header", "content"),
    *("replay", "replayed_from"),
)


def _decode_puts(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        columns = [column.to_pylist() for column in batch.columns]
        rows = []
        for offset, stamp, value in zip(*columns, strict=True):
            operation = as_operation(value, stamp)
            # One without messages was refused, and brought nothing.
            if isinstance(operation, Put) and operation.messages:
                rows.append((offset, *zip(*map(_told, operation.messages), strict=True)))
        yield arrow_batch(PUT_COLUMNS, rows)


def _told(message: Any) -> tuple[Any, ...]:
    """Of one message of a Put, in the order of `PUT_COLUMNS`."""
    header = message.get("header")
    properties = {} if header is None else header["properties"]
    return (
        message["message_id"].hex(),
        message["priority"],
        message["persistent"],
        properties_text(properties),
        None if header is None else encode_record(HEADER, header),
        message["content"],
        *(_text(properties.get(name)) for name in (replayed.REPLAY, replayed.FROM)),
    )


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
