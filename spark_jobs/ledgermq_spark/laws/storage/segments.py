"""Law O: the room of messages is accounted for in segments, filled and cleaned in turn."""

from ledgermq_spark.laws.law import Law, state_mismatch
from ledgermq_spark.laws.session_frames import POSITIONS_OF_A_STRETCH

FRAMES: dict[str, str] = {}

# Each time a segment gets or loses a live message. `rank` 0: it is appended by a Put, whose
# messages are appended together and in their order; 1: it comes from elsewhere; 2: it is gone, with
# all that goes through its entry if nothing comes through that. A message of a topic takes its room
# once, whoever has copies. A segment without a live message is clean after its entry, or before the
# next Put that looks for room: next at `clean_at`. What segments had where a stretch begins is as
# if it were put there, into the active one last.
FRAMES["room"] = """
WITH
told AS (
    SELECT queue_manager, segment, position, step, put_position, put_index, size_bytes, before,
        after, session >= 0 AS is_put
    FROM {new_moves} JOIN {puts} USING (queue_manager, put_position, put_index)
    WHERE kind <> 'subscription' AND (before = 'new' OR after = 'gone')
),
begun AS (
    SELECT queue_manager, position, put_position, min(step) AS first_step
    FROM told WHERE before = 'new'
    GROUP BY queue_manager, position, put_position
),
turns AS (
    SELECT queue_manager, segment, position, IF(is_put, first_step, step) AS step,
        IF(is_put, 0, 1) AS rank, put_index, size_bytes, 1 AS live, size_bytes AS change_bytes
    FROM told JOIN begun USING (queue_manager, position, put_position) WHERE before = 'new'
    UNION ALL
    SELECT queue_manager, segment, position, step, 2, put_index, size_bytes, -1, -size_bytes
    FROM told LEFT SEMI JOIN begun USING (queue_manager, position) WHERE after = 'gone'
    UNION ALL
    SELECT queue_manager, segment, position, max(step), 2, 0, sum(size_bytes), -count(*),
        -sum(size_bytes)
    FROM told LEFT ANTI JOIN begun USING (queue_manager, position) WHERE after = 'gone'
    GROUP BY queue_manager, segment, position
    UNION ALL
    SELECT queue_manager, segment, position, CAST(is_active AS BIGINT), 0, 0, appended_bytes,
        live_messages, live_bytes
    FROM {segments_before} JOIN {since} USING (queue_manager)
    WHERE is_active OR appended_bytes > 0
),
counted AS (
    SELECT *, sum(live) OVER turn AS live_messages, sum(change_bytes) OVER turn AS live_bytes,
        sum(IF(rank = 0, size_bytes, 0)) OVER turn AS filled_bytes,
        lead(position) OVER turn AS next_position, lead(rank) OVER turn AS next_rank
    FROM turns
    WINDOW turn AS (PARTITION BY queue_manager, segment ORDER BY position, step, rank, put_index)
),
cleaned AS (
    SELECT *, live_messages = 0 AND (next_position IS NULL OR next_position > position
        OR next_rank = 0) AS is_clean
    FROM counted
),
since_clean AS (
    SELECT *, coalesce(max(IF(is_clean, filled_bytes, NULL)) OVER before_it, 0) AS filled_before,
        first(IF(is_clean, struct(position, step), NULL), TRUE) OVER from_it AS clean_at
    FROM cleaned
    WINDOW
        before_it AS (PARTITION BY queue_manager, segment
            ORDER BY position, step, rank, put_index
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING),
        from_it AS (PARTITION BY queue_manager, segment
            ORDER BY position, step, rank, put_index
            ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)
)
SELECT * EXCEPT (filled_bytes, filled_before), filled_bytes - filled_before AS appended_bytes
FROM since_clean
"""
# What Puts append, in the order of the log, each beside the last one before it (`active`), which
# stands in the active segment. No task goes through the whole log: stretch by stretch, as entries.
FRAMES["appended"] = f"""
WITH
puts AS (
    SELECT *, position DIV {POSITIONS_OF_A_STRETCH} AS stretch FROM {{room}} WHERE rank = 0
),
ends AS (
    SELECT queue_manager, stretch, lag(last) OVER (
        PARTITION BY queue_manager ORDER BY stretch) AS last
    FROM (
        SELECT queue_manager, stretch, max_by(struct(segment, appended_bytes, clean_at),
            (position, step, put_index)) AS last
        FROM puts GROUP BY queue_manager, stretch
    )
)
SELECT puts.* EXCEPT (stretch), coalesce(lag(struct(segment, appended_bytes, clean_at)) OVER (
        PARTITION BY queue_manager, stretch ORDER BY position, step, put_index), last) AS active
FROM puts JOIN ends USING (queue_manager, stretch)
"""
# How many segments have something in them, each time that one more or one less has.
FRAMES["segments_used"] = f"""
WITH
turns AS (
    SELECT queue_manager, position, step, 1 AS more FROM {{room}}
    WHERE rank = 0 AND appended_bytes = size_bytes
    UNION ALL
    SELECT queue_manager, position, step, -1 FROM {{room}} WHERE is_clean
),
stretched AS (SELECT *, position DIV {POSITIONS_OF_A_STRETCH} AS stretch FROM turns),
earlier AS (
    SELECT queue_manager, stretch, coalesce(sum(more) OVER (
        PARTITION BY queue_manager ORDER BY stretch
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS count
    FROM (SELECT queue_manager, stretch, sum(more) AS more FROM stretched GROUP BY ALL)
)
SELECT queue_manager, position, more, earlier.count + sum(more) OVER (
    PARTITION BY queue_manager, stretch ORDER BY position, step, more) AS count
FROM stretched JOIN earlier USING (queue_manager, stretch)
"""
# Another segment is begun when a message does not fit into the active one, and only then.
FILLED = state_mismatch("""
WITH
compared AS (
    SELECT puts.*, segment_bytes, active.segment IS NULL OR active.segment = segment AS stays,
        size_bytes + IF(coalesce(active.clean_at < struct(puts.position, step), FALSE), 0,
            coalesce(active.appended_bytes, 0)) AS due_bytes
    FROM {appended} AS puts JOIN {manager_settings} AS setting
        ON puts.queue_manager = setting.queue_manager
        AND from_position < position AND position <= until_position
)
SELECT queue_manager, position, -1 AS store, -1 AS sequence, -1 AS session,
    IF(stays, 'a segment took more than it may', 'a segment was left before it was full, or one '
        || 'was begun that is not clean') AS summary,
    concat(segment_bytes, ' bytes') AS expected,
    concat('segment ', hex(segment), ': ', appended_bytes, ' of ', due_bytes) AS found
FROM compared LEFT ANTI JOIN (
    SELECT queue_manager, from_position AS position FROM {manager_settings}
) USING (queue_manager, position)
WHERE IF(stays, appended_bytes > segment_bytes,
    due_bytes <= segment_bytes OR appended_bytes <> size_bytes)
""")
# Of free segments the one with the lowest number is next. One that is passed over is gone.
PASSED_OVER = state_mismatch("""
WITH
known AS (
    SELECT queue_manager, segment FROM {segments}
    UNION SELECT queue_manager, segment FROM {room}
),
idle AS (
    SELECT queue_manager, segment, struct(position, step) AS since,
        lead(struct(position, step)) OVER (
            PARTITION BY queue_manager, segment ORDER BY position, step, rank, put_index) AS until,
        is_clean
    FROM (
        SELECT queue_manager, segment, position, step, rank, put_index, is_clean FROM {room}
        WHERE rank = 0 OR is_clean
        UNION ALL SELECT queue_manager, segment, -1, -1, -1, -1, TRUE FROM known
    )
),
begun AS (
    SELECT queue_manager, segment, position, step, active.segment AS before_it FROM {appended}
    WHERE active.segment <> segment
)
SELECT begun.queue_manager, begun.position, -1 AS store, -1 AS sequence, -1 AS session,
    'a free segment was passed over' AS summary,
    concat('segment ', hex(idle.segment)) AS expected,
    concat('segment ', hex(begun.segment)) AS found
FROM idle
    LEFT JOIN {segments} AS there USING (queue_manager, segment)
    JOIN begun ON idle.queue_manager = begun.queue_manager AND idle.segment < begun.segment
        AND idle.segment <> begun.before_it
        AND since < struct(begun.position, begun.step)
        AND (until > struct(begun.position, begun.step)
            OR until IS NULL AND there.segment IS NOT NULL)
WHERE is_clean
""")
# There are no more segments with something in them than there may be, as far as they are new. The
# active one takes what it has room for, also where there may be fewer by now than there are. An
# operation that says how many there may be lets in what waits under what it says.
TOO_MANY = state_mismatch("""
SELECT used.queue_manager, position, -1 AS store, -1 AS sequence, -1 AS session,
    'more segments are in use than there may be' AS summary,
    segments_max AS expected, count AS found
FROM {segments_used} AS used JOIN {manager_settings} AS setting
    ON used.queue_manager = setting.queue_manager
    AND from_position < position AND position <= until_position
    LEFT SEMI JOIN {appended} AS begun ON begun.queue_manager = used.queue_manager
        AND begun.position = used.position AND active.segment <> segment
    LEFT ANTI JOIN {manager_settings} AS said ON said.queue_manager = used.queue_manager
        AND said.from_position = used.position
WHERE more > 0 AND segments_max > 0 AND count > segments_max
""")
# What a segment has in the end is what was appended to it since it was clean, less what is gone.
HELD = state_mismatch("""
WITH last AS (
    SELECT queue_manager, segment, max_by(struct(live_messages, live_bytes, IF(is_clean, 0,
        appended_bytes) AS appended_bytes), (position, step, rank, put_index)) AS due
    FROM {room} GROUP BY queue_manager, segment
)
SELECT queue_manager, -1 AS position, -1 AS store, -1 AS sequence, -1 AS session,
    concat('segment ', hex(segment), ' does not hold what was put into it and is there') AS summary,
    concat_ws(' ', coalesce(due.live_messages, 0), 'messages', coalesce(due.live_bytes, 0), 'of',
        coalesce(due.appended_bytes, 0), 'bytes') AS expected,
    IF(told.segment IS NULL, 'gone', concat_ws(' ', live_messages, 'messages', live_bytes, 'of',
        appended_bytes, 'bytes')) AS found
FROM last FULL JOIN {segments} AS told USING (queue_manager, segment)
WHERE NOT (coalesce(due.live_messages, 0) <=> coalesce(live_messages, 0)
    AND coalesce(due.live_bytes, 0) <=> coalesce(live_bytes, 0)
    AND coalesce(due.appended_bytes, 0) <=> coalesce(appended_bytes, 0))
""")
# There are as many as there have to be. While nothing changes that, there are more only if so many
# were in use at once.
TOO_FEW = state_mismatch("""
WITH
asked AS (
    SELECT queue_manager, max_by(segments_min, from_position) AS least, count(*) > 1 AS has_changed
    FROM {manager_settings} GROUP BY queue_manager
),
told AS (SELECT queue_manager, count(*) AS count FROM {segments} GROUP BY queue_manager),
used AS (
    SELECT queue_manager, max(count) AS most FROM {segments_used} GROUP BY queue_manager
)
SELECT queue_manager, -1 AS position, -1 AS store, -1 AS sequence, -1 AS session,
    'there is another number of segments than there has to be' AS summary,
    greatest(least, most) AS expected, count AS found
FROM told JOIN asked USING (queue_manager) LEFT JOIN used USING (queue_manager)
    LEFT ANTI JOIN {since} USING (queue_manager)
WHERE count < least OR NOT has_changed AND count <> greatest(least, most)
""")
LAW = Law(
    letter="O",
    sentence="Messages are appended to segments in turn, none of which takes more than it may, and "
    "each of which is clean again once nothing in it is live.",
    breaches=(FILLED, PASSED_OVER, TOO_MANY, TOO_FEW, HELD),
)
