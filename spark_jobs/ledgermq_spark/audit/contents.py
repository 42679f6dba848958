"""Contents as the lanes delivered them against contents as they were put.

The fold keeps no contents: what a worker delivered is held against the Put itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from ledgermq_spark.audit.findings.evidence import Evidence, hexadecimal, shown

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

EVIDENCE_MAX = 200
PLACE = ("put_position", "put_index")


def altered_contents(operations: DataFrame, recorded: DataFrame) -> list[Evidence]:
    """Deliveries on the lanes whose content or header is not that of the Put that they name."""
    puts = operations.where("kind = 'Put'").select(
        f.col("position").alias("put_position"),
        f.posexplode("content_digests").alias("put_index", "put_digest"),
    )
    told = recorded.where("kind = 'Delivered'").select(
        "position",
        "index",
        "session",
        "destination",
        f.explode(
            f.arrays_zip("put_positions", "put_indexes", "content_digests", "message_ids")
        ).alias("one"),
    )
    told = told.select(
        "position",
        "index",
        "session",
        "destination",
        f.col("one.put_positions").alias("put_position"),
        f.col("one.put_indexes").alias("put_index"),
        f.col("one.content_digests").alias("digest"),
        f.col("one.message_ids").alias("message_id"),
    )
    rows = (
        told.join(puts, list(PLACE), how="inner")
        .where("digest <> put_digest")
        .dropDuplicates(["position", "index", *PLACE])
        .orderBy("position", "index", *PLACE)
        .limit(EVIDENCE_MAX)
        .collect()
    )
    return [
        Evidence(
            kind="altered outcome",
            source="outcomes",
            summary=f"what was delivered is not what was put at position {row['put_position']}",
            queue=(row["destination"] or "").removeprefix("queue:"),
            message_id=hexadecimal(row["message_id"]),
            position=row["position"],
            index=row["index"],
            session=row["session"],
            field="content_digest",
            expected=shown(row["put_digest"]),
            found=shown(row["digest"]),
        )
        for row in rows
    ]
