"""Says which anomaly a difference is, and by what the log had delivered before it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, Final

from ledgermq_spark.audit.compare import COMPARED, Differences, Row
from ledgermq_spark.audit.findings.evidence import Evidence, hexadecimal, shown
from ledgermq_spark.laws.engines.engine import Frame
from ledgermq_spark.laws.facts import Facts
from ledgermq_spark.log.outcome_rows import OF_MESSAGES
from ledgermq_spark.log.rows import LONG

PER_MESSAGE = (*OF_MESSAGES, ("origin", "origins"))
LIST_COLUMNS = tuple(column for _, column in PER_MESSAGE)
HEADER = tuple(name for name in COMPARED if name not in LIST_COLUMNS)


# Put position, put index, subscription (-1: a queue); the subscription of a session's consumer.
Identity = tuple[int, int, int]
Holders = Mapping[tuple[int, int], int]


@dataclass(frozen=True, slots=True)
class _Part:
    """One delivered message of one outcome, with the outcome that it stands in.

    `holder` is the subscription that has it (-1: a queue).
    """

    row: Row
    at: int
    holder: int

    @property
    def identity(self) -> Identity:
        return (self.row["put_positions"][self.at], self.row["put_indexes"][self.at], self.holder)

    def value(self, column: str) -> Any:
        told = self.row[column]
        return None if told is None else told[self.at]


def classify(
    found: Differences, delivered_before: set[Identity], holders: Holders
) -> list[Evidence]:
    """Say which anomaly each difference is.

    `delivered_before` holds the identities of messages that the log had delivered before the
    outcome that an extra delivery stands in: such a one is duplicated, any other unexpected.
    `holders` says which subscription a consumer (session, number) of a topic gets from.
    """
    told, lost, extra = _each(found, holders)
    told.extend(_moved(lost, extra))
    if found.others is not None:
        # What these are is not told: they are looked at for where a message went.
        _, lost_elsewhere, extra_elsewhere = _each(found.others, holders)
        told.extend(_moved(lost, extra_elsewhere))
        told.extend(_moved(lost_elsewhere, extra))
    told.extend(_delivery_lost(part) for part in lost)
    told.extend(_delivery_extra(part, part.identity in delivered_before) for part in extra)
    told.extend(_broken_chains(found))
    return told


def _each(found: Differences, holders: Holders) -> tuple[list[Evidence], list[_Part], list[_Part]]:
    """What each difference is by itself; deliveries that are missing, and that are too many."""
    told: list[Evidence] = []
    lost: list[_Part] = []
    extra: list[_Part] = []
    for row in found.missing.values():
        if row["kind"] == "Delivered":
            lost.extend(_parts(row, holders))
        else:
            summary = f"the {row['kind']} that answers this entry is not on the lanes"
            told.append(_evidence("lost", summary, row, expected=row["kind"]))
    for row in found.extra.values():
        if row["kind"] == "Delivered":
            extra.extend(_parts(row, holders))
        else:
            summary = f"a {row['kind']} is on the lanes that nothing on the log calls for"
            told.append(_evidence("unexpected", summary, row, found=row["kind"]))
    for wanted, rows in found.differing.values():
        odd = [row for row in rows if row["hash"] != wanted["hash"]]
        told.extend(_differing(wanted, odd[0], len(rows), lost, extra, holders))
    return told, lost, extra


def holder_of(row: Row, holders: Holders) -> int:
    """Which subscription the consumer of a delivery gets from; -1: it is a queue's."""
    return holders.get((row["session"], row["consumer"]), -1)


def _parts(row: Row, holders: Holders) -> list[_Part]:
    holder = holder_of(row, holders)
    return [_Part(row, at, holder) for at in range(len(row["sequences"]))]


def _evidence(
    kind: str, summary: str, row: Row, part: _Part | None = None, **told: str
) -> Evidence:
    """A finding on an outcome, or on one message in it."""
    return Evidence(
        kind=kind,
        source="outcomes",
        summary=summary,
        queue=(row["destination"] or "").removeprefix("queue:"),
        message_id=hexadecimal(part.value("message_ids")) if part else "",
        position=row["position"],
        index=row["index"],
        session=row["session"],
        **told,
    )


def _differing(
    wanted: Row,
    row: Row,
    times: int,
    lost: list[_Part],
    extra: list[_Part],
    holders: Holders,
) -> Iterable[Evidence]:
    """Evidence of an outcome that is there but unlike; parts that moved go to the two lists."""
    again = f" (one of {times} records of it)" if times > 1 else ""
    if wanted["kind"] == row["kind"] == "Committed" and any(
        wanted[name] != row[name] for name in ("runs", "number", "count")
    ):
        yield _evidence(
            "torn transaction",
            "the commit is recorded with another part of its unit of work" + again,
            wanted,
            expected=f"numbered {wanted['runs'] or 'nothing'}; consumed {wanted['number']}",
            found=f"numbered {row['runs'] or 'nothing'}; consumed {row['number']}",
        )
        return
    for name in HEADER:
        # The text of a refusal follows from its reason.
        if name == "detail" and wanted["reason"] != row["reason"]:
            continue
        if wanted[name] != row[name]:
            yield _altered(wanted, name, wanted[name], row[name], again)
    if wanted["kind"] == row["kind"] == "Delivered":
        calls, told = _parts(wanted, holders), _parts(row, holders)
        yield from _messages_differ(calls, told, again, lost, extra)


def _altered(
    row: Row, name: str, wanted: Any, found: Any, again: str, part: _Part | None = None
) -> Evidence:
    summary = f"{name} of the recorded {row['kind']} is not what the log makes it" + again
    values = {"expected": shown(wanted), "found": shown(found)}
    return _evidence("altered outcome", summary, row, part, field=name, **values)


def _messages_differ(
    calls: list[_Part],
    told: list[_Part],
    again: str,
    lost: list[_Part],
    extra: list[_Part],
) -> Iterable[Evidence]:
    before, after = [one.identity for one in calls], [one.identity for one in told]
    if before == after:
        for call, one in zip(calls, told, strict=True):
            for name, column in PER_MESSAGE:
                if call.value(column) != one.value(column):
                    values = call.value(column), one.value(column)
                    yield _altered(call.row, name, *values, again, call)
        return
    if sorted(before) == sorted(after):
        place = next(at for at, (a, b) in enumerate(zip(before, after, strict=True)) if a != b)
        yield _reordered(calls[place], told[place])
        return
    for tag, a, b, c, d in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag != "equal":
            lost.extend(calls[a:b])
            extra.extend(told[c:d])


def _reordered(call: _Part, found: _Part) -> Evidence:
    row = call.row
    same = (row["position"], row["index"]) == (found.row["position"], found.row["index"])
    what = "another message stands in its place" if same else "it was delivered elsewhere"
    summary = f"the message was not delivered in its turn: {what}"
    places = {"expected": _place(call), "found": _place(found)}
    return _evidence("reordered", summary, row, call, **places)


def _place(part: _Part) -> str:
    row = part.row
    return (
        f"message {hexadecimal(part.value('message_ids'))} as delivery "
        f"{row['first_delivery'] + part.at} of session {row['session']} at "
        f"{row['position']}:{row['index']}"
    )


def _moved(lost: list[_Part], extra: list[_Part]) -> list[Evidence]:
    """Messages that are missing in one place and too many in another; they leave both lists."""
    told = []
    by_identity = {part.identity: part for part in extra}
    for part in list(lost):
        other = by_identity.pop(part.identity, None)
        if other is None:
            continue
        lost.remove(part)
        extra.remove(other)
        told.append(_reordered(part, other))
    return told


def _delivery_lost(part: _Part) -> Evidence:
    summary = "the log delivers this message here, the lanes do not"
    return _evidence("lost", summary, part.row, part, expected=_place(part))


def _delivery_extra(part: _Part, before: bool) -> Evidence:
    kind = "duplicated" if before else "unexpected"
    why = "a message delivered before" if before else "a message that was not to be delivered"
    summary = f"the lanes deliver {why} here, the log does not"
    return _evidence(kind, summary, part.row, part, found=_place(part))


def _broken_chains(found: Differences) -> Iterable[Evidence]:
    """Chains that name another predecessor, unless that is told already."""
    for key, (expected, told) in found.chains.items():
        if expected in found.missing or told in found.extra:
            continue
        yield Evidence(
            kind="gap",
            source="outcomes",
            summary="the outcome names another one before it: the connection's chain is broken",
            position=key[0],
            index=key[1],
            field="previous",
            expected=f"{expected[0]}:{expected[1]}",
            found=f"{told[0]}:{told[1]}",
        )


# Which subscription the consumers of topics get from, as far as they got anything.
HOLDERS: Final = """
SELECT DISTINCT session, consumer, store FROM {moves}
WHERE delivery > 0 AND kind = 'subscription'
"""
# Deliveries of some messages.
DELIVERED: Final = """
SELECT position, session, consumer, put_position, put_index
FROM (
    SELECT position, session, consumer, put_position, put_indexes[at] AS put_index
    FROM (SELECT * FROM {rows} WHERE kind = 'Delivered')
        LATERAL VIEW posexplode(put_positions) AS at, put_position
)
    LEFT SEMI JOIN {suspects} USING (put_position, put_index)
"""


def holders_in(facts: Facts) -> Holders:
    """Which subscription the consumer of a session gets from."""
    rows = facts.rows(HOLDERS)
    return {(row["session"], row["consumer"]): row["store"] for row in rows}


def delivered_before(expected: Frame, found: Differences, holders: Holders) -> set[Identity]:
    """Of the messages that are delivered too often: those the log had delivered before."""
    suspects: dict[Identity, int] = {}
    rows = [*found.extra.values(), *(row for _, told in found.differing.values() for row in told)]
    for row in rows:
        holder = holder_of(row, holders)
        for put in zip(row["put_positions"] or (), row["put_indexes"] or (), strict=True):
            identity = (*put, holder)
            suspects[identity] = max(row["position"], suspects.get(identity, -1))
    if not suspects:
        return set()
    columns = (("put_position", LONG), ("put_index", LONG))
    puts = sorted({identity[:2] for identity in suspects})
    frame = expected.beside("suspects", columns, puts)
    earlier = expected.rows(DELIVERED, suspects=frame)
    called = [
        ((row["put_position"], row["put_index"], holder_of(row, holders)), row["position"])
        for row in earlier
    ]
    return {identity for identity, at in called if at <= suspects.get(identity, -1)}
