"""What administration chose in law D: all that it named and nobody held, and nothing else (§17)."""

from ledgermq.protocol.limits import HANDLED_MESSAGES_MAX, NUMBERS_EXAMINED_MAX
from ledgermq_spark.laws.law import state_mismatch
from ledgermq_spark.laws.refusals.manual_reasons import HANDLED

# A message is named for sure if it was there before that entry and did nothing at it but what was
# asked for; of a message that was on a topic before it is not known which group it is in. A search
# that came to its limit, or could not look at all numbers, may have left out what comes after the
# last message that it touched; which that is, nothing says where more moved than it was told of,
# as those of a parked group do by themselves. Where a message stands several times, the first ones
# were copied.
CHOSEN = state_mismatch(f"""
WITH
asked AS (
    SELECT queue_manager, replied_at AS position, session, kind, reply_number AS told,
        named.selection.source, named.selection.subscription, named.selection.client_id,
        named.selection.durable, named.selection.selector, named.selection.sequences,
        named.selection.after_sequence, named.selection.limit,
        coalesce(named.to_origin, FALSE) AS to_origin
    FROM (
        SELECT *, from_json(settings, '{HANDLED}') AS named FROM {{applied}}
        WHERE kind IN ('PurgeQueue', 'DeleteMessages', 'MoveMessages', 'CopyMessages')
            AND reply <> 'Refused' AND settings IS NOT NULL
    )
    WHERE named.selection IS NOT NULL
),
places AS (
    SELECT asked.*, coalesce(queue.store, sub.store) AS store
    FROM asked
        LEFT JOIN {{stores}} AS queue ON queue.queue_manager = asked.queue_manager
            AND queue.kind = 'queue' AND queue.destination = source
            AND queue.made_at < position AND coalesce(position < queue.gone_at, TRUE)
        LEFT JOIN {{stores}} AS sub ON sub.queue_manager = asked.queue_manager
            AND sub.kind = 'subscription' AND sub.destination = source
            AND sub.subscription = asked.subscription AND sub.client_id = asked.client_id
            AND sub.life = IF(asked.durable, 'durable', 'shared')
            AND sub.made_at < position AND coalesce(position < sub.gone_at, TRUE)
),
lives AS (
    SELECT moves.queue_manager, place.position, place.store, sequence,
        max(moves.kind) AS kind, max(put_position) AS put_position, max(put_index) AS put_index,
        min_by(time_us, (moves.position, step)) AS time_us,
        max_by(after, (moves.position, step)) FILTER (WHERE moves.position < place.position)
            AS state,
        count_if(moves.position = place.position) AS moved_here,
        count_if(moves.position = place.position AND after = 'gone' AND cause = left_as)
            AS gone_here
    FROM (
        SELECT DISTINCT queue_manager, position, store,
            IF(kind = 'MoveMessages', 'moved', 'removed') AS left_as
        FROM places
    ) AS place
        JOIN {{moves}} AS moves USING (queue_manager, store)
    WHERE sequence >= 0 AND moves.position <= place.position
    GROUP BY ALL
),
puts AS (
    SELECT put.queue_manager, put.put_position, put.put_index, message_id, priority, persistent,
        header, topic.put_position IS NOT NULL AS was_on_topic
    FROM {{puts}} AS put
    LEFT JOIN (
        SELECT DISTINCT queue_manager, put_position, put_index FROM {{moves}} WHERE kind = 'topic'
    ) AS topic USING (queue_manager, put_position, put_index)
),
copied AS (
    SELECT queue_manager, position, put_position, put_index, count(*) AS copies
    FROM {{arrived}} GROUP BY ALL
),
named AS (
    SELECT place.*, sequence, state IN ('available', 'unborn', 'delayed')
            AND moved_here = IF(place.kind = 'CopyMessages', 0, gone_here)
            AND NOT (life.kind = 'queue' AND was_on_topic) AS is_sure,
        IF(place.kind = 'CopyMessages', row_number() OVER same <= coalesce(copies, 0),
            gone_here > 0) AS is_touched
    FROM places AS place JOIN lives AS life USING (queue_manager, position, store)
        JOIN puts USING (queue_manager, put_position, put_index)
        LEFT JOIN copied USING (queue_manager, position, put_position, put_index)
    WHERE sequence > after_sequence
        AND (size(sequences) = 0
            OR size(filter(sequences, one -> sequence BETWEEN one.first AND one.last)) > 0)
        AND (suits(selector, IF(trim(selector) = '', NULL, struct(message_id, priority, persistent,
            time_us, header)), life.kind = 'queue') OR life.kind = 'queue' AND was_on_topic)
        AND (state <> 'gone' OR state IS NULL)
    WINDOW same AS (PARTITION BY place.queue_manager, place.position, put_position, put_index
        ORDER BY IF(state IN ('available', 'unborn', 'delayed'), 0, 1), sequence)
),
judged AS (
    SELECT queue_manager, position, session, store, told,
        count_if(is_touched) AS touched,
        count_if(is_sure AND NOT is_touched AND NOT to_origin
            AND (sequence < last_touched OR is_whole)) AS missed
    FROM (
        SELECT *, IF(count_if(is_touched) OVER asked > told, NULL,
                max(IF(is_touched, sequence, NULL)) OVER asked) AS last_touched,
            told < IF(limit > 0, least(limit, {HANDLED_MESSAGES_MAX}), {HANDLED_MESSAGES_MAX})
                AND (max(sequence) OVER asked) - after_sequence < {NUMBERS_EXAMINED_MAX}
                AS is_whole
        FROM named WINDOW asked AS (PARTITION BY queue_manager, position)
    )
    GROUP BY ALL
)
SELECT queue_manager, position, coalesce(place.store, -1) AS store, -1 AS sequence,
    coalesce(place.session, -1) AS session,
    IF(missed > 0, 'messages were left out that an operation by hand named',
        'messages were touched that an operation by hand did not name') AS summary,
    concat(place.told + coalesce(missed, 0), ' touched') AS expected,
    concat(coalesce(touched, 0), ' of those named') AS found
FROM places AS place LEFT JOIN judged USING (queue_manager, position)
WHERE missed > 0 OR coalesce(touched, 0) < place.told
""")
# As many messages are touched as is told; others may be moved at that entry too.
TOUCHED = state_mismatch("""
WITH
asked AS (
    SELECT queue_manager, replied_at AS position, session, kind, CASE
        WHEN kind = 'Correct' THEN IF(action = 'REMOVE', 1, 0)
        WHEN reply = 'Administered' THEN reply_number ELSE -1 END AS due
    FROM {applied}
    WHERE reply <> 'Refused'
        AND kind IN ('Correct', 'PurgeQueue', 'DeleteMessages', 'MoveMessages', 'CopyMessages')
),
touched AS (
    SELECT queue_manager, position, count_if(cause = 'removed') AS removed,
        count_if(cause = 'moved') AS moved
    FROM {moves} WHERE cause IN ('removed', 'moved')
    GROUP BY ALL
),
copied AS (SELECT queue_manager, position, count(*) AS copied FROM {arrived} GROUP BY ALL)
SELECT queue_manager, position, -1 AS store, -1 AS sequence, coalesce(session, -1) AS session,
    'another number of messages was touched by hand than was asked for and told' AS summary,
    concat_ws(' ', kind, coalesce(due, 0)) AS expected,
    concat_ws(' ', coalesce(removed, 0), 'removed', coalesce(moved, 0), 'moved',
        coalesce(copied, 0), 'copied') AS found
FROM asked FULL JOIN touched USING (queue_manager, position)
    LEFT JOIN copied USING (queue_manager, position)
WHERE due < 0 OR CASE kind
    WHEN 'MoveMessages' THEN coalesce(moved, 0) < due OR removed > 0
    WHEN 'CopyMessages' THEN coalesce(copied, 0) < due OR removed > 0
    ELSE coalesce(removed, 0) <> coalesce(due, 0) END
""")
