"""Why a Put is refused: PROTOCOL.md §5, §13, §16, §19.

What rests on the groups that a queue holds, on how much it and the storage hold, and on who waits
before, is told by the moves of many: there the answer is believed, where it can be.
"""

from ledgermq.protocol import limits
from ledgermq_spark.laws.once.sources import LAST
from ledgermq_spark.laws.refusals.expressions import BYTES, is_destination, is_name, name_in

FRAMES: dict[str, str] = {}

FRAMES["putting_reasons"] = f"""
WITH
asked AS (
    SELECT one.*, late, open_puts, open_bytes, unit_ended_by, commit_waits,
        number = 0 OR waiting_puts >= {limits.BLOCKED_PUTS_MAX} OR waiting_puts > 0
            AND waiting_messages + size(message_ids) > {limits.BLOCKED_MESSAGES_MAX}
            AS may_not_wait,
        size(message_ids) AS count,
        {BYTES} AS bytes,
        array_max(transform(arrays_zip(sizes_bytes, headers_bytes),
            item -> item.sizes_bytes + item.headers_bytes)) AS largest_bytes,
        place.store, coalesce(place.puts_disabled, FALSE) AS puts_disabled,
        coalesce(nullif(place.message_bytes_max, 0), {limits.CONTENT_BYTES_MAX})
            AS content_bytes_max,
        coalesce(place.messages_max, 0) AS messages_max, coalesce(place.bytes_max, 0) AS bytes_max,
        manager.automatic_creation, manager.segment_bytes, manager.segments_max,
        manager.messages_max AS all_messages_max, manager.bytes_max AS all_bytes_max,
        taken_before, sources_before, first_sequence,
        coalesce(place.deduplication_ids_max, 0) > 0 AS looks_for_ids
    FROM {{conduct}} AS one JOIN {{units}} USING (queue_manager, session, position)
    JOIN {{manager_settings}} AS manager ON manager.queue_manager = one.queue_manager
        AND manager.from_position < one.position AND one.position < manager.until_position
    LEFT JOIN {{settings}} AS place ON place.queue_manager = one.queue_manager
        AND place.destination = one.target AND place.kind <> 'subscription'
        AND place.from_position < one.position AND one.position < place.until_position
    LEFT JOIN (
        SELECT queue_manager, position, taken_before, sources_before FROM {{put_parts}}
    ) AS part ON part.queue_manager = one.queue_manager AND part.position = one.position
    LEFT JOIN (
        SELECT queue_manager, position, first_sequence FROM {{known_ids}}
        WHERE kind = 'Put' AND NOT late
    ) AS id ON id.queue_manager = one.queue_manager AND id.position = one.position
    WHERE one.kind = 'Put'
)
SELECT queue_manager, position, late, CASE
    WHEN late THEN IF(first_reason IN ('destination-unknown', 'queue-unknown', 'topic-unknown',
        'quota-exceeded', 'group-clash', 'unit-of-work-inconsistent', 'transaction-too-large'),
        first_reason, NULL)
    WHEN unit_ended_by IS NOT NULL THEN unit_ended_by
    WHEN NOT ({is_destination("target")} AND {is_name(name_in("target"))})
        THEN 'destination-invalid'
    WHEN store IS NULL AND {name_in("target")} LIKE 'temporary/%' THEN 'destination-unknown'
    WHEN store IS NULL AND NOT automatic_creation
        THEN IF(target LIKE 'queue:%', 'queue-unknown', 'topic-unknown')
    WHEN mode = 'TRANSACTED' AND source IS NOT NULL OR source IS NOT NULL AND number <> 0
        OR length(source) NOT BETWEEN 1 AND {limits.SOURCE_CHARACTERS_MAX}
        OR source_partition NOT BETWEEN 0 AND {limits.SOURCE_PARTITION_MAX}
        OR source_first < 0 OR source_last NOT BETWEEN source_first AND {limits.SOURCE_POSITION_MAX}
        THEN 'source-invalid'
    WHEN source IS NOT NULL AND taken_before IS NULL AND sources_before >= {limits.SOURCES_MAX}
        THEN 'sources-full'
    WHEN source_first <= taken_before THEN 'source-taken'
    WHEN source_first > {LAST} + 1 THEN 'source-gap'
    WHEN length(deduplication_id) NOT BETWEEN 1 AND {limits.DEDUPLICATION_ID_CHARACTERS_MAX}
        THEN 'deduplication-invalid'
    WHEN deduplication_id IS NOT NULL AND NOT looks_for_ids THEN 'deduplication-off'
    WHEN mode <> 'TRANSACTED' AND first_sequence IS NOT NULL THEN NULL
    WHEN puts_disabled THEN 'puts-disabled'
    WHEN count NOT BETWEEN 1 AND {limits.PUT_MESSAGES_MAX}
        OR array_min(priorities) < 0 OR array_max(priorities) > {limits.PRIORITY_MAX}
        OR array_min(sizes_bytes) < 1 OR times_are_wrong(headers) THEN 'message-invalid'
    WHEN array_max(sizes_bytes) > content_bytes_max
        OR array_max(headers_bytes) > {limits.HEADER_BYTES_MAX} THEN 'message-too-large'
    WHEN grouped AND target LIKE 'topic:%' THEN 'group-not-allowed'
    WHEN grouped AND told_reason IN ('group-clash', 'unit-of-work-inconsistent') THEN told_reason
    WHEN groups_are_wrong(headers) THEN 'group-invalid'
    WHEN open_puts >= {limits.UNIT_OF_WORK_DESTINATIONS_MAX}
        AND told_reason = 'transaction-too-large' THEN told_reason
    WHEN mode = 'TRANSACTED' AND open_bytes + bytes > segment_bytes
        OR largest_bytes > segment_bytes THEN 'transaction-too-large'
    WHEN number NOT BETWEEN 0 AND {limits.TIMING_MS_MAX} THEN 'setting-invalid'
    WHEN commit_waits THEN 'commit-waiting'
    WHEN messages_max > 0 AND count > messages_max OR bytes_max > 0 AND bytes > bytes_max
        OR all_messages_max > 0 AND count > all_messages_max
        OR all_bytes_max > 0 AND bytes > all_bytes_max THEN 'quota-exceeded'
    WHEN told_reason = 'storage-full' AND segments_max > 0 AND number = 0 THEN told_reason
    WHEN told_reason = 'quota-exceeded' AND may_not_wait AND (messages_max > 0 OR bytes_max > 0
        OR all_messages_max > 0 OR all_bytes_max > 0 OR segments_max > 0) THEN told_reason
    END AS due
FROM asked
"""
