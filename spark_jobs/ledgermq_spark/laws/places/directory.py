"""Queues, topics and subscriptions from when until when, and the settings in force for each.

Read off the operations that took effect, so also what never had a message is known. An entry is
applied in two parts: what falls due, and its operation with all that follows from it. What an
operation at `from_position` gives is in force for its own part of that entry; what fell due before
it went by the row whose `until_position` is that; what is still in force has the highest there is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, fields
from typing import Any, Final

from ledgermq.protocol.operations import CreateTopic
from ledgermq.protocol.settings import (
    DEFAULTS,
    OPERATION_FIELDS,
    REDELIVERY_DELAY,
    REDELIVERY_FIELDS,
    TOPIC_FIELDS,
)
from ledgermq_spark.laws.refusals.expressions import spelled
from ledgermq_spark.log.headers import MANAGER_SETTINGS

FRAMES: dict[str, str] = {}

# A queue or topic begins with what creates it, or with its first use, and ends by Delete or with
# its connection: an era of its name for each end. It is there from `made_at`; `store` is the
# position of the operation, which is an earlier one where a Put waited before it was let in (§16).
FRAMES["destinations"] = """
WITH
uses AS (
    SELECT queue_manager, replied_at AS position, reply_index AS index, position AS store,
        IF(kind IN ('CreateQueue', 'DeleteQueue'), concat('queue:', target), target) AS destination,
        kind IN ('DeleteQueue', 'DeleteTopic') AS is_end, kind = 'CreateTemporary' AS is_temporary
    FROM {applied}
    WHERE reply <> 'Refused' AND kind IN ('Put', 'OpenConsumer', 'CreateQueue', 'CreateTopic',
        'CreateTemporary', 'DeleteQueue', 'DeleteTopic')
),
moments AS (
    SELECT queue_manager, position, index, store, destination, is_end FROM uses
    UNION ALL
    SELECT DISTINCT queue_manager, ended.position, ended.index, NULL, destination, TRUE
    FROM (SELECT *, split_part(destination, '/', 2) AS connection FROM uses WHERE is_temporary)
        JOIN {connection_ends} AS ended USING (queue_manager, connection)
),
eras AS (
    SELECT *, count_if(is_end) OVER (
        PARTITION BY queue_manager, destination ORDER BY position, index
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS era
    FROM moments
)
SELECT queue_manager, destination, split_part(destination, ':', 1) AS kind, made.store,
    made.position AS made_at, gone_at
FROM (
    SELECT queue_manager, destination,
        min(IF(is_end, NULL, struct(position, index, store))) AS made,
        max(IF(is_end, position, NULL)) AS gone_at
    FROM eras
    GROUP BY queue_manager, destination, era
)
WHERE made IS NOT NULL
"""
# Consumers that were accepted, each with its queue or topic (`place_store`), and of topics with the
# subscription that it asked for; `closed_at` is null where it is open at the end.
FRAMES["opened_consumers"] = """
WITH closes AS (
    SELECT queue_manager, session, consumer,
        min(struct(replied_at AS position, reply_index AS index)) AS closed_at
    FROM {applied} WHERE kind = 'CloseConsumer' AND reply <> 'Refused'
    GROUP BY ALL
)
SELECT queue_manager, session, consumer, replied_at AS position, reply_index AS index,
    CASE WHEN place.kind = 'queue' THEN NULL WHEN durable THEN 'durable' WHEN shared THEN 'shared'
        ELSE 'consumer' END AS life,
    IF(durable OR shared, subscription, concat_ws('/', session, consumer)) AS subscription,
    one.client_id, one.connection, shared, asked.redelivery_delay_ms,
    asked.consumer_priority,
    struct(place.store AS place_store, destination, no_local,
        IF(trim(BOTH ' \\t\\f\\r\\n' FROM selector) = '', '', selector) AS selector) AS wanted,
    place.gone_at AS place_gone_at,
    least(closed_at, IF(ended_at IS NULL, NULL, struct(ended_at AS position, ended_index AS index)))
        AS closed_at
FROM (
    SELECT * EXCEPT (client_id, connection), target AS destination FROM {applied}
    WHERE kind = 'OpenConsumer' AND reply <> 'Refused'
) AS asked
JOIN {sessions} AS one USING (queue_manager, session)
JOIN {destinations} AS place USING (queue_manager, destination)
LEFT JOIN closes USING (queue_manager, session, consumer)
WHERE made_at <= replied_at AND (gone_at IS NULL OR replied_at < gone_at)
"""
# A subscription is there from the first consumer that none of its identity suits: durable until
# Unsubscribe, else until the last consumer is closed; what is in flight then may still return.
FRAMES["stores"] = """
WITH
changes AS (
    SELECT queue_manager, life, subscription, client_id, position, index, 1 AS change
    FROM {opened_consumers} WHERE life IS NOT NULL
    UNION ALL
    SELECT queue_manager, life, subscription, client_id, closed_at.position, closed_at.index, -1
    FROM {opened_consumers} WHERE life IS NOT NULL AND closed_at IS NOT NULL
),
moments AS (
    SELECT queue_manager, life, subscription, client_id, position, index, shared, wanted,
        place_gone_at
    FROM {opened_consumers} WHERE life IS NOT NULL
    UNION ALL
    SELECT DISTINCT queue_manager, life, subscription, client_id, position, index, NULL, NULL, NULL
    FROM (
        SELECT *, sum(change) OVER (PARTITION BY queue_manager, life, subscription, client_id
            ORDER BY position, index) AS consumers
        FROM changes
    )
    WHERE life <> 'durable' AND consumers = 0
    UNION ALL
    SELECT queue_manager, 'durable', subscription, one.client_id, replied_at, reply_index, NULL,
        NULL, NULL
    FROM (
        SELECT * EXCEPT (client_id) FROM {applied}
        WHERE kind = 'Unsubscribe' AND reply <> 'Refused'
    )
    JOIN {sessions} AS one USING (queue_manager, session)
),
turns AS (
    SELECT *, NOT lag(wanted) OVER identity <=> wanted OR wanted IS NULL AS is_turn FROM moments
    WINDOW identity AS (PARTITION BY queue_manager, life, subscription, client_id
        ORDER BY position, index)
),
lives AS (
    SELECT *, lead(position) OVER (PARTITION BY queue_manager, life, subscription, client_id
        ORDER BY position, index) AS ended_at
    FROM turns WHERE is_turn
)
SELECT queue_manager, position AS store, 'subscription' AS kind, wanted.destination, subscription,
    life, client_id, shared, wanted.selector, wanted.no_local,
    wanted.place_store AS topic_store, position AS made_at,
    least(ended_at, place_gone_at) AS gone_at
FROM lives WHERE wanted IS NOT NULL
UNION ALL
SELECT queue_manager, store, kind, destination, NULL, NULL, NULL, NULL, NULL, NULL, NULL, made_at,
    gone_at
FROM {destinations}
"""
# Each consumer that was accepted, open from `opened_at` until `closed_at` (null: open at the end);
# `store` is where its queue or subscription was made. A topic's subscription has the selector, its
# consumers have none (PROTOCOL.md §5, §12).
FRAMES["consumers"] = """
SELECT one.queue_manager, session, consumer, one.position AS opened_at,
    one.closed_at.position AS closed_at, wanted.destination AS destination,
    IF(one.life IS NULL, wanted.place_store, sub.store) AS store,
    IF(one.life IS NULL, wanted.selector, '') AS selector, connection, redelivery_delay_ms,
    consumer_priority
FROM {opened_consumers} AS one LEFT JOIN {stores} AS sub ON sub.queue_manager = one.queue_manager
    AND sub.life = one.life AND sub.subscription = one.subscription
    AND sub.client_id = one.client_id AND sub.made_at <= one.position
    AND (sub.gone_at IS NULL OR sub.gone_at > one.position)
"""
# What changes the credit of a consumer: its Gets with their options (null: as before), and what
# withdraws it all, which is a credit of 0; `told_index` is where that was told.
FRAMES["credits"] = """
SELECT queue_manager, replied_at AS position, kind, session, consumer, number AS credit, options,
    reply_index AS told_index
FROM {applied} WHERE kind = 'Get' AND reply = 'Accepted'
UNION ALL
SELECT queue_manager, position, kind, session, consumer, 0, NULL, told_index
FROM {consumers} JOIN (
    SELECT queue_manager, replied_at AS position, kind, session, reply_index AS told_index
    FROM {applied} WHERE kind IN ('Rollback', 'Recover') AND reply <> 'Refused'
    UNION ALL
    SELECT queue_manager, position, 'forced rollback', session, index FROM {forced_rollbacks}
) USING (queue_manager, session)
WHERE opened_at < position AND coalesce(closed_at > position, TRUE)
"""
# The type of a setting by that of its default, as queries have both.
TYPES: Final[dict[type, tuple[str, Callable[[Any], str]]]] = {
    bool: ("BOOLEAN", str),
    int: ("BIGINT", str),
    str: ("STRING", repr),
    list: ("ARRAY<STRUCT<retries: BIGINT, delay_ms: BIGINT>>", lambda _: "array()"),
}


def _given(default: Any) -> tuple[str, str]:
    kind, text_of = TYPES[type(default)]
    return kind, text_of(default)


# What the settings of an operation may give (§14 to §18), and what each is until it is given.
GIVEN: Final = {name: _given(default) for name, default in asdict(DEFAULTS).items()} | {
    one.name: _given(one.default)
    for one in fields(CreateTopic)
    if one.name in (*OPERATION_FIELDS, *TOPIC_FIELDS)
}
# Those that operations give in fields of their own.
FIELDS: Final = {
    "message_bytes_max": "0",
    "unacknowledged_max": "0",
    "gets_disabled": "FALSE",
    "group_affinity": "FALSE",
}
MANAGER_GIVEN: Final = {
    **dict.fromkeys(MANAGER_SETTINGS, ("BIGINT", "0")),
    "segment_bytes": ("BIGINT", "16777216"),
    "segments_min": ("BIGINT", "4"),
    "journaling": ("BOOLEAN", "FALSE"),
    **{name: GIVEN[name] for name in REDELIVERY_FIELDS},
}
MANAGER_FIELDS: Final = {"automatic_creation": "TRUE", "maximum_lifetime_ms": "2592000000"}


def schema_of(given: dict[str, tuple[str, str]]) -> str:
    return ", ".join(f"{name} {kind}" for name, (kind, _) in given.items())


def _in_force(given: dict[str, tuple[str, str]], fields: dict[str, str]) -> str:
    """Each setting as it was given last, over a window `life`."""
    sources = {name: (f"told.{name}", default) for name, (_, default) in given.items()}
    sources |= {name: (name, default) for name, default in fields.items()}
    return ", ".join(
        f"coalesce(last({source}, TRUE) OVER life, {default}) AS {name}"
        for name, (source, default) in sources.items()
    )


FRAMES["destination_settings"] = f"""
WITH
given AS (
    SELECT queue_manager, replied_at AS position,
        IF(kind IN ('CreateQueue', 'AlterQueue'), concat('queue:', target), target) AS destination,
        message_bytes_max, unacknowledged_max, group_affinity,
        IF(kind = 'AlterQueue', flag, NULL) AS gets_disabled,
        from_json(settings, '{schema_of(GIVEN)}') AS told
    FROM {{applied}}
    WHERE reply <> 'Refused' AND kind IN ('CreateQueue', 'AlterQueue', 'CreateTopic', 'AlterTopic')
),
beginnings AS (
    SELECT queue_manager, kind, destination, store, gone_at, made_at AS position
    FROM {{destinations}}
    UNION
    SELECT queue_manager, kind, destination, store, gone_at, position
    FROM {{destinations}} JOIN given USING (queue_manager, destination)
    WHERE made_at <= position AND (gone_at IS NULL OR position < gone_at)
)
SELECT queue_manager, kind, destination, store, position AS from_position,
    coalesce(lead(position) OVER life, gone_at, 9223372036854775807) AS until_position,
    {_in_force(GIVEN, FIELDS)}
FROM beginnings LEFT JOIN given USING (queue_manager, destination, position)
WINDOW life AS (PARTITION BY queue_manager, destination, store ORDER BY position)
"""


def _in_force_of(name: str) -> str:
    """A setting of a queue or topic: its own, or what it takes from the queue manager (§15)."""
    if name not in REDELIVERY_FIELDS:
        return f"own.{name}"
    parts = REDELIVERY_DELAY if name in REDELIVERY_DELAY else (name,)
    unsaid = " AND ".join(f"own.{one} = {GIVEN[one][1]}" for one in parts)
    takes = "inherits_redelivery AND destination <> rule.error_destination"
    return f"IF({takes} AND {unsaid}, rule.{name}, own.{name}) AS {name}"


# Settings of a topic are those of its subscriptions too, as long as anything of them is there. What
# none of them says of redelivery the queue manager does, but for its error destination.
FRAMES["settings"] = f"""
WITH
own AS (
    SELECT * FROM {{destination_settings}}
    UNION ALL
    SELECT one.queue_manager, one.kind, destination, one.store,
        greatest(from_position, one.store), until_position, {", ".join((*GIVEN, *FIELDS))}
    FROM {{stores}} AS one JOIN {{destination_settings}} AS topic USING (queue_manager, destination)
    WHERE one.kind = 'subscription' AND topic.store = one.topic_store
        AND one.store < until_position
),
told AS (
    SELECT queue_manager, from_position, struct({", ".join(REDELIVERY_FIELDS)}) AS rule
    FROM {{manager_settings}}
),
rules AS (
    SELECT queue_manager AS whose, rule, from_position AS begins_at,
        lead(from_position, 1, 9223372036854775807) OVER (
            PARTITION BY queue_manager ORDER BY from_position) AS ends_at
    FROM (
        SELECT *, lag(rule) OVER (PARTITION BY queue_manager ORDER BY from_position) AS before
        FROM told
    )
    WHERE NOT rule <=> before
)
SELECT queue_manager, kind, destination, store, greatest(from_position, begins_at) AS from_position,
    least(until_position, ends_at) AS until_position,
    {", ".join(_in_force_of(name) for name in (*GIVEN, *FIELDS))}
FROM own JOIN rules ON whose = queue_manager
    AND begins_at < until_position AND from_position < ends_at
"""
# Those of the queue manager: the first row is before all entries.
FRAMES["manager_settings"] = f"""
WITH given AS (
    SELECT queue_manager, replied_at AS position, flag AS automatic_creation, maximum_lifetime_ms,
        from_json(settings, '{schema_of(MANAGER_GIVEN)}') AS told
    FROM {{applied}} WHERE reply <> 'Refused' AND kind = 'AlterQueueManager'
    UNION ALL
    SELECT DISTINCT queue_manager, -1, NULL, NULL, from_json(NULL, '{schema_of(MANAGER_GIVEN)}')
    FROM {{operations}}
)
SELECT queue_manager, position AS from_position,
    lead(position, 1, 9223372036854775807) OVER life AS until_position,
    {_in_force(MANAGER_GIVEN, MANAGER_FIELDS)}
FROM given WINDOW life AS (PARTITION BY queue_manager ORDER BY position)
"""


# A binding is in force from the Bind that gave it its selector until the next Bind or the Unbind.
FRAMES["bindings"] = f"""
WITH told AS (
    SELECT queue_manager, replied_at AS from_position, kind, target AS destination,
        {spelled("selector")} AS selector, get_json_object(settings, '$.topics') AS topics,
        get_json_object(settings, '$.name') AS name
    FROM {{applied}} WHERE kind IN ('Bind', 'Unbind') AND reply <> 'Refused'
)
SELECT * EXCEPT (kind)
FROM (
    SELECT *, lead(from_position, 1, 9223372036854775807) OVER (
        PARTITION BY queue_manager, topics, destination ORDER BY from_position) AS until_position
    FROM told
)
WHERE kind = 'Bind'
"""
# Messages that sessions put to topics, with each destination that a binding hands them on to. One
# that began or ended at the entry itself may have done so before or after: `is_sure` is false.
FRAMES["bound"] = r"""
WITH
published AS (
    SELECT queue_manager, destination AS topic, store, sequence, position, put_position, put_index,
        time_us
    FROM {moves}
    WHERE kind = 'topic' AND sequence >= 0 AND before IN ('new', 'uncommitted put')
        AND session >= 0 AND destination NOT LIKE 'topic:temporary/%'
),
offered AS (
    SELECT one.*, destination, selector,
        from_position < position AND position < until_position AS is_there
    FROM published AS one JOIN {bindings} USING (queue_manager)
    WHERE position BETWEEN from_position AND until_position AND destination <> topic
        AND substr(topic, 7) RLIKE concat(r'\A', name, r'\z')
)
SELECT queue_manager, topic, store, sequence, position, put_position, put_index, destination,
    bool_or(is_there) AS is_sure
FROM offered JOIN {puts} USING (queue_manager, put_position, put_index)
WHERE suits(selector, IF(selector = '', NULL, struct(message_id, priority, persistent,
    offered.time_us, header)), FALSE)
GROUP BY ALL
"""
# Of the topics' messages, those that are handed on. A subscription that made its topic has the same
# number as that, and the messages too: their kinds tell them apart.
FRAMES["handed_on"] = """
SELECT queue_manager, 'topic' AS kind, store, sequence, bool_or(is_sure) AS is_sure FROM {bound}
GROUP BY ALL
"""
