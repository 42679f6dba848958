"""How many messages a queue held where it was to be deleted, and when each of them expired.

Names pass from one queue to the next, and which deletions succeeded is not known here. So messages
are counted between the boundaries of a name (attempts to delete it, temporary queues made under
it), by where they were numbered and where they went; the sums are small, and `Contents` answers for
any queue that began at one of the boundaries or after it.

Something that is true from a *moment* on is true for every entry at or above it: what falls due at
an entry is over for that entry, what the entry itself did is so for the next one only.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from ledgermq_spark.lifetimes import settled_by, with_expiry, with_lifetimes

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["Contents", "contents_of", "expiries_of"]

MESSAGE = ["put_position", "put_index"]


@dataclass(slots=True)
class Contents:
    """Messages numbered under names, less those consumed and expired.

    `boundaries` are positions by name, rising; `changes` by name (since, from, change): of messages
    numbered after so many boundaries, how many more there were for all boundaries but so many.
    """

    boundaries: dict[str, list[int]] = field(default_factory=dict)
    changes: dict[str, list[tuple[int, int, int]]] = field(default_factory=dict)

    def standing(self, queue: str, created: int, position: int) -> int:
        """Messages of the queue of that name and creation before the entry at a boundary."""
        boundaries = self.boundaries.get(queue, [])
        since, until = bisect_right(boundaries, created), bisect_left(boundaries, position)
        changes = self.changes.get(queue, [])
        first = bisect_left(changes, (since,))
        return sum(change for _, start, change in changes[first:] if start <= until)


def contents_of(
    puts: DataFrame,
    deliveries: DataFrame,
    expiries: DataFrame | None,
    boundaries: Iterable[tuple[str, int]],
) -> Contents:
    """Count messages between the boundaries (name, position); `expiries` None: none expires."""
    found = Contents()
    for queue, position in sorted(set(boundaries)):
        found.boundaries.setdefault(queue, []).append(position)
    frame = puts.sparkSession.createDataFrame(
        list(found.boundaries.items()), "queue string, boundaries array<long>"
    )
    one_less = f.lit(-1).cast("long")
    steps = (
        puts.where("numbered_position IS NOT NULL")
        .select("queue", f.col("numbered_position").alias("since"), "count")
        .withColumn("moment", f.col("since") + 1)
        .unionByName(
            deliveries.where("settled IN ('acknowledged', 'committed')")
            .select("queue", f.col("settled_position").alias("since"), one_less.alias("count"))
            .withColumn("moment", f.col("since") + 1)
        )
    )
    if expiries is not None:
        over = f.col("numbered_position").alias("since")
        steps = steps.unionByName(expiries.select("queue", over, one_less.alias("count"), "moment"))
    rows = (
        steps.join(f.broadcast(frame), "queue", how="inner")
        .withColumn("since", _passed("since"))
        .withColumn("moment", _passed("moment"))
        .groupBy("queue", "since", "moment")
        .agg(f.sum("count").alias("change"))
        .orderBy("queue", "since", "moment")
    )
    for row in rows.collect():
        change = (row["since"], row["moment"], row["change"])
        found.changes.setdefault(row["queue"], []).append(change)
    return found


def _passed(name: str) -> Column:
    """How many boundaries come before a position."""
    return f.expr(f"size(filter(boundaries, one -> one < {name}))")


def expiries_of(
    operations: DataFrame, times: DataFrame, puts: DataFrame, deliveries: DataFrame
) -> DataFrame:
    """Messages of queues that expired, with the `moment` from which they were gone.

    What was consumed or removed while somebody held it did not expire; of what was removed or
    purged while nobody did, the moment tells when it would have.
    """
    headers = operations.where("kind = 'Put' AND timed").select("position", "headers")
    sent = times.select("position", f.col("state_time").alias("put_at"))
    each = (
        puts.where("numbered_position IS NOT NULL AND queue NOT LIKE 'topic:%'")
        .join(headers, "position", how="inner")
        .join(sent, "position", how="inner")
        .select(
            "queue",
            f.col("position").alias("put_position"),
            "put_at",
            "numbered_position",
            f.posexplode("headers").alias("put_index", "header"),
        )
        .withColumn("put_index", f.col("put_index").cast("long"))
    )
    expiring = with_lifetimes(each, times, timed=True).where("expiry_position IS NOT NULL")
    taken = settled_by(deliveries.where("queue NOT LIKE 'topic:%'"), MESSAGE, timed=True)
    moment = f.expr("if(expired_due, expired_position, expired_position + 1)").alias("moment")
    return (
        with_expiry(expiring.join(taken, MESSAGE, how="left"))
        .where("expired_position IS NOT NULL")
        .select("queue", *MESSAGE, "numbered_position", moment)
    )
