"""The table `messages`: every message that was put, and what became of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from ledgermq_spark.derivation.derive import Facts
from ledgermq_spark.derivation.lifetimes import (
    born,
    expired,
    filled,
    settled_by,
    with_expiry,
    with_lifetimes,
)
from ledgermq_spark.derivation.walked import MESSAGE, delayed_at_last, expiries_in

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def each_message(facts: Facts, puts: DataFrame) -> DataFrame:
    """Every message that was put, with what its Put says, who sent it, and its lifetime."""
    contents = facts.operations.where("kind = 'Put'").select(
        "position",
        "message_ids",
        "priorities",
        "persistent",
        f.expr("zip_with(sizes_bytes, headers_bytes, (one, other) -> one + other)").alias(
            "sizes_bytes"
        ),
        "content_digests",
        "headers",
    )
    opens = facts.operations.where("kind = 'Open'").select(
        f.col("position").alias("session"), "connection", "client_id"
    )
    times = facts.timeline.select("position", f.col("state_time").alias("put_at"))
    fields = f.arrays_zip(
        "message_ids", "priorities", "persistent", "sizes_bytes", "content_digests"
    )
    each = (
        puts.join(contents, "position", how="inner")
        .join(times, "position", how="left")
        .join(f.broadcast(opens), "session", how="left")
        .select("*", f.posexplode(fields).alias("put_index", "message"))
        .select(
            "queue",
            "queue_created",
            f.col("message.message_ids").alias("message_id"),
            f.col("position").alias("put_position"),
            f.col("put_index").cast("long").alias("put_index"),
            "put_at",
            "session",
            "connection",
            "client_id",
            f.col("unit").alias("unit_of_work"),
            f.col("message.priorities").alias("priority"),
            f.col("message.persistent").alias("persistent"),
            f.col("message.sizes_bytes").alias("size_bytes"),
            f.col("message.content_digests").alias("content_digest"),
            f.expr("get(headers, put_index)").alias("header"),
            f.get_json_object(f.expr("get(headers, put_index)"), "$.g").alias("group"),
            (f.col("first_sequence") + f.col("put_index")).alias("sequence"),
            "numbered_position",
            "numbered_late",
            "enqueued_at",
            "unit_end",
            "unit_position",
            "queue_deleted",
        )
    )
    in_unit = f.col("group").isNotNull() & f.col("unit_of_work").isNotNull()
    each = each.withColumn("in_unit_of_work", in_unit)
    return with_lifetimes(each, facts.timeline, facts.directory, timed=facts.timed)


def messages_table(
    facts: Facts, each: DataFrame, deliveries: DataFrame, copies: DataFrame
) -> DataFrame:
    """Every message and what became of it; of a topic message, what its copies came to."""
    keys = MESSAGE
    taken = settled_by(deliveries.where("subscription IS NULL"), keys, timed=facts.timed)
    # The copy that went last decides. At one place what is due comes first (once the time of a
    # message is over, no copy is dropped); then the entry consumes or gives back, ends
    # subscriptions, what follows to an error destination goes, and what had expired before it was
    # numbered.
    order = f.expr(
        "CASE WHEN fate_due THEN 0 WHEN fate = 'dropped' AND NOT on_return THEN 2 "
        "WHEN fate = 'moved' AND NOT on_return THEN 3 "
        "WHEN fate = 'expired' AND NOT on_return THEN 4 ELSE 1 END"
    ).alias("order")
    # A topic counts what was removed by hand as dropped.
    fate = f.when(f.col("fate") == "removed", "dropped").otherwise(f.col("fate")).alias("fate")
    end = f.struct("fate_position", order, fate)
    by_message = copies.groupBy(*MESSAGE).agg(
        f.count("*").alias("copies"),
        f.sum("deliveries").alias("deliveries"),
        f.sum("backout_count").alias("backout_count"),
        f.max("held").alias("held"),
        f.max(f.expr("fate = 'resident'")).alias("resident"),
        f.max(end).alias("last"),
    )
    removals = [
        (one.queue, one.created, one.sequence, one.position)
        for one in facts.directory.corrections
        if one.action == "REMOVE"
    ]
    removed = each.sparkSession.createDataFrame(
        removals, "queue string, queue_created long, sequence long, removed_position long"
    )
    topic = f.col("queue").startswith("topic:")
    of_queues = (
        each.where(~topic)
        .join(taken, keys, how="left")
        .join(f.broadcast(removed), ["queue", "queue_created", "sequence"], how="left")
    )
    if facts.walk is not None:
        over = expiries_in(facts.walk).where("holder = -1").drop("holder")
        of_queues = of_queues.join(over, MESSAGE, how="left")
    of_topics = each.where(topic).join(by_message, MESSAGE, how="left")
    queues = _with_fate(of_queues).withColumn("copies", f.lit(None).cast("long"))
    none = f.lit(False)
    topics = _topic_fates(of_topics).withColumn("on_return", none).withColumn("fate_due", none)
    queues = delayed_at_last(facts.walk, queues, MESSAGE)
    return queues.unionByName(_moved_to(topics.withColumn("delayed", none)))


def _moved_to(messages: DataFrame) -> DataFrame:
    """With where each went on to, if it did; of a topic's, its copies tell that."""
    if "moved_to" in messages.columns:
        return messages
    return messages.withColumn("moved_to", f.lit(None).cast("string")).withColumn(
        "moved_to_sequence", f.lit(None).cast("long")
    )


def _ends(fate: Column, where: Column) -> tuple[Column, Column]:
    """Fate and its position of what has a number as given; what has none was rolled back."""
    unnumbered = f.col("numbered_position").isNull()
    given = f.when(unnumbered & (f.col("unit_end") == "open"), "uncommitted")
    rolled = unnumbered & (f.col("unit_end") != "open")
    return (
        given.when(unnumbered, "rolled back").otherwise(fate),
        f.when(rolled, f.col("unit_position")).when(~unnumbered, where),
    )


def _topic_fates(messages: DataFrame) -> DataFrame:
    """A topic message stays while a subscription has it and goes as its last copy (SEQ-17)."""
    gone = f.col("queue_deleted").isNotNull()
    # What the last subscriptions had went with the topic, not before it.
    with_it = f.col("last.fate_position") == f.col("queue_deleted")
    purged = gone & with_it & (f.col("last.fate") == "dropped")
    fate = (
        f.when(f.coalesce("copies", f.lit(0)) == 0, "dropped")
        .when(f.col("resident"), f.when(gone, "purged").otherwise("resident"))
        .when(purged, "purged")
        .otherwise(f.col("last.fate"))
    )
    where = (
        f.when(f.coalesce("copies", f.lit(0)) == 0, f.col("numbered_position"))
        .when(f.col("resident"), f.col("queue_deleted"))
        .otherwise(f.col("last.fate_position"))
    )
    told, at = _ends(fate, where)
    messages = messages.withColumn("uncounted", f.lit(None).cast("long"))
    return filled(messages.withColumn("fate", told).withColumn("fate_position", at)).drop(
        "queue_deleted", "resident", "last"
    )


def _with_fate(messages: DataFrame) -> DataFrame:
    """What became of each message of a queue, and at which position."""
    messages = with_expiry(messages)
    if "ended_as" not in messages.columns:
        messages = messages.withColumn("ended_as", f.lit("expired"))
    removed = f.col("removed_position").isNotNull()
    consumed = f.col("consumed_position").isNotNull()
    over = expired("queue_deleted")
    fate = (
        f.when(removed, "removed")
        .when(over, f.col("ended_as"))
        .when(consumed, "consumed")
        .when(f.col("queue_deleted").isNotNull(), "purged")
        .otherwise("resident")
    )
    where = f.coalesce(
        "removed_position",
        f.when(over, f.col("expired_position")),
        "consumed_position",
        "queue_deleted",
    )
    told, at = _ends(fate, where)
    # By its time, by hand, or because it came back too often.
    by_rule = f.coalesce(over, f.lit(False))
    return filled(
        _moved_to(messages)
        .withColumn("fate", told)
        .withColumn("fate_position", at)
        .withColumn("birth_position", born(f.col("fate_position")))
        .withColumn("on_return", by_rule & ~removed & f.col("on_return"))
        .withColumn("fate_due", by_rule & ~removed & f.col("expired_due"))
    ).drop(
        *("queue_deleted", "removed_position", "consumed_position"),
        *("expired_position", "expired_due", "ended_as"),
    )
