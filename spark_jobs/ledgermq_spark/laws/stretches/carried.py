"""What is carried from the end of a log into the stretch behind it, so that laws can judge that."""

from __future__ import annotations

from typing import Any

from ledgermq_spark.laws.facts import Facts
from ledgermq_spark.tables.events import IN_FLIGHT

CARRIED: dict[str, str] = {}

# Operations as they were, but for Gets: the last one of a consumer asks for all that it has, in the
# options that are in force, those before it for nothing.
CARRIED["operations"] = """
WITH
gets AS (
    SELECT queue_manager, session, consumer, max(replied_at) AS position,
        max_by(options, replied_at) FILTER (WHERE options IS NOT NULL) AS options
    FROM {applied} WHERE kind = 'Get' AND reply = 'Accepted'
    GROUP BY ALL
),
asked AS (
    SELECT queue_manager, session, position, options, greatest(coalesce(credit, 0), 0) AS credit
    FROM gets LEFT JOIN {credits_left} USING (queue_manager, session, consumer)
),
chosen AS (
    SELECT queue_manager, position FROM {carried_positions}
    UNION SELECT queue_manager, session FROM {carried_sessions}
)
SELECT operation.* EXCEPT (number, options),
    IF(kind = 'Get', coalesce(credit, 0), number) AS number,
    IF(credit IS NULL, operation.options, asked.options) AS options
FROM {operations} AS operation LEFT SEMI JOIN chosen USING (queue_manager, position)
    LEFT JOIN asked USING (queue_manager, session, position)
"""
# Answers to these, and ends of sessions. Of deliveries the number of the last one is enough, and
# that something in doubt was among them: they are carried as if of nothing.
CARRIED["outcomes"] = """
WITH
replies AS (
    SELECT queue_manager, session, session_sequence, position
    FROM {operations} LEFT SEMI JOIN {carried_positions} USING (queue_manager, position)
    UNION
    SELECT queue_manager, session, session_sequence, replied_at
    FROM {applied} LEFT SEMI JOIN {carried_positions} USING (queue_manager, position)
),
delivered AS (
    SELECT queue_manager, position, index, in_doubt,
        row_number() OVER (PARTITION BY queue_manager, session
            ORDER BY first_delivery + size(sequences) DESC) AS of_session,
        row_number() OVER (PARTITION BY queue_manager, session, consumer, in_doubt
            ORDER BY position DESC, index DESC) AS of_consumer
    FROM {outcomes} LEFT SEMI JOIN {living_sessions} USING (queue_manager, session)
    WHERE kind = 'Delivered'
),
chosen AS (
    SELECT queue_manager, position, index
    FROM {outcomes} LEFT SEMI JOIN replies
        USING (queue_manager, session, session_sequence, position)
    UNION
    SELECT queue_manager, position, index
    FROM {outcomes} LEFT SEMI JOIN {carried_sessions} USING (queue_manager, session)
    WHERE kind IN ('Opened', 'SessionEnded')
    UNION
    SELECT queue_manager, position, index
    FROM {outcomes} LEFT SEMI JOIN {carried_positions} USING (queue_manager, position)
    WHERE kind = 'Suspected'
    UNION
    SELECT queue_manager, position, index
    FROM {outcomes} LEFT SEMI JOIN {last_ends} USING (queue_manager, session, position)
    WHERE kind = 'Returned' AND session_sequence = 0
    UNION
    SELECT queue_manager, position, index FROM delivered
    WHERE of_session = 1 OR in_doubt AND of_consumer = 1
)
SELECT told.* EXCEPT (first_delivery, sequences),
    first_delivery + IF(kind = 'Delivered', size(sequences), 0) AS first_delivery,
    IF(kind = 'Delivered', CAST(array() AS ARRAY<BIGINT>), sequences) AS sequences
FROM {outcomes} AS told LEFT SEMI JOIN chosen USING (queue_manager, position, index)
"""
# Of messages that are carried where each came from and where it is gone to, and how its last
# delivery began and ended; those before it left it as it was, but for a session's last one.
CARRIED["moves"] = f"""
SELECT move.*
FROM {{moves}} AS move
    LEFT SEMI JOIN {{carried_puts}} USING (queue_manager, put_position, put_index)
    LEFT JOIN (
        SELECT queue_manager, store, kind, sequence, put_position, put_index, delivered_at
        FROM {{last_moves}} WHERE sequence >= 0
    ) USING (queue_manager, store, kind, sequence, put_position, put_index)
    LEFT JOIN (SELECT DISTINCT *, TRUE AS is_last FROM {{last_deliveries}})
        USING (queue_manager, session, delivery)
WHERE NOT coalesce(is_last IS NULL AND struct(position, step) < delivered_at
    AND (before IN {IN_FLIGHT} OR after IN {IN_FLIGHT} OR before = 'delayed'), FALSE)
"""
CARRIED["clock"] = """
SELECT clock.* FROM {clock} AS clock LEFT SEMI JOIN (
    SELECT queue_manager, position FROM {carried_positions}
    UNION SELECT queue_manager, session FROM {carried_sessions}
) USING (queue_manager, position)
"""
# What law F knows of stores that are there or have something.
CARRIED["stores_before"] = """
SELECT queue_manager, store, number, text FROM {stores_left} LEFT SEMI JOIN (
    SELECT queue_manager, store FROM {stores} WHERE gone_at IS NULL
    UNION
    SELECT queue_manager, store FROM {last_moves} WHERE state <> 'gone'
) USING (queue_manager, store)
"""
CARRIED["since"] = "SELECT queue_manager, end_at AS position FROM {log_end}"
CARRIED |= {
    "stood": "SELECT * FROM {standing}",
    "segments_before": "SELECT * FROM {segments}",
}


def carried(facts: Facts) -> dict[str, Any]:
    """Rows that a stretch behind the end of the facts has to be judged with, besides its own.

    Of the frames that logs have, these are added to the rows of the stretch; those that
    `facts.BEFORE` names stand for themselves. The facts may be of a stretch with what was carried
    into it.
    """
    return {name: facts.query(query) for name, query in CARRIED.items()}
