"""Law G: state time follows the entries alone, and what waits for a moment goes on at it."""

from ledgermq_spark.laws.law import Law, lost, reordered, state_mismatch, unexpected

# PROTOCOL.md §6, entry by entry: each is compared with the reference, or with state time, which
# begins with the first time that can be trusted.
STATE_TIME = state_mismatch("""
WITH
entries AS (
    SELECT queue_manager, position, kind, number AS writer_time, time_us,
        IF(trusted, append_time_us, NULL) AS t,
        before_it.time_us AS s, before_it.reference_us AS r
    FROM {operations} JOIN {entries} USING (queue_manager, position)
),
compared AS (
    SELECT *, t - IF(r >= 0, r, s) AS ahead,
        kind = 'TimeAgreed' AND writer_time BETWEEN t - 10000000 AND t + 10000000 AS is_agreed
    FROM entries WHERE t IS NOT NULL AND (s IS NOT NULL OR position = 0)
),
due AS (
    SELECT *, CASE
        WHEN coalesce(s, -1) < 0 THEN t
        WHEN ahead BETWEEN 0 AND 60000000 AND r >= 0
            THEN greatest(t, s + CAST(floor(ahead * 7 / 8) AS BIGINT))
        WHEN ahead BETWEEN 0 AND 60000000 THEN t
        WHEN ahead BETWEEN -60000000 AND -1 THEN s
        WHEN t - s BETWEEN 0 AND 60000000 THEN t
        WHEN is_agreed THEN greatest(s, t)
        ELSE s END AS due_us
    FROM compared
)
SELECT queue_manager, position, -1 AS store, -1 AS sequence, -1 AS session,
    'state time is not what the entries make it' AS summary, due_us AS expected, time_us AS found
FROM due WHERE due_us <> time_us
""")
# What is unborn or delayed goes on at the first entry at which its moment has come, not before.
WAITED = reordered("""
WITH
waits AS (
    SELECT queue_manager, store, kind, sequence, after, until_us, lead(position) OVER life
            AS left_at, lead(after) OVER life AS left_to, lead(time_us) OVER life AS left_us
    FROM {moves} LEFT SEMI JOIN {waiting} USING (queue_manager, store, kind, sequence)
    WINDOW life AS (PARTITION BY queue_manager, store, kind, sequence ORDER BY position, step)
),
due AS (
    SELECT queue_manager, position AS left_at, coalesce(before_it.time_us, -1) AS before_us
    FROM {entries}
)
SELECT queue_manager, coalesce(left_at, end_at) AS position, store, sequence, -1 AS session,
    'what waits for a moment did not go on at it' AS summary, until_us AS expected,
    IF(left_at IS NULL, concat('waits at ', end_us), CAST(left_us AS STRING)) AS found
FROM waits JOIN {log_end} USING (queue_manager) LEFT JOIN due USING (queue_manager, left_at)
WHERE after IN ('unborn', 'delayed') AND (left_at IS NULL AND until_us <= end_us
    OR left_to = 'available' AND NOT (until_us <= left_us AND before_us < until_us))
""")
# What expires goes at once when its time is over, unless it is in flight. Here nobody holds it,
# and an entry was over at which its time was.
OVERDUE = lost("""
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
""")
# It is delivered though its time is over by any lifetime that was in force at that entry, or
# expires though it is not by any.
MISJUDGED = unexpected("""
WITH judged AS (
    SELECT queue_manager, left_at AS position, store, kind, sequence, left_as = '' AS is_delivered,
        bool_and(is_told) AS is_told, min(due_us) AS first_us, max(due_us) AS last_us
    FROM (
        SELECT *, coalesce(least(own_us, lifetime_us), 9223372036854775807) AS due_us FROM {stays}
        WHERE left_at BETWEEN from_position AND until_position
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
""")
LAW = Law(
    letter="G",
    sentence="State time is what the entries make it, and what waits to be born or for its "
    "redelivery delay goes on at the first entry at which its moment has come; so does what nobody "
    "holds expire, and nothing does before.",
    breaches=(STATE_TIME, WAITED, OVERDUE, MISJUDGED),
)
