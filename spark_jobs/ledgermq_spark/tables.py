"""The set-based tables `messages`, `deliveries`, `units_of_work`: Spark written from PROTOCOL.md.

They share no code with the fold. Puts, units of work, acknowledgements and sequence numbers come
from the operations alone; `deliveries` takes what the Delivered outcomes claim, for the audit to
check against the operations.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as f

from ledgermq_spark.derive import Facts, Store, claims_of, derive_acts, ended_by_deadline
from ledgermq_spark.directory import Directory
from ledgermq_spark.situations import directory_from
from ledgermq_spark.timeline import timeline

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["Tables", "build_tables", "deliveries_table", "puts_table", "write_tables"]

TABLES = ("messages", "deliveries", "units_of_work")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """The three tables, and the facts that they were made of."""

    messages: DataFrame
    deliveries: DataFrame
    units_of_work: DataFrame
    puts: DataFrame
    facts: Facts


def build_tables(store: Store, operations: DataFrame, outcomes: DataFrame) -> Tables:
    """Build the tables of one queue manager from its decoded operations and recorded outcomes.

    Args:
        store: Where intermediate results are kept.
        operations: Rows of `rows.OPERATION_COLUMNS`, positions without a gap.
        outcomes: Rows of `read_log.RECORDED_COLUMNS`, repeats included.
    """
    times = store.keep("timeline", timeline(operations))
    claims = claims_of(outcomes)
    directory = Directory()
    for number in count():
        raw = store.keep(f"scan-{number}", derive_acts(operations, claims, times, directory))
        acts = ended_by_deadline(raw, times, partial(store.keep, f"acts-{number}"))
        puts = puts_table(acts)
        held = deliveries_table(claims, acts)
        found = directory_from(operations, acts, puts, partial(store.keep, "held", held))
        settled = found.bearing() == directory.bearing()
        directory = found
        # Every round settles the earliest decision that was open, so this ends.
        if settled:
            break
    facts = Facts(
        operations=operations, timeline=times, claims=claims, acts=acts, directory=directory
    )
    return _assemble(store, facts, puts, held)


def _assemble(store: Store, facts: Facts, puts: DataFrame, held: DataFrame) -> Tables:
    spark, directory = store.spark, facts.directory
    lifetimes = spark.createDataFrame(
        [(one.queue, one.created, one.deleted) for one in directory.lifetimes],
        "queue string, queue_created long, queue_deleted long",
    )
    numbered = store.keep("puts", _numbered(puts, lifetimes, facts.timeline))
    deliveries = store.keep(
        "deliveries", _in_lifetime(held, lifetimes, facts.timeline).drop("queue_deleted")
    )
    messages = store.keep("messages", _messages(facts, numbered, deliveries))
    units = store.keep("units_of_work", _units_of_work(facts))
    return Tables(
        messages=messages, deliveries=deliveries, units_of_work=units, puts=numbered, facts=facts
    )


def write_tables(tables: Tables, directory: Path) -> list[Path]:
    """Write the three tables as Parquet below a directory; returns where."""
    written = []
    for name in TABLES:
        place = directory / name
        getattr(tables, name).write.mode("overwrite").parquet(str(place))
        written.append(place)
    return written


def puts_table(acts: DataFrame) -> DataFrame:
    """Puts that were applied, one row each, with what became of their unit of work.

    `numbered_position` is where their messages got sequence numbers: the put itself, or the commit.
    """
    puts = acts.where("what = 'act' AND kind = 'Put' AND reason IS NULL").select(
        "session", "position", "unit", "queue", "count"
    )
    units = acts.where("what = 'unit'").select(
        "session",
        "unit",
        f.col("position").alias("unit_position"),
        f.col("kind").alias("unit_end"),
        f.col("due").alias("unit_due"),
    )
    joined = puts.join(units, ["session", "unit"], how="left")
    numbered = f.when(f.col("unit").isNull(), f.col("position")).when(
        f.col("unit_end") == "commit", f.col("unit_position")
    )
    return joined.withColumn("numbered_position", numbered)


def _numbered(puts: DataFrame, lifetimes: DataFrame, times: DataFrame) -> DataFrame:
    """Puts with the queue they went to, the first of their sequence numbers and its time."""
    placed = puts.join(
        f.broadcast(lifetimes),
        (puts["queue"] == lifetimes["queue"])
        & (lifetimes["queue_created"] <= puts["position"])
        & (lifetimes["queue_deleted"].isNull() | (puts["position"] < lifetimes["queue_deleted"])),
        how="left",
    ).drop(lifetimes["queue"])
    before = (
        Window.partitionBy("queue", "queue_created")
        .orderBy("numbered_position", "position")
        .rowsBetween(Window.unboundedPreceding, -1)
    )
    with_number = placed.where("numbered_position IS NOT NULL").withColumn(
        "first_sequence", f.coalesce(f.sum("count").over(before), f.lit(0))
    )
    without = placed.where("numbered_position IS NULL").withColumn(
        "first_sequence", f.lit(None).cast("long")
    )
    moments = times.select(
        f.col("position").alias("numbered_position"), f.col("state_time").alias("enqueued_at")
    )
    return with_number.unionByName(without).join(moments, "numbered_position", how="left")


def deliveries_table(claims: DataFrame, acts: DataFrame) -> DataFrame:
    """Claimed deliveries, one row per message, with how each was settled (without queue times)."""
    each = claims.select(
        "session",
        "connection",
        "consumer",
        f.expr("substring(destination, 7)").alias("queue"),
        "position",
        "index",
        "phase",
        "first_delivery",
        f.posexplode(
            f.arrays_zip(
                "sequences",
                "put_positions",
                "put_indexes",
                "message_ids",
                "priorities",
                "persistent",
                "backout_counts",
                "enqueued_ats",
                "content_digests",
            )
        ).alias("offset", "message"),
    ).select(
        "session",
        (f.col("first_delivery") + f.col("offset")).alias("delivery"),
        "connection",
        "consumer",
        "queue",
        "position",
        "index",
        f.col("offset").cast("long").alias("offset"),
        "phase",
        f.col("message.sequences").alias("sequence"),
        f.col("message.put_positions").alias("put_position"),
        f.col("message.put_indexes").alias("put_index"),
        f.col("message.message_ids").alias("message_id"),
        f.col("message.priorities").alias("priority"),
        f.col("message.persistent").alias("persistent"),
        f.col("message.backout_counts").alias("backout_count"),
        f.col("message.enqueued_ats").alias("enqueued_at"),
        f.col("message.content_digests").alias("content_digest"),
    )
    settled = acts.where("what = 'settled'").select(
        "session",
        f.explode(f.sequence("first", "last")).alias("delivery"),
        f.col("position").alias("settled_position"),
        f.col("kind").alias("how"),
        f.col("flag").alias("seen"),
        f.col("due").alias("settled_due"),
    )
    how = (
        f.when(f.col("settled_position").isNull(), "open")
        .when(f.col("how") == "Acknowledge", "acknowledged")
        .when(f.col("how") == "Commit", "committed")
        .when(f.col("how") == "removed", "removed")
        .otherwise("returned")
    )
    return each.join(settled, ["session", "delivery"], how="left").withColumn("settled", how)


def _in_lifetime(held: DataFrame, lifetimes: DataFrame, times: DataFrame) -> DataFrame:
    placed = held.join(
        f.broadcast(lifetimes),
        (held["queue"] == lifetimes["queue"])
        & (lifetimes["queue_created"] <= held["position"])
        & (lifetimes["queue_deleted"].isNull() | (held["position"] < lifetimes["queue_deleted"])),
        how="left",
    ).drop(lifetimes["queue"])
    delivered = times.select("position", f.col("state_time").alias("delivered_at"))
    settled = times.select(
        f.col("position").alias("settled_position"), f.col("state_time").alias("settled_at")
    )
    return placed.join(delivered, "position", how="left").join(
        settled, "settled_position", how="left"
    )


def _messages(facts: Facts, puts: DataFrame, deliveries: DataFrame) -> DataFrame:
    spark = puts.sparkSession
    contents = facts.operations.where("kind = 'Put'").select(
        "position",
        "message_ids",
        "priorities",
        "persistent",
        f.expr("zip_with(sizes_bytes, headers_bytes, (one, other) -> one + other)").alias(
            "sizes_bytes"
        ),
        "content_digests",
    )
    opens = facts.operations.where("kind = 'Open'").select(
        f.col("position").alias("session"), "connection"
    )
    times = facts.timeline.select("position", f.col("state_time").alias("put_at"))
    each = (
        puts.join(contents, "position", how="inner")
        .join(times, "position", how="left")
        .join(f.broadcast(opens), "session", how="left")
        .select(
            "*",
            f.posexplode(
                f.arrays_zip(
                    "message_ids", "priorities", "persistent", "sizes_bytes", "content_digests"
                )
            ).alias("put_index", "message"),
        )
    )
    taken = deliveries.groupBy("put_position", "put_index").agg(
        f.count("*").alias("deliveries"),
        f.sum(f.when(f.col("seen"), 1).otherwise(0)).alias("backout_count"),
        f.max(
            f.when(f.col("settled").isin("acknowledged", "committed"), f.col("settled_position"))
        ).alias("consumed_position"),
        f.max(f.expr("settled = 'open'")).alias("held"),
    )
    removals = [
        (one.queue, one.created, one.sequence, one.position)
        for one in facts.directory.corrections
        if one.action == "REMOVE"
    ]
    removed = spark.createDataFrame(
        removals, "queue string, queue_created long, sequence long, removed_position long"
    )
    flat = each.select(
        "queue",
        "queue_created",
        f.col("message.message_ids").alias("message_id"),
        f.col("position").alias("put_position"),
        f.col("put_index").cast("long").alias("put_index"),
        "put_at",
        "session",
        "connection",
        f.col("unit").alias("unit_of_work"),
        f.col("message.priorities").alias("priority"),
        f.col("message.persistent").alias("persistent"),
        f.col("message.sizes_bytes").alias("size_bytes"),
        f.col("message.content_digests").alias("content_digest"),
        (f.col("first_sequence") + f.col("put_index")).alias("sequence"),
        "numbered_position",
        "enqueued_at",
        "unit_end",
        "unit_position",
        "queue_deleted",
    )
    joined = flat.join(taken, ["put_position", "put_index"], how="left").join(
        f.broadcast(removed), ["queue", "queue_created", "sequence"], how="left"
    )
    return _with_fate(joined)


def _with_fate(messages: DataFrame) -> DataFrame:
    """What became of each message, and at which position."""
    unnumbered = f.col("numbered_position").isNull()
    consumed = f.col("consumed_position").isNotNull()
    fate = (
        f.when(unnumbered & (f.col("unit_end") == "open"), "uncommitted")
        .when(unnumbered, "rolled back")
        .when(f.col("removed_position").isNotNull(), "removed")
        .when(consumed, "consumed")
        .when(f.col("queue_deleted").isNotNull(), "purged")
        .otherwise("resident")
    )
    where = f.coalesce(
        f.when(f.col("fate") == "rolled back", f.col("unit_position")),
        f.when(f.col("fate") == "removed", f.col("removed_position")),
        f.when(f.col("fate") == "consumed", f.col("consumed_position")),
        f.when(f.col("fate") == "purged", f.col("queue_deleted")),
    )
    return (
        messages.withColumn("fate", fate)
        .withColumn("fate_position", where)
        .withColumn("deliveries", f.coalesce("deliveries", f.lit(0)))
        .withColumn("backout_count", f.coalesce("backout_count", f.lit(0)))
        .withColumn("held", f.coalesce("held", f.lit(False)))
        .drop("queue_deleted", "removed_position")
    )


def _units_of_work(facts: Facts) -> DataFrame:
    times = facts.timeline.select("position", "state_time")
    return (
        facts.acts.where("what = 'unit'")
        .select(
            "session",
            f.col("unit").alias("unit_of_work"),
            f.col("first").alias("begin_position"),
            f.col("position").alias("end_position"),
            f.col("kind").alias("end"),
            f.col("count").alias("puts"),
            f.col("last").alias("gets"),
        )
        .join(
            times.select(
                f.col("position").alias("begin_position"), f.col("state_time").alias("begun_at")
            ),
            "begin_position",
            how="left",
        )
        .join(
            times.select(
                f.col("position").alias("end_position"), f.col("state_time").alias("ended_at")
            ),
            "end_position",
            how="left",
        )
    )
