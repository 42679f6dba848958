"""Law Q: what a destination remembers it does not take again, and nothing else vanishes."""

from __future__ import annotations

from typing import Final

from ledgermq_spark.laws.law import Law, duplicated, lost

FRAMES: dict[str, str] = {}

# Moves of the first messages of puts that have an id, where they were put to.
FRAMES["id_moves"] = """
SELECT moves.*, deduplication_id
FROM {moves} AS moves JOIN (
    SELECT queue_manager, position AS put_position, deduplication_id FROM {operations}
    WHERE deduplication_id IS NOT NULL
) USING (queue_manager, put_position)
WHERE kind <> 'subscription' AND put_index = 0
"""
# Puts of an id that were numbered: where, since when they are remembered, under which number their
# first messages. A stretch is told the operations of those that came while time stood still.
FRAMES["numbered_ids"] = """
SELECT queue_manager, store, deduplication_id, position, step,
    coalesce(begins_us, time_us) AS since_us, coalesce(begins_us > time_us, FALSE) AS stood,
    sequence, put_position
FROM {id_moves}
    LEFT JOIN (SELECT queue_manager, position, begins_us FROM {operation_times})
        USING (queue_manager, position)
WHERE before IN ('new', 'uncommitted put') AND sequence >= 0 AND session >= 0
"""
# Where an id is asked for: by a put outside a unit of work, when it comes and (`late`) when one
# that waited is answered; by a Commit for each put of its unit of work.
FRAMES["asked_ids"] = """
WITH
asking AS (
    SELECT queue_manager, session, position, FALSE AS late, position AS judged_at, kind, target,
        deduplication_id
    FROM {conduct}
    WHERE conduct = 'next' AND (kind = 'Commit' OR deduplication_id IS NOT NULL)
    UNION ALL
    SELECT queue_manager, session, position, TRUE, replied_at, kind, target, deduplication_id
    FROM {conduct}
    WHERE is_applied AND replied_at > position
        AND (kind = 'Commit' OR deduplication_id IS NOT NULL)
),
open AS (
    SELECT queue_manager, session, put_position, destination, deduplication_id,
        min(IF(after = 'uncommitted put', position, NULL)) AS since,
        min(IF(before = 'uncommitted put', position, NULL)) AS until
    FROM {id_moves} WHERE 'uncommitted put' IN (before, after)
    GROUP BY ALL
)
SELECT queue_manager, session, position, late, judged_at, 'Put' AS kind, target AS destination,
    deduplication_id, position AS put_position
FROM asking WHERE kind = 'Put'
UNION ALL
SELECT queue_manager, session, position, late, judged_at, 'Commit', open.destination,
    open.deduplication_id, put_position
FROM (SELECT * EXCEPT (deduplication_id) FROM asking WHERE kind = 'Commit')
    JOIN open USING (queue_manager, session)
WHERE since <= judged_at AND coalesce(until >= judged_at, TRUE)
"""
# Of each put that waited and brought nothing, where the first step is of what was numbered after it
# in the entry of its reply: its destination may remember less behind that.
FRAMES["numbered_after"] = """
SELECT one.queue_manager, one.position, min(step) AS step
FROM (SELECT * FROM {applied} WHERE has_vanished AND replied_at > position) AS one
    JOIN {applied} AS other ON other.queue_manager = one.queue_manager
        AND other.replied_at = one.replied_at AND other.reply_index > one.reply_index
    JOIN {id_moves} AS moves ON moves.queue_manager = one.queue_manager
        AND moves.position = one.replied_at AND moves.session = other.session
WHERE sequence >= 0 AND (other.reply = 'Committed' AND before = 'uncommitted put'
    OR other.reply = 'Enqueued' AND before = 'new' AND put_position = other.position)
GROUP BY ALL
"""
# What happens to the memory of each destination, in order. What is numbered while it looks for
# nothing is not remembered. `rank` counts what is; of the ranks up to `mark_rank` it has forgotten
# all, as of what is not younger than `mark_us`, and of what came before it looked for nothing last.
FRAMES["id_events"] = """
WITH
settings AS (
    SELECT queue_manager, store, from_position AS position, deduplication_window_ms AS window_ms,
        deduplication_ids_max AS ids_max, lag(deduplication_window_ms) OVER (
            PARTITION BY queue_manager, store ORDER BY from_position) AS window_before_ms
    FROM {destination_settings}
        LEFT SEMI JOIN (
            SELECT queue_manager, store FROM {destination_settings}
            WHERE deduplication_ids_max > 0
        ) USING (queue_manager, store)
),
events AS (
    SELECT queue_manager, store, position, 0 AS part, 0L AS step, 'setting' AS what, time_us,
        window_ms, ids_max, window_before_ms, NULL AS deduplication_id, NULL AS sequence,
        NULL AS session, NULL AS asked_at, NULL AS late, NULL AS kind
    FROM settings JOIN {clock} USING (queue_manager, position)
    UNION ALL
    SELECT queue_manager, store, position, 1, 2 * step + 1, 'numbered', since_us, NULL, NULL,
        NULL, deduplication_id, sequence, NULL, NULL, NULL, NULL
    FROM {numbered_ids} LEFT SEMI JOIN settings USING (queue_manager, store)
    UNION ALL
    SELECT one.queue_manager, place.store, judged_at,
        IF(coalesce(own.step, after.step) IS NULL, 2, 1),
        coalesce(2 * own.step, 2 * after.step, 0), 'asked', clock.time_us, NULL, NULL, NULL,
        one.deduplication_id, own.sequence, one.session, one.position, one.late, one.kind
    FROM {asked_ids} AS one
        JOIN {destinations} AS place ON place.queue_manager = one.queue_manager
            AND place.destination = one.destination AND made_at <= judged_at
            AND coalesce(judged_at < gone_at, TRUE)
        JOIN {clock} AS clock ON clock.queue_manager = one.queue_manager
            AND clock.position = judged_at
        LEFT JOIN {numbered_ids} AS own ON own.queue_manager = one.queue_manager
            AND own.put_position = one.put_position AND own.position = judged_at
        LEFT JOIN {numbered_after} AS after ON after.queue_manager = one.queue_manager
            AND after.position = one.position AND late
),
in_force AS (
    SELECT *, coalesce(last(window_ms, TRUE) OVER life, 0) AS window_now_ms,
        coalesce(last(ids_max, TRUE) OVER life, 0) AS ids_now,
        count_if(window_ms = 0) OVER life AS era
    FROM events
    WINDOW life AS (PARTITION BY queue_manager, store ORDER BY position, part, step
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
),
ranked AS (
    SELECT *, what = 'numbered' AND ids_now > 0 AS is_kept,
        count_if(what = 'numbered' AND ids_now > 0) OVER life AS rank
    FROM in_force
    WINDOW life AS (PARTITION BY queue_manager, store ORDER BY position, part, step
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
)
SELECT *,
    max(IF(is_kept OR what = 'setting', rank - ids_now, NULL)) OVER life AS mark_rank,
    max(IF(window_ms > 0, time_us - 1000 * least(window_ms, coalesce(nullif(window_before_ms, 0),
        window_ms)), NULL)) OVER life AS mark_us
FROM ranked
WINDOW life AS (PARTITION BY queue_manager, store ORDER BY position, part, step
    ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
"""
REMEMBERS: Final = """{known}.time_us > greatest(coalesce({now}.mark_us, -1),
    {now}.time_us - 1000 * {now}.window_now_ms) AND {known}.rank > {now}.mark_rank
    AND {known}.era = {now}.era AND {now}.ids_now > 0"""


def remembers(known: str, now: str) -> str:
    """Whether a destination remembers what was numbered in one event at another one."""
    return f"({REMEMBERS.replace('{known}', known).replace('{now}', now)})"


# Each id where it is asked for: `first_sequence` is that of the put that is remembered, or null;
# `sequence` the number that its own put got there, or null; `is_looked_for` whether the
# destination looks for ids at all.
FRAMES["known_ids"] = f"""
WITH
beside AS (
    SELECT *, last(IF(is_kept, struct(time_us, rank, era, sequence), NULL), TRUE) OVER (
        PARTITION BY queue_manager, store, deduplication_id ORDER BY position, part, step
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS known
    FROM {{id_events}} WHERE deduplication_id IS NOT NULL
)
SELECT queue_manager, store, session, asked_at AS position, late, kind,
    position AS judged_at, deduplication_id, sequence, ids_now > 0 AS is_looked_for,
    IF(known IS NOT NULL AND {remembers("known", "now")}, known.sequence, NULL) AS first_sequence
FROM beside AS now WHERE what = 'asked'
"""
# Puts that destinations remember at the end of the log.
FRAMES["remembered_puts"] = f"""
WITH
ends AS (
    SELECT queue_manager, store,
        max_by(struct(mark_us, mark_rank, era, ids_now, window_now_ms), (position, part, step))
            AS end
    FROM {{id_events}} LEFT SEMI JOIN (SELECT * FROM {{destinations}} WHERE gone_at IS NULL)
        USING (queue_manager, store)
    GROUP BY ALL
),
now AS (
    SELECT queue_manager, store, end.*, end_us AS time_us
    FROM ends JOIN {{log_end}} USING (queue_manager)
),
kept AS (SELECT * FROM {{id_events}} WHERE is_kept)
SELECT kept.queue_manager, put_position, IF(stood, kept.position, NULL) AS numbered_at
FROM kept JOIN now ON now.queue_manager = kept.queue_manager AND now.store = kept.store
    JOIN {{numbered_ids}} AS put ON put.queue_manager = kept.queue_manager
        AND put.store = kept.store AND put.sequence = kept.sequence
        AND put.position = kept.position
WHERE {remembers("kept", "now")}
"""
AGAIN = duplicated("""
SELECT queue_manager, judged_at AS position, store, sequence, session,
    'a put was numbered though its id was remembered' AS summary,
    concat_ws(' ', deduplication_id, first_sequence) AS expected,
    concat_ws(' ', deduplication_id, sequence) AS found
FROM {known_ids} WHERE kind = 'Put' AND sequence IS NOT NULL AND first_sequence IS NOT NULL
""")
# A put that brings nothing says the number of the one that is remembered.
VANISHED = lost("""
SELECT queue_manager, replied_at AS position, coalesce(store, -1) AS store, -1 AS sequence, session,
    'a put vanished that was not put before as its writer was told' AS summary,
    coalesce(CAST(first_sequence AS STRING), 'its messages') AS expected, reply_number AS found
FROM (
    SELECT queue_manager, session, position, replied_at, reply_number, replied_at > position AS late
    FROM {applied} WHERE has_vanished
) LEFT JOIN (
    SELECT queue_manager, session, position, late, store, first_sequence FROM {known_ids}
) USING (queue_manager, session, position, late)
WHERE NOT first_sequence <=> reply_number
""")
LAW: Final = Law(
    letter="Q",
    sentence="Within the window of its destination a put of a deduplication id is put once; the "
    "next one vanishes and tells its number.",
    breaches=(AGAIN, VANISHED),
)
