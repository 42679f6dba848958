"""Flat typed rows of outcomes: one each, those of a Delivered with its messages as lists."""

from __future__ import annotations

from typing import Any

from pyspark.sql import types as t

from ledgermq.protocol import outcomes as out
from ledgermq_spark.log.headers import content_digest, group_columns
from ledgermq_spark.log.rows import BYTES, FLAG, LONG, LONGS, TEXT, TEXTS

_NOTHING = (None,) * 40

OUTCOME_COLUMNS: tuple[tuple[str, t.DataType], ...] = (
    ("position", LONG),
    ("index", LONG),
    ("connection", BYTES),
    ("lane", LONG),
    ("previous_position", LONG),
    ("previous_index", LONG),
    ("kind", TEXT),
    ("session", LONG),
    ("session_sequence", LONG),
    ("reason", TEXT),
    ("detail", TEXT),
    ("number", LONG),
    ("count", LONG),
    ("session_key", BYTES),
    ("runs", TEXT),
    ("consumer", LONG),
    ("destination", TEXT),
    ("first_delivery", LONG),
    ("sequences", LONGS),
    ("put_positions", LONGS),
    ("put_indexes", LONGS),
    ("message_ids", t.ArrayType(BYTES)),
    ("priorities", LONGS),
    ("persistent", t.ArrayType(FLAG)),
    ("backout_counts", LONGS),
    ("enqueued_ats", LONGS),
    ("content_digests", LONGS),
    ("in_doubt", FLAG),
    ("groups", TEXTS),
    ("offsets", LONGS),
    ("origins", TEXTS),
)


def outcome_row(
    outcome: out.Outcome,
    connection: bytes | None,
    lane: int,
    previous: tuple[int, int],
    *,
    with_content: bool,
) -> tuple[Any, ...]:
    """The row of one outcome; `number`, `count` and `runs` mean what the kind has a use for.

    Accepted and Enqueued: a warning as reason. Enqueued: first sequence number, count. Committed:
    consumed, messages numbered, its runs as text. Administered: affected, skipped. Returned and
    SessionEnded: returned, discarded.
    Refused: the sequence expected. Suspected: the deadline. Opened: nothing beyond its key.
    """
    head = (outcome.position, outcome.index, connection, lane, *previous)
    if isinstance(outcome, out.Delivered):
        return (
            *head,
            "Delivered",
            outcome.session,
            *_NOTHING[:7],
            *_delivered(outcome, with_content),
        )
    key = reason = detail = number = count = runs = sequence = None
    session = outcome.session  # type: ignore[attr-defined]
    if isinstance(outcome, out.Reply):
        sequence = outcome.session_sequence
    if isinstance(outcome, out.Accepted | out.Enqueued):
        reason = outcome.warning or None
    if isinstance(outcome, out.Enqueued):
        number, count = outcome.first_sequence, outcome.count
    elif isinstance(outcome, out.Committed):
        number = outcome.consumed
        count = sum(run["count"] for run in outcome.enqueued)
        runs = ", ".join(
            f"{run['destination']} {run['first_sequence']}+{run['count']}"
            for run in outcome.enqueued
        )
    elif isinstance(outcome, out.Administered):
        number, count = outcome.affected, outcome.skipped
    elif isinstance(outcome, out.Returned):
        number, count = outcome.returned, outcome.discarded
    elif isinstance(outcome, out.SessionEnded):
        reason, number, count = outcome.reason, outcome.returned, outcome.discarded
    elif isinstance(outcome, out.Refused):
        reason, detail, number = outcome.reason, outcome.detail, outcome.expected_sequence
    elif isinstance(outcome, out.Suspected):
        number = outcome.deadline
    elif isinstance(outcome, out.Opened):
        key = outcome.session_key
    told = (type(outcome).__name__, session, sequence, reason, detail, number, count, key, runs)
    return (*head, *told, *_NOTHING[:16])


def _delivered(outcome: out.Delivered, with_content: bool) -> tuple[Any, ...]:
    messages = outcome.messages
    return (
        outcome.consumer,
        outcome.destination,
        outcome.first_delivery,
        [one["sequence"] for one in messages],
        [one["put_position"] for one in messages],
        [one["put_index"] for one in messages],
        [one["message_id"] for one in messages],
        [one["priority"] for one in messages],
        [one["persistent"] for one in messages],
        [one["backout_count"] for one in messages],
        [one["enqueued_at"] for one in messages],
        [content_digest(one["content"], one.get("header")) for one in messages]
        if with_content
        else None,
        outcome.in_doubt,
        *group_columns(outcome.messages),
    )
