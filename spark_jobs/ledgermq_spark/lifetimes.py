"""When messages expired and when they came to be delivered (PROTOCOL.md §5 Expiry), by log time.

A moment falls due at the first entry whose state time has reached it, before that entry is applied;
one that had passed when the message was numbered falls due with the numbering.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as f

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["EXPIRY", "UNBORN", "due_positions", "expired", "expiry_position", "with_lifetimes"]

ROUNDING_US = 50_000
# A message that is there and not to be delivered yet.
UNBORN = "fate = 'resident' AND deliver_at IS NOT NULL AND birth_position IS NULL"
# Columns that say when a message expires and is born; all null where nothing is timed.
EXPIRY = ("expires_at", "deliver_at", "expiry_position", "expiry_due", "birth_position")


def with_lifetimes(messages: DataFrame, times: DataFrame, *, timed: bool) -> DataFrame:
    """Messages with their moments, in µs, and the positions at which these fall due.

    `expiry_due` and a `birth_position` after the numbering fall due before their entry;
    `birth_position` is null for a message that may be delivered from the beginning, and for one
    that is not born yet, which has a `deliver_at`.
    """
    if not timed:
        kinds = {"expiry_due": "boolean"}
        for name in EXPIRY:
            none = f.lit(None).cast(kinds.get(name, "long"))
            messages = messages.withColumn(name, none)
        return messages
    sent = f.col("put_at") - f.coalesce(_given("a"), f.lit(0)) * 1000
    told = messages.withColumn("expires_at", _moment(sent, "l")).withColumn(
        "deliver_at", _moment(sent, "d")
    )
    moments = (
        told.select(f.col("expires_at").alias("at"))
        .unionByName(told.select(f.col("deliver_at").alias("at")))
        .where("at IS NOT NULL")
        .distinct()
    )
    due = due_positions(moments, times)
    for name in ("expires_at", "deliver_at"):
        told = told.join(
            f.broadcast(due.withColumnsRenamed({"at": name, "due": f"{name}_due"})),
            name,
            how="left",
        )
    numbered = f.col("numbered_position")
    return (
        told.withColumn(
            "expiry_position",
            f.when(
                f.col("expires_at_due").isNotNull() & numbered.isNotNull(),
                f.greatest("expires_at_due", numbered),
            ),
        )
        .withColumn("expiry_due", f.col("expires_at_due") > numbered)
        .withColumn(
            "birth_position", f.when(f.col("deliver_at_due") > numbered, f.col("deliver_at_due"))
        )
        # What had come when it was numbered is as if it had never been asked for.
        .withColumn(
            "deliver_at",
            f.when(
                f.col("deliver_at_due").isNull() | (f.col("deliver_at_due") > numbered),
                f.col("deliver_at"),
            ),
        )
        .drop("expires_at_due", "deliver_at_due")
    )


def _given(name: str) -> Column:
    """A number of the header, in ms."""
    return f.get_json_object("header", f"$.{name}").cast("long")


def _moment(sent: Column, name: str) -> Column:
    """So long after the send, rounded up."""
    exact = sent + _given(name) * 1000
    return (f.ceil(exact / ROUNDING_US) * ROUNDING_US).cast("long")


def due_positions(moments: DataFrame, times: DataFrame) -> DataFrame:
    """The position at which each moment (`at`) falls due; null where the log ends before."""
    none = f.lit(None).cast("long")
    merged = moments.select("at", f.lit(0).alias("entry"), none.alias("p")).unionByName(
        times.select(
            f.col("state_time").alias("at"), f.lit(1).alias("entry"), f.col("position").alias("p")
        )
    )
    from_here = Window.orderBy("at", "entry", "p").rowsBetween(0, Window.unboundedFollowing)
    return (
        merged.withColumn("due", f.first("p", ignorenulls=True).over(from_here))
        .where("entry = 0")
        .select("at", "due")
    )


def expiry_position() -> Column:
    """Where a message expired that nobody consumed: when it was due, or when it came back.

    `last` is its last delivery (settled, settled_position); a message in flight does not expire.
    """
    came_back = f.col("last.settled_position") >= f.col("expiry_position")
    return (
        f.when(f.col("last").isNull(), f.col("expiry_position"))
        .when(
            f.col("last.settled") == "returned",
            f.when(came_back, f.col("last.settled_position")).otherwise(f.col("expiry_position")),
        )
        .otherwise(f.lit(None).cast("long"))
    )


def expired(until: str) -> Column:
    """Whether it expired before what it was in went (at the position of a column, if it did)."""
    at = f.col("expired_position")
    return at.isNotNull() & (f.col(until).isNull() | (at <= f.col(until)))
