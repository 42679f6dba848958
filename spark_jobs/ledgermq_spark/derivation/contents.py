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

from ledgermq_spark.derivation.derive import Facts
from ledgermq_spark.derivation.lifetimes import settled_by, with_expiry, with_lifetimes
from ledgermq_spark.derivation.walked import MESSAGE, expiries_in

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


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
    walk: DataFrame | None = None,
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
    if walk is not None:
        came = walk.where("what = 'numbered' AND stay > 0")
        moment = f.expr("if(phase = 0, position, position + 1)").alias("moment")
        one = f.lit(1).cast("long").alias("count")
        since = f.col("position").alias("since")
        steps = steps.unionByName(came.select("queue", since, one, moment))
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


def expiries_of(facts: Facts, puts: DataFrame, deliveries: DataFrame) -> DataFrame:
    """Messages of queues that expired, with the `moment` from which they were gone.

    What was consumed or removed while somebody held it did not expire; of what was removed or
    purged while nobody did, the moment tells when it would have, unless messages go elsewhere.
    """
    moment = f.expr("if(expired_due, expired_position, expired_position + 1)").alias("moment")
    if facts.walk is not None:
        stays = facts.walk.where("what = 'numbered'").select(
            *MESSAGE, "queue", f.col("position").alias("numbered_position")
        )
        over = expiries_in(facts.walk).where("holder = -1")
        told = stays.join(over, MESSAGE, how="inner")
        return told.select("queue", *MESSAGE, "numbered_position", moment)
    sent = facts.timeline.select("position", f.col("state_time").alias("put_at"))
    indexes = f.expr("sequence(0, size(message_ids) - 1)")
    headers = facts.operations.where("kind = 'Put'").select(
        "position", f.explode(indexes).alias("put_index"), "headers"
    )
    each = (
        puts.where("numbered_position IS NOT NULL AND queue NOT LIKE 'topic:%'")
        .join(headers, "position", how="inner")
        .join(sent, "position", how="inner")
        .select(
            "queue",
            f.col("position").alias("put_position"),
            f.col("put_index").cast("long").alias("put_index"),
            f.lit(0).cast("long").alias("stay"),
            "put_at",
            "numbered_position",
            f.expr("get(headers, put_index)").alias("header"),
        )
    )
    expiring = with_lifetimes(each, facts.timeline, facts.directory, timed=True)
    taken = settled_by(
        deliveries.where("queue NOT LIKE 'topic:%'").withColumn("stay", f.lit(0).cast("long")),
        MESSAGE,
        timed=True,
    )
    return (
        with_expiry(expiring.where("expiry_position IS NOT NULL").join(taken, MESSAGE, how="left"))
        .where("expired_position IS NOT NULL")
        .select("queue", *MESSAGE, "numbered_position", moment)
    )
