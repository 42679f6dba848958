"""Frames of messages: what a Put brought, and what each has at every place that it comes to."""

from __future__ import annotations

FRAMES: dict[str, str] = {}


def rounded(moment_us: str) -> str:
    """A moment since 1970 in a query as deadlines are: rounded up to 50 ms (PROTOCOL.md §6)."""
    return f"(({moment_us}) + 49999) DIV 50000 * 50000"


# Messages of Puts that were not refused, with their sizes (§2) and what was in force when the Put
# came: it was sent then, less its age, however long it waited for room (§5, §16).
FRAMES["brought"] = f"""
WITH sent AS (
    SELECT queue_manager, position AS put_position, put_index, session, target AS destination,
        replied_at, reply_index, sizes_bytes[put_index] + headers_bytes[put_index] AS size_bytes,
        headers[put_index] AS header, greatest(time_us, append_time_us) AS sent_us
    FROM {{applied}} JOIN {{clock}} USING (queue_manager, position)
        LATERAL VIEW posexplode(message_ids) AS put_index, message_id
    WHERE kind = 'Put' AND NOT reply <=> 'Refused' AND NOT has_vanished
),
asked AS (
    SELECT sent.*,
        IF(time_to_live_override_ms >= 0, time_to_live_override_ms,
            coalesce(CAST(get_json_object(header, '$.l') AS BIGINT), 0)) AS life_ms,
        coalesce(CAST(get_json_object(header, '$.a') AS BIGINT), 0) AS age_ms,
        coalesce(CAST(get_json_object(header, '$.r') AS BIGINT), -1) AS asked_limit,
        coalesce(one.redelivery_limit, manager.redelivery_limit) AS given_limit
    FROM sent JOIN {{manager_settings}} AS manager ON sent.queue_manager = manager.queue_manager
        AND manager.from_position < put_position AND put_position <= manager.until_position
    LEFT JOIN {{settings}} AS one ON sent.queue_manager = one.queue_manager
        AND sent.destination = one.destination AND one.kind <> 'subscription'
        AND one.from_position <= put_position AND put_position < one.until_position
)
SELECT * EXCEPT (life_ms, age_ms, asked_limit, given_limit, sent_us), asked_limit,
    IF(given_limit >= 0, given_limit, asked_limit) AS limit,
    IF(life_ms > 0, {rounded("sent_us + (life_ms - age_ms) * 1000")}, NULL) AS expires_us
FROM asked
"""
# Every message that got a number somewhere: its redelivery limit and when its own time is over
# there (null: never). What goes elsewhere keeps its time unless it expired, and asks its header for
# a limit unless it exceeded one (§14, §15). `is_told` is false where the moves do not tell which of
# several copies of a message it was that went on; `limit` is null where they do not tell its limit.
# Of what never went elsewhere nothing of that is asked.
FRAMES["lives"] = """
WITH
elsewhere AS (
    SELECT DISTINCT queue_manager, put_position, put_index FROM {moves}
    WHERE before = 'new' AND session < 0 AND sequence >= 0 AND kind <> 'subscription'
),
life AS (
    SELECT queue_manager, store, kind, destination, sequence, put_position, put_index, position,
        step, time_us, session, before, cause, lag(until_us) OVER (
        PARTITION BY queue_manager, store, kind, sequence ORDER BY position, step) AS waited_until
    FROM {moves} LEFT SEMI JOIN elsewhere USING (queue_manager, put_position, put_index)
),
copied AS (
    SELECT queue_manager, position, TRUE AS is_copy FROM {applied}
    WHERE kind = 'CopyMessages' AND reply <> 'Refused'
),
handed AS (
    SELECT DISTINCT queue_manager, put_position, put_index, TRUE AS is_bound FROM {bound}
),
told AS (
    SELECT *,
        last(IF(cause IN ('moved', 'expired') AND before <> 'published',
            IF(cause = 'moved' AND (before IN ('unacknowledged', 'uncommitted get')
                OR before = 'delayed' AND waited_until <= time_us), 'limit', cause), NULL), TRUE)
            OVER (PARTITION BY queue_manager, position, put_position, put_index ORDER BY step)
            AS left_as,
        count_if(cause = 'expired' AND before <> 'published') OVER (
            PARTITION BY queue_manager, put_position, put_index ORDER BY position, step) > 0
            AS has_expired,
        max(kind = 'subscription' OR is_bound OR coalesce(is_copy, FALSE) AND before = 'new') OVER (
            PARTITION BY queue_manager, put_position, put_index) AS is_several
    FROM life LEFT JOIN copied USING (queue_manager, position)
        LEFT JOIN handed USING (queue_manager, put_position, put_index)
),
arrivals AS (
    SELECT queue_manager, store, kind, destination, sequence, put_position, put_index, position,
        step, time_us, TRUE AS is_elsewhere, left_as, has_expired, is_several, is_copy
    FROM told WHERE before = 'new' AND session < 0 AND sequence >= 0 AND kind <> 'subscription'
    UNION ALL
    SELECT queue_manager, store, kind, destination, sequence, put_position, put_index, position,
        step, time_us, FALSE, NULL, FALSE, FALSE, NULL
    FROM {moves} WHERE (before = 'new' AND session >= 0 OR before = 'uncommitted put')
        AND sequence >= 0 AND kind <> 'subscription'
),
given AS (
    SELECT queue_manager, kind, store, sequence, IF(max(redelivery_limit) = min(redelivery_limit),
        max(redelivery_limit), NULL) AS given_limit
    FROM arrivals JOIN {settings} USING (queue_manager, kind, destination, store)
    WHERE is_elsewhere AND position BETWEEN from_position AND until_position
    GROUP BY ALL
),
first AS (
    SELECT one.queue_manager, one.store, one.kind, one.destination, one.sequence, put_position,
        put_index, one.position, one.step, one.time_us, size_bytes, header, expires_us AS own_us,
        CASE WHEN NOT is_elsewhere THEN limit WHEN given_limit <> -1 THEN given_limit
            WHEN given_limit IS NULL OR left_as <=> 'limit' THEN given_limit
            ELSE asked_limit END AS limit,
        is_elsewhere AND has_expired AND (NOT is_several OR left_as <=> 'expired') AS is_over,
        NOT is_elsewhere OR NOT has_expired OR NOT is_several
            OR left_as <=> 'expired' AND is_copy IS NULL AS is_told
    FROM arrivals AS one JOIN {brought} USING (queue_manager, put_position, put_index)
        LEFT JOIN given USING (queue_manager, kind, store, sequence)
)
SELECT * EXCEPT (own_us, is_over), IF(is_over, NULL, own_us) AS expires_us FROM first
UNION ALL
SELECT copy.queue_manager, copy.store, copy.kind, copy.destination, copy.sequence,
    copy.put_position, copy.put_index, copy.position, copy.step, copy.time_us, size_bytes, header,
    limit, is_told, IF(is_over, NULL, own_us)
FROM {moves} AS copy JOIN first USING (queue_manager, destination, sequence, position)
    JOIN {stores} AS one ON copy.queue_manager = one.queue_manager AND copy.store = one.store
        AND copy.kind = one.kind
WHERE copy.before = 'new' AND copy.kind = 'subscription' AND first.kind = 'topic'
    AND first.store = one.topic_store
"""
# Deliveries that left flight other than by being consumed: with what they were delivered with, and
# with the settings by which they returned. All that returns does so before an entry changes any.
FRAMES["returns"] = """
WITH flown AS (
    SELECT *, lag(uncounted) OVER life AS uncounted_before,
        lag(backouts) OVER life AS backouts_before, lag(position) OVER life AS delivered_at
    FROM {moves} LEFT SEMI JOIN (
        SELECT queue_manager, session, delivery FROM {moves}
        WHERE delivery > 0 AND cause NOT IN ('consumed', 'removed')
            AND before IN ('unacknowledged', 'uncommitted get')
    ) USING (queue_manager, session, delivery)
    WINDOW life AS (PARTITION BY queue_manager, session, delivery ORDER BY position, step)
)
SELECT flown.*, coalesce(redelivery_delay_ms, -1) AS consumer_delay_ms, session_delay_ms,
    append_time_us, redelivery_steps, redelivery_delay_override_ms, redelivery_delay_max_ms,
    redelivery_delay_multiplier_percent, backouts - uncounted AS counted
FROM flown
    JOIN (SELECT queue_manager, session, redelivery_delay_ms AS session_delay_ms FROM {sessions})
        USING (queue_manager, session)
    JOIN (SELECT queue_manager, position, IF(trusted, append_time_us, 0) AS append_time_us
        FROM {operations}) USING (queue_manager, position)
    LEFT JOIN (SELECT queue_manager, session, consumer, redelivery_delay_ms FROM {consumers})
        USING (queue_manager, session, consumer)
    JOIN {settings} USING (queue_manager, kind, destination, store)
WHERE before IN ('unacknowledged', 'uncommitted get') AND cause NOT IN ('consumed', 'removed')
    AND from_position < position AND position <= until_position
"""
# Each stay of a message in a state, and the moments at which its own time and its lifetime are over
# (§14). `until_position` is the entry at which it left, or one behind the last; a change of the
# lifetime divides a stay, for it holds for what is there too. What did not expire and has no time
# that could be over by the end of the log is not asked after.
FRAMES["stays"] = f"""
WITH
expired AS (
    SELECT DISTINCT queue_manager, store, kind, sequence, TRUE AS has_expired FROM {{moves}}
    WHERE sequence >= 0 AND cause = 'expired'
),
limited AS (
    SELECT queue_manager, min(maximum_lifetime_ms) * 1000 AS shortest_us FROM {{manager_settings}}
    WHERE maximum_lifetime_ms > 0
    GROUP BY queue_manager
),
times AS (
    SELECT queue_manager, store, kind, sequence, IF(is_told, expires_us, NULL) AS own_us, is_told
    FROM {{lives}} LEFT JOIN expired USING (queue_manager, store, kind, sequence)
        LEFT JOIN limited USING (queue_manager) JOIN {{log_end}} USING (queue_manager)
    WHERE has_expired OR is_told AND expires_us <= end_us OR time_us + shortest_us <= end_us
),
moved AS (
    SELECT queue_manager, store, kind, sequence, position, after,
        lead(position) OVER life AS left_at, lead(cause) OVER life AS left_as,
        lead(after) OVER life AS left_to, first(time_us) OVER life AS numbered_us
    FROM {{moves}} LEFT SEMI JOIN times USING (queue_manager, store, kind, sequence)
    WHERE kind <> 'topic'
    WINDOW life AS (PARTITION BY queue_manager, store, kind, sequence ORDER BY position, step)
)
SELECT moved.*, own_us, is_told, manager.from_position, manager.until_position,
    IF(maximum_lifetime_ms > 0, {rounded("numbered_us + maximum_lifetime_ms * 1000")}, NULL)
        AS lifetime_us
FROM moved JOIN times USING (queue_manager, store, kind, sequence)
    JOIN {{manager_settings}} AS manager USING (queue_manager)
WHERE after <> 'gone'
    AND (left_at IS NULL OR manager.from_position <= left_at)
    AND manager.until_position >= position
"""
# Messages that ever waited for a moment, where they did.
FRAMES["waiting"] = """
SELECT DISTINCT queue_manager, store, kind, sequence FROM {moves}
WHERE sequence >= 0 AND after IN ('unborn', 'delayed')
"""
# What sessions said to have handed over, of what they had been given: before the entry that says
# so, and with what came in it.
FRAMES["handed"] = """
WITH
handing AS (SELECT queue_manager, session FROM {operations} WHERE handed_through > 0),
said AS (
    SELECT queue_manager, session, position, handed_through, NULL AS delivery FROM {operations}
        LEFT SEMI JOIN handing USING (queue_manager, session)
        LEFT ANTI JOIN (SELECT * FROM {outcomes} WHERE reason = 'session-unknown')
        USING (queue_manager, session, position)
    WHERE handed_through IS NOT NULL
    UNION ALL
    SELECT queue_manager, session, position, NULL, delivery
    FROM {moves} LEFT SEMI JOIN handing USING (queue_manager, session)
    WHERE after IN ('unacknowledged', 'uncommitted get')
)
SELECT queue_manager, session, position, least(handed_through, given) AS least_through,
    least(handed_through, given_by_then) AS most_through
FROM (
    SELECT *,
        coalesce(max(delivery) OVER (PARTITION BY queue_manager, session ORDER BY position
            RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS given,
        coalesce(max(delivery) OVER (PARTITION BY queue_manager, session ORDER BY position), 0)
            AS given_by_then
    FROM said
)
WHERE handed_through IS NOT NULL
"""
# Deliveries in flight that an Alive named: with all of their consumer before them they are handed
# over, whatever becomes of the one that it named (§5).
FRAMES["handing"] = """
SELECT queue_manager, session, consumer, told_at, delivery, delivered_at, left_at
FROM (
    SELECT queue_manager, session, replied_at AS told_at, number AS delivery FROM {applied}
    WHERE kind = 'Alive' AND number > 0
) JOIN (
    SELECT queue_manager, session, delivery, consumer, position AS delivered_at, left_at
    FROM {flights}
) USING (queue_manager, session, delivery)
WHERE delivered_at <= told_at AND coalesce(told_at < left_at, TRUE)
"""
