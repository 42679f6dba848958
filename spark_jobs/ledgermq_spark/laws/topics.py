"""Law J: a topic's message is there as long as some subscription has a copy, and no longer."""

from __future__ import annotations

from ledgermq_spark.laws.law import Breach, Law

HELD = """
WITH
topic AS (
    SELECT queue_manager, destination, sequence, max(store) AS store,
        min(position) AS come_at,
        max(IF(after = 'published', position, NULL)) AS published_at,
        max(IF(after = 'gone', position, NULL)) AS gone_at,
        max(IF(after = 'gone', cause, NULL)) AS cause
    FROM {moves} WHERE kind = 'topic' AND sequence >= 0
    GROUP BY queue_manager, destination, sequence, store
),
lives AS (
    SELECT queue_manager, destination, sequence, store,
        min(position) AS come_at, max(IF(after = 'gone', position, NULL)) AS gone_at
    FROM {moves} WHERE kind = 'subscription'
    GROUP BY ALL
),
copies AS (
    SELECT queue_manager, destination, sequence, come_at,
        IF(count(*) = count(gone_at), max(gone_at), NULL) AS last_at, TRUE AS has_copies
    FROM lives
    GROUP BY ALL
)
SELECT queue_manager, IF((published_at IS NULL) = (has_copies IS NOT NULL), come_at,
        coalesce(least(gone_at, last_at), come_at)) AS position, coalesce(store, -1) AS store,
    sequence, -1 AS session,
    'a message of a topic is not there as long as its copies are' AS summary,
    concat_ws(' ', IF(has_copies, 'published until', 'dropped at'), last_at) AS expected,
    concat_ws(' ', IF(published_at IS NULL, 'not published', 'published until'), gone_at) AS found
FROM topic FULL JOIN copies USING (queue_manager, destination, sequence, come_at)
WHERE (published_at IS NULL) = (has_copies IS NOT NULL)
    OR published_at IS NOT NULL AND NOT (gone_at <=> last_at)
    OR published_at IS NULL AND cause <> 'dropped'
"""
LAW = Law(
    letter="J",
    sentence="A topic's message is published while some subscription has a copy of it, and is "
    "dropped at once where none wants it.",
    breaches=(Breach("state mismatch", HELD),),
)
