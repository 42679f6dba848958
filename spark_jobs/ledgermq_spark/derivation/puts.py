"""Puts that were applied: what became of their unit of work, and which numbers they got."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as f

from ledgermq_spark.derivation.acts import LATE_MAX
from ledgermq_spark.derivation.directory import Lifetime

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


def lifetimes_frame(spark: SparkSession, lifetimes: Iterable[Lifetime]) -> DataFrame:
    """Which queues and topics stood when."""
    return spark.createDataFrame(
        [(one.queue, one.created, one.deleted) for one in lifetimes],
        "queue string, queue_created long, queue_deleted long",
    )


def puts_table(acts: DataFrame) -> DataFrame:
    """Puts that were applied, one row each, with what became of their unit of work.

    `numbered_position` is where their messages got sequence numbers: where the put was applied, or
    the commit; `numbered_late` tells the place there, as `Act.late` does.
    Puts that vanished with a temporary destination left their unit of work (`unit_end` vanished);
    `closed_position` is where that ended all the same.
    """
    puts = acts.where("what = 'act' AND kind = 'Put' AND reason IS NULL").select(
        "session",
        "position",
        "unit",
        "queue",
        "count",
        "late",
        f.col("applied").alias("applied_position"),
    )
    units = acts.where("what = 'unit'").select(
        "session",
        "unit",
        f.col("position").alias("closed_position"),
        f.col("kind").alias("closed"),
        f.col("due").alias("closed_due"),
        f.col("late").alias("closed_late"),
    )
    vanished = acts.where("what = 'vanished'").select(
        f.col("session").alias("by"),
        f.col("queue").alias("gone"),
        f.col("unit").alias("in_unit"),
        f.col("position").alias("vanished_position"),
    )
    out = f.expr("by = session AND in_unit = unit AND gone = queue")
    joined = (
        puts.join(units, ["session", "unit"], how="left")
        .join(
            f.broadcast(vanished), out & f.expr("applied_position < vanished_position"), how="left"
        )
        .withColumn("unit_position", f.expr("coalesce(vanished_position, closed_position)"))
        .withColumn("unit_end", f.expr("if(vanished_position IS NULL, closed, 'vanished')"))
        .withColumn("unit_due", f.expr("vanished_position IS NULL AND closed_due"))
        .drop("by", "gone", "in_unit", "vanished_position", "closed")
    )
    own = f.col("unit").isNull()
    numbered = f.when(own, f.col("applied_position")).when(
        f.col("unit_end") == "commit", f.col("unit_position")
    )
    late = f.when(own, f.col("late")).otherwise(f.coalesce("closed_late", f.lit(0)))
    return (
        joined.withColumn("numbered_position", numbered)
        .withColumn("numbered_late", late)
        .drop("closed_late")
    )


def numbered_puts(puts: DataFrame, lifetimes: DataFrame, times: DataFrame) -> DataFrame:
    """Puts with the queue they went to, the first of their sequence numbers and its time."""
    placed = puts.join(
        f.broadcast(lifetimes),
        (puts["queue"] == lifetimes["queue"])
        & (lifetimes["queue_created"] <= puts["applied_position"])
        & (
            lifetimes["queue_deleted"].isNull()
            | (puts["applied_position"] < lifetimes["queue_deleted"])
        ),
        how="left",
    ).drop(lifetimes["queue"])
    before = (
        Window.partitionBy("queue", "queue_created")
        .orderBy("numbered_position", "numbered_late", "position")
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


def numbered_phase() -> Column:
    """0 for what was numbered before the entry of its position was applied, else 1."""
    return f.when(f.col("numbered_late") < 0, 0).otherwise(1)


def numbered_index() -> Column:
    """Where in that phase: that of the outcome which says so, or 1 for the entry itself."""
    late = f.col("numbered_late")
    before = f.when(late < 0, late + LATE_MAX)
    return before.when(late > 0, late + 1).otherwise(1).cast("long")
