"""Flat typed rows of outcomes: one each, those of a Delivered with its messages as lists."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from pyspark.sql import types as t

from ledgermq.protocol import outcomes as out
from ledgermq_spark.log.headers import content_digest, group_text, origin_text
from ledgermq_spark.log.rows import BYTES, FLAG, LONG, LONGS, TEXT, TEXTS

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


# Fields of a message that is delivered, and the lists that have them.
OF_MESSAGES: Final = (
    ("sequence", "sequences"),
    ("put_position", "put_positions"),
    ("put_index", "put_indexes"),
    ("message_id", "message_ids"),
    ("priority", "priorities"),
    ("persistent", "persistent"),
    ("backout_count", "backout_counts"),
    ("enqueued_at", "enqueued_ats"),
)
_NAMES: Final = tuple(name for name, _ in OUTCOME_COLUMNS)


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
    kind = type(outcome)
    told = {
        "position": outcome.position,
        "index": outcome.index,
        "connection": connection,
        "lane": lane,
        "previous_position": previous[0],
        "previous_index": previous[1],
        "kind": kind.__name__,
        "session": outcome.session,  # type: ignore[attr-defined]
    }
    if isinstance(outcome, out.Reply):
        told["session_sequence"] = outcome.session_sequence
    told |= _SAID[kind](outcome)
    if isinstance(outcome, out.Delivered) and with_content:
        told["content_digests"] = [
            content_digest(one["content"], one.get("header")) for one in outcome.messages
        ]
    return tuple(map(told.get, _NAMES))


Said = dict[str, Any]


def _committed(one: out.Committed) -> Said:
    runs = one.enqueued
    return {
        "number": one.consumed,
        "count": sum(run["count"] for run in runs),
        "runs": ", ".join(
            f"{run['destination']} {run['first_sequence']}+{run['count']}" for run in runs
        ),
    }


def _returned(one: out.Returned | out.SessionEnded) -> Said:
    return {"number": one.returned, "count": one.discarded}


def _refused(one: out.Refused) -> Said:
    return {"reason": one.reason, "detail": one.detail, "number": one.expected_sequence}


def _delivered(one: out.Delivered) -> Said:
    messages = one.messages
    return {
        "consumer": one.consumer,
        "destination": one.destination,
        "first_delivery": one.first_delivery,
        "in_doubt": one.in_doubt,
        **{
            column: [message[name] for message in messages]  # type: ignore[literal-required]
            for name, column in OF_MESSAGES
        },
        **_groups(messages),
    }


def _groups(messages: Sequence[out.DeliveredMessage]) -> Said:
    """Where they stand in groups, the offsets of segments, and where each was before.

    Null where there is nothing of the kind.
    """
    headers = [one.get("header") for one in messages]
    groups = [None if one is None else one.get("group") for one in headers]
    origins = [None if one is None else origin_text(one.get("origin")) for one in headers]
    told: Said = {}
    if any(one is not None for one in groups):
        told["groups"] = [group_text(one) for one in groups]
        told["offsets"] = [0 if one is None else one["offset"] for one in groups]
    if any(one is not None for one in origins):
        told["origins"] = origins
    return told


# What each kind says besides its place and its session.
_SAID: Final[dict[type, Callable[[Any], Said]]] = {
    out.Opened: lambda one: {"session_key": one.session_key},
    out.Accepted: lambda one: {"reason": one.warning or None},
    out.Enqueued: lambda one: {
        "reason": one.warning or None,
        "number": one.first_sequence,
        "count": one.count,
    },
    out.Committed: _committed,
    out.Administered: lambda one: {"number": one.affected, "count": one.skipped},
    out.Returned: _returned,
    out.SessionEnded: lambda one: _returned(one) | {"reason": one.reason},
    out.Refused: _refused,
    out.Suspected: lambda one: {"number": one.deadline},
    out.Delivered: _delivered,
}
