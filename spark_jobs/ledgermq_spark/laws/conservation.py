"""Law N: what a queue, subscription or topic has and had is what came to it, less what went."""

from ledgermq_spark.laws.law import Law, state_mismatch

# What is there of each kind, with its bytes, and what is gone by which cause. Purged and rolled
# back messages are counted by nobody: their queue or their put is gone.
GONE = "'consumed', 'expired', 'displaced', 'moved', 'dropped', 'removed'"
CONSERVED = state_mismatch(f"""
WITH
turns AS (
    SELECT queue_manager, store, kind, before, after, cause, count(*) AS number,
        sum(size_bytes) AS bytes
    FROM {{new_moves}} LEFT JOIN {{puts}} USING (queue_manager, put_position, put_index)
    GROUP BY ALL
),
changes AS (
    SELECT queue_manager, store, kind, after AS what, number AS change, bytes AS change_bytes
    FROM turns WHERE after <> 'gone'
    UNION ALL
    SELECT queue_manager, store, kind, before, -number, -bytes FROM turns WHERE before <> 'new'
    UNION ALL
    SELECT queue_manager, store, kind, cause, number, NULL FROM turns
    WHERE cause IN ({GONE})
    UNION ALL
    SELECT queue_manager, store, kind, what, count, size_bytes FROM {{stood}} WHERE what <> 'most'
),
told AS (
    SELECT queue_manager, store, kind, what, sum(change) AS told, sum(change_bytes) AS told_bytes
    FROM changes GROUP BY ALL
),
known AS (SELECT DISTINCT queue_manager, store, kind, TRUE AS is_known FROM {{standing}}),
standing AS (SELECT * FROM {{standing}} WHERE what <> 'most')
SELECT queue_manager, -1 AS position, store, -1 AS sequence, -1 AS session,
    concat('a ', kind, ' has or had other messages than came to it: ', what) AS summary,
    concat_ws(' ', coalesce(told, 0), 'messages', told_bytes, 'bytes') AS expected,
    concat_ws(' ', coalesce(count, 0), 'messages', size_bytes, 'bytes') AS found
FROM told FULL JOIN standing USING (queue_manager, store, kind, what)
    LEFT JOIN known USING (queue_manager, store, kind)
WHERE (coalesce(told, 0) <> coalesce(count, 0) OR told_bytes <> size_bytes)
    AND (is_known OR what NOT IN ({GONE}))
""")
# The most that a store ever held shows where messages come to it: what is there then has to fit. It
# is asked after each entry, and after each move of one through which messages come and go.
HIGHEST = state_mismatch("""
WITH
begun AS (SELECT * FROM {stood} WHERE size_bytes IS NOT NULL),
changes AS (
    SELECT queue_manager, store, kind, position, step, IF(before = 'new', 1, -1) AS change,
        IF(before = 'new', size_bytes, -size_bytes) AS change_bytes
    FROM {new_moves} JOIN {puts} USING (queue_manager, put_position, put_index)
    WHERE (before = 'new') <> (after = 'gone')
),
entries AS (
    SELECT queue_manager, store, kind, position, max(step) AS step, sum(change) AS change,
        sum(change_bytes) AS change_bytes, min(change) = max(change) AS is_one_way
    FROM changes GROUP BY queue_manager, store, kind, position
),
held AS (
    SELECT queue_manager, store, kind, sum(change) OVER turn AS count,
        sum(change_bytes) OVER turn AS held_bytes
    FROM (
        SELECT * EXCEPT (is_one_way) FROM entries WHERE is_one_way
        UNION ALL
        SELECT changes.* FROM changes
            LEFT SEMI JOIN (SELECT * FROM entries WHERE NOT is_one_way)
                USING (queue_manager, store, kind, position)
        UNION ALL
        SELECT queue_manager, store, kind, -1, -1, count, size_bytes FROM begun
        WHERE what <> 'most'
    )
    WINDOW turn AS (PARTITION BY queue_manager, store, kind ORDER BY position, step)
    UNION ALL
    SELECT queue_manager, store, kind, count, size_bytes FROM begun WHERE what = 'most'
),
told AS (
    SELECT queue_manager, store, kind, max(count) AS told, max(held_bytes) AS told_bytes
    FROM held GROUP BY ALL
)
SELECT queue_manager, -1 AS position, store, -1 AS sequence, -1 AS session,
    concat('a ', kind, ' held more or less than came to it') AS summary,
    concat_ws(' ', told, 'messages', told_bytes, 'bytes') AS expected,
    concat_ws(' ', count, 'messages', size_bytes, 'bytes') AS found
FROM told JOIN {standing} AS standing USING (queue_manager, store, kind)
WHERE what = 'most' AND (told_bytes <> size_bytes OR told <> count)
""")
# What was deleted or ended is gone with the last message that it has.
STAYED = state_mismatch(f"""
WITH standing AS (
    SELECT queue_manager, store, kind FROM {{standing}}
    WHERE store >= 0 AND kind IN ('queue', 'subscription', 'topic')
    GROUP BY ALL
    HAVING sum(IF(what IN ({GONE}, 'most'), 0, count))
        = 0
)
SELECT queue_manager, -1 AS position, store, -1 AS sequence, -1 AS session,
    concat('a ', kind, ' is there that ended') AS summary, 'gone' AS expected, 'there' AS found
FROM standing LEFT ANTI JOIN (SELECT * FROM {{stores}} WHERE gone_at IS NULL)
    USING (queue_manager, store, kind)
""")
LAW = Law(
    letter="N",
    sentence="Put = present + gone by cause, for each queue, subscription and topic that there is.",
    breaches=(CONSERVED, HIGHEST, STAYED),
)
