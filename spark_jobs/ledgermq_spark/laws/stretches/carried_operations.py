"""Frames that say which operations, sessions and messages are carried on from the end of a log.

Each is carried for a sentence of some law that may still be asked of it; what is over is not.
"""

from ledgermq_spark.tables.events import IN_FLIGHT

FRAMES: dict[str, str] = {}

# Each message at each place where it came to be: as what its moves leave it, and its last delivery.
FRAMES["last_moves"] = f"""
SELECT queue_manager, store, kind, sequence, put_position, put_index,
    max_by(after, (position, step)) AS state, max(position) AS position,
    max(IF(after IN {IN_FLIGHT}, struct(position, step), NULL)) AS delivered_at
FROM {{moves}} WHERE sequence >= 0
GROUP BY ALL
UNION ALL
SELECT queue_manager, store, kind, -1, put_position, put_index,
    max_by(after, (position, step)) AS state, max(position), NULL
FROM {{moves}} WHERE 'uncommitted put' IN (before, after)
GROUP BY queue_manager, store, kind, put_position, put_index
HAVING state = 'uncommitted put'
"""
FRAMES["living_sessions"] = "SELECT queue_manager, session FROM {sessions} WHERE ended_at IS NULL"
# The last of each kind that ended a unit of work, or returned all that a session held.
FRAMES["last_ends"] = """
SELECT queue_manager, session, kind, max(position) AS position, max(replied_at) AS replied_at
FROM (
    SELECT queue_manager, session, kind, position, replied_at FROM {applied}
    WHERE reply <> 'Refused' AND kind IN ('Commit', 'Rollback', 'Recover')
    UNION ALL
    SELECT queue_manager, session, reason, position, position FROM {forced_rollbacks}
) LEFT SEMI JOIN {living_sessions} USING (queue_manager, session)
GROUP BY ALL
"""
# What living sessions said that they hand over, as far as nothing they said goes beyond it (law H).
FRAMES["last_handed"] = """
SELECT queue_manager, session, max_by(position, (least_through, position)) AS position,
    max(least_through) AS delivery
FROM {handed} LEFT SEMI JOIN {living_sessions} USING (queue_manager, session)
GROUP BY ALL
UNION
SELECT queue_manager, session, max_by(position, (most_through, position)), max(most_through)
FROM {handed} LEFT SEMI JOIN {living_sessions} USING (queue_manager, session)
GROUP BY ALL
UNION
SELECT queue_manager, session, told_at, delivery FROM (
    SELECT *, delivery = max(delivery) OVER (PARTITION BY queue_manager, session, consumer)
            AS is_highest,
        told_at = max(told_at) OVER (PARTITION BY queue_manager, session, delivery) AS is_last
    FROM {handing} LEFT SEMI JOIN {living_sessions} USING (queue_manager, session)
)
WHERE is_last AND (is_highest OR left_at IS NULL)
"""
FRAMES["last_deliveries"] = """
SELECT queue_manager, session, max(delivery) AS delivery
FROM {moves} LEFT SEMI JOIN {living_sessions} USING (queue_manager, session)
WHERE delivery > 0
GROUP BY queue_manager, session
UNION
SELECT queue_manager, session, delivery FROM {last_handed} WHERE delivery > 0
"""
# Messages whose lives are carried, wherever they are: what is somewhere, what numbers go on from,
# and the first of each put whose deduplication id is remembered; open puts that vanished
# count in their unit of work until it ends.
FRAMES["carried_puts"] = """
SELECT queue_manager, put_position, put_index FROM {last_moves} WHERE state <> 'gone'
UNION
SELECT queue_manager, put.put_position, put.put_index FROM (
    SELECT queue_manager, max_by(struct(put_position, put_index), sequence) AS put
    FROM {last_moves} LEFT SEMI JOIN (SELECT * FROM {stores} WHERE gone_at IS NULL)
        USING (queue_manager, store, kind)
    WHERE sequence >= 0
    GROUP BY queue_manager, store, kind
)
UNION
SELECT queue_manager, put_position, 0 FROM {remembered_puts}
UNION
SELECT queue_manager, put_position, put_index
FROM {moves} LEFT SEMI JOIN {last_deliveries} USING (queue_manager, session, delivery)
UNION
SELECT queue_manager, put_position, put_index
FROM {moves} AS move LEFT SEMI JOIN {living_sessions} USING (queue_manager, session)
    LEFT JOIN (
        SELECT queue_manager, session, max(replied_at) AS ended_at FROM {last_ends} GROUP BY ALL
    ) USING (queue_manager, session)
WHERE before = 'uncommitted put' AND cause = 'purged' AND position >= coalesce(ended_at, -1)
"""
# Operations of living sessions, and those that are the last of their kind.
FRAMES["carried_first"] = """
WITH
heard AS (
    SELECT queue_manager, session, position, session_sequence, answered_number,
        max(answered_number) OVER (PARTITION BY queue_manager, session) AS answered_through,
        is_applied
    FROM {conduct} LEFT SEMI JOIN {living_sessions} USING (queue_manager, session)
    WHERE is_open
),
lives AS (
    SELECT queue_manager, session, greatest(session, max(position)) AS position
    FROM {living_sessions} LEFT JOIN heard USING (queue_manager, session)
    GROUP BY queue_manager, session
),
receivers AS (
    SELECT queue_manager, session, consumer, opened_at, closed_at FROM {consumers}
),
gets AS (
    SELECT queue_manager, session, consumer, replied_at AS position
    FROM {applied} LEFT SEMI JOIN (SELECT * FROM receivers WHERE closed_at IS NULL)
        USING (queue_manager, session, consumer)
    WHERE kind = 'Get' AND reply = 'Accepted'
)
-- What may be sent again, the one before it, and what says that the others may not (law L).
SELECT queue_manager, position FROM heard
WHERE is_applied AND session_sequence >= answered_through
UNION
SELECT queue_manager, min(position) FROM heard WHERE answered_number = answered_through
GROUP BY queue_manager, session
-- When sessions were heard of last, and suspected since.
UNION
SELECT queue_manager, position FROM lives
UNION
SELECT queue_manager, min(suspected.position)
FROM lives JOIN (
    SELECT queue_manager, position, explode(sessions) AS session FROM {operations}
    WHERE kind = 'Suspect'
) AS suspected USING (queue_manager, session)
WHERE suspected.position > lives.position
GROUP BY queue_manager, session
UNION
SELECT queue_manager, position FROM {last_handed}
UNION
SELECT queue_manager, position FROM {last_ends} WHERE kind <> 'unit-of-work-timed-out'
-- What waits, and what is there.
UNION
SELECT queue_manager, position FROM {applied}
WHERE kind IN ('Put', 'Commit') AND replied_at IS NULL
UNION
SELECT queue_manager, put_position FROM {carried_puts}
-- Consumers that are open, or hold something; the last one of a session, since numbers rise; what
-- each asked for last.
UNION
SELECT queue_manager, opened_at FROM receivers WHERE closed_at IS NULL
UNION
SELECT queue_manager, opened_at
FROM receivers LEFT SEMI JOIN (SELECT * FROM {flights} WHERE left_at IS NULL)
    USING (queue_manager, session, consumer)
UNION
SELECT queue_manager, max_by(opened_at, consumer)
FROM receivers LEFT SEMI JOIN {living_sessions} USING (queue_manager, session)
GROUP BY queue_manager, session
UNION
SELECT queue_manager, max(position) FROM gets GROUP BY queue_manager, session, consumer
-- What is the last of its kind.
UNION
SELECT queue_manager, position FROM {applied}
WHERE kind IN ('AlterQueueManager', 'Upgrade') AND reply <> 'Refused'
UNION
SELECT queue_manager, max(position) FROM {applied}
WHERE kind = 'BackUpJournal' AND reply <> 'Refused'
GROUP BY queue_manager
UNION
SELECT queue_manager, max_by(position, number) FROM {operations} WHERE kind = 'VersionOffered'
GROUP BY queue_manager
UNION
SELECT queue_manager, max(position) FROM {operations} GROUP BY queue_manager
-- What came while time stood still, from which the window of an id counts.
UNION
SELECT queue_manager, numbered_at FROM {remembered_puts} WHERE numbered_at IS NOT NULL
-- How far sources were taken.
UNION
SELECT queue_manager, max(position)
FROM {put_parts} LEFT SEMI JOIN (SELECT * FROM {destinations} WHERE gone_at IS NULL)
    USING (queue_manager, store)
WHERE is_taken
GROUP BY queue_manager, store, source, source_partition
-- What copied messages: of one that is on a topic too, be it later, which came from there (law F).
UNION
SELECT queue_manager, copies.position FROM (
    SELECT queue_manager, position, replied_at FROM {applied}
    WHERE kind = 'CopyMessages' AND reply <> 'Refused'
) AS copies LEFT SEMI JOIN (
    SELECT queue_manager, position AS replied_at
    FROM {moves} LEFT SEMI JOIN {carried_puts} USING (queue_manager, put_position, put_index)
    WHERE before = 'new'
) USING (queue_manager, replied_at)
-- Where bodies stand that were written again since they moved.
UNION
SELECT queue_manager, max(one.position)
FROM {relocated} AS one JOIN {last_moves} AS there USING (queue_manager, store, sequence)
WHERE is_there AND there.kind <> 'topic' AND state <> 'gone' AND one.position >= there.position
GROUP BY queue_manager, store, sequence
"""
# Subscriptions that there are or that consumers carried so far asked for, until they end: what made
# and ended each, and of those that end with their last consumer enough consumers to outlast it all.
FRAMES["carried_subscriptions"] = """
WITH
unsubscribed AS (
    SELECT queue_manager, replied_at AS gone_at, TRUE AS is_unsubscribed FROM {applied}
    WHERE kind = 'Unsubscribe' AND reply <> 'Refused'
),
eras AS (
    SELECT queue_manager, life, subscription, client_id, store, gone_at, is_unsubscribed
    FROM {stores} LEFT JOIN unsubscribed USING (queue_manager, gone_at)
    WHERE kind = 'subscription'
),
asked AS (
    SELECT *, coalesce(coalesce(closed_at.position, 9223372036854775807) >= max(
        coalesce(closed_at.position, 9223372036854775807)) OVER (
            PARTITION BY queue_manager, life, subscription, client_id ORDER BY position
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), TRUE) AS outlasts
    FROM {opened_consumers} WHERE life IS NOT NULL
),
since AS (
    SELECT queue_manager, life, subscription, client_id, min(store) AS since FROM (
        SELECT queue_manager, life, subscription, client_id, store FROM eras
        WHERE gone_at IS NULL
        UNION ALL
        SELECT queue_manager, life, subscription, client_id, store
        FROM eras LEFT SEMI JOIN (
            SELECT * FROM {last_moves} WHERE kind = 'subscription' AND state <> 'gone'
        ) USING (queue_manager, store)
        UNION ALL
        SELECT queue_manager, life, subscription, client_id, store
        FROM eras JOIN asked USING (queue_manager, life, subscription, client_id)
            LEFT SEMI JOIN {carried_first} USING (queue_manager, position)
        WHERE store <= position AND coalesce(position < gone_at, TRUE)
    )
    GROUP BY ALL
),
makers AS (
    SELECT queue_manager, life, subscription, client_id, eras.store AS since,
        min(IF(later.is_unsubscribed, later.store, NULL)) AS through
    FROM eras
        LEFT SEMI JOIN (SELECT * FROM {destinations} WHERE gone_at IS NULL)
            USING (queue_manager, store)
        JOIN eras AS later USING (queue_manager, life, subscription, client_id)
    WHERE life = 'durable' AND later.store >= eras.store
    GROUP BY queue_manager, life, subscription, client_id, eras.store
),
carried AS (
    SELECT queue_manager, store, gone_at
    FROM eras JOIN since USING (queue_manager, life, subscription, client_id)
    WHERE store >= since
    UNION
    SELECT queue_manager, store, gone_at
    FROM eras JOIN makers USING (queue_manager, life, subscription, client_id)
    WHERE store BETWEEN since AND coalesce(through, store)
)
SELECT queue_manager, store AS position FROM carried
UNION
SELECT queue_manager, applied.position
FROM carried JOIN {applied} AS applied USING (queue_manager)
WHERE replied_at = gone_at AND kind IN ('Unsubscribe', 'OpenConsumer')
UNION
SELECT queue_manager, position
FROM asked JOIN since USING (queue_manager, life, subscription, client_id)
WHERE life <> 'durable' AND outlasts AND position >= since
"""
# Destinations that there are, that messages carried came through or that operations carried so far
# name: what made each, set it, and ended it.
FRAMES["carried_destinations"] = """
WITH
uses AS (
    SELECT queue_manager, position, replied_at, kind,
        IF(kind IN ('CreateQueue', 'AlterQueue', 'DeleteQueue'), concat('queue:', target), target)
            AS destination
    FROM {applied}
    WHERE reply <> 'Refused' AND kind IN ('Put', 'OpenConsumer', 'CreateQueue', 'AlterQueue',
        'DeleteQueue', 'CreateTopic', 'AlterTopic', 'DeleteTopic', 'CreateTemporary')
),
named AS (
    SELECT queue_manager, destination, store, made_at, gone_at FROM {destinations}
    WHERE gone_at IS NULL
    UNION
    SELECT queue_manager, destination, store, made_at, gone_at
    FROM {destinations} LEFT SEMI JOIN (
        SELECT * FROM {last_moves}
            LEFT SEMI JOIN {carried_puts} USING (queue_manager, put_position, put_index)
        WHERE kind <> 'subscription'
    ) USING (queue_manager, store)
    UNION
    SELECT queue_manager, destination, store, made_at, gone_at
    FROM {destinations} JOIN (
        SELECT queue_manager, destination, replied_at FROM uses LEFT SEMI JOIN (
            SELECT * FROM {carried_first} UNION SELECT * FROM {carried_subscriptions}
        ) USING (queue_manager, position)
    ) USING (queue_manager, destination)
    WHERE made_at <= replied_at AND coalesce(replied_at <= gone_at, TRUE)
)
SELECT queue_manager, store AS position, destination FROM named
UNION
SELECT queue_manager, position, destination
FROM uses JOIN named USING (queue_manager, destination)
WHERE kind NOT IN ('Put', 'OpenConsumer') AND replied_at >= made_at
    AND coalesce(replied_at <= gone_at, TRUE)
"""
# Bindings that there are.
FRAMES["carried_bindings"] = """
SELECT queue_manager, applied.position
FROM {applied} AS applied JOIN (
    SELECT queue_manager, from_position AS replied_at FROM {bindings}
    WHERE until_position = 9223372036854775807
) USING (queue_manager, replied_at)
WHERE kind = 'Bind'
"""
# All of these, with what closed consumers, what ended bindings, and the first of what was sent
# again.
FRAMES["carried_positions"] = """
WITH
chosen AS (
    SELECT * FROM {carried_first}
    UNION SELECT * FROM {carried_subscriptions}
    UNION SELECT queue_manager, position FROM {carried_destinations}
    UNION SELECT * FROM {carried_bindings}
),
operations AS (SELECT * FROM {operations} LEFT SEMI JOIN chosen USING (queue_manager, position))
SELECT * FROM chosen
UNION
SELECT queue_manager, position
FROM {applied} LEFT SEMI JOIN operations USING (queue_manager, session, session_sequence)
UNION
SELECT queue_manager, position
FROM (SELECT * FROM {applied} WHERE kind = 'CloseConsumer' AND reply <> 'Refused') LEFT SEMI JOIN (
    SELECT * FROM operations WHERE kind = 'OpenConsumer'
) USING (queue_manager, session, consumer)
UNION
SELECT queue_manager, max(position)
FROM (
    SELECT queue_manager, position, target, get_json_object(settings, '$.topics') AS topics
    FROM {applied} WHERE kind IN ('Bind', 'Unbind') AND reply <> 'Refused'
) LEFT SEMI JOIN (
    SELECT queue_manager, target, get_json_object(settings, '$.topics') AS topics
    FROM operations WHERE kind = 'Bind'
) USING (queue_manager, target, topics)
GROUP BY queue_manager, target, topics
"""
# Sessions of all that; of a connection that is there, or that a destination is for, so many that
# one is open at any time between the first and the last.
FRAMES["carried_sessions"] = """
WITH
temporary AS (
    SELECT DISTINCT queue_manager, split_part(destination, '/', 2) AS connection,
        TRUE AS is_needed
    FROM {carried_destinations} WHERE substr(destination, 7) LIKE 'temporary/%'
),
covering AS (
    SELECT *, max(coalesce(ended_at, 9223372036854775807)) OVER (
        PARTITION BY queue_manager, connection, connection_opened_at ORDER BY session
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS covered_until
    FROM {sessions} LEFT JOIN temporary USING (queue_manager, connection)
    WHERE connection_ended_at IS NULL OR is_needed
)
SELECT queue_manager, session FROM covering
WHERE coalesce(coalesce(ended_at, 9223372036854775807) >= covered_until, TRUE)
UNION
SELECT queue_manager, session FROM {living_sessions}
UNION
SELECT queue_manager, session
FROM {operations} LEFT SEMI JOIN {carried_positions} USING (queue_manager, position)
    LEFT SEMI JOIN {sessions} USING (queue_manager, session)
"""
