"""Law C: an accepted Put brings its messages, a refused one none; a unit of work is whole."""

from ledgermq_spark.laws.law import Law, altered_outcome, lost, torn_transaction

# Messages that came by a Put stand first at the destination that it names, when it was answered.
BROUGHT = lost("""
WITH
due AS (
    SELECT queue_manager, replied_at AS position, position AS put_position, put_index, target,
        session, reply, reply_number + put_index AS due_sequence
    FROM {applied} LATERAL VIEW posexplode(message_ids) AS put_index, message_id
    WHERE kind = 'Put' AND reply IN ('Accepted', 'Enqueued')
        AND NOT has_vanished
),
come AS (
    SELECT queue_manager, position, put_position, put_index, destination AS target, session, store,
        after, sequence
    FROM {moves}
    WHERE before = 'new' AND kind <> 'subscription' AND session >= 0
)
SELECT queue_manager, position, coalesce(store, -1) AS store, coalesce(sequence, -1) AS sequence,
    session,
    CASE WHEN reply IS NULL THEN 'a message came that no accepted Put brought'
        WHEN after IS NULL THEN 'a message of an accepted Put did not come'
        ELSE 'a message got another number than its writer was told' END AS summary,
    IF(reply IS NULL, 'nothing', concat_ws(' ', reply, put_position, put_index, due_sequence))
        AS expected,
    IF(after IS NULL, 'nothing', concat_ws(' ', after, sequence)) AS found
FROM due FULL JOIN come USING (queue_manager, position, put_position, put_index, target, session)
WHERE reply IS NULL OR after IS NULL
    OR reply = 'Enqueued' AND (after = 'uncommitted put' OR sequence <> due_sequence)
    OR reply = 'Accepted' AND after <> 'uncommitted put'
""")
# The numbers that a writer is told of its commit are those of its puts, by destination.
COMMITTED = altered_outcome("""
WITH
told AS (
    SELECT queue_manager, session, replied_at AS position,
        concat_ws(', ', array_sort(split(max(reply_runs), ', '))) AS runs
    FROM {applied} WHERE kind = 'Commit' AND reply = 'Committed'
    GROUP BY ALL
),
runs AS (
    SELECT queue_manager, session, position,
        concat(destination, ' ', min(sequence), '+', count(*)) AS run
    FROM {moves} WHERE before = 'uncommitted put' AND sequence >= 0
    GROUP BY queue_manager, session, position, destination
),
made AS (
    SELECT queue_manager, session, position,
        concat_ws(', ', array_sort(collect_list(run))) AS runs
    FROM runs GROUP BY ALL
)
SELECT queue_manager, position, -1 AS store, -1 AS sequence, session,
    'a unit of work was numbered otherwise than its writer was told' AS summary,
    told.runs AS expected, made.runs AS found
FROM told FULL JOIN made USING (queue_manager, session, position)
WHERE coalesce(told.runs, '') <> coalesce(made.runs, '')
""")
# A unit of work ends as one: where its session commits or rolls back, ends, or is ended. Of what
# comes into it in the entry of its end (`turn`), what had waited came before (0), and what that
# entry itself puts comes behind (2).
WHOLE = torn_transaction("""
WITH
ends AS (
    SELECT queue_manager, session, replied_at AS position FROM {applied}
    WHERE kind IN ('Commit', 'Rollback', 'Close') AND reply <> 'Refused'
    UNION
    SELECT queue_manager, session, position FROM {losses}
),
puts AS (
    SELECT queue_manager, session, put_position, put_index, store, kind,
        min(position) AS position, min(sequence) AS sequence,
        max(IF(before = 'uncommitted put', position, NULL)) AS ended_at,
        max(IF(before = 'uncommitted put', cause, NULL)) AS cause
    FROM {moves} WHERE 'uncommitted put' IN (before, after)
    GROUP BY ALL
),
timeline AS (
    SELECT queue_manager, session, position, 1 AS turn, position AS end_at,
        NULL AS store, NULL AS ended_at, NULL AS cause
    FROM ends
    UNION ALL
    SELECT queue_manager, session, position, IF(put_position = position, 2, 0), NULL, store,
        ended_at, cause
    FROM puts
),
due AS (
    SELECT *, last(end_at, TRUE) OVER (
        PARTITION BY queue_manager, session ORDER BY position DESC, turn DESC
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS due_at
    FROM timeline
)
SELECT queue_manager, coalesce(least(ended_at, due_at), position) AS position, store,
    -1 AS sequence, session, 'a put did not end with its unit of work' AS summary,
    coalesce(CAST(due_at AS STRING), 'open') AS expected,
    coalesce(CAST(ended_at AS STRING), 'open') AS found
FROM due
WHERE turn <> 1 AND NOT (ended_at <=> due_at)
    AND NOT (coalesce(cause IN ('purged', 'dropped'), FALSE)
        AND (due_at IS NULL OR ended_at < due_at))
""")
# What a transacted session puts waits for its commit, and does not vanish before.
AS_ITS_SESSION = altered_outcome("""
SELECT queue_manager, replied_at AS position, -1 AS store, -1 AS sequence, session,
    'a put was answered otherwise than its session puts messages' AS summary,
    IF(mode = 'TRANSACTED', 'Accepted', 'Enqueued') AS expected, reply AS found
FROM {applied}
    JOIN (SELECT queue_manager, session, acknowledge_mode AS mode FROM {sessions})
        USING (queue_manager, session)
WHERE kind = 'Put' AND reply IN ('Accepted', 'Enqueued')
    AND (mode = 'TRANSACTED') <> (reply = 'Accepted')
""")
LAW = Law(
    letter="C",
    sentence="An accepted Put brings exactly its messages under the numbers that its writer was "
    "told, a refused one none; what is put in a unit of work is numbered or vanishes as one.",
    breaches=(BROUGHT, AS_ITS_SESSION, COMMITTED, WHOLE),
)
