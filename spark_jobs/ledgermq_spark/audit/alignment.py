"""Whether log and lanes speak of the same entries: an operation that is answered must be there.

Replies carry the session and session sequence number of their operation, and Opened its session
key, so a missing operation shows even where the log was written anew without it and all positions
above moved down.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from ledgermq_spark.audit.findings.evidence import MESSAGES_NAMED_MAX, Evidence, hexadecimal
from ledgermq_spark.laws.engines.engine import Frame, Rows
from ledgermq_spark.pages.page import counted

# Operations by their session and number, Opens by their key, so that a moved session still matches.
SENT: Final = """
SELECT session, session_key, number, count(DISTINCT position) AS sent_times,
    min(position) AS sent_at
FROM (
    SELECT session, '' AS session_key, session_sequence AS number, position FROM {rows}
    WHERE session IS NOT NULL
    UNION ALL
    SELECT -1, hex(session_key), 0, position FROM {rows} WHERE kind = 'Open'
)
GROUP BY session, session_key, number
"""
# What the lanes answer, by the same, with what was sent.
ANSWERED: Final = """
WITH
replies AS (
    SELECT session, '' AS session_key, session_sequence AS number, position, kind FROM {rows}
    WHERE session_sequence > 0
        AND kind IN ('Accepted', 'Enqueued', 'Committed', 'Returned', 'SessionEnded', 'Refused')
        AND coalesce(reason, '') NOT IN ('record-empty', 'record-unreadable', 'schema-unknown',
            'version-inactive', 'timestamp-untrusted', 'time-disagrees')
    UNION ALL
    SELECT -1, hex(session_key), 0, position, kind FROM {rows} WHERE kind = 'Opened'
),
answered AS (
    SELECT session, session_key, number, count(DISTINCT position) AS times,
        min(position) AS answered_at, min(kind) AS kind
    FROM replies GROUP BY session, session_key, number
)
SELECT * FROM answered LEFT JOIN {sent} USING (session, session_key, number)
"""
SINGLE: Final = "times = 1 AND sent_times = 1"
FIRST_MOVED: Final = f"""
SELECT * FROM {{rows}} WHERE {SINGLE} AND answered_at <> sent_at ORDER BY sent_at LIMIT 1
"""
STILL_THERE: Final = f"""
SELECT sent_at FROM {{{{rows}}}} WHERE {SINGLE} AND answered_at = sent_at AND sent_at > {{sent_at}}
LIMIT 1
"""
FIRST_ABSENT: Final = """
SELECT * FROM {{rows}} WHERE sent_at IS NULL AND answered_at >= {since}
ORDER BY answered_at LIMIT 1
"""
DELIVERED: Final = """
SELECT session, position, destination, first_delivery + at AS delivery,
    put_positions[at] AS put_position, put_indexes[at] AS put_index, message_id
FROM (SELECT * FROM {rows} WHERE kind = 'Delivered')
    LATERAL VIEW posexplode(message_ids) AS at, message_id
"""
# Deliveries of a session that no operation on the log names as consumed.
HELD: Final = """
WITH settled AS (
    SELECT first, range_last[at] AS last
    FROM (
        SELECT * FROM {{settled}} WHERE kind IN ('Acknowledge', 'Commit') AND session = {session}
    )
        LATERAL VIEW posexplode(range_first) AS at, first
)
SELECT * FROM {{rows}} LEFT ANTI JOIN settled ON delivery BETWEEN first AND last
WHERE session = {session} AND position < {at}
"""

# The first messages of some deliveries, each once.
FIRST_NAMED: Final = f"""
SELECT message_id, destination, count(*) OVER () AS in_all
FROM (
    SELECT message_id, min(destination) AS destination, min(struct({{order}})) AS place
    FROM {{{{rows}}}} GROUP BY message_id
)
ORDER BY place LIMIT {MESSAGES_NAMED_MAX}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alignment:
    """Missing operations, and the first position above which log and lanes cannot be compared."""

    evidence: list[Evidence] = field(default_factory=list)
    comparable_until: int | None = None


def alignment(operations: Frame, recorded: Frame, end: int) -> Alignment:
    """Find out whether entries are missing on the log below `end`, the position after its last.

    They are if from some position on every answer stands elsewhere than its operation, or if the
    lanes answer what would lie beyond the end. One odd outcome among others that fit is not that.
    """
    answered = recorded.ask(ANSWERED, sent=operations.ask(SENT))
    first_moved = answered.rows(FIRST_MOVED)
    if first_moved:
        row = first_moved[0]
        if not answered.rows(STILL_THERE.format(sent_at=row["sent_at"])):
            absent = answered.rows(FIRST_ABSENT.format(since=0))
            return _misaligned(operations, recorded, absent, row)
    beyond = answered.rows(FIRST_ABSENT.format(since=end))
    if beyond:
        return Alignment(
            evidence=[_missing(operations, recorded, beyond[0])], comparable_until=end - 1
        )
    return Alignment()


def _misaligned(operations: Frame, recorded: Frame, absent: Rows, moved: Any) -> Alignment:
    last = max(moved["sent_at"], moved["answered_at"])
    near = [row for row in absent if row["answered_at"] <= last]
    if near:
        first = min(near[0]["answered_at"], moved["sent_at"])
        return Alignment(
            evidence=[_missing(operations, recorded, near[0])], comparable_until=first - 1
        )
    first = min(moved["sent_at"], moved["answered_at"])
    return Alignment(evidence=[_displaced(moved, first)], comparable_until=first - 1)


def _missing(operations: Frame, recorded: Frame, row: Any) -> Evidence:
    """An operation that the lanes answer but that is not on the log, with the messages it meant."""
    at = row["answered_at"]
    what = "the Open" if row["number"] == 0 else f"operation {row['number']}"
    messages, queue, how = _messages_of(operations, recorded, row)
    return Evidence(
        kind="gap",
        source="operations",
        summary=f"{what} of a session is answered on the lanes but is not on the log{how}",
        queue=queue,
        message_id=", ".join(messages),
        position=at,
        session=row["session"],
        expected=f"the operation that the {row['kind']} at {at} answers",
        found="no such operation",
    )


def _messages_of(operations: Frame, recorded: Frame, row: Any) -> tuple[list[str], str, str]:
    """Messages that the missing operation put, else those that its session may have settled."""
    at, session = row["answered_at"], row["session"]
    each = recorded.ask(DELIVERED)
    put = _named(each.where(f"put_position = {at}"), "put_position, put_index")
    if put:
        names, queue, others = put
        return names, queue, f"; it put these messages{others}"
    if row["kind"] in ("Accepted", "Committed", "Returned", "SessionEnded"):
        held = _named(each.ask(HELD.format(session=session, at=at), settled=operations), "delivery")
        if held:
            names, queue, others = held
            how = "; its session held these messages, oldest first, and settles them nowhere"
            return names, queue, how + others
    return [], "", ""


def _named(frame: Frame, order: str) -> tuple[list[str], str, str] | None:
    """The first messages of deliveries, where these were, and how many others there are."""
    rows = frame.rows(FIRST_NAMED.format(order=order))
    if not rows:
        return None
    more = rows[0]["in_all"] - len(rows)
    names = [hexadecimal(row["message_id"]) for row in rows]
    others = f" (and {counted(more, 'messages')} more)" if more else ""
    return names, rows[0]["destination"].removeprefix("queue:"), others


def _displaced(row: Any, first: int) -> Evidence:
    by = row["answered_at"] - row["sent_at"]
    return Evidence(
        kind="gap",
        source="operations",
        summary="from here on the lanes answer entries at other positions than the log has them: "
        + ("entries are missing on the log" if by > 0 else "the log has entries too many"),
        position=first,
        session=row["session"],
        expected=f"position {row['answered_at']}, where its {row['kind']} says it stood",
        found=f"position {row['sent_at']}",
    )
