"""How things stood where administration asked for something, read off the session scan and puts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as f

from ledgermq_spark.administration import read_directory
from ledgermq_spark.destinations import store_of
from ledgermq_spark.directory import AdministrationRow, Directory, Situation
from ledgermq_spark.moments import connection_rows, consumer_rows, vanished_puts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["directory_from"]

KINDS = (
    *("CreateQueue", "AlterQueue", "DeleteQueue", "AlterQueueManager", "Upgrade", "Correct"),
    *("CreateTopic", "DeleteTopic", "CreateTemporary", "Unsubscribe"),
)
DELETES = ("DeleteQueue", "DeleteTopic")
FLAGS = ("no_local", "durable", "shared")
TEXTS = ("action", "actor", "why", "client_id", "selector", "subscription")


def directory_from(
    operations: DataFrame,
    acts: DataFrame,
    puts: DataFrame,
    deliveries: Callable[[], DataFrame],
) -> Directory:
    """Read the next round's directory off a scan that was made with the one known so far.

    `deliveries` makes the table of claimed deliveries; it is asked only where something was
    deleted or corrected, or somebody subscribed.
    """
    rows = _asked(operations, acts)
    in_turn = acts.where("what = 'act' AND reason IS NULL")
    uses = in_turn.where("kind IN ('Put', 'OpenConsumer')").select("queue", "position")
    # A temporary one is never made by its use.
    uses = uses.where("NOT regexp_like(queue, '^(topic:)?temporary/')")
    deletes = [one for one in rows if one.kind in DELETES]
    rows.extend(_first_uses(uses, deletes))
    corrects = [one for one in rows if one.kind == "Correct"]
    temporaries = any(one.kind == "CreateTemporary" for one in rows)
    kept = None
    if any(one.kind == "OpenConsumer" for one in rows):
        kept = deliveries()
        rows.extend(consumer_rows(acts, kept))
    rows.extend(connection_rows(operations, acts, always=kept is not None or temporaries))
    situations: dict[int, Situation] = {}
    if deletes or corrects:
        kept = deliveries() if kept is None else kept
        situations = _at_deletes(acts, puts, kept, rows) if deletes else {}
    if kept is not None and corrects:
        # Which queue of a name a Correct means, the deletions decide.
        known = read_directory(rows, situations)
        situations |= _at_corrects(puts, kept, corrects, known)
    found = read_directory(rows, situations)
    if temporaries:
        found.vanished.extend(vanished_puts(puts, found))
    return found


def _asked(operations: DataFrame, acts: DataFrame) -> list[AdministrationRow]:
    """Operations in turn that concern others, consumers of topics among them."""
    decided = acts.where("what = 'act'").where(
        "reason IS NULL OR reason IN ('subscription-differs', 'subscription-in-use') "
        "AND kind = 'OpenConsumer'"
    )
    opens = operations.where("kind = 'Open'").select(
        f.col("position").alias("session"),
        f.lower(f.hex("connection")).alias("connection"),
        "client_id",
    )
    found = (
        operations.where(
            f.col("kind").isin(*KINDS) | f.expr("kind = 'OpenConsumer' AND target LIKE 'topic:%'")
        )
        .drop("connection", "client_id")
        .join(decided.select("position"), "position", how="inner")
        .join(f.broadcast(opens), "session", how="left")
        .select(
            "position",
            "kind",
            "session",
            "connection",
            f.coalesce("target", f.lit("")).alias("queue"),
            "number",
            "description",
            "message_bytes_max",
            "unacknowledged_max",
            "flag",
            f.coalesce("consumer", f.lit(0)).alias("consumer"),
            *(f.coalesce(name, f.lit("")).alias(name) for name in TEXTS),
            *(f.coalesce(name, f.lit(False)).alias(name) for name in FLAGS),
        )
        .collect()
    )
    return [AdministrationRow(**row.asDict()) for row in found]


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


def _since(rows: list[AdministrationRow], asked: AdministrationRow) -> list[int]:
    """Where messages under a name may begin to count: other temporary ones may have borne it."""
    made = [
        one.position
        for one in rows
        if one.kind == "CreateTemporary" and one.position < asked.position
        if store_of(one.queue) == asked.queue
    ]
    return [-1, *made]


def _at_deletes(
    acts: DataFrame,
    puts: DataFrame,
    deliveries: DataFrame,
    rows: list[AdministrationRow],
) -> dict[int, Situation]:
    """What uses a queue or topic, and how many messages are under its name, before a deletion."""
    spark = acts.sparkSession
    deletes = [
        (one.queue, one.position, since)
        for one in rows
        if one.kind in DELETES
        for since in _since(rows, one)
    ]
    asked = f.broadcast(spark.createDataFrame(deletes, "queue string, asked long, since long"))
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
        .select("asked", "since", f.lit(1).cast("long").alias("in_use"), f.lit(0).alias("count"))
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
        .where("at < asked AND at > since")
        .select("asked", "since", f.lit(0).cast("long").alias("in_use"), "count")
    )
    found = (
        using.unionByName(standing)
        .groupBy("asked", "since")
        .agg(f.sum("in_use").alias("in_use"), f.sum("count").alias("unconsumed"))
        .collect()
    )
    situations: dict[int, Situation] = {}
    for row in found:
        one = situations.get(row["asked"], Situation())
        one = one._replace(in_use=one.in_use + row["in_use"])
        if row["since"] < 0:
            one = one._replace(unconsumed=row["unconsumed"])
        else:
            one = one._replace(since=(*one.since, (row["since"], row["unconsumed"])))
        situations[row["asked"]] = one
    return situations


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
