"""Law N: what a queue, subscription or topic has and had is what came to it, less what went."""

from __future__ import annotations

from ledgermq_spark.laws.law import Breach, Law

# Purged and rolled back messages are counted by nobody: their queue or their put is gone.
CONSERVED = """
WITH
lives AS (
    SELECT queue_manager, store, kind, max_by(after, (position, step)) AS what FROM {moves}
    WHERE sequence >= 0
    GROUP BY queue_manager, store, kind, sequence
    UNION ALL
    SELECT queue_manager, store, kind, max_by(after, (position, step)) AS what FROM {moves}
    WHERE 'uncommitted put' IN (before, after)
    GROUP BY queue_manager, store, kind, put_position, put_index
    HAVING what = 'uncommitted put'
    UNION ALL
    SELECT queue_manager, store, kind, cause AS what FROM {moves}
    WHERE cause IN ('consumed', 'expired', 'moved', 'dropped', 'removed')
),
told AS (
    SELECT queue_manager, store, kind, what, count(*) AS told FROM lives
    WHERE what <> 'gone'
    GROUP BY ALL
),
known AS (SELECT DISTINCT queue_manager, store, kind, TRUE AS is_known FROM {standing})
SELECT queue_manager, -1 AS position, store, -1 AS sequence, -1 AS session,
    concat('a ', kind, ' has or had another number of messages than came to it: ', what) AS summary,
    coalesce(told, 0) AS expected, coalesce(count, 0) AS found
FROM told FULL JOIN {standing} USING (queue_manager, store, kind, what)
    LEFT JOIN known USING (queue_manager, store, kind)
WHERE coalesce(told, 0) <> coalesce(count, 0)
    AND (is_known OR what NOT IN ('consumed', 'expired', 'moved', 'dropped', 'removed'))
"""
LAW = Law(
    letter="N",
    sentence="Put = present + gone by cause, for each queue, subscription and topic.",
    breaches=(Breach("state mismatch", CONSERVED),),
)
