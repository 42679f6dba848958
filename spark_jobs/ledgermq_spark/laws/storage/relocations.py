"""What is written again: law I asks where the bodies of messages stand (PROTOCOL.md §22)."""

from ledgermq_spark.laws.law import altered_outcome, state_mismatch

FRAMES: dict[str, str] = {}

# The places that accepted Relocates name, each with what is there: `is_there` says that the message
# of that Put is there, so that its body stands at the position of the entry, at `body_index`.
FRAMES["relocated"] = """
WITH
told AS (
    SELECT queue_manager, session, replied_at AS position, from_json(settings,
        'put_positions ARRAY<BIGINT>, put_indexes ARRAY<BIGINT>, '
        || 'places ARRAY<ARRAY<ARRAY<BIGINT>>>') AS told
    FROM {applied} WHERE kind = 'Relocate' AND reply = 'Administered'
),
places AS (
    SELECT queue_manager, position, session, body_index, put_position,
        told.put_indexes[body_index] AS put_index, place[0] AS store, place[1] AS sequence
    FROM told
        LATERAL VIEW posexplode(told.put_positions) AS body_index, put_position
        LATERAL VIEW explode(told.places[body_index]) AS place
),
lives AS (
    SELECT queue_manager, store, sequence, put_position, put_index, min(position) AS come_at,
        max(IF(after = 'gone', position, NULL)) AS gone_at
    FROM {moves} WHERE kind <> 'topic' AND sequence >= 0
    GROUP BY ALL
)
SELECT places.*, coalesce(come_at <= places.position
    AND (gone_at IS NULL OR gone_at > places.position), FALSE) AS is_there
FROM places LEFT JOIN lives USING (queue_manager, store, sequence, put_position, put_index)
"""
# A writer is told how many places had the message, and how many had not.
COUNTED = altered_outcome("""
WITH due AS (
    SELECT queue_manager, position AS replied_at, count_if(is_there) AS affected,
        count_if(NOT is_there) AS skipped
    FROM {relocated} GROUP BY queue_manager, position
)
SELECT queue_manager, replied_at AS position, -1 AS store, -1 AS sequence, session,
    'other messages were relocated than were there' AS summary,
    concat_ws(' ', coalesce(affected, 0), 'relocated', coalesce(skipped, 0), 'skipped') AS expected,
    concat_ws(' ', reply_number, 'relocated', reply_count, 'skipped') AS found
FROM (SELECT * FROM {applied} WHERE kind = 'Relocate' AND reply = 'Administered')
    LEFT JOIN due USING (queue_manager, replied_at)
WHERE reply_number <> coalesce(affected, 0) OR reply_count <> coalesce(skipped, 0)
""")
# A body stands where it was written last; elsewhere too. What moves at the entry of a Relocate may
# do so before or after it. Bodies that stand still are not put in order.
STANDING = state_mismatch("""
WITH
unsteady AS (
    SELECT queue_manager, store, sequence FROM {moves} WHERE kind <> 'topic' AND sequence >= 0
    GROUP BY queue_manager, store, sequence
    HAVING min(body_position) <> max(body_position) OR min(body_index) <> max(body_index)
    UNION
    SELECT queue_manager, store, sequence FROM {relocated} WHERE is_there
),
turns AS (
    SELECT queue_manager, store, sequence, position, step, session,
        concat(body_position, ' ', body_index) AS body, 0 AS is_written
    FROM {moves} LEFT SEMI JOIN unsteady USING (queue_manager, store, sequence)
    WHERE kind <> 'topic'
    UNION ALL
    SELECT queue_manager, store, sequence, position, 9223372036854775807, session,
        concat(position, ' ', body_index), 1
    FROM {relocated} WHERE is_there
),
compared AS (
    SELECT *, lag(body) OVER life AS due, max(IF(is_written = 1, position, -1)) OVER (
            PARTITION BY queue_manager, store, sequence, position) AS written_at
    FROM turns
    WINDOW life AS (
        PARTITION BY queue_manager, store, sequence ORDER BY position, step, is_written)
)
SELECT queue_manager, position, store, sequence, session,
    'the body of a message stands elsewhere than it was written' AS summary,
    due AS expected, body AS found
FROM compared
WHERE is_written = 0 AND written_at <> position AND body <> due
""")
# What comes from elsewhere has the body that it had there.
CARRIED = state_mismatch("""
WITH
came AS (
    SELECT queue_manager, position, put_position, put_index, store, sequence, session,
        body_position, body_index
    FROM {moves} WHERE before = 'new' AND kind = 'queue'
),
left_for AS (
    SELECT queue_manager, position, put_position, put_index,
        collect_set(concat_ws(' ', body_position, body_index)) AS bodies
    FROM {moves} LEFT SEMI JOIN (SELECT * FROM came WHERE session < 0)
        USING (queue_manager, position, put_position, put_index)
    WHERE after = 'gone' AND kind <> 'topic'
    GROUP BY ALL
)
SELECT queue_manager, position, store, sequence, session,
    'a message came with another body than it had' AS summary,
    array_join(array_sort(bodies), ', ') AS expected,
    concat_ws(' ', body_position, body_index) AS found
FROM came LEFT JOIN left_for USING (queue_manager, position, put_position, put_index)
WHERE IF(session >= 0, struct(body_position, body_index) <> struct(put_position, put_index),
    bodies IS NOT NULL AND NOT array_contains(bodies, concat_ws(' ', body_position, body_index)))
""")
