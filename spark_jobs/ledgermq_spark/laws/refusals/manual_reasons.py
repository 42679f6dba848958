"""Why what is done by hand is refused: PROTOCOL.md §5 Correct, §8 Upgrade, §17, §18, §21, §22."""

from ledgermq.protocol.limits import RELOCATED_MESSAGES_MAX, RELOCATED_PLACES_MAX
from ledgermq_spark.laws.refusals.expressions import is_destination, names_nobody, place, stands
from ledgermq_spark.tables.events import IN_FLIGHT

FRAMES: dict[str, str] = {}

# What operations by hand on messages ask for.
HANDLED = (
    "target STRING, to_origin BOOLEAN, actor STRING, reason STRING, "
    "selection STRUCT<source: STRING, subscription: STRING, client_id: STRING, durable: BOOLEAN, "
    "selector: STRING, sequences: ARRAY<STRUCT<first: BIGINT, last: BIGINT>>, "
    "after_sequence: BIGINT, limit: BIGINT>"
)
# Which messages are meant, and where they go (§17).
FRAMES["handling_reasons"] = f"""
WITH asked AS (
    SELECT queue_manager, position, kind, settings, told.target, told.to_origin, told.actor,
        told.reason, told.selection.source, told.selection.subscription,
        told.selection.client_id, told.selection.durable, told.selection.selector
    FROM (
        SELECT queue_manager, position, kind, settings, from_json(settings, '{HANDLED}') AS told
        FROM {{conduct}} WHERE conduct = 'next' AND kind IN ('PurgeQueue', 'DeleteMessages',
            'MoveMessages', 'CopyMessages')
    )
)
SELECT one.queue_manager, one.position, FALSE AS late, CASE
    WHEN NOT {is_destination("source")} THEN 'destination-invalid'
    WHEN origin.store IS NULL THEN IF(source LIKE 'queue:%', 'queue-unknown', 'topic-unknown')
    WHEN (source LIKE 'queue:%') = (one.subscription <> '') THEN 'subscription-invalid'
    WHEN source LIKE 'topic:%' AND known.store IS NULL THEN 'subscription-unknown'
    WHEN selector_is_wrong(one.selector) THEN 'selector-invalid'
    WHEN selection_is_wrong(one.settings) THEN 'selection-invalid'
    WHEN {names_nobody("actor", "one.reason")} THEN 'reason-invalid'
    WHEN one.kind NOT IN ('MoveMessages', 'CopyMessages') THEN NULL
    WHEN coalesce(to_origin, FALSE) THEN IF(one.target <> '', 'destination-invalid', NULL)
    WHEN NOT {is_destination("one.target")} OR one.target = source THEN 'destination-invalid'
    WHEN aim.store IS NULL THEN IF(one.target LIKE 'queue:%', 'queue-unknown', 'topic-unknown')
    END AS due
FROM asked AS one {place("origin", "one.source")} {place("aim", "one.target")}
LEFT JOIN {{stores}} AS known ON known.queue_manager = one.queue_manager
    AND known.subscription = one.subscription AND known.client_id = one.client_id
    AND known.life = IF(one.durable, 'durable', 'shared') AND known.topic_store = origin.store
    AND {stands("known.made_at", "known.gone_at", "one.position")}
"""
# The message as it was before it was put right: what an accepted Correct moved it from, or before
# it was delivered in the entry of one that was refused, as is what waits for another in doubt.
FRAMES["correcting_reasons"] = f"""
WITH
asked AS (
    SELECT one.queue_manager, one.position, number, action, told, store
    FROM {{conduct}} AS one {place("place", "concat('queue:', one.target)")}
    WHERE conduct = 'next' AND one.kind = 'Correct'
),
moved AS (
    SELECT asked.queue_manager, asked.position, coalesce(
        min_by(before, step) FILTER (WHERE one.position = asked.position
            AND (cause <=> 'removed' OR told = 'Accepted' AND before IN {IN_FLIGHT}
                OR told = 'Refused' AND after IN {IN_FLIGHT})),
        max_by(after, (one.position, step))) AS state
    FROM asked JOIN {{moves}} AS one ON one.queue_manager = asked.queue_manager
        AND one.store = asked.store AND one.kind = 'queue' AND one.sequence = number
        AND one.sequence >= 0
        AND one.position <= asked.position
    GROUP BY ALL
)
SELECT queue_manager, position, FALSE AS late, CASE
    WHEN store IS NULL THEN 'queue-unknown'
    WHEN coalesce(state, 'gone') = 'gone' THEN 'sequence-unknown'
    WHEN action NOT IN ('REMOVE', 'RELEASE') OR action = 'RELEASE' AND state NOT IN {IN_FLIGHT}
        THEN 'correction-invalid'
    END AS due
FROM asked LEFT JOIN moved USING (queue_manager, position)
"""
# Sessions and units of work that administration ends (§18).
FRAMES["ending_reasons"] = f"""
WITH
asked AS (
    SELECT one.queue_manager, one.position, one.kind, one.session, number, actor, why,
        target.session IS NOT NULL AS has_target, target.acknowledge_mode AS target_mode
    FROM {{conduct}} AS one LEFT JOIN {{sessions}} AS target
        ON target.queue_manager = one.queue_manager AND target.session = number
        AND target.session < one.position AND (ended_at IS NULL OR ended_at > one.position
            OR ended_at = one.position AND NOT ended_due)
    WHERE conduct = 'next' AND kind IN ('RollbackTransaction', 'EndSession')
),
held AS (
    SELECT asked.queue_manager, asked.position,
        count_if(after = 'uncommitted put' OR after IN {IN_FLIGHT})
        - count_if(before = 'uncommitted put' OR before IN {IN_FLIGHT}) AS holds
    FROM asked JOIN {{moves}} AS one ON one.queue_manager = asked.queue_manager
        AND one.session = number
        AND (one.position < asked.position OR one.position = asked.position
            AND (after IN {IN_FLIGHT} OR after = 'uncommitted put' OR cause <=> 'purged'))
    GROUP BY ALL
)
SELECT queue_manager, position, FALSE AS late, CASE
    WHEN {names_nobody("actor", "why")} THEN 'reason-invalid'
    WHEN NOT has_target THEN 'target-unknown'
    WHEN kind = 'EndSession' AND number = session THEN 'target-unknown'
    WHEN kind = 'RollbackTransaction' AND (target_mode <> 'TRANSACTED' OR coalesce(holds, 0) = 0
        OR has_timed_out) THEN 'target-unknown'
    END AS due
FROM asked LEFT JOIN held USING (queue_manager, position)
LEFT JOIN (
    SELECT queue_manager, session AS number, position, TRUE AS has_timed_out
    FROM {{forced_rollbacks}} WHERE reason = 'unit-of-work-timed-out'
) USING (queue_manager, number, position)
"""
# What a Relocate says of a message that is at one of its places is what its Put said (§22).
FRAMES["relocating_reasons"] = f"""
WITH
asked AS (
    SELECT *, from_json(get_json_object(settings, '$.places'), 'ARRAY<ARRAY<ARRAY<BIGINT>>>')
            AS places, CAST(get_json_object(settings, '$.headers_max') AS INT) AS headers_max,
        from_json(get_json_object(settings, '$.put_positions'), 'ARRAY<BIGINT>') AS put_positions,
        from_json(get_json_object(settings, '$.put_indexes'), 'ARRAY<BIGINT>') AS put_indexes
    FROM {{conduct}} WHERE conduct = 'next' AND kind = 'Relocate'
),
copies AS (
    SELECT queue_manager, position, copy.put_positions AS put_position,
        copy.put_indexes AS put_index, place[0] AS store, place[1] AS sequence,
        copy.message_ids AS message_id, copy.priorities AS priority,
        copy.persistent AS is_persistent, copy.sizes_bytes + copy.headers_bytes AS size_bytes
    FROM asked LATERAL VIEW explode(arrays_zip(put_positions, put_indexes, message_ids, priorities,
            persistent, sizes_bytes, headers_bytes, places)) AS copy
        LATERAL VIEW explode(copy.places) AS place
),
different AS (
    SELECT DISTINCT copies.queue_manager, copies.position, TRUE AS differs
    FROM copies JOIN (
        SELECT one.queue_manager, one.position, one.store, one.sequence, put_position, put_index,
            max_by(after, (moves.position, step)) AS state
        FROM copies AS one JOIN {{moves}} AS moves
            USING (queue_manager, store, sequence, put_position, put_index)
        WHERE moves.position <= one.position AND moves.kind <> 'topic'
        GROUP BY one.queue_manager, one.position, one.store, one.sequence, put_position, put_index
    ) AS found USING (queue_manager, position, store, sequence, put_position, put_index)
    JOIN {{puts}} AS put USING (queue_manager, put_position, put_index)
    WHERE state <> 'gone' AND (copies.message_id <> put.message_id
        OR copies.priority <> put.priority OR is_persistent <> persistent
        OR copies.size_bytes <> put.size_bytes)
)
SELECT queue_manager, position, FALSE AS late, CASE
    WHEN {names_nobody("actor", "why")} THEN 'reason-invalid'
    WHEN size(message_ids) NOT BETWEEN 1 AND {RELOCATED_MESSAGES_MAX}
        OR aggregate(places, 0, (sum, one) -> sum + size(one)) > {RELOCATED_PLACES_MAX}
        OR headers_max > 1 THEN 'message-invalid'
    WHEN differs THEN 'message-differs'
    END AS due
FROM asked LEFT JOIN different USING (queue_manager, position)
"""
# Each entry that concerns the journal rests on those before, which are taken as they were answered:
# so are those that were carried here. There are few of them.
FRAMES["journal_reasons"] = """
SELECT queue_manager, judged.position, FALSE AS late, judged.reason AS due
FROM (
    SELECT queue_manager, explode(backup_reasons(array_sort(collect_list(
        struct(position, kind, settings, is_asked, is_done))))) AS judged
    FROM (
        SELECT queue_manager, position, kind, settings,
            kind = 'BackUpJournal' AND conduct = 'next' AS is_asked,
            is_applied AND coalesce(told = 'Accepted', FALSE) AS is_done
        FROM {conduct} WHERE kind IN ('BackUpJournal', 'AlterQueueManager')
    )
    WHERE is_asked OR is_done
    GROUP BY queue_manager
)
"""
FRAMES["upgrading_reasons"] = """
SELECT one.queue_manager, one.position, FALSE AS late, IF(one.number <= coalesce(max(IF(
        earlier.kind = 'Upgrade', earlier.number, NULL)), 1) OR one.number > coalesce(max(IF(
        earlier.kind = 'VersionOffered', earlier.number, NULL)), 1), 'version-invalid', NULL) AS due
FROM (
    SELECT queue_manager, position, number FROM {conduct}
    WHERE conduct = 'next' AND kind = 'Upgrade'
) AS one LEFT JOIN (
    SELECT queue_manager, position, kind, number FROM {applied}
    WHERE kind = 'Upgrade' AND reply = 'Accepted'
    UNION ALL
    SELECT queue_manager, position, kind, number FROM {operations} WHERE kind = 'VersionOffered'
) AS earlier ON earlier.queue_manager = one.queue_manager AND earlier.position < one.position
GROUP BY one.queue_manager, one.position, one.number
"""
