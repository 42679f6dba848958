"""How things stood where administration asked for something, read off the session scan and puts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as f

from ledgermq_spark.directory import (
    AdministrationRow,
    Directory,
    Situation,
    read_directory,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["directory_from"]

KINDS = ("CreateQueue", "AlterQueue", "DeleteQueue", "AlterQueueManager", "Upgrade", "Correct")


def directory_from(
    operations: DataFrame,
    acts: DataFrame,
    puts: DataFrame,
    deliveries: Callable[[], DataFrame],
) -> Directory:
    """Read the next round's directory off a scan that was made with the one known so far.

    `deliveries` makes the table of claimed deliveries; it is asked only where something was
    deleted or corrected.
    """
    in_turn = acts.where("what = 'act' AND reason IS NULL")
    asked = (
        operations.where(f.col("kind").isin(*KINDS))
        .join(in_turn.select("position"), "position", how="inner")
        .select(
            "position",
            "kind",
            f.coalesce("target", f.lit("")).alias("queue"),
            "number",
            "description",
            "message_bytes_max",
            "flag",
            f.coalesce("action", f.lit("")).alias("action"),
            f.coalesce("actor", f.lit("")).alias("actor"),
            f.coalesce("why", f.lit("")).alias("why"),
        )
        .collect()
    )
    rows = [AdministrationRow(**row.asDict()) for row in asked]
    uses = in_turn.where("kind IN ('Put', 'OpenConsumer')").select("queue", "position")
    rows.extend(_first_uses(uses, [one for one in rows if one.kind == "DeleteQueue"]))
    deletes = [one for one in rows if one.kind == "DeleteQueue"]
    corrects = [one for one in rows if one.kind == "Correct"]
    if not deletes and not corrects:
        return read_directory(rows, {})
    kept = deliveries()
    situations = _at_deletes(acts, puts, kept, deletes) if deletes else {}
    if corrects:
        # Which queue of a name a Correct means, the deletions decide.
        known = read_directory(rows, situations)
        situations |= _at_corrects(puts, kept, corrects, known)
    return read_directory(rows, situations)


def _first_uses(uses: DataFrame, deletes: list[AdministrationRow]) -> list[AdministrationRow]:
    """First uses of each queue name: of all, and after each attempt to delete it."""
    if not deletes:
        found = uses.groupBy("queue").agg(f.min("position").alias("position")).collect()
    else:
        spark = uses.sparkSession
        asked = spark.createDataFrame(
            [(one.queue, one.position) for one in deletes], "queue string, deleted long"
        )
        by_queue = asked.groupBy("queue").agg(f.collect_list("deleted").alias("deletes"))
        era = f.expr("coalesce(size(filter(deletes, one -> one < position)), 0)")
        found = (
            uses.join(f.broadcast(by_queue), "queue", how="left")
            .groupBy("queue", era.alias("era"))
            .agg(f.min("position").alias("position"))
            .collect()
        )
    return [AdministrationRow(row["position"], "Use", row["queue"]) for row in found]


def _at_deletes(
    acts: DataFrame,
    puts: DataFrame,
    deliveries: DataFrame,
    deletes: list[AdministrationRow],
) -> dict[int, Situation]:
    """What uses a queue, and how many messages are under its name, before each DeleteQueue."""
    spark = acts.sparkSession
    asked = f.broadcast(
        spark.createDataFrame(
            [(one.queue, one.position) for one in deletes], "queue string, asked long"
        )
    )
    consumers = acts.where("what = 'consumer'").select(
        "queue", f.col("first").alias("begin"), f.col("position").alias("end")
    )
    open_puts = puts.where("unit IS NOT NULL").select(
        "queue", f.col("position").alias("begin"), f.col("unit_position").alias("end")
    )
    # A delivery before the operation of its position is there when that operation is applied.
    in_flight = deliveries.select(
        "queue",
        f.when(f.col("phase") == 0, f.col("position") - 1)
        .otherwise(f.col("position"))
        .alias("begin"),
        f.col("settled_position").alias("end"),
    )
    holds = consumers.unionByName(open_puts).unionByName(in_flight)
    using = (
        holds.join(asked, "queue", how="inner")
        .where("begin < asked AND (end IS NULL OR end > asked)")
        .select("asked", f.lit(1).cast("long").alias("in_use"), f.lit(0).alias("unconsumed"))
    )
    steps = (
        puts.where("numbered_position IS NOT NULL")
        .select("queue", f.col("numbered_position").alias("at"), "count")
        .unionByName(
            deliveries.where("settled IN ('acknowledged', 'committed')").select(
                "queue",
                f.col("settled_position").alias("at"),
                f.lit(-1).cast("long").alias("count"),
            )
        )
    )
    standing = (
        steps.join(asked, "queue", how="inner")
        .where("at < asked")
        .select("asked", f.lit(0).cast("long").alias("in_use"), f.col("count").alias("unconsumed"))
    )
    found = (
        using.unionByName(standing)
        .groupBy("asked")
        .agg(f.sum("in_use").alias("in_use"), f.sum("unconsumed").alias("unconsumed"))
        .collect()
    )
    return {
        row["asked"]: Situation(in_use=row["in_use"], unconsumed=row["unconsumed"]) for row in found
    }


def _at_corrects(
    puts: DataFrame,
    deliveries: DataFrame,
    corrects: list[AdministrationRow],
    known: Directory,
) -> dict[int, Situation]:
    """Whether the message that a Correct names was resident then, and who held it."""
    spark = puts.sparkSession
    asked = []
    for one in corrects:
        lifetime = known.lifetime_at(one.queue, one.position)
        if lifetime is not None:
            asked.append((one.position, one.queue, lifetime.created, one.number or 0))
    if not asked:
        return {}
    frame = spark.createDataFrame(asked, "asked long, queue string, created long, sequence long")
    held = f.broadcast(frame).join(
        deliveries.select(
            "queue",
            "sequence",
            "session",
            "delivery",
            "settled",
            "settled_position",
            "settled_due",
            f.col("position").alias("delivered_position"),
            "phase",
        ),
        ["queue", "sequence"],
        how="inner",
    )
    claims: dict[int, list[Any]] = {}
    for row in held.collect():
        if row["created"] <= row["delivered_position"]:
            claims.setdefault(row["asked"], []).append(row)
    numbers = _numbers_before(puts, asked)
    return {
        position: _message_situation(
            position,
            sequence < numbers.get(position, 0),
            claims.get(position, []),
        )
        for position, _, _, sequence in asked
    }


def _numbers_before(puts: DataFrame, asked: list[tuple[int, str, int, int]]) -> dict[int, int]:
    """How many sequence numbers the queue had given out before each position asked about."""
    spark = puts.sparkSession
    frame = spark.createDataFrame(asked, "asked long, queue string, created long, sequence long")
    found = (
        puts.where("numbered_position IS NOT NULL")
        .join(f.broadcast(frame), "queue", how="inner")
        .where("position >= created AND numbered_position < asked")
        .groupBy("asked")
        .agg(f.sum("count").alias("total"))
    )
    return {row["asked"]: row["total"] for row in found.collect()}


def _message_situation(position: int, numbered: bool, claims: list[Any]) -> Situation:
    if not numbered:
        return Situation()
    for row in claims:
        earlier = row["delivered_position"] < position or (
            row["delivered_position"] == position and row["phase"] == 0
        )
        if not earlier:
            continue
        # The correction itself may have settled it in the round before.
        at = row["settled_position"]
        over = at is not None and (at < position or (at == position and row["settled_due"]))
        if over and row["settled"] in ("acknowledged", "committed"):
            return Situation()
        if not over:
            return Situation(resident=True, session=row["session"], delivery=row["delivery"])
    return Situation(resident=True)
