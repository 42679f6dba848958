"""Checks that what left for elsewhere came there, once, and in what order (INF-19)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from ledgermq_spark.audit.evidence import Evidence, hexadecimal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ledgermq_spark.derivation.tables import Tables


EVIDENCE_MAX = 200
STORE = "regexp_replace({}, '^queue:', '')"


def check_moves(tables: Tables) -> list[Evidence]:
    """Every message that went elsewhere came, with its number; the numbers of each have no gap."""
    found = _gaps(tables)
    if tables.facts.walk is not None:
        found.extend(_astray(tables))
    return found


def _astray(tables: Tables) -> list[Evidence]:
    """Moves that one side alone knows: what left, and what is said to have come."""
    went = _gone(tables.messages.where("copies IS NULL")).unionByName(_gone(tables.copies))
    # What was copied left nowhere.
    moved = f.get_json_object("origin", "$.reason") != "copied"
    came = tables.messages.where(moved).select(
        f.col("queue").alias("to"),
        f.col("sequence").alias("number"),
        f.expr(STORE.format("get_json_object(origin, '$.destination')")).alias("left"),
        f.get_json_object("origin", "$.sequence").cast("long").alias("left_number"),
        f.col("numbered_position").alias("at"),
        f.col("message_id").alias("came_id"),
    )
    keys = ["to", "number", "left", "left_number", "at"]
    rows = (
        went.groupBy(*keys)
        .agg(f.count("*").alias("leaving"), f.first("message_id").alias("message_id"))
        .join(
            came.groupBy(*keys).agg(
                f.count("*").alias("coming"), f.first("came_id").alias("came_id")
            ),
            keys,
            how="full_outer",
        )
        .where("NOT (leaving <=> coming)")
        .orderBy("at", *keys)
        .limit(EVIDENCE_MAX)
    )
    return [
        Evidence(
            kind="state mismatch",
            source="tables",
            summary=f"message {row['left_number']} of {row['left']} left {row['leaving'] or 0} "
            f"times to be number {row['number']} of {row['to']}, and came {row['coming'] or 0}",
            queue=row["to"],
            message_id=hexadecimal(row["message_id"] or row["came_id"]),
            position=row["at"],
            field="moves",
        )
        for row in rows.collect()
    ]


def _gone(frame: DataFrame) -> DataFrame:
    return frame.where("moved_to IS NOT NULL AND fate IN ('expired', 'moved')").select(
        f.expr(STORE.format("moved_to")).alias("to"),
        f.col("moved_to_sequence").alias("number"),
        f.col("queue").alias("left"),
        f.col("sequence").alias("left_number"),
        f.col("fate_position").alias("at"),
        "message_id",
    )


def _gaps(tables: Tables) -> list[Evidence]:
    """Queues and topics whose numbers are not 0, 1, 2 and so on, each given once (SEQ-03)."""
    rows = (
        tables.messages.where("sequence IS NOT NULL")
        .groupBy("queue", "queue_created")
        .agg(
            f.count("*").alias("numbers"),
            f.count_distinct("sequence").alias("distinct"),
            f.min("sequence").alias("first"),
            f.max("sequence").alias("last"),
            f.max("numbered_position").alias("at"),
        )
        .where("numbers != distinct OR first != 0 OR last != numbers - 1")
        .orderBy("queue", "queue_created")
        .limit(EVIDENCE_MAX)
    )
    return [
        Evidence(
            kind="state mismatch",
            source="tables",
            summary=f"{row['numbers']} messages have numbers {row['first']} to {row['last']}, "
            f"{row['distinct']} of them distinct",
            queue=row["queue"],
            position=row["at"],
            field="sequence",
        )
        for row in rows.collect()
    ]
