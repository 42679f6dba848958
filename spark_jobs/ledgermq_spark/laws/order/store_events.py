"""What happens to each store, as the rows that the pass over it takes (law F)."""

from __future__ import annotations

from typing import Final

from ledgermq_spark.laws.order.event import Event
from ledgermq_spark.log.rows import columns_of

FRAMES: dict[str, str] = {}

# Types of the columns after those that say which store it is.
EVENT_TYPES: Final = {name: kind.simpleString() for name, kind in columns_of(Event)}
# Where an entry answered its own operation: what that did comes before the deliveries behind it.
FRAMES["answered"] = """
SELECT queue_manager, position, min(outcome.index) AS index
FROM {operations} AS operation
JOIN {outcomes} AS outcome USING (queue_manager, position, session, session_sequence)
WHERE session_sequence > 0
GROUP BY ALL
"""
# `flag` of what is numbered: it may be in a group, as nothing is that was on a topic. Of a message
# that was copied besides, only these were on one: what left a subscription, was copied there, or
# was sent on by a topic of which no subscription wanted it. Of what leaves flight: a session that
# was lost, or whose unit of work was ended, held it, so it is in doubt. Of what moved: not by hand.
# Open puts matter as far as they are in groups; `number` of what is put is the position of the Put.
MOVES: Final = """
WITH
published AS (
    SELECT queue_manager, put_position, put_index, min(struct(position, step)) AS published_at
    FROM {moves} WHERE kind = 'topic'
    GROUP BY ALL
),
copies AS (
    SELECT queue_manager, replied_at AS position,
        IF(get_json_object(settings, '$.selection.source') LIKE 'queue:%', 'queue', 'subscription')
            AS copied_from
    FROM {applied} WHERE kind = 'CopyMessages' AND reply <> 'Refused'
),
copied AS (
    SELECT DISTINCT queue_manager, put_position, put_index
    FROM {moves} LEFT SEMI JOIN copies USING (queue_manager, position)
    LEFT SEMI JOIN published USING (queue_manager, put_position, put_index)
    WHERE before = 'new'
),
left_behind AS (
    SELECT queue_manager, position, step, IF(lag(kind) OVER life = 'topic', 'topic',
        coalesce(copied_from, lag(kind) OVER life)) AS came_from
    FROM {moves} LEFT SEMI JOIN copied USING (queue_manager, put_position, put_index)
        LEFT JOIN copies USING (queue_manager, position)
    WHERE kind <> 'topic' OR before IN ('new', 'uncommitted put') AND cause = 'moved'
    WINDOW life AS (PARTITION BY queue_manager, put_position, put_index ORDER BY position, step)
),
delivered AS (
    SELECT queue_manager, position, session, first_delivery + at AS delivery, index
    FROM {outcomes} LATERAL VIEW posexplode(sequences) AS at, sequence
    WHERE kind = 'Delivered'
),
lost AS (SELECT *, TRUE AS is_lost FROM {losses}),
by_hand AS (
    SELECT queue_manager, position, TRUE AS is_by_hand FROM {operations}
    WHERE kind = 'MoveMessages'
)
SELECT queue_manager, store, position, step, CAST(NULL AS BIGINT) AS index, after AS what, before,
    cause, sequence, session, consumer, put_position AS number, header AS text, time_us, priority,
    message_id, persistent AS is_persistent,
    kind = 'queue' AND coalesce(came_from = 'queue', published_at > struct(position, step), TRUE)
        AS flag
FROM {moves}
LEFT JOIN left_behind USING (queue_manager, position, step)
LEFT JOIN {puts} USING (queue_manager, put_position, put_index)
LEFT JOIN published USING (queue_manager, put_position, put_index)
WHERE kind <> 'topic' AND before IN ('new', 'uncommitted put')
    AND (sequence >= 0 OR header LIKE '%"g":%')
UNION ALL
SELECT queue_manager, store, position, step, index, after, before, cause, sequence, session,
    consumer, delivery, NULL, time_us, NULL, NULL, NULL,
    IF(cause = 'moved', is_by_hand IS NULL, is_lost IS NOT NULL)
FROM {moves}
LEFT JOIN delivered USING (queue_manager, position, session, delivery)
LEFT JOIN by_hand USING (queue_manager, position)
LEFT JOIN lost USING (queue_manager, position, session)
WHERE kind <> 'topic' AND sequence >= 0 AND before NOT IN ('new', 'uncommitted put')
"""
# Of what is opened: `number` 1 where another or a limit had ended the unit of work of its session;
# `priority` that of the consumer.
CONSUMERS: Final = """
WITH
works AS (
    SELECT queue_manager, opened_at AS position, session, consumer, selector,
        consumer_priority, CAST(NULL AS BIGINT) AS is_ended
    FROM {consumers}
    UNION ALL
    SELECT queue_manager, replied_at, session, -1, NULL, NULL, 0 FROM {applied}
    WHERE kind = 'Rollback' AND reply <> 'Refused'
    UNION ALL
    SELECT queue_manager, position, session, -1, NULL, NULL, 1 FROM {forced_rollbacks}
),
opened AS (
    SELECT *, last(is_ended, TRUE) OVER (
        PARTITION BY queue_manager, session ORDER BY position, consumer, is_ended DESC)
        AS is_work_ended
    FROM works
),
ended AS (
    SELECT queue_manager, session, ended_at AS closed_at, ended_index AS index FROM {sessions}
),
told AS (
    SELECT queue_manager, session, position, consumer, 'opened' AS what,
        CAST(NULL AS BIGINT) AS told_index, coalesce(is_work_ended, 0) AS number, selector AS text,
        consumer_priority AS priority
    FROM opened WHERE consumer >= 0
    UNION ALL
    SELECT queue_manager, session, closed_at, consumer, 'closed', index, 0, NULL, NULL
    FROM {consumers} LEFT JOIN ended USING (queue_manager, session, closed_at)
    WHERE closed_at IS NOT NULL
    UNION ALL
    SELECT queue_manager, session, position, consumer, kind, told_index, credit, options, NULL
    FROM {credits}
    UNION ALL
    SELECT queue_manager, session, replied_at, consumer, kind, NULL, IF(flag, 1, 0), NULL,
        NULL
    FROM {applied}
    WHERE kind IN ('GiveBack', 'Reject') AND reply = 'Accepted' AND size(range_first) > 0
    UNION ALL
    SELECT queue_manager, session, position, consumer, 'refused Get', NULL, 0, options, NULL
    FROM {conduct}
    WHERE conduct = 'next' AND kind = 'Get' AND told_reason = 'match-options-invalid'
)
SELECT queue_manager, store, position, coalesce(told_index, index) AS index, what, session,
    consumer, number, text, priority
FROM told
JOIN {consumers} USING (queue_manager, session, consumer)
LEFT JOIN {answered} USING (queue_manager, position)
"""
# What becomes of a session becomes of its consumers: it is suspected, until anything comes of it;
# it says what it has handed over, which matters where something in doubt was delivered.
SESSIONS: Final = """
WITH
doubtful AS (
    SELECT DISTINCT queue_manager, session, consumer FROM {outcomes}
    WHERE kind = 'Delivered' AND in_doubt
),
heard AS (
    SELECT queue_manager, position, session, index, 'suspected' AS what FROM {outcomes}
    WHERE kind = 'Suspected'
    UNION ALL
    SELECT queue_manager, position, session, answered.index, 'trusted'
    FROM {operations} LEFT JOIN {answered} AS answered USING (queue_manager, position)
    WHERE session_sequence > 0
),
turns AS (
    SELECT *, lag(what) OVER (PARTITION BY queue_manager, session ORDER BY position) AS before
    FROM heard
),
told AS (
    SELECT queue_manager, session, consumer, position, index, what, 0 AS number
    FROM turns JOIN {consumers} USING (queue_manager, session)
    WHERE what = 'suspected' OR before = 'suspected'
    UNION ALL
    SELECT queue_manager, session, doubtful.consumer, position, index, 'handed', handed_through
    FROM {operations} JOIN doubtful USING (queue_manager, session)
        LEFT JOIN {answered} USING (queue_manager, position)
    WHERE handed_through > 0
    UNION ALL
    SELECT queue_manager, session, doubtful.consumer, position, index, 'handing', number
    FROM (
        SELECT queue_manager, session, replied_at AS position, number FROM {applied}
        WHERE kind = 'Alive' AND number > 0 AND reply = 'Accepted'
    ) JOIN doubtful USING (queue_manager, session)
        LEFT JOIN {answered} USING (queue_manager, position)
)
SELECT queue_manager, store, position, index, what, session, consumer, number
FROM told JOIN {consumers} USING (queue_manager, session, consumer)
WHERE opened_at < position AND coalesce(closed_at >= position, TRUE)
"""
# Each message in a group of a Put that was refused at once, for its groups (`cause`) or for what is
# asked after them: `number` is its place in the Put, `before` the state that it would have had.
REFUSED_PUTS: Final = """
SELECT one.queue_manager, store, position, one.index, 'refused put' AS what,
    IF(mode = 'TRANSACTED', 'uncommitted put', 'new') AS before, told_reason AS cause, session,
    at AS number, header AS text, priorities[at] AS priority, TRUE AS flag
FROM (
    SELECT queue_manager, position, told_index AS index, mode, told_reason, session, target,
        priorities, at, header
    FROM {conduct} LATERAL VIEW posexplode(headers) AS at, header
    WHERE conduct = 'next' AND kind = 'Put' AND grouped AND told_reason IN ('group-clash',
        'unit-of-work-inconsistent', 'transaction-too-large', 'setting-invalid', 'commit-waiting',
        'quota-exceeded', 'storage-full') AND header LIKE '%"g":%'
) AS one
JOIN (
    SELECT queue_manager, destination AS target, store, from_position, until_position
    FROM {settings} WHERE kind = 'queue'
) AS place ON place.queue_manager = one.queue_manager AND place.target = one.target
    AND from_position < position AND position < until_position
"""
SETTINGS: Final = """
SELECT queue_manager, store, position, index, 'settings' AS what, to_json(struct(
    gets_disabled, unacknowledged_max, group_affinity, fifo_mode, keeps_group_order,
    single_active_consumer, available_max, last_value_key, error_destination)) AS text
FROM (SELECT *, from_position AS position FROM {settings} WHERE kind <> 'topic')
LEFT JOIN {answered} USING (queue_manager, position)
"""
KEYS: Final = ("queue_manager", "store")
# What was told by no outcome comes before all that were.
BEHIND: Final = {"behind_index": "coalesce(index, -1)"}


def _as_events(query: str, columns: str) -> str:
    """A query that has an index, and the columns named: others are null or, of numbers, 0.

    What has no step is no move.
    """
    chosen = []
    for name, kind in EVENT_TYPES.items():
        otherwise = "0" if kind == "bigint" and name != "step" else "NULL"
        given = name if name in columns.split() else BEHIND.get(name, otherwise)
        chosen.append(f"CAST({given} AS {kind}) AS {name}")
    return f"SELECT {', '.join((*KEYS, *chosen))} FROM ({query})"


HAPPENED: Final = " UNION ALL ".join(
    (
        _as_events(MOVES, " ".join(EVENT_TYPES.keys() - BEHIND.keys())),
        _as_events(CONSUMERS, "position what session consumer number text priority"),
        _as_events(SESSIONS, "position what session consumer number"),
        _as_events(SETTINGS, "position what text"),
        _as_events(REFUSED_PUTS, "position what before cause session number text priority flag"),
    )
)
