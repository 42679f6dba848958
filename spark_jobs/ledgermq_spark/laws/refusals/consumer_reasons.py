"""Why consumers are not opened or given credit: PROTOCOL.md §5, §12, §13, and subscriptions."""

from ledgermq.protocol.limits import CONSUMER_NUMBER_MAX, CREDIT_MAX, TIMING_MS_MAX
from ledgermq_spark.laws.refusals.expressions import (
    is_destination,
    is_name,
    name_in,
    place,
    spelled,
    stands,
)

FRAMES: dict[str, str] = {}

# Subscriptions that are asked for by name, and who uses them when that comes; one that ends there
# is what the operation itself ends or makes anew, or a shared one whose last consumer was lost.
FRAMES["asked_for"] = f"""
WITH
asked AS (
    SELECT queue_manager, position, subscription, of_client_id AS client_id,
        IF(durable OR kind = 'Unsubscribe', 'durable', 'shared') AS life
    FROM {{conduct}}
    WHERE conduct = 'next' AND (kind = 'Unsubscribe' OR kind = 'OpenConsumer'
        AND (durable OR shared) AND target LIKE 'topic:%')
),
found AS (
    SELECT asked.queue_manager, asked.position, one.life, one.store, one.shared, one.selector,
        one.no_local, one.topic_store
    FROM asked JOIN {{stores}} AS one ON one.queue_manager = asked.queue_manager
        AND one.life = asked.life AND one.subscription = asked.subscription
        AND one.client_id = asked.client_id AND made_at < position
        AND (gone_at IS NULL OR gone_at >= position)
),
receivers AS (
    SELECT found.queue_manager, position, count(*) AS consumers
    FROM found JOIN {{consumers}} AS one ON one.queue_manager = found.queue_manager
        AND one.store = found.store AND {stands("opened_at", "closed_at", "position")}
    GROUP BY ALL
),
held AS (
    SELECT found.queue_manager, found.position, count(*) AS in_flight
    FROM found JOIN {{flights}} AS one ON one.queue_manager = found.queue_manager
        AND one.store = found.store AND one.position <= found.position
        AND (left_at IS NULL OR left_at > found.position)
    GROUP BY ALL
)
SELECT queue_manager, position, store, shared, selector, no_local, topic_store,
    coalesce(consumers, 0) AS consumers, coalesce(in_flight, 0) AS in_flight
FROM found LEFT JOIN receivers USING (queue_manager, position)
    LEFT JOIN held USING (queue_manager, position)
"""
FRAMES["opening_reasons"] = f"""
WITH asked AS (
    SELECT one.*, consumer_highest, place.store, automatic_creation
    FROM {{conduct}} AS one JOIN {{units}} USING (queue_manager, session, position)
    JOIN {{manager_settings}} AS manager ON manager.queue_manager = one.queue_manager
        AND manager.from_position < one.position AND one.position < manager.until_position
    {place("place", "one.target")}
    WHERE one.kind = 'OpenConsumer'
)
SELECT queue_manager, position, FALSE AS late, CASE
    WHEN consumer NOT BETWEEN consumer_highest + 1 AND {CONSUMER_NUMBER_MAX} THEN 'consumer-exists'
    WHEN redelivery_delay_ms NOT BETWEEN -1 AND {TIMING_MS_MAX} THEN 'setting-invalid'
    WHEN NOT ({is_destination("target")} AND {is_name(name_in("target"))})
        THEN 'destination-invalid'
    WHEN asked.store IS NULL AND {name_in("target")} LIKE 'temporary/%' THEN 'destination-unknown'
    WHEN asked.store IS NULL AND NOT automatic_creation
        THEN IF(target LIKE 'queue:%', 'queue-unknown', 'topic-unknown')
    WHEN {name_in("target")} LIKE 'temporary/%' AND NOT startswith({name_in("target")},
        concat('temporary/', of_connection, '/')) THEN 'temporary-foreign'
    WHEN selector_is_wrong(asked.selector) THEN 'selector-invalid'
    WHEN target LIKE 'queue:%' THEN
        IF(durable OR asked.shared OR subscription <> '', 'subscription-invalid', NULL)
    WHEN NOT durable AND NOT asked.shared THEN
        IF(subscription <> '', 'subscription-invalid', NULL)
    WHEN NOT {is_name("subscription")} OR asked.shared AND asked.no_local
        THEN 'subscription-invalid'
    WHEN durable AND NOT asked.shared AND of_client_id = '' THEN 'client-id-missing'
    WHEN durable AND {name_in("target")} LIKE 'temporary/%' THEN 'destination-invalid'
    WHEN known.shared <> asked.shared THEN 'subscription-differs'
    WHEN NOT known.shared AND consumers > 0 THEN 'subscription-in-use'
    WHEN (consumers > 0 OR in_flight > 0) AND (NOT known.topic_store <=> asked.store
        OR {spelled("known.selector")} <> {spelled("asked.selector")}
        OR known.no_local <> asked.no_local) THEN 'subscription-in-use'
    END AS due
FROM asked LEFT JOIN {{asked_for}} AS known USING (queue_manager, position)
"""
FRAMES["unsubscribing_reasons"] = """
SELECT queue_manager, position, FALSE AS late, CASE
    WHEN known.store IS NULL THEN 'subscription-unknown'
    WHEN consumers > 0 OR in_flight > 0 THEN 'subscription-in-use'
    END AS due
FROM (SELECT queue_manager, position FROM {conduct} WHERE conduct = 'next'
        AND kind = 'Unsubscribe')
    LEFT JOIN {asked_for} AS known USING (queue_manager, position)
"""
# Standing credit before each Get; that of one who has asked for whole logical messages is known
# from below only, for several segments cost one.
FRAMES["credit_eras"] = """
WITH events AS (
    SELECT queue_manager, session, consumer, position, told_index AS index, 0 AS rank, TRUE AS asks,
        0 AS credit, FALSE AS is_reset, FALSE AS is_whole
    FROM {conduct} WHERE conduct = 'next' AND kind = 'Get'
    UNION ALL
    SELECT queue_manager, session, consumer, position, told_index, 1, FALSE, credit, credit = 0,
        coalesce(get_json_object(options, '$.complete_message') = 'true', FALSE)
    FROM {credits}
    UNION ALL
    SELECT queue_manager, session, consumer, position, index, 1, FALSE, -size(sequences), FALSE,
        FALSE
    FROM {outcomes} WHERE kind = 'Delivered'
)
SELECT *, count_if(is_reset) OVER before AS era, max(is_whole) OVER before AS was_whole
FROM events
WINDOW before AS (PARTITION BY queue_manager, session, consumer ORDER BY position, index, rank
    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
"""
# What is left of it in the end.
FRAMES["credits_left"] = """
SELECT queue_manager, session, consumer, sum(credit) AS credit
FROM (
    SELECT *, max(era + CAST(is_reset AS INT)) OVER (PARTITION BY queue_manager, session, consumer)
        AS last_era
    FROM {credit_eras}
)
WHERE era = last_era
GROUP BY ALL
"""
FRAMES["getting_reasons"] = f"""
WITH
standing AS (
    SELECT *, coalesce(sum(credit) OVER before, 0) AS lowest, IF(coalesce(was_whole, FALSE),
        coalesce(sum(greatest(credit, 0)) OVER before, 0), lowest) AS highest
    FROM {{credit_eras}}
    WINDOW before AS (PARTITION BY queue_manager, session, consumer, era
        ORDER BY position, index, rank ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
),
asked AS (
    SELECT one.*, lowest, highest, destination, opened_at IS NOT NULL
        AND (closed_at IS NULL OR closed_at > one.position) AS is_consumer_open
    FROM {{conduct}} AS one
    JOIN (SELECT queue_manager, session, position, lowest, highest FROM standing WHERE asks)
        USING (queue_manager, session, position)
    LEFT JOIN (
        SELECT queue_manager, session, consumer, opened_at, closed_at, destination
        FROM {{consumers}}
    ) AS getter ON getter.queue_manager = one.queue_manager AND getter.session = one.session
        AND getter.consumer = one.consumer AND opened_at < one.position
)
SELECT queue_manager, position, FALSE AS late, CASE
    WHEN NOT is_consumer_open THEN 'consumer-unknown'
    WHEN number < 0 OR lowest > {CREDIT_MAX} - number THEN 'credit-invalid'
    WHEN highest > {CREDIT_MAX} - number AND told_reason = 'credit-invalid' THEN told_reason
    WHEN kind_of_options(options) = 'wrong'
        OR kind_of_options(options) = 'logical' AND mode = 'INDIVIDUAL'
        OR kind_of_options(options) NOT IN ('none', 'plain') AND destination LIKE 'topic:%'
        THEN 'options-invalid'
    WHEN told_reason = 'match-options-invalid' AND options IS NOT NULL THEN told_reason
    END AS due
FROM asked
"""
