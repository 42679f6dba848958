"""Frames of law M: what is due to each operation, and what it was told."""

from __future__ import annotations

from typing import Final

from ledgermq_spark.laws.refusals import (
    consumer_reasons,
    destination_reasons,
    log_reasons,
    manual_reasons,
    put_reasons,
    session_reasons,
    unit_frames,
)

# By group, the first reason that applies to each operation, or null: `late` where it is asked again
# of what waited, as it stood when it was answered.
REASONS: Final = {
    "log_reasons": log_reasons.DUE,
    "settling_reasons": session_reasons.SETTLING,
    "opening_reasons": consumer_reasons.OPENING,
    "unsubscribing_reasons": consumer_reasons.UNSUBSCRIBING,
    "getting_reasons": consumer_reasons.GETTING,
    "putting_reasons": put_reasons.PUTTING,
    "making_reasons": destination_reasons.MAKING,
    "deleting_reasons": destination_reasons.DELETING,
    "binding_reasons": destination_reasons.BINDING,
    "managing_reasons": destination_reasons.MANAGING,
    "handling_reasons": manual_reasons.HANDLING,
    "correcting_reasons": manual_reasons.CORRECTING,
    "ending_reasons": manual_reasons.ENDING,
    "relocating_reasons": manual_reasons.RELOCATING,
    "journal_reasons": manual_reasons.JOURNAL,
    "upgrading_reasons": manual_reasons.UPGRADING,
}
# Everything that may be refused: what is due (null: nothing refuses it) and what was told, which
# shows where it was.
VERDICTS: Final = f"""
WITH
refused AS (
    SELECT queue_manager, position, max(IF(kind = 'Refused', reason, NULL)) AS reason,
        TRUE AS is_answered
    FROM {{outcomes}} WHERE kind = 'Opened' OR kind = 'Refused' AND session = -1
    GROUP BY queue_manager, position
),
asked AS (
    SELECT queue_manager, position, FALSE AS late, position AS shows_at, one.session, kind,
        told_reason AS told,
        told IS NULL AND conduct <> 'waits' AND NOT (conduct = 'next'
            AND (kind = 'Put' AND number > 0 OR kind = 'Commit' AND waiting_puts > 0)) AS is_silent
    FROM {{conduct}} AS one LEFT JOIN (
        SELECT queue_manager, position, waiting_puts FROM {{units}} WHERE NOT late
    ) USING (queue_manager, position)
    UNION ALL
    SELECT queue_manager, position, TRUE, replied_at, session, kind, first_reason, FALSE
    FROM {{conduct}} WHERE is_applied AND replied_at > position
    UNION ALL
    SELECT queue_manager, position, FALSE, position, -1, kind, refused.reason,
        kind = 'Open' AND is_answered IS NULL
    FROM (SELECT queue_manager, position, kind FROM {{operations}} WHERE session IS NULL)
    LEFT JOIN refused USING (queue_manager, position)
),
due AS (
    SELECT queue_manager, position, FALSE AS late, CASE conduct WHEN 'again' THEN first_reason
        WHEN 'waits' THEN told_reason ELSE conduct END AS due
    FROM {{conduct}} WHERE conduct <> 'next'
    UNION ALL
    {" UNION ALL ".join(f"SELECT * FROM {{{name}}}" for name in REASONS)}
)
SELECT queue_manager, position, late, shows_at, session, kind, due, told, is_silent
FROM asked LEFT JOIN due USING (queue_manager, position, late)
"""
FRAMES: Final = {
    **unit_frames.FRAMES,
    **session_reasons.FRAMES,
    **consumer_reasons.FRAMES,
    **destination_reasons.FRAMES,
    **REASONS,
    "verdicts": VERDICTS,
}
