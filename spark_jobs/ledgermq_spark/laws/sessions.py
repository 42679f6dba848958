"""Law L: a session's numbers act once, its replies stay, and it ends when its time is over."""

from __future__ import annotations

from typing import Final

from ledgermq_spark.laws.law import Law, altered_outcome, reordered, state_mismatch
from ledgermq_spark.laws.limits.message_frames import rounded

_HELD: Final = "('uncommitted put', 'uncommitted get')"
# Where a unit of work began; a limit that is altered later counts from state time then (§5).
_BEGAN_US: Final = "IF(altered_at > began_at, began.time_us, began.begins_us)"


def _due_us(limit: str, since: str) -> str:
    """When a limit is broken, by the shorter one of queue manager and session; null: never."""
    of_both = f"nullif(manager.{limit}, 0), nullif(one.{limit}, 0)"
    return rounded(f"{since} + 1000 * least({of_both})")


# A unit of work ends by itself exactly when a limit is over. Each session that may have one is
# looked at from each point where that changes to the next: something is put, got or gone, a commit
# leaves deliveries in flight, limits are altered. What is due comes before the operation of an
# entry, so a unit of work does not get to a point behind its limit, unless other things that were
# due there came first: its session was lost, it lost all it held with a temporary destination, or
# was given something, which ends its idleness. Altered limits may be over already: then it ends at
# the entry behind. What began before a stretch is not judged in that.
TIMED = state_mismatch(f"""
WITH
timed_out AS (
    SELECT queue_manager, session, position FROM {{forced_rollbacks}}
    WHERE reason = 'unit-of-work-timed-out'
),
altered AS (
    SELECT queue_manager, replied_at AS position FROM {{applied}}
    WHERE kind = 'AlterQueueManager' AND reply <> 'Refused' AND settings LIKE '%unit_of_work_%'
),
limited AS (
    SELECT queue_manager, session, ended_at, ended_due, unit_of_work_time_limit_ms,
        unit_of_work_idle_limit_ms
    FROM {{sessions}}
        LEFT JOIN (SELECT DISTINCT queue_manager, TRUE AS has_altered FROM altered)
            USING (queue_manager)
        LEFT JOIN (SELECT DISTINCT queue_manager, session, TRUE AS has_ended FROM timed_out)
            USING (queue_manager, session)
    WHERE acknowledge_mode = 'TRANSACTED' AND (has_altered OR has_ended
        OR unit_of_work_time_limit_ms > 0 OR unit_of_work_idle_limit_ms > 0)
),
held AS (
    SELECT *, sum(change) OVER (PARTITION BY queue_manager, session ORDER BY position, step
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS holds
    FROM (
        SELECT queue_manager, session, position, step,
            IF(after IN {_HELD}, 1, 0) - IF(before IN {_HELD}, 1, 0) AS change,
            after = 'uncommitted get' OR position > put_position AS is_given,
            before = 'uncommitted put' AND coalesce(cause, '') = 'purged' AS is_purged
        FROM {{moves}} LEFT SEMI JOIN limited USING (queue_manager, session)
        WHERE before IN {_HELD} OR after IN {_HELD}
    )
),
points AS (
    SELECT queue_manager, session, position, max(holds) AS holds, max(takes) AS takes,
        max(begins) AS begins, max(is_excused) AS is_excused, max(is_given) AS is_given,
        max(turn = 'commit') AS commits, max(turn = 'altered') AS alters,
        max(turn = 'timed out') AS is_timed_out
    FROM (
        SELECT queue_manager, session, position, 'moves' AS turn, max_by(holds, step) AS holds,
            max(change > 0) AS takes, max(change > 0 AND holds = 1) AS begins,
            max(is_purged) AS is_excused, max(change > 0 AND is_given) AS is_given
        FROM held GROUP BY ALL
        UNION ALL
        SELECT queue_manager, session, replied_at, 'commit', NULL, FALSE, FALSE, FALSE, FALSE
        FROM {{applied}} LEFT SEMI JOIN limited USING (queue_manager, session)
        WHERE kind = 'Commit' AND reply = 'Committed'
        UNION ALL
        SELECT queue_manager, session, position, 'altered', NULL, FALSE, FALSE, FALSE, FALSE
        FROM limited JOIN altered USING (queue_manager)
        WHERE position > session AND coalesce(position < ended_at, TRUE)
        UNION ALL
        SELECT queue_manager, session, position, 'timed out', NULL, FALSE, FALSE, FALSE, FALSE
        FROM timed_out
        UNION ALL
        SELECT queue_manager, session, session, 'opened', 0, FALSE, FALSE, FALSE, FALSE
        FROM limited
        UNION ALL
        SELECT queue_manager, session, ended_at, 'ended', NULL, FALSE, FALSE, ended_due, FALSE
        FROM limited WHERE ended_at IS NOT NULL
    )
    GROUP BY ALL
),
eras AS (
    SELECT queue_manager, session, position, coalesce(last(holds, TRUE) OVER so_far, 0) AS holds,
        max(IF(begins OR commits, position, NULL)) OVER so_far AS began_at,
        max(IF(takes OR commits OR alters, position, NULL)) OVER so_far AS active_at,
        max(IF(alters, position, NULL)) OVER so_far AS altered_at,
        lead(position) OVER point AS next_at, lead(is_timed_out) OVER point AS is_timed_out,
        lead(is_excused) OVER point AS is_excused, lead(is_given) OVER point AS is_given
    FROM points
    WINDOW point AS (PARTITION BY queue_manager, session ORDER BY position),
        so_far AS (PARTITION BY queue_manager, session ORDER BY position
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
),
due AS (
    SELECT era.*,
        {_due_us("unit_of_work_time_limit_ms", _BEGAN_US)} AS over_us,
        {_due_us("unit_of_work_idle_limit_ms", "active.begins_us")} AS idle_us
    FROM eras AS era JOIN limited AS one
        ON era.queue_manager = one.queue_manager AND era.session = one.session
    JOIN {{manager_settings}} AS manager ON era.queue_manager = manager.queue_manager
        AND from_position <= era.position AND era.position < until_position
    LEFT JOIN {{operation_times}} AS began
        ON era.queue_manager = began.queue_manager AND began_at = began.position
    LEFT JOIN {{operation_times}} AS active
        ON era.queue_manager = active.queue_manager AND active_at = active.position
),
judged AS (
    SELECT due.*, least(over_us, idle_us) AS due_us, before_it.time_us AS before_us,
        before_it.position AS before_at, coalesce(time_us, end_us) AS now_us, end_at
    FROM due JOIN {{log_end}} USING (queue_manager)
    LEFT JOIN (
        SELECT queue_manager, position AS next_at, time_us, before_it FROM {{entries}}
    ) USING (queue_manager, next_at)
    LEFT JOIN {{since}} AS begin USING (queue_manager)
    WHERE coalesce(least(began_at, active_at) > begin.position, TRUE)
)
SELECT queue_manager, coalesce(next_at, end_at) AS position, -1 AS store, -1 AS sequence, session,
    IF(is_timed_out, 'a unit of work timed out though no limit of its was over',
        'a unit of work did not end though its time was over') AS summary,
    coalesce(CAST(IF(holds > 0, due_us, NULL) AS STRING), 'never') AS expected, now_us AS found
FROM judged
WHERE CASE WHEN is_timed_out
    THEN NOT coalesce(holds > 0 AND due_us <= now_us
        AND (before_us < due_us OR before_at = judged.position), FALSE)
    ELSE holds > 0 AND NOT coalesce(is_excused, FALSE)
        AND least(over_us, IF(is_given, NULL, idle_us)) <= now_us END
""")


# What takes its number has the next one; what is turned away for a gap is told which that is.
DENSE = reordered("""
WITH numbered AS (
    SELECT *, 1 + coalesce(max(IF(told IS NULL, session_sequence, NULL)) OVER (
        PARTITION BY queue_manager, session ORDER BY position
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS due
    FROM (
        SELECT queue_manager, session, position, session_sequence, NULL AS told FROM {applied}
        UNION ALL
        SELECT queue_manager, session, position, session_sequence, number FROM {outcomes}
        WHERE reason = 'session-sequence-gap'
    )
)
SELECT queue_manager, position, -1 AS store, -1 AS sequence, session,
    IF(told IS NULL, 'operations of a session acted out of their turn',
        'an operation was turned away for a gap that was none') AS summary,
    due AS expected, concat_ws(' ', session_sequence, told) AS found
FROM numbered
WHERE IF(told IS NULL, session_sequence <> due, session_sequence <= due OR told <> due)
""")
# What is sent again is answered again as it was, until its writer said that it has the answer;
# while it waits it is answered by nothing. What the writer says counts as far as numbers acted.
AGAIN = altered_outcome("""
WITH
told AS (
    SELECT queue_manager, session, session_sequence, position, index,
        coalesce(reason, '') IN ('session-unknown', 'session-sequence-gap',
            'session-window-full') AS is_turned_away,
        concat_ws(' ', kind, reason, number, count, runs) AS reply
    FROM {outcomes} WHERE session_sequence > 0
),
acted AS (
    SELECT queue_manager, session, session_sequence, applied.position, replied_at, reply_index, due
    FROM {applied} AS applied LEFT JOIN (
        SELECT queue_manager, session, session_sequence, position AS replied_at,
            index AS reply_index, reply AS due
        FROM told
    ) USING (queue_manager, session, session_sequence, replied_at, reply_index)
),
sent AS (
    SELECT queue_manager, session, session_sequence, position, least(answered_through,
            coalesce(max(IF(acted.queue_manager IS NULL, NULL, session_sequence)) OVER (
                PARTITION BY queue_manager, session ORDER BY position
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0)) AS answered
    FROM {operations} LEFT JOIN acted USING (queue_manager, session, session_sequence, position)
    WHERE session_sequence > 0
),
known AS (
    SELECT *, max(answered) OVER (
        PARTITION BY queue_manager, session ORDER BY position) AS answered_through
    FROM sent
),
-- What waited may have been answered at the entry that sends it again, before that.
later AS (
    SELECT * FROM told LEFT ANTI JOIN (
        SELECT queue_manager, session, session_sequence, replied_at AS position,
            reply_index AS index
        FROM acted
    ) USING (queue_manager, session, session_sequence, position, index)
),
compared AS (
    SELECT queue_manager, position, session, later.reply, CASE
        WHEN coalesce(replied_at > known.position, TRUE) THEN 'nothing'
        WHEN replied_at = known.position AND later.reply IS NULL THEN 'nothing'
        WHEN session_sequence <= answered_through THEN 'Refused reply-forgotten 0'
        ELSE due END AS due
    FROM known
    JOIN (SELECT * EXCEPT (position) FROM acted) AS acted
        USING (queue_manager, session, session_sequence)
    LEFT ANTI JOIN (SELECT queue_manager, session, session_sequence, position FROM acted) AS first
        USING (queue_manager, session, session_sequence, position)
    LEFT JOIN later USING (queue_manager, session, session_sequence, position)
    WHERE NOT coalesce(later.is_turned_away, FALSE)
)
SELECT queue_manager, position, -1 AS store, -1 AS sequence, session,
    'what was sent again was answered otherwise' AS summary,
    due AS expected, coalesce(reply, 'nothing') AS found
FROM compared WHERE due <> coalesce(reply, 'nothing')
""")
# A session has a deadline from its Open to its first sign of life, and while it is suspected: it
# ends at the first entry at which its deadline has come, and at no other without being asked.
# A deadline counts from the later of state time and the time of its entry, in steps of 50 ms. A
# second suspicion in a row changes nothing, and an end by time comes before what its entry does.
DEADLINES = state_mismatch(f"""
WITH
turns AS (
    SELECT queue_manager, session, session AS position, 'open' AS turn, 30000000 AS lasts_us,
        1 AS rank
    FROM {{sessions}}
    UNION ALL
    SELECT queue_manager, session, position, 'life', NULL, 1
    FROM {{operations}} LEFT ANTI JOIN (
        SELECT queue_manager, position FROM {{outcomes}} WHERE reason = 'session-unknown'
    ) USING (queue_manager, position)
    WHERE session_sequence IS NOT NULL
    UNION ALL
    SELECT DISTINCT queue_manager, opened.session, position, 'suspicion',
        opened.suspect_timeout_ms * 1000, 1
    FROM (SELECT queue_manager, position, explode(sessions) AS session FROM {{operations}}
            WHERE kind = 'Suspect')
        JOIN {{sessions}} AS opened USING (queue_manager, session)
    WHERE session < position
    UNION ALL
    SELECT queue_manager, session, position,
        IF(reason IN ('LOST', 'UNCONFIRMED'), reason, 'end'), NULL,
        IF(reason IN ('LOST', 'UNCONFIRMED'), 0, 2)
    FROM {{outcomes}} WHERE kind = 'SessionEnded'
),
effective AS (
    SELECT * FROM (
        SELECT *, lag(turn) OVER turn AS before_it, max(rank <> 1) OVER (
                PARTITION BY queue_manager, session ORDER BY position, rank
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS is_over,
            count_if(turn = 'life') OVER turn AS lives
        FROM turns WINDOW turn AS (PARTITION BY queue_manager, session ORDER BY position, rank)
    )
    WHERE NOT coalesce(is_over, FALSE)
        AND NOT coalesce(turn = 'suspicion' AND before_it = 'suspicion', FALSE)
),
told AS (
    SELECT queue_manager, session, position, number AS told_us FROM {{outcomes}}
    WHERE kind = 'Suspected'
),
due AS (
    SELECT queue_manager, session, position, turn, lives, end_us, told_us,
        coalesce(lead(position) OVER turn, end_at) AS next_at,
        {rounded("begins_us + lasts_us")} AS due_us,
        lead(turn) OVER turn AS next_turn, lead(before_us) OVER turn AS next_before_us,
        lead(time_us) OVER turn AS next_us
    FROM effective
        JOIN {{log_end}} USING (queue_manager)
        LEFT JOIN {{operation_times}} USING (queue_manager, position)
        LEFT JOIN told USING (queue_manager, session, position)
    WINDOW turn AS (PARTITION BY queue_manager, session ORDER BY position, rank)
)
SELECT queue_manager, IF(told_us <=> IF(turn = 'suspicion', due_us, NULL), next_at, position)
        AS position, -1 AS store, -1 AS sequence, session, CASE
        WHEN NOT (told_us <=> IF(turn = 'suspicion', due_us, NULL))
            THEN 'a suspicion was told otherwise than it is'
        WHEN next_turn IN ('LOST', 'UNCONFIRMED') THEN 'a session ended before its time was over'
        ELSE 'a session did not end though its time was over' END AS summary,
    concat_ws(' ', turn, due_us) AS expected,
    concat_ws(' ', told_us, next_turn, coalesce(next_us, end_us)) AS found
FROM due
WHERE NOT (told_us <=> IF(turn = 'suspicion', due_us, NULL))
    OR next_turn IN ('LOST', 'UNCONFIRMED') AND NOT (
        due_us IS NOT NULL AND next_before_us < due_us AND due_us <= next_us
        AND next_turn = IF(lives > 0, 'LOST', 'UNCONFIRMED'))
    OR coalesce(next_turn, '') NOT IN ('LOST', 'UNCONFIRMED')
        AND due_us <= coalesce(next_us, end_us)
""")
# A session ends at once where administration ends it, or another connection takes over its client
# id (§5).
ENDED = state_mismatch("""
WITH
due AS (
    SELECT queue_manager, number AS session, replied_at AS position FROM {applied}
    WHERE kind = 'EndSession' AND reply <> 'Refused'
    UNION ALL
    SELECT old.queue_manager, old.session, new.connection_opened_at
    FROM {sessions} AS new JOIN {sessions} AS old USING (queue_manager, client_id)
    WHERE client_id <> '' AND old.session < new.connection_opened_at
        AND new.session = new.connection_opened_at AND old.connection <> new.connection
        AND coalesce(old.ended_at > new.connection_opened_at, TRUE)
)
SELECT queue_manager, due.position, -1 AS store, -1 AS sequence, session,
    'a session stays though it was ended or its client id was taken over' AS summary,
    due.position AS expected, coalesce(CAST(ended_at AS STRING), 'open') AS found
FROM due JOIN {sessions} USING (queue_manager, session)
WHERE coalesce(ended_at > due.position, TRUE)
""")
# Each outcome names the one before it on its lane, as long as its connection is there.
CHAINED = altered_outcome("""
WITH
lanes AS (
    SELECT queue_manager, connection, position, index, session, previous_position, previous_index,
        lag(struct(position, index)) OVER (
            PARTITION BY queue_manager, connection ORDER BY position, index) AS before_it
    FROM {outcomes} WHERE connection IS NOT NULL
),
due AS (
    SELECT lanes.*, ended.position IS NOT NULL AS is_over
    FROM lanes LEFT JOIN {connection_ends} AS ended
        ON lanes.queue_manager = ended.queue_manager
        AND lower(hex(lanes.connection)) = ended.connection
        AND before_it = struct(ended.position, ended.index)
)
SELECT queue_manager, position, -1 AS store, -1 AS sequence, coalesce(session, -1) AS session,
    'an outcome names another one as the one before it' AS summary,
    IF(before_it IS NULL OR is_over, 'none', concat_ws('/', before_it.position, before_it.index))
        AS expected,
    IF(previous_position < 0, 'none', concat_ws('/', previous_position, previous_index)) AS found
FROM due LEFT JOIN (SELECT queue_manager, position AS begun_at FROM {since}) USING (queue_manager)
WHERE IF(before_it IS NULL OR is_over, previous_position >= 0,
        NOT struct(previous_position, previous_index) <=> before_it)
    AND (begun_at IS NULL OR before_it.position > begun_at)
""")
LAW = Law(
    letter="L",
    sentence="In a session each number acts once, the numbers that act are dense from 1, and what "
    "is sent again is answered as it was; a session ends by itself exactly when its time is over, "
    "and at once where it is ended, a unit of work when a limit of its is over; its lane tells all "
    "outcomes in a row.",
    breaches=(DENSE, AGAIN, DEADLINES, ENDED, TIMED, CHAINED),
)
