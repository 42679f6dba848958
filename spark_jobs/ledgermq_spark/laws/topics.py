"""Law J: who gets a copy of a topic's message, which is there as long as one of them has it."""

from ledgermq_spark.laws.law import Law, state_mismatch, unexpected
from ledgermq_spark.laws.refusals.expressions import may_stand

HELD = state_mismatch("""
WITH
topic AS (
    SELECT queue_manager, destination, sequence, max(store) AS store,
        min(position) AS come_at,
        max(IF(after = 'published', position, NULL)) AS published_at,
        max(IF(after = 'gone', position, NULL)) AS gone_at,
        max(IF(after = 'gone', cause, NULL)) AS cause
    FROM {moves} WHERE kind = 'topic' AND sequence >= 0
    GROUP BY queue_manager, destination, sequence, store
),
lives AS (
    SELECT queue_manager, destination, sequence, store,
        min(position) AS come_at, max(IF(after = 'gone', position, NULL)) AS gone_at
    FROM {moves} WHERE kind = 'subscription'
    GROUP BY ALL
),
copies AS (
    SELECT queue_manager, destination, sequence, come_at,
        IF(count(*) = count(gone_at), max(gone_at), NULL) AS last_at, TRUE AS has_copies
    FROM lives
    GROUP BY ALL
)
SELECT queue_manager, IF((published_at IS NULL) = (has_copies IS NOT NULL), come_at,
        coalesce(least(gone_at, last_at), come_at)) AS position, coalesce(store, -1) AS store,
    sequence, -1 AS session,
    'a message of a topic is not there as long as its copies are' AS summary,
    concat_ws(' ', IF(has_copies, 'published until', 'dropped at'), last_at) AS expected,
    concat_ws(' ', IF(published_at IS NULL, 'not published', 'published until'), gone_at) AS found
FROM topic FULL JOIN copies USING (queue_manager, destination, sequence, come_at)
WHERE (published_at IS NULL) = (has_copies IS NOT NULL)
    OR published_at IS NOT NULL AND NOT (gone_at <=> last_at)
    OR published_at IS NULL AND cause NOT IN ('dropped', 'moved')
""")
# What no subscription wants is moved if a binding hands it on; else moved or dropped as its topic
# has it, by whatever settings were in force at that entry; what came so from another topic, which
# names this one, is dropped. Where a binding hands the same message to this topic in that entry
# too, either copy may be the one that came so: nothing is said of which.
UNROUTED = unexpected("""
WITH
unrouted AS (
    SELECT queue_manager, destination, store, kind, position, step, put_position, put_index,
        sequence, session, cause
    FROM {moves}
    WHERE kind = 'topic' AND before IN ('new', 'uncommitted put') AND after = 'gone'
        AND cause IN ('dropped', 'moved')
),
told AS (
    SELECT one.queue_manager, one.destination, one.position, one.step, put_position, put_index,
        one.store, sequence, session, cause, is_sure AS is_handed_on,
        collect_set(IF(moves_unrouted, error_destination, '')) AS targets
    FROM unrouted AS one JOIN {settings} USING (queue_manager, kind, destination, store)
        LEFT JOIN {handed_on} USING (queue_manager, kind, store, sequence)
    WHERE one.position BETWEEN from_position AND until_position
    GROUP BY ALL
),
judged AS (SELECT * FROM told WHERE is_handed_on IS NULL),
came AS (
    SELECT DISTINCT one.queue_manager, one.position, one.step, one.store
    FROM judged AS one JOIN judged AS before
        USING (queue_manager, position, put_position, put_index)
    WHERE before.step < one.step AND before.cause = 'moved'
        AND array_contains(before.targets, one.destination)
),
brought AS (
    SELECT DISTINCT queue_manager, position, put_position, put_index, destination,
        TRUE AS is_brought
    FROM {bound}
)
SELECT queue_manager, position, store, sequence, coalesce(session, -1) AS session,
    'a message that no subscription wants did not go where its topic sends it' AS summary,
    IF(is_again OR array_contains(targets, ''), 'dropped', 'moved') AS expected, cause AS found
FROM judged LEFT JOIN (SELECT *, TRUE AS is_again FROM came)
    USING (queue_manager, position, step, store)
    LEFT JOIN brought USING (queue_manager, position, put_position, put_index, destination)
WHERE NOT coalesce(is_again AND is_brought, FALSE)
    AND NOT IF(cause = 'dropped', is_again IS NOT NULL OR array_contains(targets, ''),
        is_again IS NULL AND (size(targets) > 1 OR NOT array_contains(targets, '')))
UNION ALL
SELECT queue_manager, position, store, sequence, coalesce(session, -1),
    'a message that a binding hands on is dropped', 'moved', cause
FROM told WHERE is_handed_on AND cause = 'dropped'
""")
# Subscriptions that are there want what their selector is true of, and with noLocal nothing of a
# connection that has one of their consumers or their client id (§5). What began or ended at the
# entry itself may have done so before or after it: nothing is said of that.
WANTED = unexpected(f"""
WITH
published AS (
    SELECT queue_manager, destination, sequence, store AS topic_store, position, put_position,
        put_index, session, time_us
    FROM {{moves}}
    WHERE kind = 'topic' AND sequence >= 0 AND before IN ('new', 'uncommitted put')
),
offered AS (
    SELECT one.*, sub.store, sub.selector, sub.no_local, sub.client_id,
        made_at < position AND coalesce(position < gone_at, TRUE) AS is_there
    FROM published AS one JOIN {{stores}} AS sub USING (queue_manager, topic_store)
    WHERE sub.kind = 'subscription' AND {may_stand("made_at", "gone_at", "position")}
),
senders AS (
    SELECT queue_manager, session, connection, client_id AS sender_client_id FROM {{sessions}}
),
receivers AS (
    SELECT one.queue_manager, one.store, one.position, one.session,
        bool_or(opened_at < position AND coalesce(position < closed_at, TRUE)) AS is_local
    FROM offered AS one JOIN senders USING (queue_manager, session)
    JOIN (SELECT queue_manager, store, connection, opened_at, closed_at FROM {{consumers}})
        USING (queue_manager, store, connection)
    WHERE no_local AND {may_stand("opened_at", "closed_at", "position")}
    GROUP BY ALL
),
judged AS (
    SELECT one.queue_manager, one.position, one.store, one.sequence, one.session, is_there
        AND coalesce(is_local, TRUE) AS is_sure,
        NOT (no_local AND (is_local IS NOT NULL
            OR coalesce(sender_client_id <> '' AND sender_client_id = client_id, FALSE)))
        AND suits(selector, IF(selector = '', NULL, struct(message_id, priority, persistent,
            one.time_us, header)), FALSE) AS is_wanted
    FROM offered AS one
        JOIN {{puts}} USING (queue_manager, put_position, put_index)
        LEFT JOIN senders USING (queue_manager, session)
        LEFT JOIN receivers USING (queue_manager, store, position, session)
),
-- A subscription without a name outlives its consumer as long as anything of it is in flight.
copies AS (
    SELECT copy.queue_manager, position, copy.store, sequence, TRUE AS is_copied
    FROM {{moves}} AS copy LEFT JOIN {{stores}} AS sub ON copy.queue_manager = sub.queue_manager
        AND copy.store = sub.store AND copy.kind = sub.kind
    WHERE copy.kind = 'subscription' AND before = 'new'
        AND NOT coalesce(life = 'consumer' AND gone_at < position, FALSE)
)
SELECT queue_manager, position, store, sequence, coalesce(session, -1) AS session,
    IF(is_copied, 'a subscription got a message that it does not want',
        'a subscription did not get a message that it wants') AS summary,
    IF(is_copied, 'nothing', 'a copy') AS expected, IF(is_copied, 'a copy', 'nothing') AS found
FROM judged FULL JOIN copies USING (queue_manager, position, store, sequence)
WHERE is_wanted IS NULL OR is_sure AND is_wanted <> coalesce(is_copied, FALSE)
""")
LAW = Law(
    letter="J",
    sentence="A topic's message comes to each subscription that wants it and to no other; it is "
    "published while one of them has a copy; where none wants it, it goes on by bindings, or is "
    "dropped at once or goes to the error destination, as the topic has it.",
    breaches=(HELD, WANTED, UNROUTED),
)
