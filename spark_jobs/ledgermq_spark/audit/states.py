"""Compares states: the rebuilt one against the live one, and against where the moves end."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ledgermq.wire.framing.codec import decode_record
from ledgermq_spark.audit.findings.evidence import EVIDENCE_MAX, Evidence, hexadecimal, shown
from ledgermq_spark.laws.engines.engine import Given
from ledgermq_spark.laws.facts import Facts
from ledgermq_spark.rebuild.checkpoints import Checkpoint

Record = dict[str, Any]
LISTS = {
    "queues": "name",
    "topics": "name",
    "subscriptions": "created_position",
    "connections": "connection",
    "sessions": "session",
    "consumers": "consumer",
    "deliveries": "delivery",
    "open_puts": "destination",
    "messages": "put_index",
    "bonds": "bucket",
}
MESSAGE_FIELDS = (
    "put_position",
    "put_index",
    "message_id",
    "priority",
    "persistent",
    "enqueued_at",
    "backout_count",
    "uncounted_backout_count",
)
# Where the moves leave each message that is still there. What moved once it was gone breaks law A.
LEFT = """
WITH numbered AS (SELECT * FROM {moves} WHERE sequence >= 0 AND kind <> 'topic')
SELECT store AS queue_created, sequence, any_value(destination) AS destination,
    named_struct('put_position', any_value(put_position), 'put_index', any_value(put_index),
        'message_id', any_value(message_id), 'priority', any_value(priority),
        'persistent', any_value(persistent), 'enqueued_at', min(time_us),
        'backout_count', max_by(backouts, (position, step)),
        'uncounted_backout_count', max_by(uncounted, (position, step))) AS moves
FROM numbered
    LEFT ANTI JOIN (SELECT store, sequence FROM numbered WHERE after = 'gone') AS gone
        USING (store, sequence)
    JOIN {puts} USING (queue_manager, put_position, put_index)
GROUP BY store, sequence
"""
# All backouts count: -1.
STOOD = """
SELECT queue_created, sequence, queue,
    named_struct('put_position', put_position, 'put_index', put_index, 'message_id', message_id,
        'priority', priority, 'persistent', persistent, 'enqueued_at', enqueued_at,
        'backout_count', backout_count,
        'uncounted_backout_count', greatest(uncounted_backout_count, 0)) AS rebuilt
FROM {rebuilt_messages}
"""
DIFFERENT = """
SELECT * FROM {by_moves} FULL JOIN {stood} USING (queue_created, sequence)
WHERE NOT (moves <=> rebuilt)
ORDER BY queue_created, sequence LIMIT {most}
"""


class _Comparison:
    """Compares records of one source with the rebuilt ones; `position` is where both are true."""

    def __init__(self, source: str, position: int) -> None:
        self._source = source
        self._position = position

    def differs(self, where: str, field: str, expected: Any, found: Any, **named: Any) -> Evidence:
        return Evidence(
            kind="state mismatch",
            source=self._source,
            summary=f"{where}: {field} differs",
            position=self._position,
            field=field,
            expected=shown(expected),
            found=shown(found),
            **named,
        )

    def fields(
        self,
        where: str,
        names: Sequence[str],
        expected: Mapping[str, Any] | None,
        found: Mapping[str, Any] | None,
        **named: Any,
    ) -> Iterator[Evidence]:
        """Each field that differs, or the one fact that a record is absent on a side."""
        if expected is None or found is None:
            there = ("there" if expected else "absent", "there" if found else "absent")
            yield self.differs(where, "presence", *there, **named)
            return
        for name in names:
            if expected[name] != found[name]:
                yield self.differs(where, name, expected[name], found[name], **named)

    def records(
        self, where: str, mine: dict[str, Any], other: dict[str, Any]
    ) -> Iterator[Evidence]:
        """Field by field, lists of entries by their key, inside one another."""
        for name, value in mine.items():
            told = other.get(name)
            if value == told:
                continue
            if name in LISTS and isinstance(value, list) and isinstance(told, list):
                yield from self._entries(where, name, value, told)
            elif name == "replies" and isinstance(told, list):
                yield self.differs(where, "replies kept", len(value), len(told))
            else:
                yield self.differs(where, name, value, told)

    def _entries(
        self, where: str, name: str, mine: list[Any], other: list[Any]
    ) -> Iterator[Evidence]:
        key = LISTS[name]
        expected = {one[key]: one for one in mine}
        found = {one[key]: one for one in other}
        for one in dict.fromkeys([*expected, *found]):
            inner = f"{where}, {name} {shown(one)}"
            if one in expected and one in found:
                yield from self.records(inner, expected[one], found[one])
            else:
                yield from self.fields(inner, (), expected.get(one), found.get(one))


def compare_live(
    root: bytes, blocks: list[bytes], live: Checkpoint, position: int
) -> list[Evidence]:
    """Compare the rebuilt state with the live one, chunk by chunk, then field by field."""
    comparison = _Comparison("live state", position)
    told: list[Evidence] = []
    if live.root != root:
        mine = decode_record(root)[1]
        told.extend(comparison.records("the queue manager", mine, live.root_record()))
    mine_only, live_only = _unshared(blocks, live.blocks), _unshared(live.blocks, blocks)
    built, kept = _stored(mine_only), _stored(live_only)
    for key in sorted(built.keys() | kept.keys()):
        queue, _, sequence = key
        known = built.get(key) or kept[key]
        told.extend(
            comparison.fields(
                f"message {sequence} of queue {queue}",
                list(known),
                built.get(key),
                kept.get(key),
                queue=queue,
                message_id=hexadecimal(known["message_id"]),
            )
        )
    return told[:EVIDENCE_MAX]


def _unshared(mine: list[bytes], others: list[bytes]) -> list[bytes]:
    known = {hashlib.sha256(block).digest() for block in others}
    return [block for block in mine if hashlib.sha256(block).digest() not in known]


def _stored(blocks: Iterable[bytes]) -> dict[tuple[str, int, int], dict[str, Any]]:
    found = {}
    for block in blocks:
        record = decode_record(block)[1]
        for message in record["messages"]:
            found[record["queue"], record["created_position"], message["sequence"]] = message
    return found


def compare_messages(facts: Facts, rebuilt: Given, position: int) -> list[Evidence]:
    """Compare where the moves leave messages with the rebuilt ones, field by field.

    `rebuilt` has the columns queue, queue_created, sequence and those of a stored message; of a
    topic message, a row for each subscription that has it, with the creation of that.
    """
    comparison = _Comparison("moves", position)
    given = facts.engine.taken({"rebuilt_messages": rebuilt})
    stood = facts.query(STOOD, **given)
    rows = facts.rows(DIFFERENT, by_moves=facts.query(LEFT), stood=stood, most=EVIDENCE_MAX)
    told: list[Evidence] = []
    for row in rows:
        known = row["moves"] or row["rebuilt"]
        queue = row["queue"] or row["destination"].removeprefix("queue:")
        told.extend(
            comparison.fields(
                f"message {row['sequence']} of queue {queue}",
                MESSAGE_FIELDS,
                row["rebuilt"],
                row["moves"],
                queue=queue,
                message_id=hexadecimal(known["message_id"]),
            )
        )
    return told
