"""What administrators did to messages, units of work and sessions: who asked for it, and why."""

from __future__ import annotations

from typing import Any, Final

from ledgermq_spark.laws.facts import Facts
from ledgermq_spark.tables.traffic import LISTED_MAX

# Corrections first: they are few, and none may be missing for many purges. What was carried into a
# stretch was done in one before it.
BY_HAND: Final = f"""
SELECT replied_at AS position, kind AS operation, target AS queue, number, action,
    coalesce(actor, get_json_object(settings, '$.actor')) AS actor,
    coalesce(why, get_json_object(settings, '$.reason')) AS reason,
    get_json_object(settings, '$.selection.source') AS source,
    nullif(get_json_object(settings, '$.selection.subscription'), '') AS subscription,
    nullif(get_json_object(settings, '$.selection.selector'), '') AS selector,
    IF(get_json_object(settings, '$.to_origin') = 'true', 'where each came from',
        get_json_object(settings, '$.target')) AS target,
    IF(reply = 'Administered', reply_number, NULL) AS messages,
    count(*) OVER () AS in_all, count(IF(kind = 'Correct', 1, NULL)) OVER () AS corrections_in_all
FROM {{applied}} LEFT JOIN {{since}} AS begin USING (queue_manager)
WHERE replied_at > coalesce(begin.position, -1) AND reply <> 'Refused' AND kind IN (
    'Correct', 'PurgeQueue', 'DeleteMessages', 'MoveMessages', 'CopyMessages',
    'RollbackTransaction', 'EndSession')
ORDER BY kind <> 'Correct', replied_at LIMIT {LISTED_MAX}
"""
DONE: Final = {
    "PurgeQueue": "purged",
    "DeleteMessages": "deleted",
    "MoveMessages": "moved",
    "CopyMessages": "copied",
    "RollbackTransaction": "unit of work rolled back",
    "EndSession": "session ended",
}
Told = list[dict[str, Any]]


def done_by_hand(facts: Facts) -> tuple[Told, Told, dict[str, int]]:
    """Corrections, and all else that was done by hand, with actor and reason, as the log has it.

    The first so many, and how many there are of both. Of messages that were handled: from where
    (`source`), those that which selector chose, to where (`target`), how many. One call of an
    administrator may be several operations.
    """
    corrections, others = [], []
    in_all = {"corrections": 0, "by_hand": 0}
    for one in facts.rows(BY_HAND):
        repaired = one["corrections_in_all"]
        in_all = {"corrections": repaired, "by_hand": one["in_all"] - repaired}
        told = {name: one[name] for name in ("position", "actor", "reason")}
        if one["operation"] == "Correct":
            given = {"queue": one["queue"], "sequence": one["number"], "action": one["action"]}
            corrections.append(told | given)
            continue
        names = ("source", "subscription", "selector", "target", "messages")
        handled = one["source"] is not None
        others.append(
            told
            | {"done": DONE[one["operation"]], "session": None if handled else one["number"]}
            | {name: one[name] for name in names}
        )
    return corrections, others, in_all
