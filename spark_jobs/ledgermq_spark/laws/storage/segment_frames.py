"""Frames of segments: what comes into each and goes, and how many are in use."""

from __future__ import annotations

from typing import Final

from ledgermq_spark.laws.entry_frames import POSITIONS_OF_A_STRETCH

# Each time a segment gets or loses a live message. `rank` 0: it is appended by a Put, whose
# messages are appended together and in their order; 1: it comes from elsewhere; 2: it is gone, with
# all that goes through its entry if nothing comes through that. A message of a topic takes its room
# once, whoever has copies. A segment without a live message is clean after its entry, or before the
# next Put that looks for room: next at `clean_at`. What segments had where a stretch begins is as
# if it were put there, into the active one last.
ROOM: Final = """
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
APPENDED: Final = f"""
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
USED: Final = f"""
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
FRAMES: Final = {
    "room": ROOM,
    "appended": APPENDED,
    "segments_used": USED,
}
