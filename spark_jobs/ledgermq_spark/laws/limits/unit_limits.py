"""Part of law L: time limits of units of work, of the queue manager and of sessions (§5)."""

from __future__ import annotations

from typing import Final

from ledgermq_spark.laws.law import state_mismatch
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
        AND from_position <= era.position
        AND (until_position IS NULL OR era.position < until_position)
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
