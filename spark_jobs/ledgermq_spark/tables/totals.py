"""What became of everything that each queue, topic and subscription was given, in messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ledgermq_spark.tables.events import IN_FLIGHT

if TYPE_CHECKING:
    from ledgermq_spark.laws.law import Facts

FATES: Final = ("consumed", "expired", "moved", "dropped", "removed", "purged", "rolled back")
HELD: Final = "('unborn', 'available', 'delayed', 'unacknowledged', 'uncommitted get', 'published')"


def _now(states: str) -> str:
    """How many messages are in one of some states: those that came into them, less who left."""
    return f"count_if(after IN {states}) - count_if(before IN {states})"


# What a destination `put` counts what came from elsewhere too.
TOTALS: Final = f"""
SELECT queue_manager, kind, destination, subscription, store, count_if(before = 'new') AS put,
    count_if(before = 'new' AND session < 0 AND kind <> 'subscription') AS came,
    {", ".join(f"count_if(cause = '{one}') AS {one.replace(' ', '_')}" for one in FATES)},
    {_now(HELD)} AS resident, {_now(IN_FLIGHT)} AS in_flight, {_now("('unborn')")} AS unborn,
    {_now("('delayed')")} AS delayed, {_now("('uncommitted put')")} AS uncommitted,
    count_if(sequence >= 0 AND before IN ('new', 'uncommitted put')) AS numbered,
    count_if(after IN {IN_FLIGHT}) AS deliveries
FROM {{moves}}
GROUP BY queue_manager, kind, destination, subscription, store
"""
BACKOUTS: Final = """
SELECT queue_manager, store, sum(left_backouts - backouts) AS backouts FROM {flights}
WHERE left_at IS NOT NULL
GROUP BY queue_manager, store
"""
# Depth of the busiest ones over time, in so many points at most.
CHARTED_MAX, POINTS_MAX = 8, 240
DEPTH: Final = f"""
WITH
span AS (SELECT min(time_us) AS low, max(time_us) AS high FROM {{clock}} WHERE time_us >= 0),
changes AS (
    SELECT IF(kind = 'subscription', concat(destination, ' ', subscription),
            regexp_replace(destination, '^queue:', '')) AS name,
        CAST(floor((time_us - low) / greatest(1, (high - low) / {POINTS_MAX})) AS BIGINT) AS point,
        low, high, count_if(before IN ('new', 'uncommitted put') AND after IN {HELD}) AS came,
        count_if(before IN {HELD} AND after = 'gone') AS went
    FROM {{moves}} CROSS JOIN span
    WHERE kind <> 'subscription'
    GROUP BY ALL
),
busiest AS (
    SELECT name FROM changes GROUP BY name ORDER BY sum(came + went) DESC, name LIMIT {CHARTED_MAX}
)
SELECT name, point, low, high, sum(came - went) OVER (
    PARTITION BY name ORDER BY point ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS depth
FROM changes LEFT SEMI JOIN busiest USING (name)
WHERE came + went > 0
"""
Total = dict[str, Any]


def totals_of(facts: Facts) -> list[Total]:
    """What became of the messages of each queue, topic and subscription, by place and name.

    `put` counts all that came; of those `came` came from elsewhere. `balances` says that each is in
    exactly one place: put = resident + uncommitted + gone by one of the fates (INF-19).
    """
    counted = facts.query(BACKOUTS).collect()
    backouts = {(row["queue_manager"], row["store"]): row["backouts"] for row in counted}
    found = [row.asDict() for row in facts.query(TOTALS).collect()]
    for one in found:
        is_topic = one["kind"] == "topic"
        one["backouts"] = (
            0 if is_topic else int(backouts.get((one["queue_manager"], one["store"]), 0))
        )
        gone = sum(one[fate.replace(" ", "_")] for fate in FATES)
        one["balances"] = one["put"] == one["resident"] + one["uncommitted"] + gone
    order = ("queue_manager", "kind", "destination", "store")
    return sorted(found, key=lambda one: tuple(one[name] for name in order))


def depth_over_time(facts: Facts) -> dict[str, list[tuple[int, int]]]:
    """Depth of the busiest queues and topics as (time in µs, messages that are there)."""
    found: dict[str, list[tuple[int, int]]] = {}
    ends: dict[str, int] = {}
    for row in sorted(facts.query(DEPTH).collect(), key=lambda row: (row["name"], row["point"])):
        low, high = row["low"], row["high"]
        width = max(1, (high - low) / POINTS_MAX)
        points = found.setdefault(row["name"], [(low, 0)])
        points.append((min(high, low + int((row["point"] + 1) * width)), row["depth"]))
        ends[row["name"]] = high
    for name, points in found.items():
        points.append((ends[name], points[-1][1]))
    return found
