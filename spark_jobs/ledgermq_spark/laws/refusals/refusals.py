"""Law M: what is refused is refused for the first reason that applies, and nothing else is."""

from ledgermq.protocol.reasons import Reason
from ledgermq_spark.laws.law import Law, altered_outcome, lost
from ledgermq_spark.laws.refusals import (
    consumer_reasons,
    destination_reasons,
    log_reasons,
    manual_reasons,
    put_reasons,
    session_reasons,
    unit_frames,
)

FRAMES: dict[str, str] = {
    **log_reasons.FRAMES,
    **unit_frames.FRAMES,
    **session_reasons.FRAMES,
    **consumer_reasons.FRAMES,
    **put_reasons.FRAMES,
    **destination_reasons.FRAMES,
    **manual_reasons.FRAMES,
}
# By group, the first reason that applies to each operation, or null: `late` where it is asked again
# of what waited, as it stood when it was answered.
REASONS = [name for name in FRAMES if name.endswith("_reasons")]

# Everything that may be refused: what is due (null: nothing refuses it) and what was told, which
# shows where it was.
FRAMES["verdicts"] = f"""
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
# Reasons that are not judged both ways, and why not. Where one of them is told and may apply, what
# comes behind it on its page is not asked.
QUESTION = "it answers a question, which is on no log"
NOT_JUDGED = {
    Reason.ANSWER_EXPIRED: QUESTION,
    Reason.ANSWER_TOO_LARGE: QUESTION,
    Reason.GROUP_UNKNOWN: QUESTION,
    Reason.KIND_UNKNOWN: QUESTION,
    Reason.POSITION_NOT_REACHED: QUESTION,
    Reason.QUESTION_FAILED: QUESTION,
    Reason.QUEUE_MANAGER_STOPPED: QUESTION,
    Reason.GROUP_CLASH: "it rests on the members of a group in their order; law F has that",
    Reason.UNIT_OF_WORK_INCONSISTENT: "it rests on the members of a group; law F has those",
    Reason.MATCH_OPTIONS_INVALID: "it rests on the place of a consumer in a group; law F has that",
    Reason.OUT_OF_TURN: "it rests on the order in which messages were received; law F has that",
    Reason.STORAGE_FULL: "it rests on the segments of the storage; law K has those",
}
# Judged in part: what is more than a quota by itself, and that there is a quota at all; how much is
# there at a Put is what law K asks. A late answer to a Put is believed where its page has it.
IN_PART = {
    Reason.QUOTA_EXCEEDED: "how much is there where a Put comes is what law K asks",
    Reason.TRANSACTION_TOO_LARGE: "the number of destinations is believed",
    Reason.SOURCES_FULL: "it is judged, and no log of the tests has so many sources",
    Reason.CREDIT_INVALID: "whose logical messages come for one credit is believed",
}
REFUSED = altered_outcome("""
SELECT queue_manager, shows_at AS position, -1 AS store, -1 AS sequence, session, concat_ws(' ',
    IF(kind LIKE 'A%' OR kind LIKE 'E%' OR kind LIKE 'O%' OR kind LIKE 'Un%', 'an', 'a'), kind,
    CASE WHEN due IS NULL THEN 'was refused without cause'
        WHEN told IS NULL THEN 'was not refused though there was a reason'
        ELSE 'was refused for another reason than the first that applies' END) AS summary,
    coalesce(due, 'nothing') AS expected, coalesce(told, 'nothing') AS found
FROM {verdicts} WHERE NOT due <=> told
""")
SILENT = lost("""
SELECT queue_manager, shows_at AS position, -1 AS store, -1 AS sequence, session,
    concat('nobody answered this ', kind) AS summary, 'an answer' AS expected, 'none' AS found
FROM {verdicts} WHERE is_silent
""")
LAW = Law(
    letter="M",
    sentence="An operation is refused for the first reason that applies to it where it stands, "
    "and done if none does.",
    breaches=(REFUSED, SILENT),
)
