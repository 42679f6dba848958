"""Why entries outside sessions are refused: what cannot be read, Open, and what workers write."""

from ledgermq.protocol import limits
from ledgermq_spark.laws.refusals.expressions import is_name, names_nobody
from ledgermq_spark.log.headers import UNIT_LIMITS

FRAMES: dict[str, str] = {}

# Whether a limit of units of work is told that is out of range.
LIMITS_ARE_WRONG = " ".join(
    f"OR coalesce(CAST(get_json_object(settings, '$.{one}') AS BIGINT)"
    f" NOT BETWEEN 0 AND {limits.TIMING_MS_MAX}, FALSE)"
    for one in UNIT_LIMITS
)
MODES = "'AUTO', 'CLIENT', 'DUPS_OK', 'INDIVIDUAL', 'TRANSACTED'"
# What each Open finds: its connection, and the connection that has its client id, as the first
# session of each brought them.
FRAMES["log_reasons"] = f"""
WITH
first AS (
    SELECT queue_manager, session AS position, struct(connection, lane, client_id, takeover,
        connection_ended_at AS ended_at, connection_ended_due AS ended_due) AS made
    FROM {{sessions}} WHERE session = connection_opened_at
),
found AS (
    SELECT entry.*, lower(hex(entry.takeover)) AS token,
        last(made, TRUE) OVER (PARTITION BY queue_manager, entry.connection ORDER BY position
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS own,
        last(made, TRUE) OVER (PARTITION BY queue_manager, entry.client_id ORDER BY position
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS holder
    FROM {{operations}} AS entry LEFT JOIN first USING (queue_manager, position)
    WHERE session IS NULL
),
standing AS (
    SELECT *,
        own IS NOT NULL AND (own.ended_at IS NULL OR own.ended_at > position
            OR own.ended_at = position AND NOT own.ended_due) AS has_connection,
        client_id <> '' AND holder IS NOT NULL AND (holder.ended_at IS NULL
            OR holder.ended_at > position OR holder.ended_at = position AND NOT holder.ended_due)
            AS is_held
    FROM found
)
SELECT queue_manager, position, FALSE AS late, CASE kind
    WHEN 'Unreadable' THEN reason
    WHEN 'TimeAgreed' THEN IF(CAST(number AS DECIMAL(20, 0)) - append_time_us
        BETWEEN -{limits.TIME_AGREEMENT_US} AND {limits.TIME_AGREEMENT_US}, NULL, 'time-disagrees')
    WHEN 'VersionOffered' THEN IF(number BETWEEN 1 AND {limits.VERSION_MAX},
        NULL, 'version-invalid')
    WHEN 'PositionsSkipped' THEN CASE
        WHEN {names_nobody("actor", "why")} THEN 'reason-invalid'
        WHEN NOT (0 <= range_first[0] AND range_first[0] <= range_last[0]
            AND range_last[0] < position) THEN 'selection-invalid' END
    WHEN 'Open' THEN CASE
        WHEN acknowledge_mode NOT IN ({MODES}) THEN 'mode-unknown'
        WHEN suspect_timeout_ms
                NOT BETWEEN {limits.SUSPECT_TIMEOUT_MS_MIN} AND {limits.SUSPECT_TIMEOUT_MS_MAX}
            OR redelivery_delay_ms NOT BETWEEN 0 AND {limits.TIMING_MS_MAX}
            {LIMITS_ARE_WRONG}
            OR lane NOT BETWEEN 0 AND {limits.LANE_MAX}
            OR client_id <> '' AND NOT {is_name("client_id")}
            OR number > {limits.CLIENT_CHARACTERS_MAX}
            OR has_connection AND (own.lane <> lane OR own.client_id <> client_id)
            THEN 'setting-invalid'
        WHEN NOT has_connection AND is_held AND (token = '' OR token <> holder.takeover)
            THEN 'client-id-in-use' END
    END AS due
FROM standing
"""
