"""How queues and topics fared over time: depth, age, redeliveries, what was settled slowest.

Each is one query over what the fold states, whose answer has a bounded number of rows or one for a
queue, topic or subscription, however long the log is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, Final

from ledgermq_spark.laws.facts import Facts
from ledgermq_spark.log.rows import LONG, TEXT, arrow_table
from ledgermq_spark.tables.events import IN_FLIGHT
from ledgermq_spark.tables.totals import HELD, Total

# The busiest queues and topics, in so many points at most each.
SERIES_MAX, POINTS_MAX = 120, 200
SLOWEST_MAX, LISTED_MAX = 10, 500
COMES: Final = f"before IN ('new', 'uncommitted put') AND after IN {HELD}"
LEAVES: Final = f"before IN {HELD} AND after = 'gone'"


def _point(column: str) -> str:
    """Which of the equal parts of the log's time a moment is in."""
    whole = f"CAST(floor(({column} - low) / width) AS BIGINT)"
    return f"greatest(0, least({POINTS_MAX - 1}, {whole}))"


# `charted` names the stores. The oldest message of each is one that none older than itself
# outlives, from when on; what is oldest across several points is told at each of them.
SERIES: Final = f"""
WITH
span AS (
    SELECT min(time_us) AS low, max(time_us) AS high,
        greatest(1, (max(time_us) - min(time_us)) / {POINTS_MAX}) AS width
    FROM {{clock}} WHERE time_us >= 0
),
changes AS (
    SELECT name, {_point("time_us")} AS point,
        count_if(kind <> 'subscription' AND {COMES}) AS came,
        count_if(kind <> 'subscription' AND {LEAVES}) AS went,
        count_if(after IN {IN_FLIGHT} AND backouts > 0) AS again
    FROM {{moves}} JOIN {{charted}} USING (kind, store) CROSS JOIN span
    GROUP BY ALL
),
stays AS (
    SELECT name, store, sequence, min(IF({COMES}, time_us, NULL)) AS enqueued_us,
        coalesce(min(IF(after = 'gone', time_us, NULL)), any_value(high)) AS gone_us
    FROM {{moves}} JOIN {{charted}} USING (kind, store) CROSS JOIN span
    WHERE kind <> 'subscription' AND (({COMES}) OR ({LEAVES}))
    GROUP BY ALL
),
oldest AS (
    SELECT name, enqueued_us, gone_us, greatest(enqueued_us, coalesce(max(gone_us) OVER (
        PARTITION BY store, name ORDER BY sequence
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0)) AS since_us
    FROM stays
),
ages AS (
    SELECT name, point, max(least(gone_us, low + (point + 1) * width) - enqueued_us) AS age_us
    FROM (
        SELECT *, explode(sequence({_point("since_us")}, {_point("gone_us")})) AS point
        FROM oldest CROSS JOIN span WHERE gone_us > since_us
    )
    GROUP BY name, point
)
SELECT name, point, low, high, coalesce(came, 0) AS came, coalesce(went, 0) AS went,
    coalesce(again, 0) AS again, coalesce(age_us, 0) / 1e6 AS age_seconds
FROM changes FULL OUTER JOIN ages USING (name, point) CROSS JOIN span
"""
# Deliveries that took longest until they were settled, or are still in flight at the log's end. Of
# those that came and were settled together only the first is told, with how many they were.
SLOWEST: Final = f"""
WITH
ends AS (SELECT max(time_us) AS now_us FROM {{clock}}),
together AS (
    SELECT queue_manager, session, consumer, position, left_at, store, min(delivery) AS delivery,
        count(*) AS messages, min_by(IF(left_to = 'gone', left_as, 'returned'), delivery) AS settled
    FROM {{flights}}
    GROUP BY ALL
),
timed AS (
    SELECT one.*, gave.time_us AS delivered_us, took.time_us AS settled_us,
        coalesce(took.time_us, now_us) - gave.time_us AS lasted_us
    FROM together AS one CROSS JOIN ends
    JOIN {{clock}} AS gave
        ON one.queue_manager = gave.queue_manager AND one.position = gave.position
    LEFT JOIN {{clock}} AS took
        ON one.queue_manager = took.queue_manager AND left_at = took.position
    ORDER BY lasted_us DESC, position, session, delivery LIMIT {SLOWEST_MAX}
)
SELECT lower(hex(put.message_ids[put_index])) AS message_id, messages, move.destination,
    move.subscription, timed.session, timed.consumer, timed.delivery, timed.position,
    delivered_us AS delivered_at, left_at AS settled_position, settled_us AS settled_at,
    IF(left_at IS NULL, 'in flight', settled) AS settled, lasted_us / 1e6 AS seconds
FROM timed
JOIN {{moves}} AS move ON timed.queue_manager = move.queue_manager
    AND timed.position = move.position AND timed.session = move.session
    AND timed.delivery = move.delivery AND move.after IN {IN_FLIGHT}
JOIN {{operations}} AS put
    ON move.queue_manager = put.queue_manager AND put_position = put.position
ORDER BY seconds DESC, timed.position, timed.session, timed.delivery
"""
# Queues and topics that are there and never held a message.
NEVER_USED: Final = """
SELECT kind, store, destination, made_at FROM {stores}
    LEFT SEMI JOIN (SELECT queue_manager, kind, store FROM {standing}
        WHERE what = 'most' AND count = 0) USING (queue_manager, kind, store)
WHERE kind <> 'subscription'
ORDER BY store
"""
# Why a subscription ended: its topic went, or what its last consumer or its owner did.
ENDED: Final = """
WITH ended AS (
    SELECT one.queue_manager, one.store, one.gone_at, one.life,
        bool_or(topic.gone_at IS NOT NULL) AS is_topic_gone,
        max(asked.kind) AS entry, max(lower(ends.ended_as)) AS session_ended_as
    FROM {stores} AS one
    JOIN {operations} AS asked
        ON one.queue_manager = asked.queue_manager AND one.gone_at = asked.position
    LEFT JOIN {stores} AS topic ON one.queue_manager = topic.queue_manager
        AND topic.kind = 'topic' AND one.topic_store = topic.store AND one.gone_at = topic.gone_at
    LEFT JOIN {opened_consumers} AS consumer ON one.queue_manager = consumer.queue_manager
        AND one.life = consumer.life AND one.subscription = consumer.subscription
        AND one.client_id <=> consumer.client_id AND one.gone_at = consumer.closed_at.position
    LEFT JOIN {sessions} AS ends ON one.queue_manager = ends.queue_manager
        AND consumer.session = ends.session AND ends.ended_at = one.gone_at
    WHERE one.kind = 'subscription'
    GROUP BY ALL
)
SELECT store, gone_at, CASE
    WHEN is_topic_gone THEN 'its topic was deleted, or went with its connection'
    WHEN life = 'durable' AND entry = 'Unsubscribe' THEN 'it was unsubscribed'
    WHEN entry = 'OpenConsumer' AND session_ended_as IS NULL
        THEN 'it was made anew by a consumer that asks for something else'
    WHEN session_ended_as IS NOT NULL
        THEN concat('the session of its last consumer ended: ', session_ended_as)
    ELSE 'its last consumer was closed' END AS why
FROM ended
"""
CHARTED_COLUMNS: Final = (("kind", TEXT), ("store", LONG), ("name", TEXT))
Points = list[tuple[int, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """How the busiest queues and topics fared, the busiest first, as (time in µs, value) points.

    `depth` is how many messages were there from then on, `oldest_age_seconds` the highest age of
    the oldest one in the time up to the point, `redeliveries` how many deliveries from the point on
    were of messages that had come back before.
    """

    depth: dict[str, Points] = field(default_factory=dict)
    oldest_age_seconds: dict[str, Points] = field(default_factory=dict)
    redeliveries: dict[str, Points] = field(default_factory=dict)


def series_of(facts: Facts, totals: Sequence[Total]) -> Series:
    """How the busiest queues and topics fared over the time of the log, by the totals of all."""
    names = _busiest(totals)
    charted = [
        (one["kind"], one["store"], name)
        for one in totals
        for name in (one["destination"].removeprefix("queue:"),)
        if name in names
    ]
    found = Series()
    if not charted:
        return found
    names_of = arrow_table(CHARTED_COLUMNS, charted)
    rows = facts.rows(SERIES, **facts.engine.taken({"charted": names_of}))
    named: dict[str, list[Any]] = {name: [] for name in names}
    for row in sorted(rows, key=lambda row: row["point"]):
        named[row["name"]].append(row)
    low, high = rows[0]["low"], rows[0]["high"]
    width = max(1, (high - low) / POINTS_MAX)
    times = [min(high, int(low + at * width)) for at in range(POINTS_MAX + 1)]
    for name, points in named.items():
        depths = accumulate(one["came"] - one["went"] for one in points)
        steps: Points = [
            (times[one["point"] + 1], depth) for one, depth in zip(points, depths, strict=True)
        ]
        found.depth[name] = [(low, 0), *steps, (high, steps[-1][1])]
        ages = {one["point"] + 1: round(one["age_seconds"], 3) for one in points}
        found.oldest_age_seconds[name] = _with_zeros(ages, times)
        again = {one["point"]: one["again"] for one in points}
        found.redeliveries[name] = _with_zeros(again, times)
    return found


def _busiest(totals: Sequence[Total]) -> list[str]:
    """The names of the queues and topics that most came to and left, the busiest first."""
    moved: Counter[str] = Counter()
    for one in totals:
        if one["kind"] != "subscription":
            moved[one["destination"].removeprefix("queue:")] += (
                2 * one["numbered"] - one["resident"]
            )
    return [name for name, _ in moved.most_common(SERIES_MAX) if moved[name] > 0]


def _with_zeros(values: Mapping[int, float], times: list[int]) -> Points:
    """What is not zero, and the zeros beside it and at both ends."""
    last = len(times) - 1
    return [
        (times[at], values.get(at, 0))
        for at in range(len(times))
        if at in (0, last) or any(values.get(near) for near in (at - 1, at, at + 1))
    ]


def slowest_settlements(facts: Facts) -> list[dict[str, Any]]:
    """The deliveries that took longest until they were settled, the slowest first.

    `messages` counts those that a session was given and settled together, of which the first is
    told. `settled` is the event that ended each, or `in flight`; then `seconds` count to the log's
    end. Times are µs since 1970 UTC.
    """
    return facts.rows(SLOWEST)


def never_used(facts: Facts, totals: Sequence[Total]) -> list[dict[str, Any]]:
    """Queues and topics that are there and that no message ever came to."""
    used = {(one["kind"], one["store"]) for one in totals}
    return [one for one in facts.rows(NEVER_USED) if (one["kind"], one["store"]) not in used]


def subscription_ends(facts: Facts) -> dict[int, tuple[int, str]]:
    """Position and reason at which subscriptions ended, by where they were made."""
    return {row["store"]: (row["gone_at"], row["why"]) for row in facts.rows(ENDED)}
