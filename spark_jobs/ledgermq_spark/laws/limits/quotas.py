"""Law K: no put goes above a quota; what waits for room has none, and goes on when it has."""

from ledgermq_spark.laws.law import Law, lost, reordered, state_mismatch

# All messages of a Put with what was there before them, by the quotas in force at that entry: where
# one changes at it, the larger of both.
EXCEEDED = state_mismatch("""
WITH
puts AS (
    SELECT queue_manager, store, kind, position, put_position,
        min_by(messages - change, step) + count(*) AS messages,
        min_by(bytes - change * size_bytes, step) + sum(size_bytes) AS bytes
    FROM {held} WHERE is_put
    GROUP BY ALL
),
judged AS (
    SELECT puts.*, max(IF(messages_max = 0, NULL, messages_max)) AS messages_max,
        max(IF(bytes_max = 0, NULL, bytes_max)) AS bytes_max,
        bool_or(messages_max = 0) AS any_messages, bool_or(bytes_max = 0) AS any_bytes
    FROM puts JOIN {quotas} USING (queue_manager, store, kind)
    WHERE position BETWEEN from_position AND until_position
    GROUP BY ALL
)
SELECT queue_manager, position, store, -1 AS sequence, -1 AS session,
    concat('a put went above the quota of ',
        IF(store < 0, 'the queue manager', 'its destination')) AS summary,
    concat_ws(' ', messages_max, 'messages', bytes_max, 'bytes') AS expected,
    concat_ws(' ', messages, 'messages', bytes, 'bytes') AS found
FROM judged
WHERE NOT any_messages AND messages > messages_max OR NOT any_bytes AND bytes > bytes_max
""")
# A put that another one waits before: one of its session, or any where the policy is FIFO (INF-18).
PASSED = reordered("""
WITH
both AS (
    SELECT queue_manager, destination, session, position AS put_position,
        coalesce(answered_at, 9223372036854775807) AS until_at,
        coalesce(reply_index, 0) AS until_index,
        CAST(NULL AS BIGINT) AS taken_at, CAST(NULL AS BIGINT) AS taken_index
    FROM {waiting_puts}
    UNION ALL
    SELECT DISTINCT queue_manager, destination, session, put_position, NULL, NULL, replied_at,
        reply_index
    FROM {brought} LEFT SEMI JOIN {waiting_puts} USING (queue_manager, destination)
    WHERE replied_at IS NOT NULL
),
ordered AS (
    SELECT *,
        max(IF(until_at IS NULL, NULL, struct(until_at, until_index))) OVER (
            PARTITION BY queue_manager, destination ORDER BY put_position
            RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS others_until,
        max(IF(until_at IS NULL, NULL, struct(until_at, until_index))) OVER (
            PARTITION BY queue_manager, destination, session ORDER BY put_position
            RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS own_until
    FROM both
),
policies AS (
    SELECT one.*, coalesce(bool_and(blocking_send_policy = 'FIFO'), TRUE) AS is_fifo
    FROM ordered AS one LEFT JOIN {quotas} AS quota ON one.queue_manager = quota.queue_manager
        AND one.destination = quota.destination
        AND taken_at BETWEEN from_position AND until_position
    WHERE taken_at IS NOT NULL
    GROUP BY ALL
)
SELECT queue_manager, taken_at AS position, -1 AS store, -1 AS sequence, session,
    'a put passed an earlier one to its destination that waited' AS summary,
    'behind it' AS expected, concat('put at ', put_position) AS found
FROM policies
WHERE IF(is_fifo, others_until, own_until)
    > struct(taken_at AS until_at, taken_index AS until_index)
""")
# Seen where it comes to be the first of its destination that waits, and at the last entry at whose
# end it waits: there its destination or all must be too full for it. The storage may be what holds
# it up wherever it has a limit (§19); a quota with a resume mark may until it has drained to it.
HELD_UP = lost("""
WITH
firsts AS (
    SELECT *, greatest(position, max(coalesce(answered_at, 9223372036854775807)) OVER (
        PARTITION BY queue_manager, destination ORDER BY position
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)) AS first_at
    FROM {waiting_puts}
),
clocked AS (
    SELECT queue_manager, position AS seen_at,
        coalesce(next_position, 9223372036854775807) AS next_at
    FROM {entries}
),
seen AS (
    SELECT firsts.*, first_at AS seen_at FROM firsts
    WHERE first_at < coalesce(answered_at, 9223372036854775807)
    UNION
    SELECT firsts.*, seen_at
    FROM firsts JOIN clocked ON firsts.queue_manager = clocked.queue_manager
        AND coalesce(answered_at, 9223372036854775807) = next_at
    WHERE first_at <= seen_at
),
limited AS (
    SELECT seen.queue_manager, seen.session, seen.position, seen.destination, seen.messages,
        seen.bytes, seen_at, quota.store, quota.kind, quota.messages_max, quota.bytes_max,
        quota.messages_resume, quota.bytes_resume,
        -- Where nobody waited before it, the quota of its destination held nothing up.
        seen_at = seen.position AND quota.destination IS NOT NULL AS is_alone
    FROM seen JOIN {quotas} AS quota ON seen.queue_manager = quota.queue_manager
        AND (seen.destination = quota.destination OR quota.destination IS NULL)
        AND from_position <= seen_at AND seen_at < until_position
),
timeline AS (
    SELECT queue_manager, store, kind, position AS at, step, messages AS held, bytes AS held_bytes,
        NULL AS put FROM {held}
    UNION ALL
    SELECT queue_manager, store, kind, seen_at, 9223372036854775807, NULL, NULL,
        struct(position, session, messages, bytes, messages_max, bytes_max, messages_resume,
            bytes_resume, is_alone)
    FROM limited
),
filled AS (
    SELECT *, coalesce(last(held, TRUE) OVER until_it, 0) AS there,
        coalesce(last(held_bytes, TRUE) OVER until_it, 0) AS bytes_there
    FROM timeline
    WINDOW until_it AS (PARTITION BY queue_manager, store, kind ORDER BY at, step)
),
judged AS (
    SELECT queue_manager, put.position, put.session, at, bool_or(
        put.messages_max > 0 AND there + put.messages > put.messages_max
        OR put.bytes_max > 0 AND bytes_there + put.bytes > put.bytes_max
        OR NOT put.is_alone AND (put.messages_resume > 0 AND there > put.messages_resume
            OR put.bytes_resume > 0 AND bytes_there > put.bytes_resume)) AS is_full
    FROM filled WHERE put IS NOT NULL
    GROUP BY ALL
)
SELECT judged.queue_manager, at AS position, -1 AS store, -1 AS sequence, session,
    'a put waited though there was room for it' AS summary, 'put' AS expected,
    concat('put at ', position, ' waits') AS found
FROM judged JOIN {manager_settings} AS manager ON judged.queue_manager = manager.queue_manager
    AND from_position <= at AND at < until_position
WHERE NOT is_full AND segments_max = 0
""")
# One that found a quota used up, above its resume mark, is not put before that has drained to it:
# when it came, and where others were put last while it was the first that waited on. Not asked
# where the quota was altered meanwhile.
UNDRAINED = reordered("""
WITH
admitted AS (
    SELECT queue_manager, put_position AS position, position AS answered_at, min(step) AS step
    FROM {moves} LEFT SEMI JOIN (SELECT queue_manager, position AS put_position FROM {waiting_puts})
        USING (queue_manager, put_position)
    WHERE before = 'new' AND kind <> 'subscription' AND session >= 0
    GROUP BY ALL
),
marks AS (SELECT * FROM {quotas} WHERE messages_resume > 0 OR bytes_resume > 0),
marked AS (
    SELECT one.queue_manager, session, one.position, messages, bytes, answered_at, step, store,
        mark.kind, messages_max, bytes_max, messages_resume, bytes_resume
    FROM {waiting_puts} AS one JOIN admitted USING (queue_manager, position, answered_at)
    JOIN marks AS mark ON mark.queue_manager = one.queue_manager
        AND (one.destination = mark.destination OR mark.destination IS NULL)
        AND from_position < one.position AND answered_at < until_position
),
-- What others were put last before it was, and where.
others AS (
    SELECT queue_manager, store, kind, position, max(struct(put_at AS position, put_step AS step))
            AS last
    FROM marked JOIN (
        SELECT queue_manager, store, kind, position AS put_at, step AS put_step FROM {held}
        WHERE is_put
    ) USING (queue_manager, store, kind)
    WHERE put_at > position AND put_at < answered_at
    GROUP BY ALL
),
earlier AS (
    SELECT one.queue_manager, one.position, max(coalesce(before.answered_at,
        9223372036854775807)) AS others_until
    FROM {waiting_puts} AS one JOIN {waiting_puts} AS before
        ON before.queue_manager = one.queue_manager AND before.destination = one.destination
    WHERE before.position < one.position
    GROUP BY ALL
),
begins AS (
    SELECT queue_manager, store, kind, position, struct(position, -1L AS step) AS since FROM marked
    UNION ALL
    SELECT queue_manager, store, kind, position, last
    FROM others LEFT JOIN earlier USING (queue_manager, position)
    WHERE coalesce(others_until <= last.position, TRUE)
),
asked AS (
    SELECT *, since.position AS since_at
    FROM marked JOIN begins USING (queue_manager, store, kind, position)
),
timeline AS (
    SELECT held.queue_manager, held.store, held.kind, position AS at, step, 1 AS part,
        messages AS held, bytes AS held_bytes,
        (messages_resume = 0 OR messages <= messages_resume)
            AND (bytes_resume = 0 OR bytes <= bytes_resume) AS is_drained, NULL AS put, NULL AS ends
    FROM (
        SELECT * FROM {held} LEFT SEMI JOIN marked USING (queue_manager, store, kind)
    ) AS held LEFT JOIN marks AS mark ON mark.queue_manager = held.queue_manager
        AND mark.store = held.store AND mark.kind = held.kind AND from_position <= position
        AND position < until_position
    UNION ALL
    SELECT queue_manager, store, kind, IF(ends, answered_at, since_at),
        IF(ends, step, 9223372036854775807), 0, NULL, NULL, NULL, struct(position, session, since,
            messages, bytes, messages_max, bytes_max, messages_resume, bytes_resume), ends
    FROM asked LATERAL VIEW explode(array(FALSE, TRUE)) AS ends
),
filled AS (
    SELECT *, coalesce(last(held, TRUE) OVER until_it, 0) AS there,
        coalesce(last(held_bytes, TRUE) OVER until_it, 0) AS bytes_there,
        last(IF(is_drained, struct(at AS position, step), NULL), TRUE) OVER until_it
            AS drained_at
    FROM timeline
    WINDOW until_it AS (PARTITION BY queue_manager, store, kind ORDER BY at, step, part)
),
judged AS (
    SELECT queue_manager, store, put.position AS put_position, put.session, put.since,
        max(IF(ends, at, NULL)) AS position, max(IF(ends, drained_at, NULL)) AS drained_at,
        bool_or(NOT ends AND (put.messages_max > 0 AND there + put.messages > put.messages_max
            OR put.bytes_max > 0 AND bytes_there + put.bytes > put.bytes_max)
            AND (put.messages_resume > 0 AND there > put.messages_resume
                OR put.bytes_resume > 0 AND bytes_there > put.bytes_resume)) AS is_held_up
    FROM filled WHERE put IS NOT NULL
    GROUP BY ALL
)
SELECT queue_manager, position, store, -1 AS sequence, session,
    'a put went on before its quota had drained to the resume mark' AS summary,
    'waits' AS expected, concat('put at ', put_position) AS found
FROM judged WHERE is_held_up AND coalesce(drained_at < since, TRUE)
""")
# It is refused at the first entry at which its deadline has come, and before only where its unit of
# work ends, or where it comes to exceed a quota by itself.
TIMED = state_mismatch("""
WITH clocked AS (
    SELECT queue_manager, position AS answered_at, time_us, before_it.time_us AS before_us
    FROM {entries}
),
ends AS (
    SELECT DISTINCT queue_manager, session, position AS answered_at, TRUE AS is_end FROM {outcomes}
    WHERE kind IN ('Returned', 'SessionEnded')
    UNION
    SELECT queue_manager, session, position, TRUE FROM {forced_rollbacks}
),
too_large AS (
    SELECT DISTINCT one.queue_manager, one.position, TRUE AS is_too_large
    FROM {waiting_puts} AS one JOIN {quotas} AS quota ON one.queue_manager = quota.queue_manager
        AND (one.destination = quota.destination OR quota.destination IS NULL)
        AND answered_at BETWEEN from_position AND until_position
    WHERE messages_max BETWEEN 1 AND messages - 1 OR bytes_max BETWEEN 1 AND bytes - 1
),
refusals AS (
    SELECT queue_manager, session, session_sequence, position AS answered_at, reason FROM {outcomes}
    WHERE kind = 'Refused'
)
SELECT one.queue_manager, coalesce(answered_at, end_at) AS position, -1 AS store,
    -1 AS sequence, session, 'a put did not time out when it had to' AS summary,
    deadline_us AS expected, coalesce(time_us, end_us) AS found
FROM {waiting_puts} AS one LEFT JOIN clocked USING (queue_manager, answered_at)
    LEFT JOIN ends USING (queue_manager, session, answered_at)
    LEFT JOIN refusals USING (queue_manager, session, session_sequence, answered_at)
    LEFT JOIN too_large USING (queue_manager, position)
    JOIN {log_end} USING (queue_manager)
WHERE deadline_us <= IF(answered_at IS NULL, end_us, before_us)
    OR reason = 'quota-exceeded' AND deadline_us > time_us AND is_end IS NULL
        AND is_too_large IS NULL
""")
# A commit waits for the puts of its session that came before it, and no longer (H18); nothing waits
# beyond the end of its unit of work or session; and what waits gets no answer when sent again (§4).
ANSWERED = lost("""
WITH
late AS (
    SELECT queue_manager, session, session_sequence, position, kind,
        IF(replied_at > position, replied_at, NULL) AS answered_at
    FROM {applied}
    WHERE kind IN ('Put', 'Commit') AND (replied_at > position OR replied_at IS NULL)
),
ends AS (
    SELECT queue_manager, session, position AS ended_at FROM {outcomes} WHERE kind = 'SessionEnded'
    UNION
    SELECT queue_manager, session, replied_at FROM {applied}
    WHERE kind = 'Rollback' AND reply <> 'Refused'
    UNION
    SELECT queue_manager, session, position FROM {forced_rollbacks}
),
commits AS (
    SELECT commit.queue_manager, commit.session, commit.position, commit.answered_at,
        count(*) = count(put.answered_at) AS is_due, max(put.answered_at) AS due_at
    FROM late AS commit JOIN late AS put ON commit.queue_manager = put.queue_manager
        AND commit.session = put.session
    WHERE commit.kind = 'Commit' AND put.kind = 'Put' AND put.position < commit.position
        AND coalesce(put.answered_at > commit.position, TRUE)
    GROUP BY ALL
)
SELECT queue_manager, coalesce(least(answered_at, IF(is_due, due_at, NULL)), position) AS position,
    -1 AS store, -1 AS sequence, session,
    'a commit was not answered with the last put that it waited for' AS summary,
    coalesce(CAST(IF(is_due, due_at, NULL) AS STRING), 'waiting') AS expected,
    coalesce(CAST(answered_at AS STRING), 'waiting') AS found
FROM commits WHERE NOT answered_at <=> IF(is_due, due_at, NULL)
UNION ALL
SELECT queue_manager, ended_at, -1, -1, session,
    'what waits outlived its unit of work or session', CAST(ended_at AS STRING),
    coalesce(CAST(answered_at AS STRING), 'waiting')
FROM late JOIN ends USING (queue_manager, session)
WHERE ended_at > position AND coalesce(answered_at > ended_at, TRUE)
UNION ALL
SELECT queue_manager, told.position, -1, -1, session, 'what waits was answered when sent again',
    'nothing', told.kind
FROM late JOIN {outcomes} AS told USING (queue_manager, session, session_sequence)
WHERE told.position > late.position AND coalesce(told.position < answered_at, TRUE)
""")
# A session holds no more of a queue or subscription than `unacknowledged_max` when it is given more
# (SES-07); what comes in segments may come whole.
HOLDS_TOO_MUCH = state_mismatch("""
WITH
flights AS (
    SELECT queue_manager, position, step, store, kind, destination, sequence, session,
        IF(after IN ('unacknowledged', 'uncommitted get'), 1, -1) AS change
    FROM {moves} LEFT SEMI JOIN (SELECT * FROM {settings} WHERE unacknowledged_max > 0)
        USING (queue_manager, store, kind, destination)
    WHERE 'unacknowledged' IN (before, after) OR 'uncommitted get' IN (before, after)
),
held AS (
    SELECT *, sum(change) OVER (PARTITION BY queue_manager, store, kind, session
        ORDER BY position, step ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS holds
    FROM flights
)
SELECT queue_manager, position, store, sequence, session,
    'a session was given more of a queue or subscription than it may hold' AS summary,
    max(unacknowledged_max) AS expected, max(holds) AS found
FROM held JOIN {settings} USING (queue_manager, store, kind, destination)
    JOIN (SELECT queue_manager, store, kind, sequence, coalesce(
        get_json_object(header, '$.g.f') LIKE '%s%', FALSE) AS is_segment FROM {lives})
        USING (queue_manager, store, kind, sequence)
WHERE change = 1 AND NOT is_segment AND position BETWEEN from_position AND until_position
GROUP BY queue_manager, position, step, store, sequence, session
HAVING bool_and(unacknowledged_max > 0 AND holds > unacknowledged_max)
""")
LAW = Law(
    letter="K",
    sentence="No put goes above a quota or passes one that waits; what waits has no room, goes on "
    "when it has and is refused at its deadline; nobody is given more than it may hold.",
    breaches=(EXCEEDED, PASSED, HELD_UP, UNDRAINED, TIMED, ANSWERED, HOLDS_TOO_MUCH),
)
