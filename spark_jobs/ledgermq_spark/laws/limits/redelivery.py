"""Law H: what returns waits as long as it must, and goes when it has come back too often."""

from ledgermq.protocol.limits import TIMING_MS_MAX
from ledgermq_spark.laws.law import Law, state_mismatch
from ledgermq_spark.laws.limits.message_frames import rounded

# The delay of §15: that which its application asked for, or of the last step that is reached, else
# of the destination, consumer, session, which grows with each further backout. What is rejected
# waits for nothing.
DELAYED = state_mismatch(f"""
WITH
reached AS (
    SELECT *,
        try_element_at(filter(redelivery_steps, one -> one.retries < counted), -1) AS step_due,
        IF(redelivery_delay_max_ms > 0, redelivery_delay_max_ms, {TIMING_MS_MAX}) AS longest_ms
    FROM {{returns}} LEFT JOIN {{rejections}} USING (queue_manager, session, position, delivery)
),
based AS (
    SELECT *, CASE WHEN step_due IS NOT NULL THEN step_due.delay_ms
            WHEN redelivery_delay_override_ms >= 0 THEN redelivery_delay_override_ms
            WHEN consumer_delay_ms >= 0 THEN consumer_delay_ms
            ELSE session_delay_ms END AS first_ms,
        least(counted - 1 - coalesce(step_due.retries, 0), 10000) AS further
    FROM reached
),
grown AS (
    SELECT *, IF(backouts = backouts_before OR is_rejected, 0, coalesce(asked_ms,
        least(longest_ms, aggregate(IF(further > 0, sequence(1, further), array()),
            CAST(first_ms AS BIGINT), (late_ms, one) ->
            least(longest_ms, late_ms * redelivery_delay_multiplier_percent DIV 100))))) AS delay_ms
    FROM based
),
due AS (
    SELECT *, IF(delay_ms > 0, {rounded("greatest(time_us, append_time_us) + delay_ms * 1000")}, -1)
        AS due_us
    FROM grown
)
SELECT queue_manager, position, store, sequence, session,
    'a message that returned waits otherwise than its redelivery delay says' AS summary,
    IF(due_us < 0, 'no delay', concat('delayed until ', due_us)) AS expected,
    concat_ws(' ', after, cause, IF(after = 'delayed', until_us, NULL)) AS found
FROM due
WHERE cause <> 'expired'
    AND ((after = 'delayed') <> (due_us >= 0) OR after = 'delayed' AND until_us <> due_us)
""")
# When its delay ends, or at once without one, what has come back too often goes, and at once what
# was rejected; nothing else does.
# A delay that is over may end as well by hand, by a parked group or with its subscription.
LIMITED = state_mismatch("""
WITH
ends AS (
    SELECT queue_manager, store, kind, destination, sequence, session, position, step, before,
        after, cause, counted, TRUE AS is_return, coalesce(is_rejected, FALSE) AS is_rejected
    FROM {returns} LEFT JOIN {rejections} USING (queue_manager, session, position, delivery)
    WHERE cause <> 'expired' AND after <> 'delayed' AND backouts > backouts_before
    UNION ALL
    SELECT queue_manager, store, kind, destination, sequence, session, position, step, before,
        after, cause, backouts - uncounted, FALSE, FALSE
    FROM {moves} WHERE before = 'delayed' AND cause IN ('', 'moved', 'dropped')
),
judged AS (
    SELECT ends.*, limit, waited_until, time_us,
        is_rejected OR limit >= 0 AND counted > limit AS is_too_often,
        error_destination <> '' AS is_sent,
        NOT is_return AND (cause = 'dropped' AND kind = 'subscription' OR cause = 'moved'
            AND (by_hand OR keeps_group_order AND error_destination <> '')) AS is_other
    FROM ends
        LEFT JOIN (SELECT queue_manager, position, TRUE AS by_hand FROM {applied}
            WHERE kind = 'MoveMessages' AND reply <> 'Refused') USING (queue_manager, position)
        JOIN (SELECT queue_manager, store, kind, sequence, limit FROM {lives})
            USING (queue_manager, store, kind, sequence)
        JOIN (SELECT queue_manager, store, kind, sequence, position, step, time_us, lag(until_us)
            OVER (PARTITION BY queue_manager, store, kind, sequence ORDER BY position, step)
            AS waited_until
            FROM {moves} LEFT SEMI JOIN ends USING (queue_manager, store, kind, sequence))
            USING (queue_manager, store, kind, sequence, position, step)
        JOIN {settings} USING (queue_manager, store, kind, destination)
    WHERE limit IS NOT NULL
        AND from_position < position AND position <= until_position
)
SELECT queue_manager, position, store, sequence, session,
    'a message that returned goes or stays against its redelivery limit' AS summary,
    CASE WHEN NOT is_too_often THEN concat('available, limit ', limit)
        WHEN is_rejected THEN concat(IF(is_sent, 'moved', 'dropped'), ', as it was rejected')
        WHEN is_sent THEN 'moved' ELSE 'dropped' END AS expected,
    concat_ws(' ', after, cause, 'with', counted, 'backouts that count') AS found
FROM judged
WHERE IF(is_too_often, IF(is_sent, 'moved', 'dropped'), '') <> cause
    AND NOT coalesce(is_other AND NOT is_too_often, FALSE)
    AND NOT (NOT is_return AND waited_until > time_us)
""")
# Only what a session had not said to have handed over comes back uncounted when it is lost, or its
# unit of work is ended (§5, H20): the highest number that it had said by then, of those it had been
# given, and what an Alive told of a consumer.
# What came in the same entry as the operation that tells of it may have come before or after it.
UNCOUNTED = state_mismatch("""
WITH
lost AS (SELECT *, TRUE AS is_lost FROM {losses}),
through AS (
    SELECT queue_manager, session, lost.position,
        max(IF(said.position < lost.position, least_through, NULL)) AS least_through,
        max(most_through) AS most_through
    FROM lost JOIN {handed} AS said USING (queue_manager, session)
    WHERE said.position <= lost.position
    GROUP BY ALL
),
told AS (
    SELECT queue_manager, session, position, consumer,
        max(IF(delivered_at < told_at, delivery, NULL)) AS least_handing,
        max(delivery) AS most_handing
    FROM lost JOIN {handing} USING (queue_manager, session)
    WHERE told_at < position
    GROUP BY ALL
),
judged AS (
    SELECT one.*, coalesce(is_lost, FALSE) AS is_lost,
        delivery <= greatest(least_through, least_handing, 0) AS is_handed,
        delivery <= greatest(most_through, most_handing, 0) AS may_be
    FROM {returns} AS one LEFT JOIN lost USING (queue_manager, session, position)
        LEFT JOIN through USING (queue_manager, session, position)
        LEFT JOIN told USING (queue_manager, session, position, consumer)
)
SELECT queue_manager, position, store, sequence, session,
    'a loss counts that nobody saw, or does not count though it was handed over' AS summary,
    uncounted_before + IF(is_lost AND NOT is_handed, 1, 0) AS expected, uncounted AS found
FROM judged
WHERE uncounted <> uncounted_before + IF(is_lost AND NOT is_handed, 1, 0) AND is_handed = may_be
UNION ALL
SELECT queue_manager, position, store, sequence, session,
    'backouts that do not count changed while the message was not in flight', uncounted_before,
    uncounted
FROM (
    SELECT *, coalesce(lag(uncounted) OVER (PARTITION BY queue_manager, store, kind, sequence
        ORDER BY position, step), 0) AS uncounted_before
    FROM {moves} LEFT SEMI JOIN (SELECT * FROM {moves} WHERE sequence >= 0 AND uncounted <> 0)
        USING (queue_manager, store, kind, sequence)
)
WHERE before NOT IN ('unacknowledged', 'uncommitted get') AND uncounted <> uncounted_before
""")
LAW = Law(
    letter="H",
    sentence="What returns with a backout waits the redelivery delay that is in force then; what "
    "has come back more often than its limit, or is rejected, goes; a loss that nobody saw does "
    "not count.",
    breaches=(DELAYED, LIMITED, UNCOUNTED),
)
