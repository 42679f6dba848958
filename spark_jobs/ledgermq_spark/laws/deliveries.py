"""Law E: what the lanes say was delivered is what moved into flight, message by message."""

from __future__ import annotations

from ledgermq_spark.laws.law import Breach, Law

DELIVERED = """
WITH
told AS (
    SELECT queue_manager, position, session, consumer, first_delivery + at AS delivery,
        destination, told_sequence, put_positions[at] AS put_position, put_indexes[at] AS put_index,
        backout_counts[at] AS backouts
    FROM (SELECT DISTINCT queue_manager, position, session, consumer, first_delivery, destination,
            sequences, put_positions, put_indexes, backout_counts
        FROM {outcomes} WHERE kind = 'Delivered')
        LATERAL VIEW posexplode(sequences) AS at, told_sequence
),
made AS (
    SELECT queue_manager, position, session, delivery, store, sequence,
        concat_ws(' ', consumer, destination, sequence, put_position, put_index, backouts) AS made
    FROM {moves} WHERE after IN ('unacknowledged', 'uncommitted get')
)
SELECT queue_manager, position, coalesce(store, -1) AS store, coalesce(sequence, -1) AS sequence,
    session,
    CASE WHEN made IS NULL THEN 'a delivery was told of that was not made'
        WHEN told IS NULL THEN 'a delivery was made and not told of'
        ELSE 'a delivery was told of otherwise than it was made' END AS summary,
    coalesce(made, 'nothing') AS expected, coalesce(told, 'nothing') AS found
FROM (
    SELECT queue_manager, position, session, delivery, concat_ws(' ', consumer, destination,
        told_sequence, put_position, put_index, backouts) AS told
    FROM told
) FULL JOIN made USING (queue_manager, position, session, delivery)
WHERE NOT (made <=> told)
"""
LAW = Law(
    letter="E",
    sentence="What the lanes say was delivered is what moved into flight: same message, consumer, "
    "delivery number and backouts.",
    breaches=(Breach("altered outcome", DELIVERED),),
)
