"""Balancing totals per queue, topic and subscription, and depth over time, from the tables."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as f

from ledgermq_spark.derivation.destinations import is_topic, plain_name
from ledgermq_spark.derivation.directory import Lifetime
from ledgermq_spark.derivation.lifetimes import DELAYED, UNBORN

if TYPE_CHECKING:
    from ledgermq_spark.derivation.tables import Tables


POINTS_MAX = 240
CHART_QUEUES_MAX = 8


FATES = (
    "resident",
    "consumed",
    "expired",
    "moved",
    "dropped",
    "removed",
    "purged",
    "rolled back",
    "uncommitted",
)
COUNTED = (
    *(
        "put",
        "resident",
        "consumed",
        "expired",
        "moved",
        "dropped",
        "removed",
        "purged",
        "rolled_back",
    ),
    *("uncommitted", "in_flight", "unborn", "delayed", "numbered", "deliveries", "backouts"),
    *("came", "went"),
)


def queue_totals(tables: Tables) -> list[dict[str, Any]]:
    """Totals of every queue and topic that ever was, by name and creation.

    `put` = resident + consumed + expired + moved + dropped + removed + purged + rolled back +
    uncommitted, where `dropped` left a topic without being consumed and `purged` went with queue or
    topic. Of those put, `came` were moved there; `went` were moved elsewhere when they left.
    `status` holds what a status says, as the tables see it.
    """
    resident = f.when(f.col("fate") == "resident", f.col("sequence"))
    counts = {
        (row["queue"], row["queue_created"]): row
        for row in tables.messages.groupBy("queue", "queue_created")
        .agg(
            f.count("*").alias("put"),
            *(
                f.count(f.when(f.col("fate") == fate, 1)).alias(fate.replace(" ", "_"))
                for fate in FATES
            ),
            f.count(f.when(f.expr("fate = 'resident' AND held"), 1)).alias("in_flight"),
            f.count(f.when(f.expr(UNBORN), 1)).alias("unborn"),
            f.count(f.when(f.expr(DELAYED), 1)).alias("delayed"),
            f.count("sequence").alias("numbered"),
            f.count("origin").alias("came"),
            f.count("moved_to").alias("went"),
            f.sum("deliveries").alias("deliveries"),
            f.sum("backout_count").alias("backouts"),
            f.min(resident).alias("min_resident"),
            f.max(resident).alias("max_resident"),
            f.min_by("enqueued_at", resident).alias("first_enqueued_at"),
            f.max_by("enqueued_at", resident).alias("last_enqueued_at"),
            f.count_distinct(
                f.when(f.col("fate") == "resident", f.get_json_object("group", "$.i"))
            ).alias("groups"),
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
    standing = Counter(
        one.topic for one in tables.facts.directory.subscriptions if one.ended is None
    )
    return [
        _total(one, counts.get((one.queue, one.created)), receivers, standing[one.queue])
        for one in sorted(tables.facts.directory.lifetimes)
    ]


def _total(
    lifetime: Lifetime, row: Any, receivers: dict[str, int], subscriptions: int
) -> dict[str, Any]:
    counted = {name: 0 if row is None else int(row[name] or 0) for name in COUNTED}
    ends = ("min_resident", "max_resident") if counted["resident"] else ("numbered", "numbered")
    status = {
        "created_position": lifetime.created,
        "description": lifetime.description,
        "message_bytes_max": lifetime.message_bytes_max,
        "unacknowledged_max": lifetime.unacknowledged_max,
        "group_affinity": lifetime.group_affinity,
        "groups": 0 if row is None else int(row["groups"]),
        "temporary": bool(lifetime.owner),
        "gets_disabled": lifetime.gets_disabled,
        "settings": lifetime.settings.as_dict(),
        "subscriptions": subscriptions,
        "message_count": counted["resident"],
        "sent_and_committed": counted["consumed"],
        "expired": counted["expired"],
        "unborn": counted["unborn"],
        "delayed": counted["delayed"],
        "moved": counted["moved"],
        "dropped": counted["dropped"],
        "removed_by_administration": counted["removed"],
        "min_sequence": 0 if row is None else int(row[ends[0]]),
        "max_sequence": 0 if row is None else int(row[ends[1]]),
        "next_sequence": counted["numbered"],
        "first_enqueued_at": None if row is None else row["first_enqueued_at"],
        "last_enqueued_at": None if row is None else row["last_enqueued_at"],
        "current": counted["resident"]
        - sum(counted[name] for name in ("in_flight", "unborn", "delayed")),
        "uncommitted_puts": counted["uncommitted"],
        "receivers": receivers.get(lifetime.queue, 0),
    }
    head = {
        "kind": "topic" if is_topic(lifetime.queue) else "queue",
        "queue": lifetime.queue,
        "queue_created": lifetime.created,
        "queue_deleted": lifetime.deleted,
    }
    return head | counted | {"status": status, "balances": balances(counted)}


def balances(total: dict[str, int]) -> bool:
    """Whether totals of a queue or topic add up: puts, and sequence numbers (SEQ-14, SEQ-17)."""
    numbered = ("resident", "consumed", "expired", "moved", "dropped", "removed", "purged")
    ends = (*numbered, "rolled_back", "uncommitted")
    return total["put"] == sum(total[name] for name in ends) and total["numbered"] == sum(
        total[name] for name in numbered
    )


def subscription_totals(tables: Tables) -> list[dict[str, Any]]:
    """Totals of every subscription that ever was, by topic and creation.

    `added` = resident + consumed + expired + moved + removed + dropped, where `dropped` went with
    the subscription, or came back too often.
    """
    receivers = Counter(
        one.subscription for one in tables.facts.directory.receptions if one.closed is None
    )
    modes = tables.facts.acts.where("what = 'alive'").select("session", f.col("kind").alias("mode"))
    gets = f.count(f.when(f.col("mode") == "TRANSACTED", 1))
    uncommitted = {
        row["subscription"]: row["gets"]
        for row in tables.deliveries.where("subscription IS NOT NULL AND settled = 'open'")
        .join(f.broadcast(modes), "session", how="inner")
        .groupBy("subscription")
        .agg(gets.alias("gets"))
        .collect()
    }
    rows = tables.subscriptions.orderBy("topic", "created_position").collect()
    return [
        _subscription(
            row, receivers[row["created_position"]], uncommitted.get(row["created_position"], 0)
        )
        for row in rows
    ]


def _subscription(row: Any, receivers: int, uncommitted_gets: int) -> dict[str, Any]:
    numbers = (
        *("min_resident", "max_resident", "last_sequence"),
        *("first_enqueued_at", "last_enqueued_at"),
    )
    total = {name: value for name, value in row.asDict().items() if name not in numbers}
    following = 0 if row["last_sequence"] is None else row["last_sequence"] + 1
    first, last = row["min_resident"], row["max_resident"]
    same = ("created_position", "kind", "name", "client_id", "shared", "selector", "no_local")
    status = {name: row[name] for name in same} | {
        "topic": plain_name(row["topic"]),
        "receivers": receivers,
        "message_count": row["resident"],
        "added": row["added"],
        "sent_and_committed": row["consumed"],
        "expired": row["expired"],
        "removed_by_administration": row["removed"],
        "moved": row["moved"],
        "dropped": row["dropped"],
        "unborn": row["unborn"],
        "delayed": row["delayed"],
        "min_sequence": following if first is None else first,
        "max_sequence": following if last is None else last,
        "current": row["resident"] - row["in_flight"] - row["unborn"] - row["delayed"],
        "pending": row["in_flight"] + row["unborn"] + row["delayed"],
        "unacknowledged": row["in_flight"] - uncommitted_gets,
        "uncommitted_gets": uncommitted_gets,
        "first_enqueued_at": row["first_enqueued_at"],
        "last_enqueued_at": row["last_enqueued_at"],
    }
    ends = ("resident", "consumed", "expired", "moved", "removed", "dropped")
    balance = row["added"] == sum(row[name] for name in ends)
    return total | {"status": status, "balances": balance}


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
