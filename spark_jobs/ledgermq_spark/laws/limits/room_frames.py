"""Frames of room: what queues, topics and all of them hold, and the puts that wait for room."""

from ledgermq_spark.laws.limits.message_frames import rounded
from ledgermq_spark.laws.refusals.expressions import BYTES
from ledgermq_spark.laws.session_frames import POSITIONS_OF_A_STRETCH

FRAMES: dict[str, str] = {}

# What came to queues and topics and what left them, in the order of the moves (§16): a message of a
# topic counts there, however many subscriptions have it. What a Put brings and nobody wants counts
# for nothing, but stands here, since the Put had to fit with it. It is asked where there is any
# limit, of the queue or topic or of all together.
FRAMES["room_changes"] = """
WITH
limits AS (
    SELECT queue_manager, store, kind FROM {quotas}
    WHERE messages_max > 0 OR bytes_max > 0 OR messages_resume > 0 OR bytes_resume > 0
),
limited AS (
    SELECT * FROM limits
    UNION
    SELECT queue_manager, store, kind
    FROM {quotas} LEFT SEMI JOIN (SELECT * FROM limits WHERE kind = 'all') USING (queue_manager)
)
SELECT moves.queue_manager, moves.position, step, store, kind, moves.destination,
    moves.put_position, moves.put_index, moves.session,
    before = 'new' AND moves.session >= 0 AS is_put, size_bytes,
    CASE WHEN before = 'new' AND after <> 'gone' THEN 1
        WHEN before <> 'new' AND after = 'gone' THEN -1 ELSE 0 END AS change
FROM {moves} AS moves LEFT SEMI JOIN limited USING (queue_manager, store, kind)
    JOIN {brought} USING (queue_manager, put_position, put_index)
WHERE kind <> 'subscription' AND (before = 'new' OR after = 'gone')
"""
# What each queue or topic holds, and all together (`store` -1), before and after each change. All
# is summed up by stretches of the log, so that nothing runs over the whole log at once.
FRAMES["held"] = f"""
WITH
both AS (
    SELECT queue_manager, store, kind, position, step, is_put, put_position, size_bytes, change,
        0 AS stretch
    FROM {{room_changes}}
    UNION ALL
    SELECT queue_manager, -1, 'all', position, step, is_put, put_position, size_bytes, change,
        position DIV {POSITIONS_OF_A_STRETCH}
    FROM {{room_changes}}
),
earlier AS (
    SELECT queue_manager, store, kind, stretch,
        coalesce(sum(messages) OVER before_it, 0) AS messages,
        coalesce(sum(bytes) OVER before_it, 0) AS bytes
    FROM (
        SELECT queue_manager, store, kind, stretch, sum(change) AS messages,
            sum(change * size_bytes) AS bytes
        FROM both GROUP BY ALL
    )
    WINDOW before_it AS (PARTITION BY queue_manager, store, kind ORDER BY stretch
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
)
SELECT both.*, earlier.messages + sum(change) OVER until_it AS messages,
    earlier.bytes + sum(change * size_bytes) OVER until_it AS bytes
FROM both JOIN earlier USING (queue_manager, store, kind, stretch)
WINDOW until_it AS (PARTITION BY queue_manager, store, kind, stretch ORDER BY position, step
    ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
"""
# Quotas in force at a queue or topic, and of all (`store` -1); 0 is none.
FRAMES["quotas"] = """
SELECT queue_manager, store, kind, destination, from_position, until_position, messages_max,
    bytes_max, messages_resume, bytes_resume, blocking_send_policy
FROM {settings} WHERE kind <> 'subscription'
UNION ALL
SELECT queue_manager, -1, 'all', NULL, from_position, until_position, messages_max, bytes_max,
    messages_resume, bytes_resume, NULL
FROM {manager_settings}
"""
# Puts that were not answered at once (§16): until when they waited (null: they wait), how they were
# answered, and their deadline.
FRAMES["waiting_puts"] = f"""
SELECT queue_manager, session, session_sequence, put.position, target AS destination,
    CAST(size(message_ids) AS BIGINT) AS messages,
    {BYTES} AS bytes,
    IF(replied_at = position, NULL, replied_at) AS answered_at, reply_index, reply,
    {rounded("greatest(time_us, IF(trusted, append_time_us, 0)) + number * 1000")} AS deadline_us
FROM {{applied}} AS put JOIN {{clock}} USING (queue_manager, position)
WHERE kind = 'Put' AND (replied_at > position OR replied_at IS NULL)
"""
