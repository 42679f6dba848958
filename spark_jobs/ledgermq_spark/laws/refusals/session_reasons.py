"""Why operations on deliveries and units of work are refused: PROTOCOL.md §5 and §18."""

from ledgermq.protocol.limits import DESCRIPTION_CHARACTERS_MAX, TIMING_MS_MAX

FRAMES: dict[str, str] = {}

# Units of work that ended while puts of theirs waited, which are refused then and a Commit that
# waits with them, whatever it asks for (§16). Where an operation ends one, all that is due comes
# before: a put whose time was up timed out, and what the Commit was told then is not due to the
# end. Where the session or a limit was due (`is_either`), that may have come before the time-out.
FRAMES["ended_units"] = """
WITH
ends AS (
    SELECT queue_manager, session, ended_at AS position, ended_due
    FROM {sessions} WHERE ended_at IS NOT NULL
    UNION ALL
    SELECT queue_manager, session, replied_at, FALSE
    FROM {applied} WHERE kind = 'Rollback' AND reply <> 'Refused'
    UNION ALL
    SELECT queue_manager, session, position, reason = 'unit-of-work-timed-out'
    FROM {forced_rollbacks}
),
refused AS (
    SELECT queue_manager, session, answered_at AS position, max(deadline_us) AS deadline_us
    FROM {waiting_puts} LEFT SEMI JOIN (
        SELECT queue_manager, session, position FROM {conduct}
        WHERE is_applied AND first_reason = 'quota-exceeded'
    ) USING (queue_manager, session, position)
    GROUP BY ALL
)
SELECT queue_manager, session, position, deadline_us > time_us AS is_ended,
    deadline_us <= time_us AND ended_due AS is_either
FROM ends JOIN refused USING (queue_manager, session, position)
JOIN {clock} USING (queue_manager, position)
"""
# What is settled, given back or committed; `late` a Commit that waited, when it was answered.
FRAMES["settling_reasons"] = f"""
WITH
consumers AS (
    SELECT queue_manager, session, consumer, opened_at, closed_at FROM {{consumers}}
),
held AS (
    SELECT queue_manager, session, consumer, position AS delivered_at, left_at FROM {{flights}}
),
asked AS (
    SELECT one.*, late, judged_at, open_puts, unit_ended_by, commit_waits, waiting_puts, named,
        in_flight, of_consumer, of_one.opened_at IS NOT NULL AS has_consumer,
        of_one.opened_at IS NOT NULL AND (closed_at IS NULL OR closed_at >= one.position)
            AS is_consumer_open
    FROM {{conduct}} AS one JOIN {{units}} USING (queue_manager, session, position)
    LEFT JOIN {{ranges}} USING (queue_manager, session, position, late)
    LEFT JOIN consumers AS of_one ON of_one.queue_manager = one.queue_manager
        AND of_one.session = one.session AND of_one.consumer = one.consumer
        AND opened_at < one.position
    WHERE kind IN ('Acknowledge', 'Commit', 'Rollback', 'Recover', 'Close', 'GiveBack',
        'CloseConsumer', 'Reject', 'Alive')
),
crossing AS (
    SELECT DISTINCT queue_manager, session, position, TRUE AS holds_some
    FROM (SELECT * FROM asked WHERE kind IN ('CloseConsumer', 'Reject') AND NOT is_consumer_open)
        JOIN held USING (queue_manager, session, consumer)
    WHERE delivered_at <= position AND (left_at IS NULL OR left_at >= position)
),
twice AS (
    SELECT queue_manager, session, position, late, bool_or(is_known OR puts > 1) AS comes_twice
    FROM (
        SELECT queue_manager, session, position, late, store, deduplication_id,
            count_if(is_looked_for) AS puts, bool_or(first_sequence IS NOT NULL) AS is_known
        FROM {{known_ids}} WHERE kind = 'Commit'
        GROUP BY ALL
    )
    GROUP BY queue_manager, session, position, late
)
SELECT queue_manager, position, late, CASE
    WHEN kind IN ('Acknowledge', 'Recover') AND mode = 'TRANSACTED' THEN 'transacted'
    WHEN kind IN ('Commit', 'Rollback') AND mode <> 'TRANSACTED' THEN 'not-transacted'
    WHEN kind = 'Commit' AND unit_ended_by IS NOT NULL AND NOT late THEN unit_ended_by
    WHEN kind = 'Commit' AND commit_waits AND NOT late THEN 'commit-waiting'
    WHEN kind = 'Commit' AND waiting_puts > 0 AND NOT late THEN NULL
    WHEN kind = 'Commit' AND late AND is_ended THEN 'puts-mismatch'
    WHEN kind = 'Commit' AND late AND is_either AND first_reason = 'puts-mismatch'
        THEN first_reason
    WHEN kind = 'Commit' AND number <> open_puts THEN 'puts-mismatch'
    WHEN kind = 'Commit' AND coalesce(comes_twice, FALSE) THEN 'duplicate-put'
    WHEN kind = 'Rollback' AND unit_ended_by IS NOT NULL THEN NULL
    WHEN kind = 'GiveBack' AND NOT is_consumer_open THEN 'consumer-unknown'
    WHEN kind IN ('CloseConsumer', 'Reject') AND NOT is_consumer_open
        AND NOT coalesce(holds_some, FALSE) THEN 'consumer-unknown'
    WHEN kind IN ('GiveBack', 'CloseConsumer', 'Reject') AND NOT named <=> of_consumer
        THEN 'delivery-unknown'
    WHEN kind <> 'Alive' AND NOT named <=> in_flight THEN 'delivery-unknown'
    WHEN kind = 'Reject' AND length(why) > {DESCRIPTION_CHARACTERS_MAX} THEN 'reason-invalid'
    WHEN kind = 'Reject' AND (redelivery_delay_ms NOT BETWEEN -1 AND {TIMING_MS_MAX}
        OR redelivery_delay_ms >= 0 AND NOT flag) THEN 'setting-invalid'
    WHEN kind IN ('Acknowledge', 'Commit')
        AND IF(late, first_reason, told_reason) = 'out-of-turn' THEN 'out-of-turn'
    END AS due
FROM asked LEFT JOIN crossing USING (queue_manager, session, position)
LEFT JOIN twice USING (queue_manager, session, position, late)
LEFT JOIN (
    SELECT queue_manager, session, position AS judged_at, is_ended, is_either FROM {{ended_units}}
) USING (queue_manager, session, judged_at)
"""
