"""Law I: what leaves for elsewhere arrives once, and what nobody put came from somewhere."""

from ledgermq_spark.laws.law import Law, altered_outcome, lost, unexpected
from ledgermq_spark.laws.storage import relocations

# What is moved arrives, and what a binding hands on; what expires does where its destination says
# so.
TRANSFERRED = lost("""
WITH
leaving AS (
    SELECT queue_manager, position, put_position, put_index,
        IF(cause = 'moved' AND is_sure IS NULL, 1, 0) AS must, IF(is_sure, 0, 1) AS may
    FROM {moves} LEFT JOIN {handed_on} USING (queue_manager, kind, store, sequence)
    WHERE cause IN ('moved', 'expired') AND before <> 'published'
    UNION ALL
    SELECT queue_manager, position, put_position, put_index, IF(is_sure, 1, 0), 1 FROM {bound}
),
left_for AS (
    SELECT queue_manager, position, put_position, put_index, sum(must) AS must, sum(may) AS may
    FROM leaving
    GROUP BY ALL
),
came AS (
    SELECT queue_manager, position, put_position, put_index, count(*) AS came, max(store) AS store,
        max(sequence) AS sequence
    FROM {arrived} GROUP BY ALL
),
copied AS (
    SELECT queue_manager, position FROM {operations} WHERE kind = 'CopyMessages'
)
SELECT queue_manager, position, coalesce(store, -1) AS store, coalesce(sequence, -1) AS sequence,
    -1 AS session,
    IF(must > coalesce(came, 0), 'a message left for elsewhere and did not arrive',
        'a message came from nowhere') AS summary,
    coalesce(must, 0) AS expected, coalesce(came, 0) AS found
FROM left_for FULL JOIN came USING (queue_manager, position, put_position, put_index)
    LEFT ANTI JOIN copied USING (queue_manager, position)
WHERE coalesce(came, 0) NOT BETWEEN coalesce(must, 0) AND coalesce(may, 0)
""")
# What expired goes where its destination says, what came back too often or follows its group to the
# error destination, what is moved by hand where its operator said, what is put to a topic where
# bindings hand it on; by whatever settings were in force at that entry.
NAMED = unexpected("""
WITH
by_hand AS (
    SELECT queue_manager, replied_at AS position,
        coalesce(get_json_object(settings, '$.target'), '') AS target
    FROM {applied}
    WHERE kind = 'MoveMessages' AND reply <> 'Refused'
),
gone AS (
    SELECT moves.queue_manager, moves.position, put_position, put_index, store, sequence, target,
        collect_set(IF(cause = 'expired', expiry_destination, error_destination)) AS named,
        cause = 'moved' AND (max(target) IS NOT NULL OR is_sure IS NOT NULL) AS is_open
    FROM {moves} AS moves JOIN {settings} USING (queue_manager, kind, destination, store)
        LEFT JOIN by_hand USING (queue_manager, position)
        LEFT JOIN {handed_on} USING (queue_manager, kind, store, sequence)
    WHERE cause IN ('moved', 'expired') AND before <> 'published' AND NOT coalesce(is_sure, FALSE)
        AND moves.position BETWEEN from_position AND until_position
    GROUP BY moves.queue_manager, moves.position, put_position, put_index, store, sequence, cause,
        target, is_sure
),
targets AS (
    SELECT queue_manager, position, put_position, put_index,
        explode(IF(is_open, array_append(named, target), named)) AS destination,
        IF(is_open OR size(named) > 1, 0, 1) AS must
    FROM gone
    UNION ALL
    SELECT queue_manager, position, put_position, put_index, destination, IF(is_sure, 1, 0)
    FROM {bound}
),
left_for AS (
    SELECT queue_manager, position, put_position, put_index, destination, sum(must) AS must,
        count(*) AS may
    FROM targets WHERE destination <> ''
    GROUP BY ALL
),
came AS (
    SELECT queue_manager, position, put_position, put_index, destination, count(*) AS came,
        max(store) AS store, max(sequence) AS sequence
    FROM {arrived} GROUP BY ALL
),
elsewhere AS (
    SELECT queue_manager, position FROM {operations} WHERE kind = 'CopyMessages'
    UNION ALL
    SELECT queue_manager, position FROM by_hand WHERE target = ''
)
SELECT queue_manager, position, coalesce(store, -1) AS store, coalesce(sequence, -1) AS sequence,
    -1 AS session, 'a message went elsewhere than it had to' AS summary,
    concat_ws(' ', coalesce(must, 0), 'to', destination) AS expected, coalesce(came, 0) AS found
FROM left_for FULL JOIN came
    USING (queue_manager, position, put_position, put_index, destination)
    LEFT ANTI JOIN elsewhere USING (queue_manager, position)
WHERE coalesce(came, 0) NOT BETWEEN coalesce(must, 0) AND coalesce(may, 0)
""")
# Whoever gets what came from elsewhere is told from where, and why. Several copies of a message may
# leave for one place in an entry, and a group may be parked at the entry of a move by hand: then
# any of what each may be told of is. Of what came in a stretch before nothing is asked.
ORIGIN = altered_outcome("""
WITH
by_hand AS (
    SELECT queue_manager, replied_at AS position,
        CASE WHEN kind = 'CopyMessages' THEN 'copied'
            WHEN coalesce(get_json_object(settings, '$.to_origin') = 'true', FALSE) THEN 'retried'
            ELSE 'moved' END AS reason
    FROM {applied}
    WHERE kind IN ('MoveMessages', 'CopyMessages') AND reply <> 'Refused'
),
left_for AS (
    SELECT queue_manager, position, put_position, put_index, destination, sequence,
        CASE WHEN cause = 'expired' THEN array('expired')
            WHEN before IN ('new', 'uncommitted put') THEN array('unrouted')
            WHEN before IN ('unacknowledged', 'uncommitted get') THEN
                array(IF(coalesce(is_rejected, FALSE), 'rejected', 'redelivery-limit'))
            WHEN before = 'delayed' THEN array('group-parked', by_hand.reason, 'redelivery-limit')
            ELSE array('group-parked', by_hand.reason) END AS reasons
    FROM {moves}
        LEFT JOIN {rejections} USING (queue_manager, session, position, delivery)
        LEFT JOIN by_hand USING (queue_manager, position)
    WHERE cause IN ('moved', 'expired') AND before <> 'published'
    UNION ALL
    SELECT queue_manager, position, put_position, put_index, topic, sequence, array('bound')
    FROM {bound}
),
came AS (
    SELECT queue_manager, position, arrived.destination, arrived.sequence,
        collect_set(concat_ws(' ', reason, left_for.destination, left_for.sequence)) AS named
    FROM {arrived} AS arrived
        JOIN left_for USING (queue_manager, position, put_position, put_index)
        LATERAL VIEW explode(reasons) AS reason
    WHERE reason IS NOT NULL AND arrived.sequence >= 0
    GROUP BY ALL
),
moved AS (
    SELECT queue_manager, store, kind, sequence, named
    FROM {moves} JOIN came USING (queue_manager, position, destination, sequence)
    WHERE before = 'new'
),
got AS (
    SELECT moves.queue_manager, moves.position, store, sequence, session, delivery, named
    FROM {moves} AS moves JOIN moved USING (queue_manager, store, kind, sequence)
    WHERE after IN ('unacknowledged', 'uncommitted get')
),
told AS (
    SELECT queue_manager, session, delivery, concat_ws(' ', get_json_object(origin, '$.reason'),
            get_json_object(origin, '$.destination'), get_json_object(origin, '$.sequence'))
            AS found
    FROM {lane_deliveries} WHERE origin IS NOT NULL
)
SELECT queue_manager, position, store, sequence, session,
    'a message that came from elsewhere was delivered with another origin' AS summary,
    concat_ws(' or ', named) AS expected, coalesce(found, 'none') AS found
FROM got LEFT JOIN told USING (queue_manager, session, delivery)
WHERE NOT coalesce(array_contains(named, found), FALSE)
""")
LAW = Law(
    letter="I",
    sentence="What leaves a destination for another one, or a binding hands on, arrives once at "
    "the one that is named for it, at the same position, and is delivered there with where it was "
    "and why it left; what nobody put or copied came from somewhere; its body stands where it was "
    "written last.",
    breaches=(
        TRANSFERRED,
        NAMED,
        ORIGIN,
        relocations.COUNTED,
        relocations.STANDING,
        relocations.CARRIED,
    ),
)
