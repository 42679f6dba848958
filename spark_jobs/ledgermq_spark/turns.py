"""Checks claimed deliveries against the operations: available, in turn, not held already.

One pass per queue over what made messages available, took them and gave them back, in the order of
the log; written from PROTOCOL.md §5 "Delivery" (priority 9 first, then sequence number), not from
the fold. It knows nothing of consumers and credit: who was served is the rebuild's matter.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from functools import reduce
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from ledgermq_spark.evidence import Evidence, hexadecimal
from ledgermq_spark.rows import BYTES, LONG, TEXT, arrow_batch, spark_schema

if TYPE_CHECKING:
    import pyarrow as pa

    from ledgermq_spark.tables import Tables

__all__ = ["QueueTurns", "Step", "check_turns"]

EVIDENCE_MAX = 200
FINDING_COLUMNS = (
    ("kind", TEXT),
    ("queue", TEXT),
    ("position", LONG),
    ("index", LONG),
    ("session", LONG),
    ("message_id", BYTES),
    ("put_position", LONG),
    ("put_index", LONG),
    ("detail", TEXT),
)
STEP_COLUMNS = (
    "queue",
    "queue_created",
    "position",
    "phase",
    "index",
    "offset",
    "what",
    "put_position",
    "put_index",
    "message_id",
    "priority",
    "sequence",
    "session",
)


class Step(NamedTuple):
    """What happened to a message: numbered, delivered, returned or gone."""

    position: int
    phase: int
    index: int  # type: ignore[assignment]
    offset: int
    what: str
    put_position: int
    put_index: int
    message_id: bytes | None
    priority: int
    sequence: int
    session: int


Finding = tuple[str, Step, str]


class QueueTurns:
    """The messages of one queue as steps make them available and take them.

    One entry of the log may serve several consumers at once; what it delivers is taken together,
    because the outcomes stand in the order of consumers, not of messages.
    """

    def __init__(self) -> None:
        self._available: dict[tuple[int, int], tuple[int, int]] = {}
        self._held: dict[tuple[int, int], int] = {}
        self._order: list[tuple[int, int, tuple[int, int]]] = []
        self._together: list[Step] = []

    def take(self, step: Step) -> Iterator[Finding]:
        """Takes a step; yields findings as (kind, step, detail)."""
        together = self._together
        if together and (
            step.what != "delivered" or step[:2] != (together[0].position, together[0].phase)
        ):
            yield from self.finish()
        if step.what == "delivered":
            self._together.append(step)
            return
        message = (step.put_position, step.put_index)
        self._held.pop(message, None)
        if step.what == "gone":
            self._available.pop(message, None)
        else:
            self._available[message] = (-step.priority, step.sequence)
            heapq.heappush(self._order, (-step.priority, step.sequence, message))

    def finish(self) -> Iterator[Finding]:
        """Judges the deliveries taken together last."""
        together, self._together = self._together, []
        for earlier, later in pairwise(together):
            if earlier.index == later.index and _place(later) < _place(earlier):
                yield "reordered", later, f"it stands after message {earlier.sequence}"
        for step in sorted(together, key=_place):
            yield from self._delivered(step)

    def _delivered(self, step: Step) -> Iterator[Finding]:
        message = (step.put_position, step.put_index)
        if message in self._held:
            yield "duplicated", step, f"session {self._held[message]} holds it"
            return
        place = self._available.pop(message, None)
        if place is None:
            yield "unavailable", step, "the operations had not made it available"
            return
        self._held[message] = step.session
        order = self._order
        while order and self._available.get(order[0][2]) != order[0][:2]:
            heapq.heappop(order)
        if order and order[0][:2] < place:
            urgency, sequence, (put_position, put_index) = order[0]
            # Told once for the message that was passed over.
            self._available.pop(order[0][2])
            detail = (
                f"message {sequence} of priority {-urgency}, put at {put_position}:{put_index}, "
                f"was available and comes before message {step.sequence}"
            )
            yield "reordered", step, detail


def _place(step: Step) -> tuple[int, int]:
    return (-step.priority, step.sequence)


def check_turns(tables: Tables, recorded: DataFrame) -> list[Evidence]:
    """Check every claimed delivery against what the operations made available."""
    steps = _steps(tables, recorded)
    partitions = int(steps.sparkSession.conf.get("spark.sql.shuffle.partitions") or "2")
    ordered = (
        steps.select(*STEP_COLUMNS)
        .repartition(partitions, "queue", "queue_created")
        .sortWithinPartitions("queue", "queue_created", "position", "phase", "index", "offset")
    )
    rows = ordered.mapInArrow(_scan, spark_schema(FINDING_COLUMNS)).limit(EVIDENCE_MAX).collect()
    gone = _gone_before(tables, rows)
    return [
        Evidence(
            kind=_kind(row, gone),
            source="claims",
            summary=f"the operations do not allow this delivery: {row['detail']}",
            queue=row["queue"] or "",
            message_id=hexadecimal(row["message_id"]),
            position=row["position"],
            index=row["index"],
            session=row["session"],
        )
        for row in rows
    ]


def _kind(row: Any, gone: dict[tuple[int, int], int]) -> str:
    """A delivery of what was not available is duplicated if the message was gone before."""
    if row["kind"] != "unavailable":
        return str(row["kind"])
    went = gone.get((row["put_position"], row["put_index"]))
    return "duplicated" if went is not None and went <= row["position"] else "unexpected"


def _gone_before(tables: Tables, rows: list[Any]) -> dict[tuple[int, int], int]:
    """Where the messages that were delivered without being available had gone."""
    wanted = [
        (row["put_position"], row["put_index"]) for row in rows if row["kind"] == "unavailable"
    ]
    if not wanted:
        return {}
    spark = tables.messages.sparkSession
    frame = spark.createDataFrame(wanted, "put_position long, put_index long").distinct()
    found = (
        tables.messages.join(f.broadcast(frame), ["put_position", "put_index"], how="inner")
        .where("fate_position IS NOT NULL")
        .select("put_position", "put_index", "fate_position")
    )
    return {(row[0], row[1]): row[2] for row in found.collect()}


def _scan(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    turns, current = QueueTurns(), (None, None)
    for batch in batches:
        columns = [column.to_pylist() for column in batch.columns]
        rows: list[tuple[Any, ...]] = []
        for queue, created, *values in zip(*columns, strict=True):
            if (queue, created) != current:
                rows.extend(_finding(current[0], one) for one in turns.finish())
                turns, current = QueueTurns(), (queue, created)
            rows.extend(_finding(queue, one) for one in turns.take(Step(*values)))
        yield arrow_batch(FINDING_COLUMNS, rows)
    yield arrow_batch(FINDING_COLUMNS, [_finding(current[0], one) for one in turns.finish()])


def _finding(queue: str | None, found: Finding) -> tuple[Any, ...]:
    kind, step, detail = found
    where = (step.position, step.index, step.session, step.message_id)
    return (kind, queue, *where, step.put_position, step.put_index, detail)


def _steps(tables: Tables, recorded: DataFrame) -> DataFrame:
    """Everything that happened to the messages of all queues."""
    messages, deliveries = tables.messages, tables.deliveries
    numbered = messages.where("sequence IS NOT NULL")
    gone = messages.where("fate IN ('removed', 'purged')")
    # What a lost session gives back is there for the deliveries that follow its own end.
    ended = (
        recorded.where("kind = 'SessionEnded' AND session_sequence = 0")
        .groupBy("position", "session")
        .agg(f.min("index").alias("ended_index"))
        .select(f.col("position").alias("settled_position"), "session", "ended_index")
    )
    settled = deliveries.where("settled_position IS NOT NULL").join(
        f.broadcast(ended), ["settled_position", "session"], how="left"
    )
    entry, nothing = f.lit(1), f.lit(0)
    back = f.when(f.col("settled") == "returned", "returned").otherwise("gone")
    due = f.when(f.col("settled_due"), 0).otherwise(1)
    ended_index = f.coalesce("ended_index", nothing)
    delivered = f.lit("delivered")
    parts = [
        _step(numbered, f.lit("numbered"), "numbered_position", entry, nothing, nothing),
        _step(gone, f.lit("gone"), "fate_position", entry, nothing, nothing),
        _step(settled, back, "settled_position", due, ended_index, nothing),
        _step(deliveries, delivered, "position", f.col("phase"), f.col("index"), f.col("offset")),
    ]
    return reduce(DataFrame.unionByName, parts)


def _step(
    frame: DataFrame, what: Column, position: str, phase: Column, index: Column, offset: Column
) -> DataFrame:
    session = f.col("session") if "delivery" in frame.columns else f.lit(-1)
    return frame.select(
        "queue",
        "queue_created",
        f.col(position).alias("position"),
        phase.cast(LONG).alias("phase"),
        index.cast(LONG).alias("index"),
        offset.cast(LONG).alias("offset"),
        what.alias("what"),
        "put_position",
        "put_index",
        "message_id",
        "priority",
        "sequence",
        session.cast(LONG).alias("session"),
    )
