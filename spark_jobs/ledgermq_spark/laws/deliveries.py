"""Law E: what the lanes say was delivered is what moved into flight, message by message."""

from __future__ import annotations

from ledgermq_spark.laws.law import Breach, Law

# Each message of each delivery, as the lanes tell it.
TOLD = """
SELECT queue_manager, position, session, first_delivery + at AS delivery,
    consumer AS told_consumer, destination AS told_destination, told_sequence,
    put_positions[at] AS told_position, put_indexes[at] AS told_index,
    backout_counts[at] AS told_backouts, enqueued_ats[at] AS enqueued_at,
    message_ids[at] AS told_id, priorities[at] AS told_priority,
    persistent[at] AS told_persistent
FROM {outcomes} LATERAL VIEW posexplode(sequences) AS at, told_sequence
WHERE kind = 'Delivered'
"""
DELIVERED = f"""
WITH
told AS ({TOLD}),
made AS (
    SELECT queue_manager, position, session, delivery, consumer, destination, store, sequence,
        put_position, put_index, backouts
    FROM {{moves}} WHERE after IN ('unacknowledged', 'uncommitted get')
)
SELECT queue_manager, position, coalesce(store, -1) AS store, coalesce(sequence, -1) AS sequence,
    session,
    CASE WHEN sequence IS NULL THEN 'a delivery was told of that was not made'
        WHEN told_sequence IS NULL THEN 'a delivery was made and not told of'
        ELSE 'a delivery was told of otherwise than it was made' END AS summary,
    IF(sequence IS NULL, 'nothing', concat_ws(' ', consumer, destination, sequence,
        put_position, put_index, backouts)) AS expected,
    IF(told_sequence IS NULL, 'nothing', concat_ws(' ', told_consumer, told_destination,
        told_sequence, told_position, told_index, told_backouts)) AS found
FROM told FULL JOIN made USING (queue_manager, position, session, delivery)
WHERE NOT (told_consumer <=> consumer AND told_destination <=> destination
    AND told_sequence <=> sequence AND told_position <=> put_position
    AND told_index <=> put_index AND told_backouts <=> backouts)
"""
# What is told of a message is what was put, and when it got its number where it was got.
AS_PUT = f"""
WITH
told AS ({TOLD}),
got AS (
    SELECT queue_manager, session, delivery, store, kind, sequence FROM {{moves}}
    WHERE after IN ('unacknowledged', 'uncommitted get')
),
numbered AS (
    SELECT queue_manager, store, kind, sequence, min(time_us) AS numbered_us FROM {{moves}}
    WHERE before IN ('new', 'uncommitted put') AND sequence >= 0
    GROUP BY ALL
)
SELECT queue_manager, told.position, store, sequence, session,
    'a message was delivered otherwise than it was put' AS summary,
    concat_ws(' ', hex(message_id), priority, persistent, numbered_us) AS expected,
    concat_ws(' ', hex(told_id), told_priority, told_persistent, enqueued_at) AS found
FROM told
    JOIN got USING (queue_manager, session, delivery)
    LEFT JOIN (SELECT *, put_position AS told_position, put_index AS told_index FROM {{puts}})
        USING (queue_manager, told_position, told_index)
    LEFT JOIN numbered USING (queue_manager, store, kind, sequence)
WHERE NOT (told_id <=> message_id AND told_priority <=> priority
    AND told_persistent <=> persistent AND enqueued_at <=> numbered_us)
"""
# What a transacted session gets belongs to its unit of work, what another one gets does not.
AS_ITS_SESSION = """
SELECT queue_manager, position, store, sequence, session,
    'a message was delivered otherwise than its session gets messages' AS summary,
    IF(acknowledge_mode = 'TRANSACTED', 'uncommitted get', 'unacknowledged') AS expected,
    after AS found
FROM {moves} JOIN (SELECT queue_manager, session, acknowledge_mode FROM {sessions})
    USING (queue_manager, session)
WHERE after IN ('unacknowledged', 'uncommitted get')
    AND (acknowledge_mode = 'TRANSACTED') <> (after = 'uncommitted get')
"""
LAW = Law(
    letter="E",
    sentence="What the lanes say was delivered is what moved into flight: same message, consumer, "
    "delivery number and backouts; each message is told as it was put, and is held as its session "
    "gets.",
    breaches=(
        Breach("altered outcome", DELIVERED),
        Breach("altered outcome", AS_PUT),
        Breach("state mismatch", AS_ITS_SESSION),
    ),
)
