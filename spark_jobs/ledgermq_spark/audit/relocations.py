"""Messages that were written again (PROTOCOL.md §22, H24): copies against what was put."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from ledgermq_spark.audit.findings.evidence import Evidence, hexadecimal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


EVIDENCE_MAX = 200
TOLD = (
    "put_positions array<long>, put_indexes array<long>, places array<array<array<long>>>, "
    "headers_max long"
)
FIELDS = ("message_id", "priority", "persistent", "size_bytes", "content_digest", "header")


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
