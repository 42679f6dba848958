"""The table `message_events`: one row for each move of each message, and for a put that waits.

A move is as the fold states it (`rebuild.testimony`), with what the Put said of the message, what
the entry at its position asked for, and the field's words for what happened.
"""

# Properties as they stand in the text of a header, up to its next field (`headers.header_text`): of
# what is looked up in JSON, Spark and DuckDB write letters and numbers anew, each in its own way.
# Their values hold no braces but in strings, whose quotation marks are escaped.
PROPERTIES = """substring(header, 6, instr(header, '}},"c":') - 5)"""
# What was put, message by message, whatever was answered.
PUTS = f"""
SELECT *,
    get_json_object(header, '$.g.i') AS group_id,
    CAST(get_json_object(header, '$.g.n') AS BIGINT) AS group_sequence,
    get_json_object(header, '$.c') AS correlation_id,
    nullif({PROPERTIES}, '{{{{}}}}') AS properties
FROM (
    SELECT queue_manager, position AS put_position, put_index, message_id,
        priorities[put_index] AS priority, persistent[put_index] AS persistent,
        sizes_bytes[put_index] AS content_bytes,
        sizes_bytes[put_index] + headers_bytes[put_index] AS size_bytes,
        get(headers, put_index) AS header
    FROM {{operations}} LATERAL VIEW posexplode(message_ids) AS put_index, message_id
    WHERE kind = 'Put'
)
"""
IN_FLIGHT = "('unacknowledged', 'uncommitted get')"
# What is told of a message of which its application said, in its own words, why.
PUT_BACK, SENT_AWAY = "the application put it back", "its application rejected it"
# Whether a message goes because its application rejected it; or because it put it back too often.
NAMED_BY_REJECT = f"before IN {IN_FLIGHT} AND entry = 'Reject' AND entry_session = session"
REJECTED = f"({NAMED_BY_REJECT} AND is_for_good)"
PUT_BACK_LAST = f"({NAMED_BY_REJECT} AND NOT is_for_good)"
# Whether a message goes, or is available, because it came back: at once, or as its delay ended.
CAME_BACK = f"(before IN {IN_FLIGHT} OR before = 'delayed' AND waited_until <= time_us)"
EVENT = f"""
CASE
    WHEN before = 'new' AND after = 'gone' THEN cause
    WHEN after = 'uncommitted put' OR before = 'new' AND session >= 0 THEN
        IF(position > put_position, 'admitted', 'put')
    WHEN before = 'new' THEN IF(kind = 'subscription', 'added', 'arrived')
    WHEN after = 'published' THEN 'numbered'
    WHEN before = 'uncommitted put' AND after <> 'gone' THEN 'numbered'
    WHEN before = 'unborn' AND after = 'available' THEN 'born'
    WHEN before = 'delayed' AND after = 'available' THEN 'due'
    WHEN after IN {IN_FLIGHT} THEN 'delivered'
    WHEN before IN {IN_FLIGHT} AND after <> 'gone' THEN 'returned'
    WHEN cause = 'moved' AND kind <> 'topic' AND entry <> 'MoveMessages' AND NOT {CAME_BACK}
        THEN 'parked'
    ELSE cause
END
"""
LOST = "the session was lost: nothing was heard of its client in time"
OUT_OF_TIME = "a time limit of its unit of work was over"
# Why a delivery came back: what the queue manager says of its session, else the entry that brought
# it back. Whose time is over ends with whatever entry comes next, be it an Open or a Rollback.
RETURNED_BY = f"""
CASE WHEN has_timed_out THEN '{OUT_OF_TIME}'
    WHEN ended_as IN ('LOST', 'UNCONFIRMED') THEN '{LOST}'
    WHEN ended_as = 'TAKEN_OVER' THEN 'another connection took over the client id'
    ELSE CASE entry
        WHEN 'Rollback' THEN 'the session rolled back'
        WHEN 'Recover' THEN 'the session recovered'
        WHEN 'Close' THEN 'the session was closed'
        WHEN 'CloseConsumer' THEN 'the consumer was closed before the application saw it'
        WHEN 'Reject' THEN '{PUT_BACK}'
        WHEN 'GiveBack' THEN 'the consumer gave it back unseen'
        WHEN 'EndSession' THEN 'the session was ended by administration'
        WHEN 'RollbackTransaction' THEN 'the unit of work was rolled back by administration'
        WHEN 'Correct' THEN 'released by administration'
        ELSE '{LOST}' END
END
"""
# Why what a queue or subscription had went with it.
PURGED_BY = """
CASE WHEN kind <> 'subscription' THEN 'its destination is gone' ELSE
    CASE entry
        WHEN 'Unsubscribe' THEN 'its subscription was unsubscribed'
        WHEN 'OpenConsumer' THEN 'its subscription was made anew'
        WHEN 'DeleteTopic' THEN 'its topic was deleted'
        ELSE 'its subscription ended with its last consumer' END
END
"""
REASON = f"""
CASE event
    WHEN 'put' THEN IF(after = 'uncommitted put', 'in a unit of work', 'by itself')
    WHEN 'admitted' THEN 'there is room for it'
    WHEN 'numbered' THEN 'its unit of work was committed'
    WHEN 'added' THEN 'the subscription wants it'
    WHEN 'arrived' THEN IF(
        entry = 'CopyMessages', 'copied by administration', 'it came from another destination')
    WHEN 'born' THEN 'its delivery delay is over'
    WHEN 'due' THEN 'its redelivery delay is over'
    WHEN 'delivered' THEN IF(backouts > 0, 'again', 'for the first time')
    WHEN 'returned' THEN {RETURNED_BY}
    WHEN 'consumed' THEN IF(kind = 'topic', 'the last subscription consumed it',
        IF(entry = 'Commit', 'its unit of work was committed', 'it was acknowledged'))
    WHEN 'expired' THEN 'its time to live or the maximum lifetime is over'
    WHEN 'displaced' THEN 'newer messages took its place: no more are kept available'
    WHEN 'moved' THEN CASE
        WHEN before IN ('new', 'uncommitted put') THEN 'no subscription wants it: it goes elsewhere'
        WHEN kind = 'topic' THEN 'the last subscription that had it sent it elsewhere'
        WHEN {REJECTED} THEN '{SENT_AWAY}'
        WHEN {PUT_BACK_LAST} THEN '{PUT_BACK}, and its redelivery limit is exceeded'
        WHEN {CAME_BACK} THEN 'its redelivery limit is exceeded'
        ELSE 'by administration' END
    WHEN 'parked' THEN 'it follows one of its group that came back too often or was rejected'
    WHEN 'removed' THEN 'by administration'
    WHEN 'purged' THEN {PURGED_BY}
    WHEN 'rolled back' THEN 'its unit of work ended without a commit'
    WHEN 'dropped' THEN CASE
        WHEN before IN ('new', 'uncommitted put') THEN 'no subscription wants it'
        WHEN kind = 'topic' THEN 'no subscription has it'
        WHEN {REJECTED} THEN '{SENT_AWAY}, and it has nowhere to go'
        WHEN {PUT_BACK_LAST} THEN
            '{PUT_BACK}, its redelivery limit is exceeded, and it has nowhere to go'
        WHEN {CAME_BACK} THEN 'its redelivery limit is exceeded, and it has nowhere to go'
        ELSE 'its subscription ended with its last consumer' END
END
"""
# Puts and gets of units of work, with the entry that ends each unit; null: it is open. What is put
# at the entry that ends it is in it, what is got there is in the next.
UNIT_MOVES = """
WITH
ends AS (
    SELECT queue_manager, session, position, min(ended_as) AS ended_as
    FROM (
        SELECT queue_manager, session, position, CASE kind WHEN 'Committed' THEN 'committed'
            WHEN 'Returned' THEN IF(session_sequence = 0, 'out of time', 'rolled back')
            ELSE 'session ended' END AS ended_as
        FROM {outcomes} WHERE kind IN ('Committed', 'Returned', 'SessionEnded')
        UNION ALL
        SELECT queue_manager, number, replied_at, 'rolled back by administration' FROM {applied}
        WHERE kind = 'RollbackTransaction' AND reply <> 'Refused'
    )
    GROUP BY ALL
),
timeline AS (
    SELECT queue_manager, session, position, step, IF(after = 'uncommitted put', 0, 2) AS turn,
        NULL AS end
    FROM {moves} WHERE after IN ('uncommitted put', 'uncommitted get')
    UNION ALL
    SELECT queue_manager, session, position, -1, 1, struct(position, ended_as) FROM ends
)
SELECT queue_manager, session, position, step, turn = 0 AS is_put, end.position AS end_position,
    end.ended_as AS ended_as
FROM (
    SELECT * EXCEPT (end), last(end, TRUE) OVER (
        PARTITION BY queue_manager, session ORDER BY position DESC, turn DESC
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS end
    FROM timeline
)
WHERE step >= 0
"""
UNITS = """
SELECT queue_manager, session, min(position) AS unit_of_work, end_position,
    any_value(ended_as) AS ended_as,
    count_if(is_put) AS puts, count_if(NOT is_put) AS gets
FROM {unit_moves}
GROUP BY queue_manager, session, end_position
"""
# A message keeps its Put wherever it goes; `sequence` is also told of what is still uncommitted,
# `numbered_as` is not: it looks at nothing that comes later.
MESSAGE_EVENTS = f"""
WITH
numbered AS (
    SELECT *, IF(after = 'uncommitted put', lead(sequence) OVER stay, sequence) AS own,
        lag(until_us) OVER numbered_stay AS waited_until
    FROM {{moves}}
    WINDOW
        stay AS (PARTITION BY queue_manager, store, kind, put_position, put_index
            ORDER BY position, step),
        -- Copies of a message may be in one queue, each with a delay of its own.
        numbered_stay AS (
            PARTITION BY queue_manager, store, kind, put_position, put_index, sequence
            ORDER BY position, step)
),
entries AS (
    SELECT queue_manager, position, kind AS entry, session AS entry_session,
        session_sequence AS entry_session_sequence, NOT flag AS is_for_good,
        coalesce(actor, get_json_object(settings, '$.actor')) AS actor,
        coalesce(why, get_json_object(settings, '$.reason')) AS why
    FROM {{operations}}
),
-- What waits for room, where it began to; and what was put before under its deduplication id.
unmoved AS (
    SELECT queue_manager, position, 'blocked' AS event, 'there is no room for it yet' AS reason,
        target AS destination, position AS put_position, 'blocked' AS after, session,
        CAST(NULL AS BIGINT) AS session_sequence
    FROM {{applied}} WHERE kind = 'Put' AND (replied_at IS NULL OR replied_at > position)
    UNION ALL
    SELECT queue_manager, replied_at, 'vanished', concat('it was put before under its '
        || 'deduplication id ', deduplication_id, ', as number ', reply_number), target, position,
        'gone', session, session_sequence
    FROM {{applied}} WHERE has_vanished
),
units AS (
    SELECT one.queue_manager, one.position, one.step, unit_of_work
    FROM {{unit_moves}} AS one JOIN {{unit_ends}} AS unit
        ON one.queue_manager = unit.queue_manager AND one.session = unit.session
        AND one.end_position <=> unit.end_position
),
ended AS (
    SELECT queue_manager, session, end_position AS position, unit_of_work AS ended_unit
    FROM {{unit_ends}} WHERE end_position IS NOT NULL
),
named AS (
    SELECT *, {EVENT} AS event, coalesce(unit_of_work,
        IF(before IN ('uncommitted put', 'uncommitted get'), ended_unit, NULL)) AS unit
    FROM numbered JOIN entries USING (queue_manager, position)
        LEFT JOIN units USING (queue_manager, position, step)
        LEFT JOIN ended USING (queue_manager, session, position)
        LEFT JOIN (
            SELECT queue_manager, session, position, bool_or(kind = 'Returned') AS has_timed_out,
                min(reason) AS ended_as
            FROM {{outcomes}}
            WHERE kind = 'Returned' AND session_sequence = 0 OR kind = 'SessionEnded'
            GROUP BY ALL
        ) USING (queue_manager, session, position)
)
SELECT queue_manager, position, step, time_us, event, {REASON} AS reason, kind, destination,
    subscription, store, nullif(own, -1) AS sequence, nullif(sequence, -1) AS numbered_as,
    put_position, put_index, before, after,
    nullif(session, -1) AS session, nullif(consumer, -1) AS consumer,
    nullif(delivery, 0) AS delivery, unit AS unit_of_work, nullif(until_us, -1) AS until_us,
    backouts, uncounted,
    entry, entry_session_sequence, actor, why, message_id, priority, persistent, content_bytes,
    group_id, group_sequence, correlation_id, properties
FROM named LEFT JOIN {{puts}} USING (queue_manager, put_position, put_index)
UNION ALL
SELECT queue_manager, position, -1, time_us, event, reason,
    IF(destination LIKE 'topic:%', 'topic', 'queue'), destination, NULL, NULL, NULL, NULL,
    put_position, put_index, 'new', after, session, NULL, NULL, NULL, NULL, 0, 0, 'Put',
    session_sequence, NULL, NULL, message_id, priority, persistent, content_bytes, group_id,
    group_sequence, correlation_id, properties
FROM unmoved JOIN {{clock}} USING (queue_manager, position)
    JOIN {{puts}} USING (queue_manager, put_position)
"""
