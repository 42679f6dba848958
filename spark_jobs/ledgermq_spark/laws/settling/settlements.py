"""Law D: an accepted settlement consumes or returns what it names, and counts as it says."""

from ledgermq_spark.laws.law import Law, lost, state_mismatch, unexpected
from ledgermq_spark.laws.settling import by_hand

# What an end brings back: all that the session has in flight, once.
LEFT_BEHIND = lost("""
WITH
again AS (
    SELECT queue_manager, session, position FROM {operations} WHERE session_sequence > 0
    EXCEPT SELECT queue_manager, session, position FROM {applied}
),
ends AS (
    SELECT DISTINCT queue_manager, session, position
    FROM {outcomes} LEFT ANTI JOIN again USING (queue_manager, session, position)
    WHERE kind IN ('Returned', 'SessionEnded')
),
timeline AS (
    SELECT queue_manager, session, position, 1 AS is_flight, NULL AS end_at, store, sequence,
        delivery, left_at
    FROM {flights}
    UNION ALL
    SELECT queue_manager, session, position, 0, position, NULL, NULL, NULL, NULL FROM ends
),
due AS (
    SELECT *, last(end_at, TRUE) OVER (
        PARTITION BY queue_manager, session ORDER BY position DESC, is_flight DESC
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS due_at
    FROM timeline
)
SELECT queue_manager, due_at AS position, store, sequence, session,
    'a delivery stayed in flight though all of its session returned' AS summary,
    'returned' AS expected, concat('delivery ', delivery) AS found
FROM due
WHERE is_flight = 1 AND due_at IS NOT NULL AND (left_at IS NULL OR left_at > due_at)
""")
# Only what the application saw counts as backed out; everything where it could not say that: of a
# session that was lost, or a unit of work that was ended.
BACKOUTS = state_mismatch("""
WITH
seen AS (
    SELECT queue_manager, session, position AS left_at, delivery FROM {named}
    WHERE kind IN ('Rollback', 'Recover', 'Close', 'Reject')
),
lost AS (SELECT queue_manager, session, position AS left_at FROM {losses}),
corrected AS (SELECT queue_manager, sequence, position AS left_at FROM {corrected})
SELECT queue_manager, left_at AS position, store, sequence, session,
    'a backout was counted that was none, or not counted' AS summary,
    backouts + due AS expected, left_backouts AS found
FROM (
    SELECT flight.*, IF(coalesce(
        seen.queue_manager, lost.queue_manager, corrected.queue_manager) IS NULL, 0, 1) AS due
    FROM {flights} AS flight
    LEFT JOIN seen USING (queue_manager, session, left_at, delivery)
    LEFT JOIN lost USING (queue_manager, session, left_at)
    LEFT JOIN corrected USING (queue_manager, sequence, left_at)
    WHERE left_at IS NOT NULL AND left_as NOT IN ('consumed', 'removed')
)
WHERE left_backouts <> backouts + due
""")
# Nothing leaves flight by itself.
UNASKED = unexpected("""
WITH asked AS (
    SELECT queue_manager, session, position AS left_at FROM {outcomes}
    WHERE kind IN ('Returned', 'SessionEnded')
    UNION
    SELECT queue_manager, session, replied_at AS left_at FROM {applied}
    WHERE kind IN ('CloseConsumer', 'GiveBack', 'Reject') AND reply = 'Accepted'
    UNION
    SELECT queue_manager, session, position AS left_at FROM {forced_rollbacks}
)
SELECT queue_manager, left_at AS position, store, sequence, session,
    'a delivery left flight and nobody had asked for it' AS summary,
    'in flight' AS expected, concat(left_to, ' ', left_as) AS found
FROM {flights} LEFT ANTI JOIN asked USING (queue_manager, session, left_at)
    LEFT ANTI JOIN (SELECT queue_manager, sequence, position AS left_at FROM {corrected})
        USING (queue_manager, sequence, left_at)
WHERE left_at IS NOT NULL AND left_as <> 'consumed'
""")
# What an operation names leaves flight by it: consumed by an Acknowledge or Commit, and by nothing
# else. After its unit of work was ended otherwise, a Rollback names nothing.
SETTLED = lost("""
WITH
turns AS (
    SELECT queue_manager, session, replied_at AS position, TRUE AS is_rollback FROM {applied}
    WHERE kind = 'Rollback' AND reply = 'Returned'
    UNION ALL
    SELECT queue_manager, session, position, FALSE FROM {forced_rollbacks}
),
over AS (
    SELECT queue_manager, session, position FROM (
        SELECT *, lag(is_rollback) OVER (
            PARTITION BY queue_manager, session ORDER BY position, is_rollback) AS was_rollback
        FROM turns
    )
    WHERE is_rollback AND NOT was_rollback
),
named AS (
    SELECT queue_manager, session, position AS due_at, delivery, kind,
        IF(kind IN ('Acknowledge', 'Commit'), 'consumed', 'returned') AS due_as
    FROM {named} LEFT ANTI JOIN over USING (queue_manager, session, position)
),
ends AS (
    SELECT *, IF(left_as = 'consumed', left_as, 'returned') AS left_so FROM {flights}
)
SELECT queue_manager, coalesce(due_at, left_at) AS position, coalesce(store, -1) AS store,
    coalesce(flight.sequence, -1) AS sequence, session,
    IF(kind IS NULL, 'a message was consumed that nobody settled',
        concat('a delivery that a ', kind, ' names was not ', due_as, ' by it')) AS summary,
    concat_ws(' ', coalesce(due_as, 'in flight'), 'at', due_at) AS expected,
    concat_ws(' ', 'delivery', delivery, coalesce(concat(left_so, ' at ', left_at), 'in flight'))
        AS found
FROM named FULL JOIN ends AS flight USING (queue_manager, session, delivery)
WHERE IF(kind IS NULL, left_so = 'consumed', NOT (left_at <=> due_at AND left_so <=> due_as))
""")
LAW = Law(
    letter="D",
    sentence="An accepted settlement consumes or returns exactly what it names; an end of a unit "
    "of work or session returns all it held; backouts count what was seen, and all of what was "
    "lost; what is done by hand touches the messages that it names, as many as it says.",
    breaches=(LEFT_BEHIND, BACKOUTS, UNASKED, SETTLED, by_hand.CHOSEN, by_hand.TOUCHED),
)
