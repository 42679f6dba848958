"""The set-based tables: Spark written from PROTOCOL.md, sharing no code with the fold.

`messages` has a row per message put, and one for each queue or topic that it was moved to; `copies`
one per topic message and subscription that got it, `groups` one per queue and group id,
`subscriptions`, `deliveries` and `units_of_work` what they say. Puts, units of work,
acknowledgements and sequence numbers come from the operations alone; `deliveries` takes what the
Delivered outcomes claim, for the audit to check against the operations.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from ledgermq_spark.derivation.by_hand import HANDLED
from ledgermq_spark.derivation.copies import copies_table, subscriptions_table
from ledgermq_spark.derivation.derive import Facts, Store, claims_of, derive_acts, ended_by_deadline
from ledgermq_spark.derivation.directory import Directory
from ledgermq_spark.derivation.fifo_turns import OUT_OF_TURN
from ledgermq_spark.derivation.group_steps import GROUP_REASONS, MATCH_REASON
from ledgermq_spark.derivation.groups import groups_table
from ledgermq_spark.derivation.late import Late, late_replies
from ledgermq_spark.derivation.messages import each_message, messages_table
from ledgermq_spark.derivation.puts import lifetimes_frame, numbered_puts, puts_table
from ledgermq_spark.derivation.situations import Scanned, directory_from
from ledgermq_spark.derivation.timeline import timeline
from ledgermq_spark.derivation.turns import queue_refusals
from ledgermq_spark.derivation.walked import needs_walk, stays_of, walk_of, with_delays, with_stays

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


TABLES = ("messages", "copies", "subscriptions", "groups", "deliveries", "units_of_work")
# What the tables call a destination: a queue by its name alone.
STORE = "regexp_replace(destination, '^queue:', '')"

# Why there is no room for a put, in the storage or in a quota.
NO_ROOM = ("storage-full", "quota-exceeded", "commit-waiting")
# Operations that let a queue refuse what is settled out of turn.
PROTECTED = """settings LIKE '%"fifo_mode":"PROTECTED"%'"""
# Most outcomes say nothing of where their messages were before, or of groups.
OR_NULLS = "coalesce({}, transform(sequences, one -> CAST(NULL AS STRING)))"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """The tables, and the facts that they were made of."""

    messages: DataFrame
    copies: DataFrame
    subscriptions: DataFrame
    groups: DataFrame
    deliveries: DataFrame
    units_of_work: DataFrame
    puts: DataFrame
    facts: Facts


def build_tables(
    store: Store,
    operations: DataFrame,
    outcomes: DataFrame,
    rebuilt: DataFrame | None = None,
) -> Tables:
    """Build the tables of one queue manager from its decoded operations and recorded outcomes.

    Args:
        store: Where intermediate results are kept.
        operations: Rows of `rows.OPERATION_COLUMNS`, positions without a gap.
        outcomes: Rows of `read_log.RECORDED_COLUMNS`, repeats included.
        rebuilt: Outcomes of a rebuild, for `late.late_replies`.
    """
    times = store.keep("timeline", timeline(operations))
    walks = needs_walk(operations, times)
    timed = walks or not operations.where("timed").isEmpty()
    late = late_replies(operations, outcomes, rebuilt)
    log = _Log(
        operations=operations,
        outcomes=outcomes,
        claims=claims_of(late.without(outcomes), timed=timed),
        late=late,
        times=times,
        timed=timed,
        grouped=not operations.where("grouped").isEmpty(),
        walks=walks,
        room=_told_refusals(operations, late.without(outcomes), NO_ROOM),
    )
    if not log.grouped and operations.where(PROTECTED).isEmpty():
        return _assemble(store, *_facts(store, log, {}))
    # What the outcomes tell is but where to begin: a decision rests on earlier positions only, so
    # whatever agrees with itself is right.
    refusals = _told_refusals(
        operations, late.without(outcomes), (*GROUP_REASONS, MATCH_REASON, OUT_OF_TURN)
    )
    while True:
        tables = _assemble(store, *_facts(store, log, refusals))
        found = queue_refusals(tables, outcomes)
        if found == refusals:
            return tables
        refusals = found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Log:
    """What the tables are made of."""

    operations: DataFrame
    outcomes: DataFrame
    claims: DataFrame
    times: DataFrame
    timed: bool
    grouped: bool
    walks: bool
    room: dict[int, str]
    late: Late


def _told_refusals(
    operations: DataFrame, outcomes: DataFrame, reasons: tuple[str, ...]
) -> dict[int, str]:
    """Which operations the outcomes say were refused with certain reasons, repeats or not."""
    refused = outcomes.where("kind = 'Refused'").where(f.col("reason").isin(*reasons))
    asked = operations.where("kind IN ('Put', 'Get', 'Acknowledge', 'Commit')").select("position")
    rows = refused.join(asked, "position", how="left_semi").select("position", "reason")
    return {row["position"]: row["reason"] for row in rows.collect()}


def _facts(store: Store, log: _Log, refusals: dict[int, str]) -> tuple[Facts, DataFrame, DataFrame]:
    """What operations and claims came to, with the puts and the deliveries."""
    operations, claims, times = log.operations, log.claims, log.times
    told = Directory(queue_refusals=refusals, room_refusals=log.room, waiting=log.late.waiting)
    directory = told
    for number in count():
        raw = store.keep(
            f"scan-{number}", derive_acts(operations, claims, times, directory, log.late)
        )
        acts = ended_by_deadline(raw, times, partial(store.keep, f"acts-{number}"))
        puts = puts_table(acts)
        held = deliveries_table(claims, acts)
        facts = Facts(
            operations=operations,
            timeline=times,
            claims=claims,
            acts=acts,
            directory=directory,
            timed=log.timed,
            grouped=log.grouped,
        )
        if log.walks:
            facts = replace(facts, walk=_walk(store, f"walk-{number}", facts, puts, held, log))
        found = directory_from(Scanned(store=store, facts=facts, puts=puts), held)
        found.queue_refusals, found.room_refusals = told.queue_refusals, told.room_refusals
        found.waiting = told.waiting
        settled = found.bearing() == directory.bearing()
        if log.walks:
            settled = settled and found.whole() == directory.whole()
        directory = found
        # Every round settles the earliest decision that was open, so this ends.
        if settled:
            break
    return replace(facts, directory=directory), puts, held


def _walk(
    store: Store, name: str, facts: Facts, puts: DataFrame, held: DataFrame, log: _Log
) -> DataFrame:
    """Where messages were, with the directory known so far."""
    lifetimes = lifetimes_frame(store.spark, facts.directory.lifetimes)
    each = each_message(facts, numbered_puts(puts, lifetimes, facts.timeline))
    in_turn = facts.acts.where("what = 'act' AND reason IS NULL").select("position")
    handled = facts.operations.where(f.col("kind").isin(*HANDLED))
    handled = handled.select("position", "settings").join(in_turn, "position", how="inner")
    stamps = facts.operations.select("position", "append_time_us", "trusted")
    times = facts.timeline.join(stamps, "position", how="inner")
    late = with_delays(held, facts.operations, facts.acts)
    walk = walk_of(each, late, log.outcomes, handled, facts.acts, times, facts.directory)
    return store.keep(name, walk)


def _assemble(store: Store, facts: Facts, puts: DataFrame, held: DataFrame) -> Tables:
    spark, directory = store.spark, facts.directory
    lifetimes = lifetimes_frame(spark, directory.lifetimes)
    receivers = spark.createDataFrame(
        [(one.session, one.consumer, one.subscription) for one in directory.receptions],
        "session long, consumer long, subscription long",
    )
    numbered = store.keep("puts", numbered_puts(puts, lifetimes, facts.timeline))
    placed = (
        _in_lifetime(held, lifetimes, facts.timeline)
        .join(f.broadcast(receivers), ["session", "consumer"], how="left")
        .drop("queue_deleted", "settled_deadline")
    )
    deliveries = store.keep("deliveries", stays_of(placed, facts.walk))
    put = each_message(facts, numbered)
    each = store.keep("each", with_stays(put, facts.walk, lifetimes))
    copies = store.keep("copies", copies_table(each, facts, deliveries))
    messages = store.keep("messages", messages_table(facts, each, deliveries, copies))
    subscriptions = store.keep("subscriptions", subscriptions_table(copies, facts.directory))
    groups = store.keep(
        "groups", groups_table(messages if facts.grouped else messages.where("false"))
    )
    units = store.keep("units_of_work", _units_of_work(facts))
    return Tables(
        messages=messages,
        copies=copies,
        subscriptions=subscriptions,
        groups=groups,
        deliveries=deliveries,
        units_of_work=units,
        puts=numbered,
        facts=facts,
    )


def write_tables(tables: Tables, directory: Path) -> list[Path]:
    """Write the tables as Parquet below a directory; returns where."""
    written = []
    for name in TABLES:
        place = directory / name
        getattr(tables, name).write.mode("overwrite").parquet(str(place))
        written.append(place)
    return written


def deliveries_table(claims: DataFrame, acts: DataFrame) -> DataFrame:
    """Claimed deliveries, one row per message, with how each was settled (without queue times)."""
    each = claims.select(
        "session",
        "connection",
        "consumer",
        f.expr(STORE).alias("queue"),
        "position",
        "index",
        "phase",
        "first_delivery",
        "in_doubt",
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
                *(f.expr(OR_NULLS.format(name)).alias(name) for name in ("origins", "groups")),
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
        "in_doubt",
        f.col("message.sequences").alias("sequence"),
        f.col("message.put_positions").alias("put_position"),
        f.col("message.put_indexes").alias("put_index"),
        f.col("message.message_ids").alias("message_id"),
        f.col("message.priorities").alias("priority"),
        f.col("message.persistent").alias("persistent"),
        f.col("message.backout_counts").alias("backout_count"),
        f.col("message.enqueued_ats").alias("enqueued_at"),
        f.col("message.content_digests").alias("content_digest"),
        f.col("message.origins").alias("origin"),
        f.col("message.groups").alias("group"),
    )
    settled = acts.where("what = 'settled'").select(
        "session",
        f.explode(f.sequence("first", "last")).alias("delivery"),
        f.col("position").alias("settled_position"),
        f.col("kind").alias("how"),
        f.col("flag").alias("seen"),
        f.col("text").alias("blame"),
        f.col("due").alias("settled_due"),
        f.col("deadline").alias("settled_deadline"),
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
