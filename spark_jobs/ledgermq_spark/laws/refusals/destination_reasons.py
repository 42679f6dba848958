"""Why destinations and settings are not made, altered or deleted: PROTOCOL.md §5, §14 to §21."""

from __future__ import annotations

from typing import Final

from ledgermq.protocol import limits
from ledgermq_spark.laws.places.directory import MANAGER_GIVEN, schema_of
from ledgermq_spark.laws.refusals.expressions import is_destination, is_name, name_in, place, stands
from ledgermq_spark.log.headers import MANAGER_SETTINGS, UNIT_LIMITS
from ledgermq_spark.tables.events import IN_FLIGHT

FRAMES: dict[str, str] = {}

LAST_VALUE_KEY: Final = "get_json_object(one.settings, '$.last_value_key')"
SEGMENT_BYTES_MAX: Final = 2**40
SEGMENTS_MAX: Final = 99_999


def _target_refusal(target: str, place: str) -> str:
    """Why a setting may not name a destination, as part of a CASE (§14)."""
    return f"""
    WHEN {target} = one.destination THEN 'setting-invalid'
    WHEN {target} <> '' AND NOT {is_destination(target)} THEN 'destination-invalid'
    WHEN {target} <> '' AND {name_in(target)} LIKE 'temporary/%' THEN 'setting-invalid'
    WHEN {target} <> '' AND {place} IS NULL THEN 'destination-unknown'"""


def _due(name: str) -> str:
    """A setting as it would be, as an operation gives it or else as it was."""
    given = f"CAST(get_json_object(one.settings, '$.{name}') AS BIGINT)"
    return f"coalesce({given}, was.{name}, 0)"


def _own_settings_are_wrong() -> str:
    """Whether a number is out of range; or window or number of ids would be 0 alone; or a resume
    mark would be above its quota.
    """
    window_ms, ids_max = _due("deduplication_window_ms"), _due("deduplication_ids_max")
    return (
        f"{_due('available_max')} NOT BETWEEN 0 AND {limits.QUOTA_MAX}"
        f" OR length({LAST_VALUE_KEY}) > {limits.LAST_VALUE_KEY_CHARACTERS_MAX}"
        rf" OR {LAST_VALUE_KEY} NOT RLIKE r'\A([A-Za-z_$][A-Za-z0-9_$]*)?\z'"
        f" OR {window_ms} NOT BETWEEN 0 AND {limits.TIMING_MS_MAX}"
        f" OR {ids_max} NOT BETWEEN 0 AND {limits.DEDUPLICATION_IDS_MAX}"
        f" OR ({window_ms} = 0) <> ({ids_max} = 0)"
        f" OR {_due('messages_resume')} NOT BETWEEN 0 AND {_due('messages_max')}"
        f" OR {_due('bytes_resume')} NOT BETWEEN 0 AND {_due('bytes_max')}"
    )


# What is to be made, altered or deleted, with the one that is there; what ends with its entry is
# what the operation deletes, or a temporary one whose connection ended before.
FRAMES["named_places"] = """
SELECT one.*, store, made_at
FROM (
    SELECT *, IF(kind IN ('CreateQueue', 'AlterQueue', 'DeleteQueue'), concat('queue:', target),
            target) AS destination,
        coalesce(get_json_object(settings, '$.expiry_destination'), '') AS expiry_target,
        coalesce(get_json_object(settings, '$.error_destination'), '') AS error_target
    FROM {conduct} WHERE conduct = 'next' AND kind IN ('CreateQueue', 'AlterQueue',
        'DeleteQueue', 'CreateTopic', 'AlterTopic', 'DeleteTopic', 'CreateTemporary')
) AS one
LEFT JOIN {destinations} AS place ON place.queue_manager = one.queue_manager
    AND place.destination = one.destination AND made_at < one.position
    AND (gone_at IS NULL OR gone_at > one.position
        OR gone_at = one.position AND told = 'Accepted')
"""
FRAMES["making_reasons"] = f"""
SELECT one.queue_manager, one.position, FALSE AS late, CASE
    WHEN one.kind = 'CreateTemporary' THEN CASE
        WHEN NOT ({is_destination("one.destination")} AND {is_name(name_in("one.destination"))}
            AND startswith({name_in("one.destination")}, concat('temporary/', of_connection, '/')))
            THEN 'name-invalid'
        WHEN one.store IS NOT NULL THEN 'queue-exists' END
    WHEN one.kind LIKE 'Create%' AND (NOT {is_name(name_in("one.destination"))}
        OR {name_in("one.destination")} LIKE 'temporary/%') THEN 'name-invalid'
    WHEN one.kind LIKE 'Create%' AND one.store IS NOT NULL
        THEN IF(one.kind = 'CreateQueue', 'queue-exists', 'topic-exists')
    WHEN one.kind LIKE 'Alter%' AND one.store IS NULL
        THEN IF(one.kind = 'AlterQueue', 'queue-unknown', 'topic-unknown')
    WHEN length(one.description) > {limits.DESCRIPTION_CHARACTERS_MAX}
        OR one.message_bytes_max NOT BETWEEN 0 AND {limits.CONTENT_BYTES_MAX}
        OR one.unacknowledged_max NOT BETWEEN 0 AND {limits.CREDIT_MAX}
        OR settings_are_wrong(one.settings) OR {_own_settings_are_wrong()} THEN 'setting-invalid'
    {_target_refusal("expiry_target", "expiry.store")}
    {_target_refusal("error_target", "error.store")}
    END AS due
FROM (SELECT * FROM {{named_places}} WHERE kind NOT LIKE 'Delete%') AS one
{place("expiry", "expiry_target")} {place("error", "error_target")}
LEFT JOIN {{destination_settings}} AS was ON was.queue_manager = one.queue_manager
    AND was.store = one.store
    AND was.from_position < one.position AND one.position <= was.until_position
"""
FRAMES["deleting_reasons"] = f"""
WITH
asked AS (
    SELECT queue_manager, position, kind, destination, of_connection, store, made_at,
        flag AS purges
    FROM {{named_places}} WHERE kind LIKE 'Delete%'
),
receivers AS (
    SELECT asked.queue_manager, position, count(*) AS consumers
    FROM asked JOIN {{consumers}} AS one ON one.queue_manager = asked.queue_manager
        AND one.destination = asked.destination AND {stands("opened_at", "closed_at", "position")}
    GROUP BY ALL
),
held AS (
    SELECT asked.queue_manager, asked.position,
        count_if(after = 'uncommitted put') - count_if(before = 'uncommitted put') AS open_puts,
        count_if(after IN {IN_FLIGHT}) - count_if(before IN {IN_FLIGHT}) AS in_flight,
        count_if(after <> 'gone') - count_if(before <> 'new') AS resident
    FROM asked JOIN {{moves}} AS one ON one.queue_manager = asked.queue_manager
        AND one.destination = asked.destination AND one.position >= asked.made_at
        AND one.position <= asked.position
    WHERE NOT (one.position = asked.position AND cause <=> 'purged')
    GROUP BY ALL
),
named AS (
    SELECT asked.queue_manager, position, count(*) AS names
    FROM asked JOIN (
        SELECT queue_manager, from_position, until_position, named FROM {{settings}}
        LATERAL VIEW explode(array(expiry_destination, error_destination)) AS named
        WHERE kind <> 'subscription'
        UNION ALL
        SELECT queue_manager, from_position, until_position, error_destination
        FROM {{manager_settings}}
        UNION ALL
        SELECT queue_manager, from_position, until_position, destination FROM {{bindings}}
    ) AS one ON one.queue_manager = asked.queue_manager AND named = destination
        AND from_position < position AND position < until_position
    GROUP BY ALL
),
durable AS (
    SELECT asked.queue_manager, position, count(*) AS subscriptions
    FROM asked JOIN {{stores}} AS one ON one.queue_manager = asked.queue_manager
        AND one.topic_store = asked.store AND life = 'durable' AND one.made_at < position
        AND (gone_at IS NULL OR gone_at >= position)
    GROUP BY ALL
)
SELECT queue_manager, position, FALSE AS late, CASE
    WHEN store IS NULL THEN IF(kind = 'DeleteQueue', 'queue-unknown', 'topic-unknown')
    WHEN {name_in("destination")} LIKE 'temporary/%' AND NOT startswith({name_in("destination")},
        concat('temporary/', of_connection, '/')) THEN 'temporary-foreign'
    WHEN coalesce(consumers, 0) + coalesce(open_puts, 0) + coalesce(in_flight, 0)
        + coalesce(names, 0) > 0 THEN IF(kind = 'DeleteQueue', 'queue-in-use', 'topic-in-use')
    WHEN kind = 'DeleteQueue' AND NOT purges AND resident > 0 THEN 'queue-not-empty'
    WHEN kind = 'DeleteTopic' AND NOT purges AND subscriptions > 0 THEN 'topic-not-empty'
    END AS due
FROM asked LEFT JOIN receivers USING (queue_manager, position)
    LEFT JOIN held USING (queue_manager, position) LEFT JOIN named USING (queue_manager, position)
    LEFT JOIN durable USING (queue_manager, position)
"""
FRAMES["binding_reasons"] = f"""
WITH asked AS (
    SELECT queue_manager, position, kind, target, selector,
        get_json_object(settings, '$.topics') AS topics,
        get_json_object(settings, '$.name') AS name
    FROM {{conduct}} WHERE conduct = 'next' AND kind IN ('Bind', 'Unbind')
),
one AS (SELECT *, concat('topic:', topics) AS destination FROM asked)
SELECT one.queue_manager, one.position, FALSE AS late, CASE
    WHEN one.kind = 'Unbind' THEN IF(standing.destination IS NULL, 'binding-unknown', NULL)
    WHEN one.name IS NULL THEN 'name-invalid'
    WHEN one.target = '' THEN 'destination-invalid'
    {_target_refusal("one.target", "place.store")}
    WHEN selector_is_wrong(one.selector) THEN 'selector-invalid'
    END AS due
FROM one {place("place", "one.target")}
LEFT JOIN {{bindings}} AS standing ON standing.queue_manager = one.queue_manager
    AND standing.destination = one.target AND standing.topics = one.topics
    AND from_position < one.position AND one.position <= until_position
"""
# The most of each setting of the queue manager that is asked by itself.
MOST = {
    **dict.fromkeys(
        ("maximum_lifetime_ms", "journal_lifetime_ms", *UNIT_LIMITS), limits.TIMING_MS_MAX
    ),
    **dict.fromkeys(("messages_max", "bytes_max"), limits.QUOTA_MAX),
}
# Those of the storage and of quotas are asked as they would be after the change (§16, §19).
FRAMES["managing_reasons"] = f"""
WITH asked AS (
    SELECT one.queue_manager, one.position, one.maximum_lifetime_ms, settings, told.*,
        coalesce(get_json_object(settings, '$.error_destination'), '') AS error_target,
        CAST(NULL AS STRING) AS destination,
        {", ".join(f"coalesce(told.{one}, before.{one}) AS due_{one}" for one in MANAGER_SETTINGS)}
    FROM (
        SELECT queue_manager, position, maximum_lifetime_ms, settings,
            from_json(settings, '{schema_of(MANAGER_GIVEN)}') AS told
        FROM {{conduct}} WHERE conduct = 'next' AND kind = 'AlterQueueManager'
    ) AS one JOIN {{manager_settings}} AS before ON before.queue_manager = one.queue_manager
        AND from_position < position AND position <= until_position
)
SELECT one.queue_manager, position, FALSE AS late, CASE WHEN
    {" OR ".join(f"coalesce({one} NOT BETWEEN 0 AND {most}, FALSE)" for one, most in MOST.items())}
    OR due_messages_resume NOT BETWEEN 0 AND due_messages_max
    OR due_bytes_resume NOT BETWEEN 0 AND due_bytes_max
    OR due_segment_bytes NOT BETWEEN 1 AND {SEGMENT_BYTES_MAX}
    OR due_segments_min NOT BETWEEN 1 AND {SEGMENTS_MAX}
    OR due_segments_max <> 0 AND due_segments_max NOT BETWEEN due_segments_min AND {SEGMENTS_MAX}
    OR settings_are_wrong(settings) THEN 'setting-invalid'
    {_target_refusal("error_target", "error.store")}
    END AS due
FROM asked AS one {place("error", "error_target")}
"""
