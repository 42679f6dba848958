"""Frames of entries and sessions: state time after each entry, from when until when each session is
there, and how its operations are numbered.

What falls due at an entry happens before its operation: `ended_due` says that a session, or
`connection_ended_due` that the last one of its connection, was gone when that operation came.
"""

from ledgermq.protocol.limits import REPLIES_MAX

FRAMES: dict[str, str] = {}

# No task goes through a whole log in its order: it is looked at in stretches of positions, each of
# which is told the last entry before it and the first one behind it.
POSITIONS_OF_A_STRETCH = 8192
FRAMES["entries"] = f"""
WITH
stretched AS (
    SELECT *, position DIV {POSITIONS_OF_A_STRETCH} AS stretch FROM {{clock}}
),
ends AS (
    SELECT queue_manager, stretch, lag(last) OVER by_stretch AS last,
        lead(first) OVER by_stretch AS first
    FROM (
        SELECT queue_manager, stretch, min(position) AS first,
            max_by(struct(position, time_us, reference_us), position) AS last
        FROM stretched GROUP BY queue_manager, stretch
    )
    WINDOW by_stretch AS (PARTITION BY queue_manager ORDER BY stretch)
),
beside AS (
    SELECT *, lag(struct(position, time_us, reference_us)) OVER entry AS one_before,
        lead(position) OVER entry AS one_behind
    FROM stretched WINDOW entry AS (PARTITION BY queue_manager, stretch ORDER BY position)
)
SELECT queue_manager, position, time_us, reference_us, coalesce(one_before, last) AS before_it,
    coalesce(one_behind, first) AS next_position
FROM beside JOIN ends USING (queue_manager, stretch)
"""
# From when the deadlines of each operation count (§6), with state time before and after it.
FRAMES["operation_times"] = """
SELECT queue_manager, position, time_us, before_it.time_us AS before_us,
    greatest(time_us, IF(trusted, append_time_us, time_us)) AS begins_us
FROM {operations} JOIN {entries} USING (queue_manager, position)
"""
FRAMES["log_end"] = """
SELECT queue_manager, max(position) AS end_at, max(time_us) AS end_us FROM {clock}
GROUP BY queue_manager
"""
# Each session that was opened. A connection is there from the first of its sessions on until all
# have ended (SES-39); its lane, client id and takeover are those of that first one (§5).
FRAMES["sessions"] = """
WITH
ends AS (
    SELECT queue_manager, session AS position, min(struct(position, index, reason)) AS end
    FROM {outcomes} WHERE kind = 'SessionEnded'
    GROUP BY queue_manager, session
),
opened AS (
    SELECT queue_manager, position AS session, acknowledge_mode, suspect_timeout_ms,
        redelivery_delay_ms, lower(hex(connection)) AS connection, lane, client_id,
        lower(hex(takeover)) AS takeover, end.position AS ended_at, end.index AS ended_index,
        end.reason AS ended_as, coalesce(end.reason IN ('LOST', 'UNCONFIRMED'), FALSE) AS ended_due,
        coalesce(CAST(get_json_object(settings, '$.unit_of_work_time_limit_ms') AS BIGINT), 0)
            AS unit_of_work_time_limit_ms,
        coalesce(CAST(get_json_object(settings, '$.unit_of_work_idle_limit_ms') AS BIGINT), 0)
            AS unit_of_work_idle_limit_ms
    FROM {operations}
    LEFT SEMI JOIN (SELECT queue_manager, position FROM {outcomes} WHERE kind = 'Opened')
        USING (queue_manager, position)
    LEFT JOIN ends USING (queue_manager, position)
    WHERE kind = 'Open'
),
eras AS (
    SELECT *, count_if(is_first) OVER (PARTITION BY queue_manager, connection ORDER BY session)
        AS era
    FROM (
        SELECT *, coalesce(session >= max(coalesce(ended_at, 9223372036854775807)) OVER (
            PARTITION BY queue_manager, connection ORDER BY session
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), TRUE) AS is_first
        FROM opened
    )
),
connections AS (
    SELECT queue_manager, connection, era, min(session) AS connection_opened_at,
        IF(count(*) = count(ended_at), max(struct(ended_at, ended_index, ended_due)), NULL) AS last
    FROM eras GROUP BY ALL
)
SELECT eras.* EXCEPT (era, is_first), connection_opened_at, last.ended_at AS connection_ended_at,
    last.ended_index AS connection_ended_index, last.ended_due AS connection_ended_due
FROM eras JOIN connections USING (queue_manager, connection, era)
"""
FRAMES["connection_ends"] = """
SELECT DISTINCT queue_manager, connection, connection_ended_at AS position,
    connection_ended_index AS index
FROM {sessions} WHERE connection_ended_at IS NOT NULL
"""
# Every operation of a session, with what was told at once of it, and with what §4 makes of its
# number: `session-unknown`, `reply-forgotten`, `session-sequence-gap`, `session-window-full`;
# `again` a retry that is given the first answer, `waits` one of what waits; `next` is the session's
# next operation. `told_index` is where among the outcomes of its entry its answer is; null: none.
FRAMES["conduct"] = f"""
WITH
answers AS (
    SELECT queue_manager, session, session_sequence, position, max(index) AS told_index,
        max_by(kind, index) AS told, max_by(IF(kind = 'Refused', reason, NULL), index)
            AS told_reason, max_by(number, index) AS told_number
    FROM {{outcomes}}
    WHERE session_sequence IS NOT NULL AND kind <> 'Delivered'
    GROUP BY ALL
),
first AS (
    SELECT queue_manager, session, session_sequence, position AS first_at, replied_at,
        reply_reason AS first_reason
    FROM {{applied}}
),
asked AS (
    SELECT operation.*, told_index, told, told_reason, told_number,
        one.acknowledge_mode AS mode, one.connection AS of_connection,
        one.client_id AS of_client_id, one.session IS NOT NULL AS is_open,
        first_at, replied_at, first_reason, coalesce(first_at = position, FALSE) AS is_applied
    FROM (
        SELECT * EXCEPT (acknowledge_mode, connection, client_id, lane, session_key, takeover,
            suspect_timeout_ms)
        FROM {{operations}} WHERE session IS NOT NULL
    ) AS operation
    LEFT JOIN answers USING (queue_manager, session, session_sequence, position)
    LEFT JOIN first USING (queue_manager, session, session_sequence)
    LEFT JOIN {{sessions}} AS one ON one.queue_manager = operation.queue_manager
        AND one.session = operation.session AND one.session < operation.position
        AND (ended_at IS NULL OR ended_at > operation.position
            OR ended_at = operation.position AND NOT ended_due)
),
numbered AS (
    SELECT *, coalesce(max(IF(is_applied, session_sequence, NULL)) OVER (
        PARTITION BY queue_manager, session, is_open ORDER BY position
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS last_number
    FROM asked
),
answered AS (
    SELECT *, greatest(0, max(least(answered_through, last_number)) OVER (
        PARTITION BY queue_manager, session, is_open ORDER BY position)) AS answered_number
    FROM numbered
)
SELECT *, CASE
    WHEN NOT is_open THEN 'session-unknown'
    WHEN session_sequence <= last_number AND first_at < position
        AND (replied_at IS NULL OR replied_at >= position) THEN 'waits'
    WHEN session_sequence <= answered_number THEN 'reply-forgotten'
    WHEN session_sequence <= last_number THEN 'again'
    WHEN session_sequence > last_number + 1 THEN 'session-sequence-gap'
    WHEN last_number - answered_number >= {REPLIES_MAX} THEN 'session-window-full'
    ELSE 'next' END AS conduct
FROM answered
"""
# Units of work that were rolled back though their sessions did not ask for it, with what operations
# of such a session are refused for until it rolls back itself: by administration (§18) or a limit.
FRAMES["forced_rollbacks"] = """
SELECT queue_manager, number AS session, replied_at AS position, reply_index AS index,
    'unit-of-work-ended' AS reason
FROM {applied} WHERE kind = 'RollbackTransaction' AND reply <> 'Refused'
UNION ALL
SELECT queue_manager, session, position, index, 'unit-of-work-timed-out'
FROM {outcomes} WHERE kind = 'Returned' AND session_sequence = 0
"""
# Where what a session held came back though it did not ask for that: it was lost or ended, or its
# unit of work was rolled back.
FRAMES["losses"] = """
SELECT queue_manager, session, position FROM {outcomes}
WHERE kind = 'SessionEnded' AND session_sequence = 0
UNION
SELECT queue_manager, session, position FROM {forced_rollbacks}
"""
