"""Checks what claimed deliveries say of their messages against the operations, field by field."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import Window
from pyspark.sql import functions as f

from ledgermq_spark.audit.evidence import Evidence, hexadecimal, shown
from ledgermq_spark.audit.relocations import relocation_refusals
from ledgermq_spark.derivation.destinations import is_topic
from ledgermq_spark.log.skipped import entry_refusals

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame

    from ledgermq_spark.derivation.tables import Tables


EVIDENCE_MAX = 200
FIELDS = (
    "queue",
    "sequence",
    "message_id",
    "priority",
    "persistent",
    "enqueued_at",
    "backout_count",
    "in_doubt",
    "content_digest",
    "origin",
    "group",
)
# A topic message is held by each of its subscriptions apart; -1 stands for a queue.
KEYS = ["put_position", "put_index", "stay", "holder"]
# What a delivery tells of those before it, and where that is worked out.
SETTLED = {"backout_count": "backed_out", "in_doubt": "was_lost"}
STRAYS = {
    "missing": ("lost", "no outcome delivers these numbers, later ones follow"),
    "repeated": ("duplicated", "an outcome delivers these numbers again"),
    "unit ended": ("unexpected", "an outcome delivers to a session whose unit of work was ended"),
    "no session": ("unexpected", "an outcome delivers to a session that is not open"),
}


def check_claims(tables: Tables) -> list[Evidence]:
    """Compare each claimed delivery with the put that it names; never put is unexpected.

    So is one of a topic message that its subscription never got. The backouts that a delivery
    tells are those that the operations settled before it; it is in doubt if a session was lost that
    held the message (H20).
    """
    before = (
        Window.partitionBy(*KEYS)
        .orderBy("position", "phase", "index", "offset")
        .rowsBetween(Window.unboundedPreceding, -1)
    )
    backed_out = f.coalesce(f.sum(f.when(f.col("seen"), 1).otherwise(0)).over(before), f.lit(0))
    lost = f.coalesce(f.max(f.col("blame").isNotNull()).over(before), f.lit(False))
    holder = f.coalesce("subscription", f.lit(-1))
    claimed = (
        tables.deliveries.withColumn("holder", holder)
        .withColumn("backed_out", backed_out)
        .withColumn("was_lost", lost)
    )
    if tables.facts.grouped:
        claimed = _in_doubt_together(tables, claimed)
    place = ("position", "index", "session")
    told = claimed.select(*KEYS, *place, f.struct(*FIELDS).alias("told"), *SETTLED.values())
    columns = [*KEYS, *(name for name in FIELDS if name not in SETTLED)]
    copies = tables.copies.withColumnRenamed("subscription", "holder").withColumn(
        "group", f.lit(None).cast("string")
    )
    of_queues = tables.messages.where("sequence IS NOT NULL AND queue NOT LIKE 'topic:%'")
    known = (
        of_queues.withColumn("holder", f.lit(-1).cast("long"))
        .select(*columns)
        .unionByName(copies.select(*columns))
    )
    put = f.struct(*(f.col(SETTLED.get(name, name)).alias(name) for name in FIELDS))
    rows = (
        told.join(known, KEYS, how="left")
        .withColumn("put", put)
        .where("NOT (put <=> told)")
        .select("position", "index", "session", "told", "put")
        .orderBy("position", "index")
        .limit(EVIDENCE_MAX)
        .collect()
    )
    return [one for row in rows for one in _unlike(row)]


def _in_doubt_together(tables: Tables, claimed: DataFrame) -> DataFrame:
    """Segments that were got complete are in doubt together, and the outcome with the last says so.

    Who was inside a logical message already got the rest of it segment by segment.
    """
    units = tables.facts.acts.where("what = 'together'").select(
        "session", f.col("last").alias("delivery"), f.col("first").alias("unit")
    )
    told = claimed.join(f.broadcast(units), ["session", "delivery"], how="left").withColumn(
        "unit", f.coalesce("unit", "delivery")
    )
    unit = Window.partitionBy("session", "unit")
    last = f.max("delivery").over(unit)
    doubtful = f.max("was_lost").over(unit) & (f.col("delivery") == last)
    in_outcome = Window.partitionBy("session", "unit", "position", "index")
    return (
        told.withColumn("doubtful", doubtful)
        .withColumn("was_lost", f.max("doubtful").over(in_outcome))
        .drop("unit", "doubtful")
    )


def _unlike(row: Any) -> Iterator[Evidence]:
    told, put = row["told"], row["put"]
    where = {
        "source": "claims",
        "queue": told["queue"],
        "message_id": hexadecimal(told["message_id"]),
        "position": row["position"],
        "index": row["index"],
        "session": row["session"],
    }
    if put["queue"] is None:
        summary = "the operations do not know this message as one that was put and numbered"
        if is_topic(told["queue"] or ""):
            summary = "the consumer's subscription never got this message"
        yield Evidence(kind="unexpected", summary=summary, **where)
        return
    for name in FIELDS:
        if told[name] != put[name]:
            yield Evidence(
                kind="altered outcome",
                summary=f"{name} of the delivered message is not what was put",
                field=name,
                expected=shown(put[name]),
                found=shown(told[name]),
                **where,
            )


def check_numbers(tables: Tables) -> list[Evidence]:
    """Delivery numbers rise by one within a session, and only an open session is given any."""
    rows = tables.facts.acts.where("what = 'stray'").orderBy("position").limit(EVIDENCE_MAX)
    found = []
    for row in rows.collect():
        kind, summary = STRAYS[row["kind"]]
        found.append(
            Evidence(
                kind=kind,
                source="claims",
                summary=f"{summary}: deliveries {row['first']} to {row['last']}",
                position=row["position"],
                session=row["session"],
            )
        )
    return found


def _of_own_entry(tables: Tables, refused: DataFrame) -> DataFrame:
    """Refusals but those of what waited: these come with another entry."""
    if not tables.facts.directory.waiting:
        return refused
    names = ["position", "session", "session_sequence"]
    own = refused.join(tables.facts.operations.select(*names), names, how="left_semi")
    # A retry at the entry that brings the answer is answered behind it.
    last = own.groupBy(*names).agg(f.max("index").alias("index"))
    own = own.join(last, [*names, "index"], how="left_semi")
    return own.unionByName(refused.where("session_sequence <= 0"))


def check_refusals(tables: Tables, expected: DataFrame) -> list[Evidence]:
    """Compare which operations the tables and the rebuild refuse, and why."""
    acts = tables.facts.acts.where("what = 'act'")
    refused = acts.where("reason IS NOT NULL AND reason != 'repeated'").select("position", "reason")
    disagrees = (
        tables.facts.operations.where("kind = 'TimeAgreed'")
        .join(tables.facts.timeline.where("NOT agreed").select("position"), "position")
        .select("position", f.lit("time-disagrees").alias("reason"))
    )
    unreadable = tables.facts.operations.where("kind = 'Unreadable'").select("position", "reason")
    spark = acts.sparkSession
    refusals = list(tables.facts.directory.refusals.items())
    if tables.facts.walk is not None:
        by_hand = tables.facts.walk.where("what = 'refused'").select("position", "origin")
        refusals.extend(tuple(row) for row in by_hand.collect())
    refusals.extend(relocation_refusals(tables))
    administrative = spark.createDataFrame(refusals, "position long, reason string")
    mine = refused.unionByName(disagrees).unionByName(unreadable).unionByName(administrative)
    mine = mine.unionByName(entry_refusals(tables.facts.operations))
    again = acts.where("reason = 'repeated'").select("position")
    other = (
        _of_own_entry(tables, expected.where("kind = 'Refused'"))
        .join(again, "position", how="left_anti")
        .select("position", f.col("reason").alias("rebuilt"), "session")
    )
    rows = (
        mine.join(other, "position", how="full_outer")
        .where("NOT (reason <=> rebuilt)")
        .orderBy("position")
        .limit(EVIDENCE_MAX)
        .collect()
    )
    return [
        Evidence(
            kind="state mismatch",
            source="tables",
            summary="tables and rebuild differ on whether, or why, the operation is refused",
            position=row["position"],
            session=-1 if row["session"] is None else row["session"],
            field="reason",
            expected=row["rebuilt"] or "applied",
            found=row["reason"] or "applied",
        )
        for row in rows
    ]
