"""Frames of consumers: which store each gets from, from when until when, and what it asks for."""

from __future__ import annotations

from typing import Final

# Each consumer that was accepted, open from `opened_at` until `closed_at` (null: open at the end);
# `store` is where its queue or subscription was made. A topic's subscription has the selector, its
# consumers have none (PROTOCOL.md §5, §12).
CONSUMERS: Final = """
WITH
uses AS (
    SELECT *,
        concat(IF(kind IN ('CreateQueue', 'DeleteQueue'), 'queue:', ''), target) AS destination
    FROM {applied}
    WHERE reply <> 'Refused' AND kind IN ('CreateQueue', 'DeleteQueue', 'CreateTopic',
        'DeleteTopic', 'CreateTemporary', 'Put', 'OpenConsumer')
),
steps AS (
    SELECT *, kind LIKE 'Create%' OR kind NOT LIKE 'Delete%' AND coalesce(
        lag(kind) OVER (PARTITION BY queue_manager, destination ORDER BY replied_at, reply_index)
            LIKE 'Delete%', TRUE) AS is_made
    FROM uses
),
-- What a Put makes that waited before it was let in is made at the position of that Put (§16).
standing AS (
    SELECT *, last(IF(is_made, position, NULL), TRUE) OVER (
        PARTITION BY queue_manager, destination ORDER BY replied_at, reply_index) AS made_at
    FROM steps
),
ended AS (
    SELECT queue_manager, session, min(position) AS ended_at FROM {outcomes}
    WHERE kind = 'SessionEnded'
    GROUP BY ALL
),
closes AS (
    SELECT queue_manager, session, consumer, min(replied_at) AS given_up_at FROM {applied}
    WHERE kind = 'CloseConsumer' AND reply = 'Accepted'
    GROUP BY ALL
),
clients AS (
    SELECT queue_manager, position AS session, connection, client_id, acknowledge_mode
    FROM {operations} WHERE kind = 'Open'
),
opened AS (
    SELECT queue_manager, session, one.consumer, replied_at AS opened_at,
        least(given_up_at, ended_at) AS closed_at, destination, made_at,
        IF(trim(BOTH ' \\t\\f\\r\\n' FROM selector) = '', '', selector) AS selector, no_local,
        one.subscription, durable, shared, client.client_id, client.connection,
        client.acknowledge_mode, one.redelivery_delay_ms
    FROM (SELECT * FROM standing WHERE kind = 'OpenConsumer') AS one
    JOIN clients AS client USING (queue_manager, session)
    LEFT JOIN closes USING (queue_manager, session, consumer)
    LEFT JOIN ended USING (queue_manager, session)
),
-- Those who ask for one name, in their order: what ended the subscription makes the next one anew.
named AS (
    SELECT queue_manager, durable, subscription, client_id, opened_at AS position, 1 AS change,
        consumer, concat_ws(' ', made_at, no_local, selector) AS likeness
    FROM opened WHERE durable OR shared
    UNION ALL
    SELECT queue_manager, durable, subscription, client_id, closed_at, -1, consumer, NULL
    FROM opened WHERE closed_at IS NOT NULL AND (durable OR shared)
    UNION ALL
    SELECT queue_manager, TRUE, one.subscription, client.client_id, replied_at, 0, -1, 'none'
    FROM {applied} AS one JOIN clients AS client USING (queue_manager, session)
    WHERE kind = 'Unsubscribe' AND reply <> 'Refused'
),
counted AS (
    SELECT *, last(likeness, TRUE) OVER earlier AS before, sum(change) OVER earlier AS others
    FROM named
    WINDOW earlier AS (PARTITION BY queue_manager, durable, subscription, client_id
        ORDER BY position, change ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
),
subscriptions AS (
    SELECT queue_manager, position AS opened_at, consumer, max(IF(
        NOT (likeness <=> before) OR NOT durable AND others = 0, position, NULL)) OVER (
            PARTITION BY queue_manager, durable, subscription, client_id ORDER BY position)
        AS subscribed_at
    FROM counted WHERE change = 1
)
SELECT one.queue_manager, session, one.consumer, one.opened_at, closed_at, destination,
    CASE WHEN destination LIKE 'queue:%' THEN made_at ELSE coalesce(subscribed_at, one.opened_at)
        END AS store,
    IF(destination LIKE 'queue:%', selector, '') AS selector, no_local, one.subscription, durable,
    shared, client_id, connection, acknowledge_mode, redelivery_delay_ms
FROM opened AS one LEFT JOIN subscriptions USING (queue_manager, opened_at)
"""
# What changes the credit of a consumer: its Gets with their options (null: as before), and what
# withdraws it all, which is a credit of 0; `told_index` where that was told before the operation.
CREDITS: Final = """
SELECT queue_manager, replied_at AS position, kind, session, consumer, number AS credit, options,
    CAST(NULL AS INT) AS told_index
FROM {applied} WHERE kind = 'Get' AND reply = 'Accepted'
UNION ALL
SELECT queue_manager, position, kind, session, consumer, 0, NULL, told_index
FROM {consumers} JOIN (
    SELECT queue_manager, replied_at AS position, kind, session, NULL AS told_index FROM {applied}
    WHERE kind IN ('Rollback', 'Recover') AND reply <> 'Refused'
    UNION ALL
    SELECT queue_manager, position, 'forced rollback', session, index FROM {forced_rollbacks}
) USING (queue_manager, session)
WHERE opened_at < position AND coalesce(closed_at > position, TRUE)
"""
FRAMES: Final = {"consumers": CONSUMERS, "credits": CREDITS}
