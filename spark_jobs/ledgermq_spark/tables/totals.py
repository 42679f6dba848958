"""What became of everything that each queue, topic and subscription was given, in messages."""

from __future__ import annotations

from typing import Any, Final

from ledgermq_spark.laws.facts import Facts
from ledgermq_spark.tables.events import IN_FLIGHT

FATES: Final = (
    *("consumed", "expired", "displaced", "moved", "dropped", "removed", "purged", "rolled back"),
)
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
Total = dict[str, Any]


def totals_of(facts: Facts) -> list[Total]:
    """What became of the messages of each queue, topic and subscription, by place and name.

    `put` counts all that came; of those `came` came from elsewhere. `balances` says that each is in
    exactly one place: put = resident + uncommitted + gone by one of the fates (INF-19).
    """
    counted = facts.rows(BACKOUTS)
    backouts = {(row["queue_manager"], row["store"]): row["backouts"] for row in counted}
    found = facts.rows(TOTALS)
    for one in found:
        is_topic = one["kind"] == "topic"
        one["backouts"] = (
            0 if is_topic else int(backouts.get((one["queue_manager"], one["store"]), 0))
        )
        gone = sum(one[fate.replace(" ", "_")] for fate in FATES)
        one["balances"] = one["put"] == one["resident"] + one["uncommitted"] + gone
    order = ("queue_manager", "kind", "destination", "store")
    return sorted(found, key=lambda one: tuple(one[name] for name in order))
