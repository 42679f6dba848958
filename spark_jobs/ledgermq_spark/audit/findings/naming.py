"""Names the messages that an anomaly concerns, where what was found does not name them."""

from __future__ import annotations

from dataclasses import replace

from ledgermq_spark.audit.findings.evidence import MESSAGES_NAMED_MAX, Evidence, hexadecimal
from ledgermq_spark.laws.facts import Facts
from ledgermq_spark.pages.page import counted

SOURCES = ("outcomes", "laws")
# Messages that moved at some positions, in the order in which they were put.
MOVED_AT = """
SELECT DISTINCT position, destination, message_id, put_position, put_index
FROM {{moves}} JOIN {{puts}} USING (queue_manager, put_position, put_index)
WHERE position IN ({positions})
ORDER BY put_position, put_index
"""

Named = dict[int, list[tuple[str, str]]]


def name_messages(anomalies: list[Evidence], facts: Facts) -> list[Evidence]:
    """Add the messages that were put, numbered, settled or delivered at an anomaly's position."""
    nameless = {
        one.position
        for one in anomalies
        if not one.message_id and one.position >= 0 and one.source in SOURCES
    }
    if not nameless:
        return anomalies
    known = _messages_at(facts, nameless)
    return [
        _with_names(one, known.get(one.position, []))
        if not one.message_id and one.source in SOURCES
        else one
        for one in anomalies
    ]


def _with_names(one: Evidence, messages: list[tuple[str, str]]) -> Evidence:
    if not messages:
        return one
    named = messages[:MESSAGES_NAMED_MAX]
    more = len(messages) - len(named)
    summary = one.summary + (f" (and {counted(more, 'messages')} more)" if more > 0 else "")
    queue = one.queue or named[0][0]
    return replace(
        one, summary=summary, queue=queue, message_id=", ".join(message for _, message in named)
    )


def _messages_at(facts: Facts, positions: set[int]) -> Named:
    """Messages by position, each once."""
    found: Named = {}
    text = MOVED_AT.format(positions=", ".join(map(str, sorted(positions))))
    for row in facts.rows(text):
        named = found.setdefault(row["position"], [])
        message = (row["destination"].removeprefix("queue:"), hexadecimal(row["message_id"]))
        if message not in named:
            named.append(message)
    return found
