"""Balancing totals per queue, and its depth over time, from the set-based tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as f

if TYPE_CHECKING:
    from ledgermq_spark.tables import Tables

__all__ = ["balances", "depth_over_time", "queue_totals"]

POINTS_MAX = 240
CHART_QUEUES_MAX = 8


def queue_totals(tables: Tables) -> list[dict[str, Any]]:
    """Totals of every queue that ever was, by name and creation.

    `put` = resident + consumed + removed + purged + rolled back + uncommitted, where `purged` went
    with their queue. `status` holds what a queue status says, as the tables see it.
    """
    fates = ("resident", "consumed", "removed", "purged", "rolled back", "uncommitted")
    counts = {
        (row["queue"], row["queue_created"]): row
        for row in tables.messages.groupBy("queue", "queue_created")
        .agg(
            f.count("*").alias("put"),
            *(
                f.count(f.when(f.col("fate") == fate, 1)).alias(fate.replace(" ", "_"))
                for fate in fates
            ),
            f.count(f.when(f.expr("fate = 'resident' AND held"), 1)).alias("in_flight"),
            f.count("sequence").alias("numbered"),
            f.sum("deliveries").alias("deliveries"),
            f.sum("backout_count").alias("backouts"),
        )
        .collect()
    }
    receivers = {
        row["queue"]: row["total"]
        for row in tables.facts.acts.where("what = 'consumer' AND position IS NULL")
        .groupBy("queue")
        .agg(f.count("*").alias("total"))
        .collect()
    }
    return [
        _total(one, counts.get((one.queue, one.created)), receivers)
        for one in sorted(tables.facts.directory.lifetimes)
    ]


COUNTED = (
    "put",
    "resident",
    "consumed",
    "removed",
    "purged",
    "rolled_back",
    "uncommitted",
    "in_flight",
    "numbered",
    "deliveries",
    "backouts",
)


def _total(lifetime: Any, row: Any, receivers: dict[str, int]) -> dict[str, Any]:
    counted = {name: 0 if row is None else int(row[name] or 0) for name in COUNTED}
    status = {
        "created_position": lifetime.created,
        "description": lifetime.description,
        "message_bytes_max": lifetime.message_bytes_max,
        "suspended": lifetime.suspended,
        "message_count": counted["resident"],
        "sent_and_committed": counted["consumed"],
        "removed_by_administration": counted["removed"],
        "next_sequence": counted["numbered"],
        "current": counted["resident"] - counted["in_flight"],
        "uncommitted_puts": counted["uncommitted"],
        "receivers": receivers.get(lifetime.queue, 0),
    }
    head = {
        "queue": lifetime.queue,
        "queue_created": lifetime.created,
        "queue_deleted": lifetime.deleted,
    }
    return head | counted | {"status": status, "balances": balances(counted)}


def balances(total: dict[str, int]) -> bool:
    """Whether a queue's totals add up: puts, and sequence numbers (SEQ-14)."""
    ends = ("resident", "consumed", "removed", "purged", "rolled_back", "uncommitted")
    numbered = ("resident", "consumed", "removed", "purged")
    return total["put"] == sum(total[name] for name in ends) and total["numbered"] == sum(
        total[name] for name in numbered
    )


def depth_over_time(tables: Tables) -> dict[str, list[tuple[int, int]]]:
    """Depth of the busiest queues as (time in µs, messages numbered and not yet gone)."""
    times = tables.facts.timeline.agg(f.min("state_time"), f.max("state_time")).collect()[0]
    low, high = times[0], times[1]
    if low is None:
        return {}
    width = max(1, (high - low) // POINTS_MAX + 1)
    moments = tables.facts.timeline.select(
        f.col("position").alias("at"), f.floor((f.col("state_time") - low) / width).alias("bucket")
    )
    numbered = tables.messages.where("sequence IS NOT NULL")
    steps = (
        numbered.groupBy("queue", f.col("numbered_position").alias("at"))
        .agg(f.count("*").alias("change"))
        .unionByName(
            numbered.where("fate_position IS NOT NULL")
            .groupBy("queue", f.col("fate_position").alias("at"))
            .agg((-f.count("*")).alias("change"))
        )
    )
    rows = (
        steps.join(moments, "at", how="inner")
        .groupBy("queue", "bucket")
        .agg(f.sum("change").alias("change"), f.sum(f.abs("change")).alias("traffic"))
        .collect()
    )
    traffic: dict[str, int] = {}
    for row in rows:
        traffic[row["queue"]] = traffic.get(row["queue"], 0) + row["traffic"]
    chosen = sorted(traffic, key=lambda queue: (-traffic[queue], queue))[:CHART_QUEUES_MAX]
    found: dict[str, list[tuple[int, int]]] = {}
    for queue in chosen:
        depth, points = 0, [(low, 0)]
        for row in sorted((one for one in rows if one["queue"] == queue), key=lambda one: one[1]):
            depth += row["change"]
            points.append((min(high, low + (int(row["bucket"]) + 1) * width), depth))
        points.append((high, depth))
        found[queue] = points
    return found
