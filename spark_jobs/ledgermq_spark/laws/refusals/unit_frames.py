"""Frames of units of work: what each holds where an operation of its session comes."""

from ledgermq_spark.laws.refusals.expressions import BYTES

FRAMES: dict[str, str] = {}

# How each session stands before each of its operations that was next, and (`late`) before a Commit
# that waited when it was answered: open puts and their bytes, the highest delivery and consumer so
# far, the reason that refuses it if it was ended, whether a Commit waits, how many puts wait.
# Within an entry things come in the order of its outcomes; what waits on comes last, and open puts
# to temporary destinations vanish with the end of their connection.
FRAMES["units"] = f"""
WITH
sized AS (
    SELECT *, IF(kind = 'Put', size(message_ids), 0) AS count, IF(kind = 'Put',
        {BYTES}, 0) AS bytes
    FROM {{applied}}
),
waited AS (
    SELECT * FROM sized WHERE replied_at IS NULL OR replied_at > position
),
vanished AS (
    SELECT queue_manager, session, position, coalesce(index, -1) AS index, count(*) AS count,
        sum(size_bytes) AS bytes
    FROM (
        SELECT *, split_part(destination, '/', 2) AS connection FROM {{moves}}
        WHERE before = 'uncommitted put' AND cause = 'purged'
    )
        JOIN {{puts}} USING (queue_manager, put_position, put_index)
        LEFT JOIN {{connection_ends}} USING (queue_manager, connection, position)
    GROUP BY ALL
),
events AS (
    SELECT queue_manager, session, position, coalesce(told_index, 1000000000) AS index, 0 AS rank,
        position AS asked_at, FALSE AS late, '' AS what, 0L AS count, 0L AS bytes, 0L AS number
    FROM {{conduct}} WHERE conduct = 'next'
    UNION ALL
    SELECT queue_manager, session, replied_at, reply_index, 0, position, TRUE, '', 0, 0, 0
    FROM waited WHERE kind IN ('Put', 'Commit') AND replied_at IS NOT NULL
    UNION ALL
    SELECT queue_manager, session, replied_at, reply_index, 1, NULL, NULL, CASE
        WHEN kind = 'Put' THEN IF(reply = 'Accepted', 'put', '')
        WHEN kind = 'OpenConsumer' THEN 'consumer'
        WHEN kind IN ('Commit', 'Rollback') THEN kind
        ELSE '' END, count, bytes, consumer
    FROM sized
    WHERE reply <> 'Refused' AND kind IN ('Put', 'OpenConsumer', 'Commit', 'Rollback')
    UNION ALL
    SELECT queue_manager, session, position, index, 1, NULL, NULL, reason, 0, 0, 0
    FROM {{forced_rollbacks}}
    UNION ALL
    SELECT queue_manager, session, position, index, 1, NULL, NULL, 'put', -count, -bytes, 0
    FROM vanished
    UNION ALL
    SELECT queue_manager, session, position, 1000000000, 1, NULL, NULL,
        concat('waiting ', kind), 1, count, 0
    FROM waited WHERE kind IN ('Put', 'Commit')
    UNION ALL
    SELECT queue_manager, session, replied_at, reply_index, 1, NULL, NULL,
        concat('waiting ', kind), -1, -count, 0
    FROM waited WHERE kind IN ('Put', 'Commit') AND replied_at IS NOT NULL
    UNION ALL
    SELECT queue_manager, session, position, index, 1, NULL, NULL, 'delivery', 0, 0,
        first_delivery + size(sequences) - 1
    FROM {{outcomes}} WHERE kind = 'Delivered'
),
ended AS (
    SELECT *, count_if(what IN ('Commit', 'Rollback') OR what LIKE 'unit-of-work-%') OVER before
        AS unit
    FROM events
    WINDOW before AS (PARTITION BY queue_manager, session ORDER BY position, index, rank
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
),
summed AS (
    SELECT *,
        coalesce(sum(IF(what = 'put', count, 0)) OVER in_unit, 0) AS open_puts,
        coalesce(sum(IF(what = 'put', bytes, 0)) OVER in_unit, 0) AS open_bytes,
        coalesce(max(IF(what = 'delivery', number, NULL)) OVER before, 0) AS delivery_highest,
        coalesce(max(IF(what = 'consumer', number, NULL)) OVER before, 0) AS consumer_highest,
        nullif(last(CASE WHEN what LIKE 'unit-of-work-%' OR what = 'Rollback' THEN what END, TRUE)
            OVER before, 'Rollback') AS unit_ended_by,
        coalesce(sum(IF(what = 'waiting Commit', count, 0)) OVER before, 0) AS waiting_commits,
        coalesce(sum(IF(what = 'waiting Put', count, 0)) OVER before, 0) AS waiting_puts,
        coalesce(sum(IF(what = 'waiting Put', bytes, 0)) OVER before, 0) AS waiting_messages
    FROM ended
    WINDOW before AS (PARTITION BY queue_manager, session ORDER BY position, index, rank
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING),
        in_unit AS (PARTITION BY queue_manager, session, unit ORDER BY position, index, rank
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
)
SELECT queue_manager, session, asked_at AS position, position AS judged_at, late, open_puts,
    open_bytes, delivery_highest, consumer_highest, unit_ended_by, waiting_commits > 0
        AS commit_waits, waiting_puts, waiting_messages
FROM summed WHERE late IS NOT NULL
"""
# Operations that name deliveries, with how many of these they name (null: not as ranges must be)
# and how many of them are in flight, all and of the consumer that they are about. What names more
# than its session was ever given is not taken apart. A Commit that is refused consumes nothing: one
# that waited did before it, in the same entry.
FRAMES["ranges"] = """
WITH
asked AS (
    SELECT queue_manager, session, position, judged_at, late, consumer, delivery_highest,
        kind = 'Commit' AND told <=> 'Refused' AS takes_nothing,
        range_first, range_last,
        aggregate(arrays_zip(range_first, range_last), 0L, (highest, one) -> IF(
            one.range_first > highest AND one.range_last >= one.range_first, one.range_last, NULL))
            AS highest
    FROM {conduct} JOIN {units} USING (queue_manager, session, position)
    WHERE range_first IS NOT NULL
),
named AS (
    SELECT queue_manager, session, position, late, judged_at, takes_nothing, consumer, delivery
    FROM asked LATERAL VIEW posexplode(range_first) AS at, first
        LATERAL VIEW explode(sequence(first, range_last[at])) AS delivery
    WHERE highest <= delivery_highest
),
flying AS (
    SELECT queue_manager, session, position, late, count(*) AS in_flight,
        count_if(named.consumer = flight.consumer) AS of_consumer
    FROM named JOIN (
        SELECT queue_manager, session, delivery, position AS delivered_at, consumer, left_at,
            left_as
        FROM {flights}
    ) AS flight USING (queue_manager, session, delivery)
    WHERE delivered_at <= judged_at AND (left_at IS NULL OR left_at > judged_at
        OR left_at = judged_at AND IF(late, left_as = 'consumed',
            NOT (left_as <=> 'consumed' AND takes_nothing)))
    GROUP BY ALL
)
SELECT queue_manager, session, position, late, IF(highest <= delivery_highest, aggregate(
        arrays_zip(range_first, range_last), 0L,
        (sum, one) -> sum + one.range_last - one.range_first + 1), NULL) AS named,
    coalesce(in_flight, 0) AS in_flight, coalesce(of_consumer, 0) AS of_consumer
FROM asked LEFT JOIN flying USING (queue_manager, session, position, late)
"""
