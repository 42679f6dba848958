"""Expiry in law G: when its time is over a message goes, at once unless it is in flight."""

from __future__ import annotations

from typing import Final

from ledgermq_spark.laws.law import Breach

# Nobody holds it, and an entry was over at which its time was.
OVERDUE = """
WITH
last AS (
    SELECT stay.*, least(left_at, until_position, end_at + 1) AS next_at
    FROM {stays} AS stay JOIN {log_end} USING (queue_manager)
    WHERE after IN ('available', 'unborn', 'delayed')
),
clocked AS (
    SELECT queue_manager, coalesce(next_position, position + 1) AS next_at, position AS last_at,
        time_us AS last_us
    FROM {entries}
)
SELECT queue_manager, last_at AS position, store, sequence, -1 AS session,
    'a message stays though its time is over' AS summary,
    least(own_us, lifetime_us) AS expected, last_us AS found
FROM last JOIN clocked USING (queue_manager, next_at)
WHERE last_at >= position AND last_at >= from_position AND least(own_us, lifetime_us) <= last_us
"""
# It is delivered though its time is over by any lifetime that was in force at that entry, or
# expires though it is not by any.
MISJUDGED = """
WITH judged AS (
    SELECT queue_manager, left_at AS position, store, kind, sequence, left_as = '' AS is_delivered,
        bool_and(is_told) AS is_told, min(due_us) AS first_us, max(due_us) AS last_us
    FROM (
        SELECT *, coalesce(least(own_us, lifetime_us), 9223372036854775807) AS due_us FROM {stays}
        WHERE from_position <= left_at
            AND (until_position IS NULL OR left_at <= until_position)
            AND (left_as = 'expired' OR left_to IN ('unacknowledged', 'uncommitted get'))
    )
    GROUP BY ALL
)
SELECT queue_manager, position, store, sequence, -1 AS session,
    IF(is_delivered, 'a message was delivered though its time was over',
        'a message expired before its time') AS summary,
    IF(is_delivered, last_us, first_us) AS expected, time_us AS found
FROM judged JOIN {clock} USING (queue_manager, position)
WHERE IF(is_delivered, last_us <= time_us, is_told AND first_us > time_us)
"""
BREACHES: Final = (Breach("lost", OVERDUE), Breach("unexpected", MISJUDGED))
