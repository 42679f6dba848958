"""The pass over where messages were, on DataFrames: `walk_of`, and the tables' messages with it.

A log needs it if settings name where messages go, if there are delays or limits of redelivery, or
if it is longer than messages may live; any other is told by sets alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from functools import reduce
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from ledgermq_spark.derivation.by_hand import HANDLED
from ledgermq_spark.derivation.directory import Directory
from ledgermq_spark.derivation.puts import numbered_index, numbered_phase
from ledgermq_spark.derivation.settings import LIFETIME_MS_DEFAULT
from ledgermq_spark.derivation.stay import Stayed, WalkEvent
from ledgermq_spark.derivation.walk import Walk
from ledgermq_spark.log.rows import BYTES, FLAG, LONG, TEXT, arrow_batch, spark_schema

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column


# What is one message in one queue or topic.
MESSAGE = ["put_position", "put_index", "stay"]
GROUP_IN_HEADER = r',"g":\{[^}]*\}(,"k":true)?'
NAMES_DESTINATION = r'_destination":"[a-z]'
# Delays and limits that settings give, and those that a message asks for.
GIVES_REDELIVERY = r'"redelivery_(limit":[0-9]|delay_override_ms":[1-9]|steps":\[\{)'
ASKS_LIMIT = r'"r":[0-9]'
_KINDS = {
    "flag": FLAG,
    "uncounted": FLAG,
    "on_return": FLAG,
    "persistent": FLAG,
    "message_id": BYTES,
    **dict.fromkeys(("what", "queue", "text", "header", "connection", "client_id"), TEXT),
    **dict.fromkeys(("origin", "to"), TEXT),
}
EVENT_COLUMNS = tuple((name, _KINDS.get(name, LONG)) for name in WalkEvent._fields)
STAYED_COLUMNS = tuple((name, _KINDS.get(name, LONG)) for name in Stayed._fields)


def needs_walk(operations: DataFrame, times: DataFrame) -> bool:
    """Whether messages may go elsewhere, be delayed, or have lived for as long as they may."""
    if not operations.where(_redelivers()).isEmpty():
        return True
    by_hand = f.col("kind").isin(*HANDLED)
    if not operations.where(by_hand | f.col("settings").rlike(NAMES_DESTINATION)).isEmpty():
        return True
    shortest = operations.where("maximum_lifetime_ms > 0").agg(f.min("maximum_lifetime_ms"))
    least_ms = min(shortest.collect()[0][0] or LIFETIME_MS_DEFAULT, LIFETIME_MS_DEFAULT)
    low, high = (
        times.where("state_time >= 0").agg(f.min("state_time"), f.max("state_time")).collect()[0]
    )
    return low is not None and high - low >= least_ms * 1000


def _redelivers() -> Column:
    """Whether an operation gives or asks for a delay or a limit of redelivery."""
    asked = f.exists("headers", lambda header: header.rlike(ASKS_LIMIT))
    delayed = f.col("redelivery_delay_ms") > 0
    given = f.col("settings").rlike(GIVES_REDELIVERY)
    never = f.lit(False)
    return f.coalesce(delayed, never) | f.coalesce(given, never) | f.coalesce(asked, never)


def walk_of(
    each: DataFrame,
    held: DataFrame,
    outcomes: DataFrame,
    handled: DataFrame,
    acts: DataFrame,
    times: DataFrame,
    directory: Directory,
) -> DataFrame:
    """Goes through a log; rows of `walk.Stayed`.

    Args:
        each: Every message that was put, with its moments; its number is not looked at.
        held: Claimed deliveries with how each was settled, as `with_delays` tells them.
        outcomes: As recorded; where a session ended before an entry, they tell in which order.
        handled: Operations by hand that were in turn: position and settings.
        acts: What the scan of sessions told.
        times: State time and append time at every position.
        directory: What stood when.
    """
    entries = times.select(
        "position",
        f.lit(-1).alias("phase"),
        f.lit("entry").alias("what"),
        f.col("state_time").alias("time"),
        # A time stamp that nobody trusts begins nothing.
        f.when(f.col("trusted"), f.col("append_time_us")).alias("moment"),
    )
    numbered = each.where("numbered_position IS NOT NULL").select(
        f.col("numbered_position").alias("position"),
        numbered_phase().alias("phase"),
        numbered_index().alias("index"),
        (f.col("put_position") * 16384 + f.col("put_index")).alias("offset"),
        f.lit("numbered").alias("what"),
        "queue",
        "put_position",
        "put_index",
        f.coalesce("expires_at", f.lit(-1)).alias("moment"),
        f.coalesce("deliver_at", f.lit(-1)).alias("born_at"),
        "message_id",
        "priority",
        "persistent",
        "header",
        f.lower(f.hex("connection")).alias("connection"),
        "client_id",
    )
    delivered = held.select(
        *("position", "phase", "index", "offset", "queue", "put_position", "put_index"),
        *("sequence", "session", "delivery", "consumer"),
        f.lit("delivered").alias("what"),
    )
    by_hand = handled.select(
        "position",
        f.lit(1).alias("phase"),
        f.lit("handled").alias("what"),
        f.col("settings").alias("text"),
    )
    lost = _lost(outcomes)
    ended = _ended(acts, lost)
    parts = (entries, numbered, delivered, _settled(held, lost), ended, by_hand)
    events = reduce(DataFrame.unionByName, [_event(one) for one in parts])
    ordered = events.repartition(1).sortWithinPartitions("position", "phase", "index", "offset")
    return ordered.mapInArrow(_scan(directory), spark_schema(STAYED_COLUMNS))


def _lost(outcomes: DataFrame) -> DataFrame:
    """Which sessions were lost, or taken over, at which `settled_position` and index."""
    return (
        outcomes.where("kind = 'SessionEnded' AND session_sequence = 0")
        .groupBy("position", "session")
        .agg(f.min("index").alias("index"))
        .select(f.col("position").alias("settled_position"), "session", "index")
    )


def _ended(acts: DataFrame, lost: DataFrame) -> DataFrame:
    """Where sessions ended by their deadlines, behind what they gave back."""
    return (
        acts.where("what = 'ended' AND due")
        .select(f.col("position").alias("settled_position"), "session", "deadline")
        .join(f.broadcast(lost), ["settled_position", "session"], how="left")
        .select(
            f.col("settled_position").alias("position"),
            f.lit(0).alias("phase"),
            f.coalesce("index", f.lit(0)).alias("index"),
            (f.col("session") * 2**31 + (2**31 - 1)).alias("offset"),
            f.lit("ended").alias("what"),
            "session",
            f.col("deadline").alias("moment"),
        )
    )


def _settled(held: DataFrame, lost: DataFrame) -> DataFrame:
    """Where deliveries were settled, and how."""
    return (
        held.where("settled_position IS NOT NULL")
        .drop("index", "position")
        .join(f.broadcast(lost), ["settled_position", "session"], how="left")
        .select(
            f.col("settled_position").alias("position"),
            f.when(f.col("settled_due"), 0).otherwise(1).alias("phase"),
            f.when(f.col("settled_due"), f.coalesce("index", f.lit(0))).otherwise(0).alias("index"),
            (f.col("session") * 2**31 + f.col("delivery")).alias("offset"),
            f.lit("settled").alias("what"),
            "session",
            "delivery",
            f.coalesce("seen", f.lit(False)).alias("flag"),
            f.col("settled").alias("text"),
            f.col("settled_deadline").alias("moment"),
            (f.col("blame") == "uncounted").alias("uncounted"),
            "delay_ms",
        )
    )


def with_delays(held: DataFrame, operations: DataFrame, acts: DataFrame) -> DataFrame:
    """Deliveries with the redelivery delay that consumer, else session, ask for, in ms."""
    accepted = acts.where("what = 'act' AND reason IS NULL").select("position")
    asked = operations.where("redelivery_delay_ms >= 0").join(accepted, "position", how="inner")
    consumers = asked.where("kind = 'OpenConsumer'").select(
        "session", "consumer", f.col("redelivery_delay_ms").alias("consumer_delay_ms")
    )
    sessions = asked.where("kind = 'Open'").select(
        f.col("position").alias("session"), f.col("redelivery_delay_ms").alias("session_delay_ms")
    )
    return (
        held.join(f.broadcast(consumers), ["session", "consumer"], how="left")
        .join(f.broadcast(sessions), "session", how="left")
        .withColumn("delay_ms", f.coalesce("consumer_delay_ms", "session_delay_ms", f.lit(0)))
        .drop("consumer_delay_ms", "session_delay_ms")
    )


def _event(frame: DataFrame) -> DataFrame:
    have, otherwise = set(frame.columns), WalkEvent._field_defaults
    schema = dict(EVENT_COLUMNS)
    return frame.select(
        *(
            f.coalesce(
                (f.col(name) if name in have else f.lit(None)).cast(schema[name]),
                f.lit(otherwise.get(name, 0)).cast(schema[name]),
            ).alias(name)
            for name in WalkEvent._fields
        )
    )


def _scan(directory: Directory) -> Callable[[Iterable[Any]], Iterator[Any]]:
    # A plain copy travels to the task.
    told = {one.name: getattr(directory, one.name) for one in fields(directory)}

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        walk = Walk(Directory(**told))
        for batch in batches:
            columns = [column.to_pylist() for column in batch.columns]
            rows: list[Stayed] = []
            for values in zip(*columns, strict=True):
                rows.extend(walk.take(WalkEvent(*values)))
            yield arrow_batch(STAYED_COLUMNS, rows)
        yield arrow_batch(STAYED_COLUMNS, list(walk.finish()))

    return run


def with_stays(each: DataFrame, walk: DataFrame | None, lifetimes: DataFrame) -> DataFrame:
    """Every message once for each queue or topic that it was put or moved to."""
    none = f.lit(None)
    if walk is None:
        return (
            each.withColumn("stay", f.lit(0).cast("long"))
            .withColumn("origin", none.cast("string"))
            .withColumn("numbered_phase", numbered_phase())
            .withColumn("numbered_index", numbered_index())
            .drop("numbered_late")
        )
    stays = _stays(walk)
    gone = lifetimes.select(
        f.col("queue").alias("its_queue"),
        f.col("queue_created").alias("its_created"),
        f.col("queue_deleted").alias("its_deleted"),
    )
    found = each.join(stays, ["put_position", "put_index"], how="left").join(
        f.broadcast(gone), ["its_queue", "its_created"], how="left"
    )
    changed = _changed()
    moved = f.coalesce(f.col("its_stay") > 0, f.lit(False))
    return found.select(
        *(
            f.when(moved, changed[name]).otherwise(f.col(name)).alias(name)
            for name in each.columns
            if name in changed
        ),
        *(name for name in each.columns if name not in {*changed, "sequence", "numbered_late"}),
        f.col("its_sequence").alias("sequence"),
        f.coalesce("its_stay", f.lit(0)).cast("long").alias("stay"),
        "origin",
        f.coalesce("its_phase", f.lit(1)).alias("numbered_phase"),
        f.coalesce("its_index", f.lit(1)).cast("long").alias("numbered_index"),
    )


def _stays(walk: DataFrame) -> DataFrame:
    """What was numbered, and where what had been moved unborn was born."""
    stays = walk.where("what = 'numbered'").select(
        "put_position",
        "put_index",
        f.col("stay").alias("its_stay"),
        f.col("queue").alias("its_queue"),
        f.col("queue_created").alias("its_created"),
        f.col("sequence").alias("its_sequence"),
        f.col("position").alias("its_position"),
        f.col("phase").alias("its_phase"),
        f.col("index").alias("its_index"),
        f.col("time").alias("its_time"),
        f.col("expires_at").alias("its_end"),
        f.when(f.col("born_at") > f.col("time"), f.col("born_at")).alias("its_moment"),
        "origin",
    )
    # Of topics the copies are born; what was moved there is told with them.
    born = walk.where("what = 'born' AND holder = -1").select(
        "put_position",
        "put_index",
        f.col("stay").alias("its_stay"),
        f.col("position").alias("its_birth"),
    )
    return stays.join(born, ["put_position", "put_index", "its_stay"], how="left")


def _changed() -> dict[str, Column]:
    """What of a message is another where it was moved to; a topic has no groups."""
    to_topic = f.col("its_queue").startswith("topic:")
    bare = f.regexp_replace("header", GROUP_IN_HEADER, "")
    nothing = ("unit_of_work", "connection", "client_id")
    return {
        **dict.fromkeys((*nothing, "expiry_position", "expiry_due"), f.lit(None)),
        "queue": f.col("its_queue"),
        "queue_created": f.col("its_created"),
        "queue_deleted": f.col("its_deleted"),
        "numbered_position": f.col("its_position"),
        "enqueued_at": f.col("its_time"),
        "expires_at": f.when(f.col("its_end") >= 0, f.col("its_end")),
        "in_unit_of_work": f.lit(False),
        "deliver_at": f.col("its_moment"),
        "birth_position": f.col("its_birth"),
        "group": f.when(~to_topic, f.col("group")),
        "header": f.when(to_topic, bare).otherwise(f.col("header")),
    }


def expiries_in(walk: DataFrame) -> DataFrame:
    """Where stays expired or were ended by hand, how, and where their messages went."""
    ended = f.col("what").isin(
        "expired", "removed", "moved", "retried", "redelivery-limit", "group-parked", "dropped"
    )
    moved = f.col("what").isin("retried", "redelivery-limit", "group-parked")
    return walk.where(ended).select(
        *MESSAGE,
        f.when(moved, "moved").otherwise(f.col("what")).alias("ended_as"),
        "holder",
        f.col("position").alias("expired_position"),
        (f.col("phase") == 0).alias("expired_due"),
        "on_return",
        f.col("to").alias("moved_to"),
        f.col("to_sequence").alias("moved_to_sequence"),
    )


def delays_in(walk: DataFrame) -> DataFrame:
    """Where stays were delayed, and where they were offered again: `what` and the place."""
    return walk.where("what IN ('delayed', 'offered')").select(
        *MESSAGE, "holder", "what", "position", "phase", "index"
    )


def delayed_at_last(walk: DataFrame | None, messages: DataFrame, keys: list[str]) -> DataFrame:
    """Messages, or copies by `subscription`, with whether the last that is told is their delay."""
    if walk is None:
        return messages.withColumn("delayed", f.lit(False))
    place = f.struct("position", "phase", "index")
    last = delays_in(walk).groupBy(*MESSAGE, "holder").agg(f.max_by("what", place).alias("told"))
    if "subscription" in keys:
        last = last.withColumnRenamed("holder", "subscription")
    else:
        last = last.where("holder = -1").drop("holder")
    delayed = f.coalesce(f.col("told") == "delayed", f.lit(False))
    return messages.join(last, keys, how="left").withColumn("delayed", delayed).drop("told")


def stays_of(deliveries: DataFrame, walk: DataFrame | None) -> DataFrame:
    """Deliveries with the stay that each is of: by its number, else the first of its queue."""
    first = f.lit(0).cast("long")
    if walk is None:
        return deliveries.withColumn("stay", first)
    keys = ["put_position", "put_index", "queue", "queue_created"]
    known = (
        walk.where("what = 'numbered'")
        .groupBy(*keys)
        .agg(f.collect_list(f.struct("sequence", "stay")).alias("stays"))
    )
    same = f.expr("get(filter(stays, one -> one.sequence = sequence), 0).stay")
    least = f.expr("array_min(transform(stays, one -> one.stay))")
    return (
        deliveries.join(known, keys, how="left")
        .withColumn("stay", f.coalesce(same, least, first))
        .drop("stays")
    )
