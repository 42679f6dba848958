"""Law E: what the lanes say was delivered is what moved into flight, message by message."""

from ledgermq_spark.laws.law import Law, altered_outcome

# What is told of a message is what moved, as it was put, and when it got its number there. What a
# transacted session gets belongs to its unit of work, what another one gets does not.
DELIVERED = altered_outcome("""
WITH
made AS (
    SELECT queue_manager, position, session, delivery, consumer, destination, store, kind,
        sequence, put_position, put_index, backouts, after
    FROM {moves} WHERE after IN ('unacknowledged', 'uncommitted get')
),
numbered AS (
    SELECT queue_manager, store, kind, sequence, min(time_us) AS numbered_us FROM {moves}
    WHERE before IN ('new', 'uncommitted put') AND sequence >= 0
    GROUP BY ALL
),
modes AS (
    SELECT queue_manager, session,
        IF(acknowledge_mode = 'TRANSACTED', 'uncommitted get', 'unacknowledged') AS mode
    FROM {sessions}
),
due AS (
    SELECT made.*, mode, message_id, priority, persistent, numbered_us
    FROM made LEFT JOIN modes USING (queue_manager, session)
        LEFT JOIN {puts} USING (queue_manager, put_position, put_index)
        LEFT JOIN numbered USING (queue_manager, store, kind, sequence)
)
SELECT queue_manager, position, coalesce(store, -1) AS store, coalesce(sequence, -1) AS sequence,
    session,
    CASE WHEN sequence IS NULL THEN 'a delivery was told of that was not made'
        WHEN told_sequence IS NULL THEN 'a delivery was made and not told of'
        WHEN after <> mode THEN 'a message was delivered otherwise than its session gets messages'
        ELSE 'a delivery was told of otherwise than it was made and put' END AS summary,
    IF(sequence IS NULL, 'nothing', concat_ws(' ', mode, consumer, destination, sequence,
        put_position, put_index, backouts, hex(message_id), priority, persistent, numbered_us))
        AS expected,
    IF(told_sequence IS NULL, 'nothing', concat_ws(' ', after, told_consumer, told_destination,
        told_sequence, told_position, told_index, told_backouts, hex(told_id), told_priority,
        told_persistent, enqueued_at)) AS found
FROM {lane_deliveries} FULL JOIN due USING (queue_manager, position, session, delivery)
WHERE NOT (after <=> mode AND told_consumer <=> consumer AND told_destination <=> destination
    AND told_sequence <=> sequence AND told_position <=> put_position
    AND told_index <=> put_index AND told_backouts <=> backouts AND told_id <=> message_id
    AND told_priority <=> priority AND told_persistent <=> persistent
    AND enqueued_at <=> numbered_us)
""")
LAW = Law(
    letter="E",
    sentence="What the lanes say was delivered is what moved into flight: same message, consumer, "
    "delivery number and backouts; each message is told as it was put, and is held as its session "
    "gets.",
    breaches=(DELIVERED,),
)
