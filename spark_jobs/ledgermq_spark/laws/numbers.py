"""Law B: sequence numbers are dense for each queue and topic, delivery numbers for each session."""

from ledgermq_spark.laws.law import Law, reordered

# A subscription gets some of its topic's, in their order (SEQ-17).
SEQUENCES = reordered("""
WITH numbered AS (
    SELECT *, 1 + coalesce(max(sequence) OVER (
        PARTITION BY queue_manager, store, kind ORDER BY position, sequence, step
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), -1) AS due
    FROM {moves} WHERE before IN ('new', 'uncommitted put') AND sequence >= 0
)
SELECT queue_manager, position, store, sequence, session,
    IF(kind = 'subscription', 'a subscription got a number again',
        'sequence numbers are not dense, or do not rise with the log (SEQ-01)') AS summary,
    due AS expected, sequence AS found
FROM numbered WHERE sequence < due OR kind <> 'subscription' AND sequence > due
""")
DELIVERIES = reordered("""
WITH numbered AS (
    SELECT *, 1 + coalesce(max(delivery) OVER (
        PARTITION BY queue_manager, session ORDER BY position, delivery, step
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS due
    FROM {moves} WHERE after IN ('unacknowledged', 'uncommitted get')
)
SELECT queue_manager, position, store, sequence, session,
    'delivery numbers of a session are not dense' AS summary,
    due AS expected, delivery AS found
FROM numbered WHERE delivery <> due
""")
LAW = Law(
    letter="B",
    sentence="Sequence numbers are dense from 0 for each queue and topic, and delivery numbers "
    "from 1 for each session; both rise with the log.",
    breaches=(SEQUENCES, DELIVERIES),
)
