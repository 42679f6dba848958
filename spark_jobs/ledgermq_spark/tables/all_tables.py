"""The tables: what happened, for people and programs that ask in SQL.

Each is a query over the frames that laws are asked of; `docs/tables` has a contract for each.
"""

from __future__ import annotations

from typing import Final

from ledgermq_spark.tables.events import (
    IN_FLIGHT,
    MESSAGE_EVENTS,
    PUTS,
    UNIT_MOVES,
    UNITS,
)

# One row for each time that a message was in a queue, topic or subscription.
STAYS = f"""
SELECT queue_manager, kind, destination, subscription, store, sequence, put_position, put_index,
    any_value(message_id) AS message_id, any_value(priority) AS priority,
    any_value(persistent) AS persistent, any_value(content_bytes) AS content_bytes,
    any_value(group_id) AS group_id, any_value(group_sequence) AS group_sequence,
    any_value(correlation_id) AS correlation_id, any_value(properties) AS properties,
    min(position) AS come_position, min(time_us) AS come_us,
    min(IF(after IN ('available', 'unborn', 'published'), position, NULL)) AS numbered_position,
    min(IF(after IN ('available', 'unborn', 'published'), time_us, NULL)) AS enqueued_us,
    max_by(after, (position, step)) AS state,
    max(IF(after = 'gone', position, NULL)) AS gone_position,
    max(IF(after = 'gone', time_us, NULL)) AS gone_us,
    max(IF(after = 'gone', event, NULL)) AS fate, max(IF(after = 'gone', reason, NULL)) AS reason,
    max_by(backouts, (position, step)) AS backouts,
    max_by(uncounted, (position, step)) AS uncounted_backouts,
    count_if(after IN {IN_FLIGHT}) AS deliveries
FROM {{events}} WHERE event NOT IN ('blocked', 'vanished')
GROUP BY ALL
"""
# The oldest message of each store is one that none older than itself outlives; from when on.
OLDEST = """
SELECT queue_manager, store, kind, greatest(outlived, numbered_position) AS position, enqueued_us
FROM (
    SELECT *, coalesce(max(coalesce(gone_position, 9223372036854775807)) OVER (
        PARTITION BY queue_manager, store, kind ORDER BY sequence
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), -1) AS outlived
    FROM {message_stays} WHERE numbered_position IS NOT NULL
)
WHERE coalesce(gone_position, 9223372036854775807) > outlived
"""
DEPTH = """
WITH
changes AS (
    SELECT queue_manager, kind, destination, subscription, store, numbered_position AS position,
        enqueued_us AS time_us, 1 AS came, 0 AS went, content_bytes AS bytes
    FROM {message_stays} WHERE numbered_position IS NOT NULL
    UNION ALL
    SELECT queue_manager, kind, destination, subscription, store, gone_position, gone_us, 0, 1,
        -content_bytes
    FROM {message_stays} WHERE numbered_position IS NOT NULL AND gone_position IS NOT NULL
),
steps AS (
    SELECT queue_manager, kind, destination, subscription, store, position, time_us,
        sum(came) AS came, sum(went) AS went, sum(bytes) AS bytes
    FROM changes GROUP BY ALL
),
oldest AS (
    SELECT queue_manager, kind, store, position, max(enqueued_us) AS oldest_us FROM {oldest}
    GROUP BY ALL
)
SELECT queue_manager, kind, destination, subscription, store, position, time_us, came, went,
    sum(came - went) OVER so_far AS depth, sum(bytes) OVER so_far AS content_bytes,
    IF(sum(came - went) OVER so_far > 0, last(oldest_us, TRUE) OVER so_far, NULL) AS oldest_us
FROM steps LEFT JOIN oldest USING (queue_manager, kind, store, position)
WINDOW so_far AS (
    PARTITION BY queue_manager, store, kind ORDER BY position
    ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
"""
DERIVED: Final = {
    "puts": PUTS,
    "unit_moves": UNIT_MOVES,
    "unit_ends": UNITS,
    "events": MESSAGE_EVENTS,
    "message_stays": STAYS,
    "oldest": OLDEST,
}


def _count(array: str) -> str:
    """How many an array has, NULL where there is none: without ANSI mode, Spark says -1 there."""
    return f"CAST(IF({array} IS NULL, NULL, size({array})) AS INT)"


def _time(column: str, name: str) -> str:
    """A moment in µs since 1970 UTC as a timestamp."""
    return f"timestamp_micros(nullif({column}, -1)) AS {name}"


DAY: Final = "date_from_unix_date(CAST(floor(time_us / 86400000000) AS INT)) AS day"
PLACE: Final = "queue_manager, kind, destination, subscription, store"
MESSAGE: Final = (
    "sequence, lower(hex(message_id)) AS message_id, priority, persistent, content_bytes, "
    "group_id, group_sequence, correlation_id, properties, put_position, put_index"
)
TABLES: Final[dict[str, str]] = {
    "message_events": f"""
SELECT {PLACE}, {DAY}, position, step, {_time("time_us", "time")}, event, reason,
    numbered_as AS {MESSAGE}, session, consumer, delivery, unit_of_work, before, after,
    {_time("until_us", "waits_until")}, backouts, uncounted AS uncounted_backouts,
    entry, entry_session_sequence, actor, why
FROM {{events}}
""",
    "operations": f"""
SELECT queue_manager, {DAY}, position, {_time("time_us", "time")},
    {_time("append_time_us", "append_time")}, kind, session, session_sequence, target, consumer,
    {_count("message_ids")} AS messages, actor, why, settings
FROM {{operations}} JOIN {{clock}} USING (queue_manager, position)
""",
    "outcomes": f"""
SELECT queue_manager, {DAY}, position, index, {_time("time_us", "time")}, kind, session,
    session_sequence, reason, detail, consumer, destination, first_delivery,
    {_count("sequences")} AS messages
FROM {{outcomes}} JOIN {{clock}} USING (queue_manager, position)
""",
    "messages": f"""
SELECT {PLACE}, {MESSAGE}, come_position, {_time("come_us", "come_at")}, numbered_position,
    {_time("enqueued_us", "enqueued_at")}, state, fate, reason, gone_position,
    {_time("gone_us", "gone_at")}, deliveries, backouts, uncounted_backouts
FROM {{message_stays}}
""",
    "deliveries": f"""
SELECT queue_manager, session, delivery, any_value(consumer) AS consumer, any_value(kind) AS kind,
    any_value(destination) AS destination, any_value(subscription) AS subscription,
    any_value(store) AS store, any_value(sequence) AS sequence,
    lower(hex(any_value(message_id))) AS message_id, min(position) AS position,
    {_time("min(time_us)", "delivered_at")},
    min_by(backouts, (position, step)) + 1 AS delivery_count,
    max(IF(before IN {IN_FLIGHT}, position, NULL)) AS settled_position,
    {_time(f"max(IF(before IN {IN_FLIGHT}, time_us, NULL))", "settled_at")},
    max(IF(before IN {IN_FLIGHT}, event, NULL)) AS settled,
    max(IF(before IN {IN_FLIGHT}, reason, NULL)) AS reason
FROM {{events}} WHERE delivery IS NOT NULL
GROUP BY queue_manager, session, delivery
""",
    "units_of_work": f"""
SELECT unit.* EXCEPT (ended_as), coalesce(ended_as, 'open') AS ended_as,
    {_time("begun.time_us", "begun_at")}, {_time("ended.time_us", "ended_at")}
FROM {{unit_ends}} AS unit
JOIN {{clock}} AS begun
    ON unit.queue_manager = begun.queue_manager AND unit_of_work = begun.position
LEFT JOIN {{clock}} AS ended
    ON unit.queue_manager = ended.queue_manager AND end_position = ended.position
""",
    "sessions": f"""
SELECT one.queue_manager, session, acknowledge_mode, connection, client_id,
    {_time("opened.time_us", "opened_at")}, ended_at AS ended_position,
    {_time("ended.time_us", "ended_at")}, lower(ended_as) AS ended_as
FROM {{sessions}} AS one
JOIN {{clock}} AS opened ON one.queue_manager = opened.queue_manager AND session = opened.position
LEFT JOIN {{clock}} AS ended
    ON one.queue_manager = ended.queue_manager AND ended_at = ended.position
""",
    "groups": f"""
SELECT {PLACE}, group_id, count(*) AS messages, min(sequence) AS first_sequence,
    max(sequence) AS last_sequence, {_time("min(enqueued_us)", "first_enqueued_at")},
    count_if(fate IS NULL) AS resident, count_if(fate = 'consumed') AS consumed,
    {_time("max(gone_us)", "last_gone_at")}
FROM {{message_stays}} WHERE group_id IS NOT NULL
GROUP BY {PLACE}, group_id
""",
    "subscriptions": """
SELECT one.queue_manager, one.destination, one.subscription, one.store, selector, no_local,
    one.gone_at AS ended_position, count(stay.store) AS added,
    count_if(stay.fate = 'consumed') AS consumed, count_if(stay.fate = 'expired') AS expired,
    count_if(stay.fate = 'dropped') AS dropped,
    count(stay.store) - count(stay.fate) AS resident
FROM {stores} AS one LEFT JOIN {message_stays} AS stay
    ON one.queue_manager = stay.queue_manager AND one.store = stay.store
    AND stay.kind = 'subscription'
WHERE one.kind = 'subscription'
GROUP BY ALL
""",
    "queue_depth": f"""
SELECT {PLACE}, {DAY}, position, {_time("time_us", "time")}, came, went, depth, content_bytes,
    {_time("oldest_us", "oldest_enqueued_at")}, (time_us - oldest_us) / 1e6 AS oldest_age_seconds
FROM ({DEPTH})
""",
}
