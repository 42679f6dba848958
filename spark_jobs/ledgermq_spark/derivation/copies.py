"""Topic messages as their subscriptions got them: `copies` and `subscriptions` (PROTOCOL.md §5)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as f

from ledgermq_spark.derivation.derive import Facts
from ledgermq_spark.derivation.directory import Directory, Subscription
from ledgermq_spark.derivation.lifetimes import (
    DELAYED,
    EXPIRY,
    UNBORN,
    born,
    expired,
    filled,
    settled_by,
    with_expiry,
)
from ledgermq_spark.derivation.matching import Selected, matches
from ledgermq_spark.derivation.walked import MESSAGE, delayed_at_last, expiries_in

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


KEPT = (
    *("put_position", "put_index", "stay", "queue", "queue_created", "subscription", "sequence"),
    *("message_id", "priority", "persistent", "size_bytes", "content_digest", "enqueued_at"),
    *("numbered_phase", "numbered_index", "origin"),
    *("numbered_position", "ended", "ended_due", "header", "selector"),
    *("stopped", "stopped_due"),
    *EXPIRY,
)
SUBSCRIPTIONS = (
    "created_position long, topic string, topic_created long, kind string, name string, "
    "client_id string, shared boolean, selector string, no_local boolean, ended_position long, "
    "ended_due boolean, why string"
)


def copies_table(each: DataFrame, facts: Facts, deliveries: DataFrame) -> DataFrame:
    """A row for each subscription that got a topic message, and what it did with it."""
    spark, directory = each.sparkSession, facts.directory
    standing = _standing(spark, directory)
    # What ended before the entry was gone for it, not for what was moved while it ended.
    there = f.expr(
        "subscription < numbered_position AND "
        "(over IS NULL OR over > numbered_position "
        "OR over = numbered_position AND (NOT over_due OR numbered_phase = 0))"
    )
    published = each.where("queue LIKE 'topic:%' AND sequence IS NOT NULL")
    reached = (
        published.join(f.broadcast(standing), ["queue", "queue_created"], how="inner")
        .where(there)
        .where("NOT (no_local AND local_id != '' AND local_id <=> client_id)")
    )
    wanted = _not_local(reached, directory).select(*KEPT)
    chosen = wanted.where("selector != ''").mapInArrow(_select, wanted.schema)
    keys = [*MESSAGE, "subscription"]
    taken = settled_by(deliveries.where("subscription IS NOT NULL"), keys, timed=facts.timed)
    copies = wanted.where("selector = ''").unionByName(chosen)
    copies = delayed_at_last(facts.walk, copies, keys)
    joined = _ended_when_returned(copies.join(taken, keys, how="left"))
    if facts.walk is not None:
        over = expiries_in(facts.walk).withColumnRenamed("holder", "subscription")
        joined = joined.join(over, keys, how="left")
    else:
        joined = joined.withColumn("moved_to", f.lit(None).cast("string")).withColumn(
            "moved_to_sequence", f.lit(None).cast("long")
        )
    if "ended_as" not in joined.columns:
        joined = joined.withColumn("ended_as", f.lit("expired"))
    by_rule = f.coalesce(expired("ended"), f.lit(False))
    fate = (
        f.when(by_rule, f.col("ended_as"))
        .when(f.col("consumed_position").isNotNull(), "consumed")
        .when(f.col("ended").isNotNull(), "dropped")
        .otherwise("resident")
    )
    return (
        filled(with_expiry(joined))
        .withColumn("fate", fate)
        .withColumn(
            "fate_position",
            f.when(by_rule, f.col("expired_position")).otherwise(
                f.coalesce("consumed_position", "ended")
            ),
        )
        .withColumn("birth_position", born(f.col("fate_position")))
        .withColumn("on_return", by_rule & f.col("on_return"))
        .withColumn(
            "fate_due",
            f.when(by_rule, f.col("expired_due")).otherwise(
                f.expr("fate = 'dropped' AND ended_due")
            ),
        )
        .drop("consumed_position", "ended", "ended_due", "selector", "header")
        .drop("expired_position", "expired_due", "ended_as")
    )


def _standing(spark: SparkSession, directory: Directory) -> DataFrame:
    """Subscriptions, with the moment from which they were over for what was published."""
    frame = spark.createDataFrame(
        [
            (
                *(one.topic, one.topic_created, one.created, one.ended, one.ended_due),
                *(one.selector, one.no_local, one.client_id, one.stopped, one.stopped_due),
            )
            for one in directory.subscriptions
        ],
        "queue string, queue_created long, subscription long, ended long, ended_due boolean, "
        "selector string, no_local boolean, local_id string, stopped long, stopped_due boolean",
    )
    return frame.withColumn("over", f.coalesce("stopped", "ended")).withColumn(
        "over_due", f.expr("if(stopped IS NULL, ended_due, stopped_due)")
    )


def _ended_when_returned(copies: DataFrame) -> DataFrame:
    """Copies of what stopped end there, but for what was held then: that ends when it returns."""
    later = "(stopped IS NOT NULL AND last.settled_position > stopped)"
    return (
        copies.withColumn("last", f.expr("array_max(flights)"))
        .withColumn(
            "ended",
            f.expr(
                "if(stopped IS NULL, ended, if(last.settled = 'open', NULL, "
                f"if({later}, last.settled_position, stopped)))"
            ),
        )
        .withColumn(
            "ended_due",
            f.expr(f"if(stopped IS NULL, ended_due, if({later}, last.settled_due, stopped_due))"),
        )
        .drop("last", "stopped", "stopped_due")
    )


def _not_local(reached: DataFrame, directory: Directory) -> DataFrame:
    """Without what a noLocal subscription's own consumer, open at that time, had sent."""
    wary = {one.created for one in directory.subscriptions if one.no_local}
    consumers = [
        (one.subscription, bytes.fromhex(one.connection), one.opened, one.closed, one.closed_due)
        for one in directory.receptions
        if one.subscription in wary
    ]
    if not consumers:
        return reached
    frame = reached.sparkSession.createDataFrame(
        consumers,
        "subscription long, connection binary, opened long, closed long, closed_due boolean",
    ).alias("own")
    told = reached.alias("told")
    local = f.expr(
        "told.subscription = own.subscription AND told.connection = own.connection "
        "AND own.opened < told.numbered_position AND (own.closed IS NULL "
        "OR own.closed > told.numbered_position "
        "OR own.closed = told.numbered_position AND NOT own.closed_due)"
    )
    return told.join(f.broadcast(frame), local, how="left_anti")


def _select(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Those rows of which the subscription's selector is true."""
    for batch in batches:
        rows = batch.to_pylist()
        keep = [
            matches(
                row["selector"],
                Selected(
                    row["message_id"],
                    row["priority"],
                    row["persistent"],
                    row["enqueued_at"],
                    row["header"],
                ),
            )
            for row in rows
        ]
        yield _filtered(batch, keep)


def _filtered(batch: pa.RecordBatch, keep: list[bool]) -> pa.RecordBatch:
    import pyarrow

    return batch.filter(pyarrow.array(keep, type=pyarrow.bool_()))


def _told(one: Subscription) -> tuple[Any, ...]:
    """A subscription as the table shows it: as the status does, while it is there."""
    if one.has_ended_but_for_held:
        one = one._replace(kind="ended", name=f"{one.name}#{one.created}")
    return tuple(one[: len(SUBSCRIPTIONS.split(", "))])


def subscriptions_table(copies: DataFrame, directory: Directory) -> DataFrame:
    """Every subscription that ever was: who it was for, how it ended, what it had.

    `added` = `consumed` + `expired` + `moved` + `removed` (by hand) + `dropped` (with the
    subscription, or redelivered too often) + `resident`.
    """
    frame = copies.sparkSession.createDataFrame(
        [_told(one) for one in directory.subscriptions], SUBSCRIPTIONS
    )
    resident = f.when(f.col("fate") == "resident", f.col("sequence"))
    counted = copies.groupBy(f.col("subscription").alias("created_position")).agg(
        f.count("*").alias("added"),
        *(
            f.count(f.when(f.col("fate") == fate, 1)).alias(fate)
            for fate in ("consumed", "expired", "moved", "removed", "dropped", "resident")
        ),
        f.count(f.when(f.expr("fate = 'resident' AND held"), 1)).alias("in_flight"),
        f.count(f.when(f.expr(UNBORN), 1)).alias("unborn"),
        f.count(f.when(f.expr(DELAYED), 1)).alias("delayed"),
        f.min(resident).alias("min_resident"),
        f.max(resident).alias("max_resident"),
        f.min_by("enqueued_at", resident).alias("first_enqueued_at"),
        f.max_by("enqueued_at", resident).alias("last_enqueued_at"),
        f.max("sequence").alias("last_sequence"),
        f.sum("deliveries").alias("deliveries"),
        f.sum("backout_count").alias("backouts"),
    )
    zero = ["added", "consumed", "expired", "moved", "removed", "dropped", "resident"]
    zero += ["in_flight", "unborn", "delayed"]
    zero += ["deliveries", "backouts"]
    return frame.join(counted, "created_position", how="left").fillna(0, subset=zero)
