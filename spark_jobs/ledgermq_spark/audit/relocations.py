"""Messages that were written again (PROTOCOL.md §22, H24): copies against what was put."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from ledgermq_spark.audit.evidence import Evidence, hexadecimal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame

    from ledgermq_spark.derivation.tables import Tables


EVIDENCE_MAX = 200
ACTOR_MAX, REASON_MAX, MESSAGES_MAX, PLACES_MAX = 128, 1_024, 1_000, 10_000
TOLD = (
    "put_positions array<long>, put_indexes array<long>, places array<array<array<long>>>, "
    "headers_max long"
)
FIELDS = ("message_id", "priority", "persistent", "size_bytes", "content_digest", "header")
Relocation = tuple[int, str, str]


def _entries(operations: DataFrame) -> DataFrame:
    told = f.from_json("settings", TOLD).alias("told")
    return operations.where("kind = 'Relocate'").select("*", told)


def _each(frame: DataFrame, *more: str) -> DataFrame:
    """A row for each message that stands in entries, with its index there."""
    fields = ("message_ids", "priorities", "persistent", "sizes_bytes", "headers_bytes")
    every = f.arrays_zip(*fields, "content_digests", *(f.col(one) for one in more))
    each = frame.select(
        "position",
        f.posexplode(every).alias("at", "one"),
        f.expr("get(headers, at)").alias("header"),
    )
    return each.select(
        "position",
        f.col("at").cast("long").alias("at"),
        f.col("one.message_ids").alias("message_id"),
        f.col("one.priorities").alias("priority"),
        f.col("one.persistent").alias("persistent"),
        f.expr("one.sizes_bytes + one.headers_bytes").alias("size_bytes"),
        f.col("one.content_digests").alias("content_digest"),
        "header",
        *(f.col(f"one.{name.rpartition('.')[2]}") for name in more),
    )


def _copies(operations: DataFrame) -> DataFrame:
    return (
        _each(_entries(operations), "told.put_positions", "told.put_indexes", "told.places")
        .withColumnRenamed("put_positions", "put_position")
        .withColumnRenamed("put_indexes", "put_index")
    )


def altered_copies(operations: DataFrame, outcomes: DataFrame) -> list[Evidence]:
    """Copies that are not what was put, as far as that is on the log; of Relocates that count.

    `outcomes` are those that follow from the operations.
    """
    if operations.where("kind = 'Relocate'").isEmpty():
        return []
    counting = outcomes.where("kind = 'Administered'").select("position")
    copies = _copies(operations).join(counting, "position", how="left_semi")
    wanted = copies.select(f.col("put_position").alias("position")).distinct()
    puts = _each(
        operations.where("kind = 'Put'").join(f.broadcast(wanted), "position", how="left_semi")
    )
    puts = puts.select(
        f.col("position").alias("put_position"),
        f.col("at").alias("put_index"),
        *(f.col(name).alias(f"put_{name}") for name in FIELDS),
    )
    differs = " OR ".join(f"NOT ({name} <=> put_{name})" for name in FIELDS)
    rows = (
        copies.join(puts, ["put_position", "put_index"], how="inner")
        .where(differs)
        .orderBy("position", "at")
        .limit(EVIDENCE_MAX)
        .collect()
    )
    return [
        Evidence(
            kind="altered copy",
            source="operations",
            summary=f"what was written again is not what was put at position {row['put_position']}",
            message_id=hexadecimal(row["put_message_id"]),
            position=row["position"],
            index=row["at"],
            field=next(one for one in FIELDS if row[one] != row[f"put_{one}"]),
        )
        for row in rows
    ]


def relocation_refusals(tables: Tables) -> list[tuple[int, str]]:
    """Positions and reasons of the Relocates in turn that are refused."""
    facts = tables.facts
    in_turn = facts.acts.where("what = 'act' AND reason IS NULL").select("position")
    entries = _entries(facts.operations).join(in_turn, "position", how="left_semi")
    if entries.isEmpty():
        return []
    places = "aggregate(told.places, 0L, (sum, one) -> sum + size(one))"
    wrong = (
        f.when(~f.length("actor").between(1, ACTOR_MAX), "reason-invalid")
        .when(~f.length("why").between(1, REASON_MAX), "reason-invalid")
        .when(~f.size("message_ids").between(1, MESSAGES_MAX), "message-invalid")
        .when(f.expr(f"{places} > {PLACES_MAX} OR told.headers_max > 1"), "message-invalid")
    )
    checked = entries.withColumn("wrong", wrong)
    found = [
        (row["position"], row["wrong"])
        for row in checked.where("wrong IS NOT NULL").select("position", "wrong").collect()
    ]
    differing = _differing(tables, checked.where("wrong IS NULL").drop("wrong", "told"))
    return [*found, *((row["position"], "message-differs") for row in differing.collect())]


def _differing(tables: Tables, entries: DataFrame) -> DataFrame:
    """Relocates of which a copy is not of the message that was at its place."""
    fields = ("message_id", "priority", "persistent", "size_bytes")
    stays = _stays(tables.messages.where("copies IS NULL"), "queue_created", fields).unionByName(
        _stays(tables.copies, "subscription", fields)
    )
    each = _copies(entries).withColumn("place", f.explode("places"))
    each = each.withColumn("created", f.expr("place[0]")).withColumn("number", f.expr("place[1]"))
    differs = " OR ".join(f"NOT ({name} <=> put_{name})" for name in fields)
    there = "numbered < position AND (gone IS NULL OR gone > position)"
    keys = ["created", "number", "put_position", "put_index"]
    joined = each.join(stays, keys, how="inner").where(there)
    return joined.where(differs).select("position").distinct()


def _stays(frame: DataFrame, store: str, fields: tuple[str, ...]) -> DataFrame:
    return frame.select(
        f.col(store).alias("created"),
        f.col("sequence").alias("number"),
        "put_position",
        "put_index",
        f.col("numbered_position").alias("numbered"),
        f.col("fate_position").alias("gone"),
        *(f.col(name).alias(f"put_{name}") for name in fields),
    )


def relocations_of(tables: Tables, put_position: int, put_index: int) -> Iterator[Relocation]:
    """Where a message was written again, who asked for it and why, in the order of the log."""
    facts = tables.facts
    in_turn = facts.acts.where("what = 'act' AND reason IS NULL").select("position")
    entries = facts.operations.where("kind = 'Relocate'")
    refused = {position for position, _ in relocation_refusals(tables)}
    its = (f.col("put_position") == put_position) & (f.col("put_index") == put_index)
    rows = (
        _copies(entries)
        .where(its)
        .select("position")
        .join(in_turn, "position", how="left_semi")
        .join(entries.select("position", "actor", "why"), "position")
        .distinct()
        .orderBy("position")
    )
    for row in rows.collect():
        if row["position"] not in refused:
            yield (row["position"], row["actor"], row["why"])
