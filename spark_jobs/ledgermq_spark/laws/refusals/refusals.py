"""Law M: what is refused is refused for the first reason that applies, and nothing else is."""

from __future__ import annotations

from typing import Final

from ledgermq.protocol.reasons import Reason
from ledgermq_spark.laws.law import Breach, Law

# Reasons that are not judged both ways, and why not. Where one of them is told and may apply, what
# comes behind it on its page is not asked.
QUESTION: Final = "it answers a question, which is on no log"
NOT_JUDGED: Final[dict[Reason, str]] = {
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
IN_PART: Final[dict[Reason, str]] = {
    Reason.QUOTA_EXCEEDED: "how much is there where a Put comes is what law K asks",
    Reason.TRANSACTION_TOO_LARGE: "the number of destinations is believed",
    Reason.SOURCES_FULL: "it is judged, and no log of the tests has so many sources",
    Reason.CREDIT_INVALID: "whose logical messages come for one credit is believed",
}
REFUSED: Final = """
SELECT queue_manager, shows_at AS position, -1 AS store, -1 AS sequence, session, concat_ws(' ',
    IF(kind LIKE 'A%' OR kind LIKE 'E%' OR kind LIKE 'O%' OR kind LIKE 'Un%', 'an', 'a'), kind,
    CASE WHEN due IS NULL THEN 'was refused without cause'
        WHEN told IS NULL THEN 'was not refused though there was a reason'
        ELSE 'was refused for another reason than the first that applies' END) AS summary,
    coalesce(due, 'nothing') AS expected, coalesce(told, 'nothing') AS found
FROM {verdicts} WHERE NOT due <=> told
"""
SILENT: Final = """
SELECT queue_manager, shows_at AS position, -1 AS store, -1 AS sequence, session,
    concat('nobody answered this ', kind) AS summary, 'an answer' AS expected, 'none' AS found
FROM {verdicts} WHERE is_silent
"""
LAW: Final = Law(
    letter="M",
    sentence="An operation is refused for the first reason that applies to it where it stands, "
    "and done if none does.",
    breaches=(Breach("altered outcome", REFUSED), Breach("lost", SILENT)),
)
