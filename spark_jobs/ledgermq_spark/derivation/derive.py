"""From decoded rows to facts: what each operation came to, who held what, which queues there were.

Everything here is DataFrame to DataFrame; the scan of a connection (`conduct`) is the one function
that SQL windows cannot say. Intermediate results are written to disk once, where several steps
read them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as f

from ledgermq_spark.derivation.acts import ACT_COLUMNS, EVENT_COLUMNS, Act, Event
from ledgermq_spark.derivation.conduct import ConnectionScan
from ledgermq_spark.derivation.directory import Directory
from ledgermq_spark.derivation.late import Late
from ledgermq_spark.derivation.lifetimes import due_positions
from ledgermq_spark.log.rows import arrow_batch, spark_schema

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession


# The sizes of the messages of a Put, each with its header.
WHOLE = "zip_with(sizes_bytes, headers_bytes, (one, other) -> one + other)"


@dataclass(frozen=True, slots=True)
class Store:
    """A directory of intermediate results, each written once and read back."""

    spark: SparkSession
    path: Path

    def keep(self, name: str, frame: DataFrame) -> DataFrame:
        """Write a DataFrame as Parquet and return it as read back."""
        place = str(self.path / name)
        frame.write.mode("overwrite").parquet(place)
        return self.spark.read.schema(frame.schema).parquet(place)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the operations and the claimed deliveries came to.

    `timed`: some messages expire, or are not to be delivered at once. `grouped`: somebody used
    groups, get options or group affinity. `walk` is where messages were (rows of `walk.Stayed`),
    None if none went elsewhere or came to the end of the queue manager's maximum lifetime.
    """

    operations: DataFrame
    timeline: DataFrame
    claims: DataFrame
    acts: DataFrame
    directory: Directory
    timed: bool
    grouped: bool
    walk: DataFrame | None = None


def claims_of(outcomes: DataFrame, *, timed: bool = False) -> DataFrame:
    """Deliveries as recorded outcomes claim them, one row per Delivered, repeats taken once.

    `phase` is 0 for those made before the operation of their position was applied: deliveries of
    what a session gave back whose deadline fell due there, and (`timed`) of what was born (§6).
    """
    once = _once(outcomes.where("kind = 'Delivered'"))
    ended = f.expr("kind = 'SessionEnded' AND session_sequence = 0")
    reply = f.expr(
        "kind NOT IN ('Delivered', 'SessionEnded') OR kind = 'SessionEnded' "
        "AND session_sequence > 0"
    )
    early = (
        outcomes.where("kind != 'Delivered'")
        .groupBy("position")
        .agg(
            f.max(ended.cast("int")).alias("due"),
            f.min(f.when(reply, f.col("index"))).alias("reply_index"),
        )
        .select("position", "reply_index", (f.col("due") == 1).alias("due"))
    )
    # Births may come before any reply; else only ends of sessions do, and those are few.
    found = early if timed else f.broadcast(early.where("due"))
    before = f.expr("index < reply_index OR due AND reply_index IS NULL")
    return once.join(found, "position", how="left").withColumn(
        "phase", f.when(f.coalesce(before, f.lit(False)), 0).otherwise(2).cast("long")
    )


def _once(delivered: DataFrame) -> DataFrame:
    """The first record of each outcome; most logs have but one, and then nothing is shuffled."""
    place = f.struct("lane_partition", "lane_offset")
    first = delivered.groupBy("position", "index").agg(
        f.min(place).alias("place"), f.count("*").alias("times")
    )
    if first.where("times > 1").isEmpty():
        return delivered
    return (
        delivered.join(first, ["position", "index"], how="inner")
        .where(f.col("place") == place)
        .drop("place", "times")
    )


def derive_acts(
    operations: DataFrame, claims: DataFrame, times: DataFrame, directory: Directory, late: Late
) -> DataFrame:
    """Scan every connection's events; rows of `acts.ACT_COLUMNS`."""
    events = _events(operations, claims, times, directory, late)
    partitions = int(operations.sparkSession.conf.get("spark.sql.shuffle.partitions") or "2")
    ordered = events.repartition(partitions, "connection").sortWithinPartitions(
        "connection", "position", "phase", "order"
    )
    chosen = ordered.select("connection", *(name for name, _ in EVENT_COLUMNS))
    return chosen.mapInArrow(_scan(directory), spark_schema(ACT_COLUMNS))


def _scan(directory: Directory) -> Callable[[Iterable[Any]], Iterator[Any]]:
    # A plain copy travels to the tasks.
    told = {one.name: getattr(directory, one.name) for one in fields(directory)}

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        known = Directory(**told)
        scan, current = ConnectionScan(known), None
        for batch in batches:
            acts: list[Act] = []
            columns = [column.to_pylist() for column in batch.columns]
            for connection, *values in zip(*columns, strict=True):
                if connection != current:
                    acts.extend(scan.finish())
                    scan, current = ConnectionScan(known, connection), connection
                acts.extend(scan.take(Event(*values)))
            yield arrow_batch(ACT_COLUMNS, acts)
        yield arrow_batch(ACT_COLUMNS, list(scan.finish()))

    return run


def _events(
    operations: DataFrame, claims: DataFrame, times: DataFrame, directory: Directory, late: Late
) -> DataFrame:
    opens = operations.where("kind = 'Open'").select(
        f.col("position").alias("session"), "connection"
    )
    timed = operations.join(times.select("position", "state_time"), "position", how="inner")
    own = timed.where("kind = 'Open'").withColumn("session", f.lit(-1).cast("long"))
    others = (
        timed.where("session IS NOT NULL").drop("connection").join(opens, "session", how="left")
    )
    suspects = (
        timed.where("kind = 'Suspect'")
        .select(
            "position",
            "state_time",
            "append_time_us",
            "kind",
            f.posexplode("sessions").alias("order", "session"),
        )
        .join(opens, "session", how="inner")
    )
    claimed = (
        claims.drop("connection")
        .join(times.select("position", "state_time"), "position", how="inner")
        .join(opens, "session", how="left")
        .withColumn("count", f.size("sequences").cast("long"))
        .withColumn("number", f.col("first_delivery"))
        .withColumn("order", f.col("index"))
    )
    parts = [
        _event(own, "operation", 1),
        _event(others, "operation", 1),
        _event(suspects, "suspect", 1),
        _event(claimed, "claim", None),
    ]
    if late.replies is not None:
        answers = late.replies.join(times.select("position", "state_time"), "position", how="left")
        parts.append(_event(answers.join(opens, "session", how="inner"), "late", None))
    brought = _brought_about(directory)
    if brought:
        frame = operations.sparkSession.createDataFrame(
            brought,
            "position long, phase long, what string, session long, number long, kind string, "
            "target string",
        )
        known = times.select("position", "state_time")
        # A session that there never was is looked for like any other.
        placed = frame.join(known, "position", how="inner").join(opens, "session", how="left")
        parts.append(_event(placed, None, None))
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.unionByName(part)
    return whole


def _brought_about(directory: Directory) -> list[tuple[Any, ...]]:
    """What operations of others did to sessions, as (position, phase, what, session, ...)."""
    corrected = [
        (
            one.position,
            1,
            "corrected",
            one.session,
            one.delivery,
            "released" if one.action == "RELEASE" else "removed",
            "",
        )
        for one in directory.corrections
        if one.session >= 0
    ]
    taken = [(at, 1, "takeover", session, 0, "", "") for at, session in directory.takeovers]
    vanished = [
        (at, 0 if due else 1, "vanished", session, 0, "", queue)
        for at, due, session, queue in directory.vanished
    ]
    endings = [(at, 1, "ending", session, 0, kind, "") for at, kind, session in directory.endings]
    return [*corrected, *taken, *vanished, *endings]


def _event(frame: DataFrame, what: str | None, phase: int | None) -> DataFrame:
    """Columns of an event, from those that a frame has; what it lacks is zero or empty."""
    have = set(frame.columns)
    computed: dict[str, Column] = {
        "firsts": f.col("range_first") if "range_first" in have else f.lit(None),
        "lasts": f.col("range_last") if "range_last" in have else f.lit(None),
    }
    if "text" not in have:
        computed["text"] = f.col("options") if "options" in have else f.lit(None)
    if what is not None:
        computed["what"] = f.lit(what)
    if phase is not None:
        computed["phase"] = f.lit(phase)
    if "sizes_bytes" in have:
        computed |= {
            "count": f.size("message_ids"),
            "priority_low": f.array_min("priorities"),
            "priority_high": f.array_max("priorities"),
            "size_low": f.array_min("sizes_bytes"),
            "size_high": f.array_max("sizes_bytes"),
            "header_high": f.array_max("headers_bytes"),
            "whole_high": f.array_max(f.expr(WHOLE)),
            "whole_sum": f.expr(f"aggregate({WHOLE}, 0L, (sum, one) -> sum + one)"),
        }
    columns: list[Column] = []
    for name, kind in EVENT_COLUMNS:
        value = computed.get(name, f.col(name) if name in have else f.lit(None))
        if kind.typeName() == "array":
            value = f.coalesce(value.cast(kind), f.array().cast(kind))
        elif kind.typeName() == "string":
            value = f.coalesce(value, f.lit(""))
        else:
            value = f.coalesce(value.cast(kind), f.lit(0).cast(kind))
        columns.append(value.alias(name))
    order = f.col("order").cast("long") if "order" in have else f.lit(0).cast("long")
    return frame.select("connection", order.alias("order"), *columns)


def ended_by_deadline(
    acts: DataFrame, times: DataFrame, keep: Callable[[DataFrame], DataFrame]
) -> DataFrame:
    """Acts with the position at which their deadline fell due; `due` marks those.

    A deadline falls due at the first entry whose state time has reached it, before that entry is
    applied. Where the log ends before, the session lives: what would have ended it is dropped, its
    unit of work is open and its consumers are not closed.
    """
    waiting = acts.where("deadline IS NOT NULL").select("deadline").distinct()
    if waiting.isEmpty():
        return acts.withColumn("due", f.lit(False))
    moments = due_positions(waiting.select(f.col("deadline").alias("at")), times)
    due = moments.withColumnsRenamed({"at": "deadline", "due": "due_position"})
    joined = acts.join(f.broadcast(due), "deadline", how="left")
    reached = f.col("due_position").isNotNull()
    late = f.col("deadline").isNotNull() & ~reached
    return keep(
        joined.where(~(late & f.col("what").isin("settled", "ended")))
        .where(~(reached & (f.col("what") == "alive")))
        .withColumn(
            "kind", f.when(late & (f.col("what") == "unit"), "open").otherwise(f.col("kind"))
        )
        .withColumn("position", f.coalesce("position", "due_position"))
        .withColumn("due", reached)
        .drop("due_position")
    )
