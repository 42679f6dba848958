"""Law E: what the lanes say was delivered is what moved into flight, message by message."""

from __future__ import annotations

from ledgermq_spark.laws.law import Breach, Law

DELIVERED = """
WITH
told AS (
    SELECT queue_manager, position, session, first_delivery + at AS delivery,
        consumer AS told_consumer, destination AS told_destination, told_sequence,
        put_positions[at] AS told_position, put_indexes[at] AS told_index,
        backout_counts[at] AS told_backouts
    FROM (SELECT DISTINCT queue_manager, position, session, consumer, first_delivery, destination,
            sequences, put_positions, put_indexes, backout_counts
        FROM {outcomes} WHERE kind = 'Delivered')
        LATERAL VIEW posexplode(sequences) AS at, told_sequence
),
made AS (
    SELECT queue_manager, position, session, delivery, consumer, destination, store, sequence,
        put_position, put_index, backouts
    FROM {moves} WHERE after IN ('unacknowledged', 'uncommitted get')
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
# What is told of a message is what was put, and when it got its number where it was got. Lanes that
# were read without contents have no digests.
AS_PUT = """
WITH
told AS (
    SELECT queue_manager, position, session, first_delivery + at AS delivery, put_index,
        put_positions[at] AS put_position, enqueued_ats[at] AS enqueued_at,
        message_ids[at] AS told_id, priorities[at] AS told_priority,
        persistent[at] AS told_persistent, content_digests[at] AS told_digest
    FROM (SELECT DISTINCT queue_manager, position, session, first_delivery, put_positions,
            put_indexes, message_ids, priorities, persistent, enqueued_ats, content_digests
        FROM {outcomes} WHERE kind = 'Delivered')
        LATERAL VIEW posexplode(put_indexes) AS at, put_index
),
puts AS (
    SELECT queue_manager, position AS put_position, put_index, message_id,
        priorities[put_index] AS priority, persistent[put_index] AS is_persistent,
        content_digests[put_index] AS put_digest
    FROM {operations} LATERAL VIEW posexplode(message_ids) AS put_index, message_id
    WHERE kind = 'Put'
),
got AS (
    SELECT queue_manager, session, delivery, store, kind, sequence FROM {moves}
    WHERE after IN ('unacknowledged', 'uncommitted get')
),
numbered AS (
    SELECT queue_manager, store, kind, sequence, min(time_us) AS numbered_us FROM {moves}
    WHERE before IN ('new', 'uncommitted put') AND sequence >= 0
    GROUP BY ALL
)
SELECT queue_manager, position, store, sequence, session,
    'a message was delivered otherwise than it was put' AS summary,
    concat_ws(' ', hex(message_id), priority, is_persistent,
        IF(told_digest IS NULL, NULL, put_digest), numbered_us) AS expected,
    concat_ws(' ', hex(told_id), told_priority, told_persistent, told_digest, enqueued_at) AS found
FROM told
    JOIN got USING (queue_manager, session, delivery)
    LEFT JOIN puts USING (queue_manager, put_position, put_index)
    LEFT JOIN numbered USING (queue_manager, store, kind, sequence)
WHERE NOT (told_id <=> message_id AND told_priority <=> priority
        AND told_persistent <=> is_persistent AND enqueued_at <=> numbered_us)
    OR told_digest IS NOT NULL AND NOT (told_digest <=> put_digest)
"""
# What a transacted session gets belongs to its unit of work, what another one gets does not.
AS_ITS_SESSION = """
SELECT queue_manager, move.position, store, sequence, session,
    'a message was delivered otherwise than its session gets messages' AS summary,
    IF(acknowledge_mode = 'TRANSACTED', 'uncommitted get', 'unacknowledged') AS expected,
    after AS found
FROM {moves} AS move
    JOIN (
        SELECT queue_manager, position AS session, acknowledge_mode FROM {operations}
        WHERE kind = 'Open'
    ) USING (queue_manager, session)
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
