"""How things stood where administration asked for something, read off the session scan and puts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as f

from ledgermq_spark.derivation.administration import read_directory
from ledgermq_spark.derivation.contents import Contents, contents_of, expiries_of
from ledgermq_spark.derivation.derive import Facts, Store
from ledgermq_spark.derivation.destinations import store_of
from ledgermq_spark.derivation.directory import AdministrationRow, Directory, Situation
from ledgermq_spark.derivation.moments import connection_rows, consumer_rows, vanished_puts
from ledgermq_spark.derivation.puts import lifetimes_frame, numbered_puts
from ledgermq_spark.derivation.walked import MESSAGE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


KINDS = (
    *("CreateQueue", "AlterQueue", "DeleteQueue", "AlterQueueManager", "Upgrade", "Correct"),
    *("RollbackTransaction", "EndSession", "BackUpJournal"),
    *("CreateTopic", "AlterTopic", "DeleteTopic", "CreateTemporary", "Unsubscribe"),
)
DELETES = ("DeleteQueue", "DeleteTopic")
FLAGS = ("no_local", "durable", "shared")
TEXTS = ("action", "actor", "why", "client_id", "selector", "subscription")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scanned:
    """A log, and what a scan of its sessions with the directory known so far came to."""

    store: Store
    facts: Facts
    puts: DataFrame


def directory_from(log: Scanned, deliveries: DataFrame) -> Directory:
    """Read the next round's directory off a scan that was made with the one known so far.

    The table of claimed deliveries is made only where something was deleted or corrected, or
    somebody subscribed.
    """
    operations, acts, puts = log.facts.operations, log.facts.acts, log.puts
    rows = _asked(operations, acts)
    in_turn = acts.where("what = 'act' AND reason IS NULL")
    uses = in_turn.where("kind IN ('Put', 'OpenConsumer')").select(
        "queue", f.coalesce("applied", "position").alias("position")
    )
    # A temporary one is never made by its use.
    uses = uses.where("NOT regexp_like(queue, '^(topic:)?temporary/')")
    deletes = [one for one in rows if one.kind in DELETES]
    rows.extend(_first_uses(uses, deletes))
    if any(one.kind == "Upgrade" for one in rows):
        rows.extend(_offers(operations))
    corrects = [one for one in rows if one.kind == "Correct"]
    temporaries = any(one.kind == "CreateTemporary" for one in rows)
    consumers = any(one.kind == "OpenConsumer" for one in rows)
    kept = None
    if deletes or corrects or consumers:
        kept = log.store.keep("held", deliveries)
    if kept is not None and consumers:
        rows.extend(consumer_rows(acts, kept))
    rows.extend(connection_rows(operations, acts, always=consumers or temporaries))
    if kept is not None and (deletes or corrects):
        found = _decided(log, kept, rows)
    else:
        found = read_directory(rows, {})
    if temporaries:
        found.vanished.extend(vanished_puts(puts, found))
    return found


def _decided(log: Scanned, kept: DataFrame, rows: list[AdministrationRow]) -> Directory:
    """The directory of a log with deletions or corrections."""
    expiries = None
    facts = log.facts
    if facts.timed:
        made = expiries_of(facts, log.puts, kept)
        expiries = log.store.keep("expiries", made)
    deletes = [one for one in rows if one.kind in DELETES]
    situations: dict[int, Situation] = {}
    contents = Contents()
    if deletes:
        situations = _at_deletes(facts.acts, log.puts, kept, deletes)
        contents = contents_of(log.puts, kept, expiries, _boundaries(rows), facts.walk)
    known = read_directory(rows, situations, contents)
    corrects = [one for one in rows if one.kind == "Correct"]
    # Which queue of a name a Correct means, the deletions decide; and whether a queue was empty,
    # the corrections before. Each time round at least one more of them is right.
    while corrects:
        told = _at_corrects(log, kept, expiries, corrects, known)
        found = read_directory(rows, situations | told, contents)
        if found.lifetimes == known.lifetimes:
            return found
        known = found
    return known


def _boundaries(rows: list[AdministrationRow]) -> list[tuple[str, int]]:
    """Where queues of a name may begin or end: those asked about, and temporary ones."""
    deletes = [(one.queue, one.position) for one in rows if one.kind == "DeleteQueue"]
    names = {queue for queue, _ in deletes}
    made = [(store_of(one.queue), one.position) for one in rows if one.kind == "CreateTemporary"]
    return [*deletes, *(one for one in made if one[0] in names)]


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
            "group_affinity",
            "settings",
            "maximum_lifetime_ms",
            "flag",
            f.coalesce("consumer", f.lit(0)).alias("consumer"),
            *(f.coalesce(name, f.lit("")).alias(name) for name in TEXTS),
            *(f.coalesce(name, f.lit(False)).alias(name) for name in FLAGS),
        )
        .collect()
    )
    return [AdministrationRow(**row.asDict()) for row in found]


def _offers(operations: DataFrame) -> list[AdministrationRow]:
    """What versions workers offered."""
    found = operations.where("kind = 'VersionOffered'").select("position", "number").collect()
    return [AdministrationRow(row[0], "VersionOffered", "", number=row[1]) for row in found]


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
    acts: DataFrame, puts: DataFrame, deliveries: DataFrame, deletes: list[AdministrationRow]
) -> dict[int, Situation]:
    """What uses a queue or topic before a deletion."""
    spark = acts.sparkSession
    positions = [(one.queue, one.position) for one in deletes]
    asked = f.broadcast(spark.createDataFrame(positions, "queue string, asked long"))
    consumers = acts.where("what = 'consumer'").select(
        "queue", f.col("first").alias("begin"), f.col("position").alias("end")
    )
    open_puts = puts.where("unit IS NOT NULL").select(
        "queue", f.col("applied_position").alias("begin"), f.col("unit_position").alias("end")
    )
    # A delivery before the operation of its position is there when that operation is applied.
    in_flight = deliveries.select(
        "queue",
        f.when(f.col("phase") == 0, f.col("position") - 1)
        .otherwise(f.col("position"))
        .alias("begin"),
        f.col("settled_position").alias("end"),
    )
    rows = (
        consumers.unionByName(open_puts)
        .unionByName(in_flight)
        .join(asked, "queue", how="inner")
        .where("begin < asked AND (end IS NULL OR end > asked)")
        .groupBy("asked")
        .agg(f.count("*").alias("in_use"))
    )
    return {row["asked"]: Situation(in_use=row["in_use"]) for row in rows.collect()}


def _at_corrects(
    log: Scanned,
    deliveries: DataFrame,
    expiries: DataFrame | None,
    corrects: list[AdministrationRow],
    known: Directory,
) -> dict[int, Situation]:
    """Whether the message that a Correct names was resident then, and who held it."""
    asked = []
    for one in corrects:
        lifetime = known.lifetime_at(one.queue, one.position)
        if lifetime is not None:
            asked.append((one.position, one.queue, lifetime.created, one.number or 0))
    if not asked:
        return {}
    frame = f.broadcast(
        log.puts.sparkSession.createDataFrame(
            asked, "asked long, queue string, queue_created long, sequence long"
        )
    )
    held = frame.join(
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
        if row["queue_created"] <= row["delivered_position"]:
            claims.setdefault(row["asked"], []).append(row)
    moments = _numbered_before(log, expiries, frame, known)
    return {
        position: _message_situation(position, moment, claims.get(position, []))
        for position, moment in moments.items()
    }


def _numbered_before(
    log: Scanned, expiries: DataFrame | None, asked: DataFrame, known: Directory
) -> dict[int, int | None]:
    """Of each Correct whose message had its number by then: the moment at which it expired."""
    named = _named(log, asked, known)
    if expiries is None:
        named = named.withColumn("moment", f.lit(None).cast("long"))
    else:
        named = named.join(expiries.select(*MESSAGE, "moment"), MESSAGE, how="left")
    return {row["asked"]: row["moment"] for row in named.collect()}


def _named(log: Scanned, asked: DataFrame, known: Directory) -> DataFrame:
    """Which message a Correct means: the number of its queue, where that was given by then."""
    place = ["queue", "queue_created"]
    if log.facts.walk is not None:
        stays = log.facts.walk.where("what = 'numbered'").withColumnRenamed("position", "given")
        found = stays.join(asked, [*place, "sequence"], how="inner")
        before = "given < asked OR given = asked AND phase = 0"
        return found.where(before).select("asked", *MESSAGE)
    lifetimes = lifetimes_frame(log.puts.sparkSession, known.lifetimes)
    return (
        numbered_puts(log.puts, lifetimes, log.facts.timeline)
        .join(asked, place, how="inner")
        .where("numbered_position < asked AND sequence >= first_sequence")
        .where("sequence < first_sequence + count")
        .select(
            "asked",
            f.col("position").alias("put_position"),
            (f.col("sequence") - f.col("first_sequence")).alias("put_index"),
            f.lit(0).cast("long").alias("stay"),
        )
    )


def _message_situation(position: int, moment: int | None, claims: list[Any]) -> Situation:
    if moment is not None and moment <= position:
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
            return Situation(
                resident=True, session=row["session"], delivery=row["delivery"], expires=moment
            )
    return Situation(resident=True, expires=moment)
