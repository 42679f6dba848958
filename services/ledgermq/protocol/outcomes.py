"""Outcomes: what the fold answers, one frozen record per kind (`ledgermq.outcome.*`).

An outcome is identified by (queue manager, position, index). The fold gives each one `Addressed`:
where it goes and which outcome of the same connection went before it, so that a reader can tell a
hole (PROTOCOL.md §7).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple, NotRequired, TypedDict

from ledgermq.protocol.operations import Group, PropertyValue


class EnqueuedRun(TypedDict):
    """Messages of one commit to one destination, numbered one after the other."""

    destination: str
    first_sequence: int
    count: int


class Origin(TypedDict):
    """Where a message was before it was moved, and why it was; `enqueued_at` in µs."""

    destination: str
    sequence: int
    reason: str
    backout_count: int
    enqueued_at: int


class DeliveredHeader(TypedDict):
    """What the sender gave beside the content, and the times in µs that came of it; -1: none."""

    properties: dict[str, PropertyValue]
    correlation_id: str | None
    type: str | None
    expires_at: int
    deliver_at: int
    group: NotRequired[Group | None]
    origin: NotRequired[Origin | None]


# Of a message that has nothing but what every message has.
EMPTY_HEADER: Final[DeliveredHeader] = {
    "properties": {},
    "correlation_id": None,
    "type": None,
    "expires_at": -1,
    "deliver_at": -1,
    "group": None,
    "origin": None,
}


class DeliveredMessage(TypedDict):
    """One message as delivered; the fold leaves `content` empty, the shell fills it in.

    `header` is left out where the sender gave nothing. `body` is for the shell: position and index
    of what was written again (H24), left out where the Put has the body.
    """

    sequence: int
    put_position: int
    put_index: int
    message_id: bytes
    priority: int
    persistent: bool
    backout_count: int
    enqueued_at: int
    content: bytes
    body: NotRequired[tuple[int, int]]
    header: NotRequired[DeliveredHeader]


def body_place(message: DeliveredMessage) -> tuple[int, int]:
    """Where the body of a message that is delivered stands in the log: position and index."""
    found = message.get("body")
    return (message["put_position"], message["put_index"]) if found is None else found


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Any outcome: its identity."""

    position: int
    index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened(Outcome):
    """A session is open."""

    session_key: bytes
    session: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply(Outcome):
    """An outcome that answers one operation of a session."""

    session: int
    session_sequence: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted(Reply):
    """The operation was applied; `warning`: the reason code of what was odd in it, if anything."""

    warning: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Enqueued(Reply):
    """A put outside a unit of work was numbered: first number, then rising by one."""

    first_sequence: int
    count: int
    warning: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Administered(Reply):
    """Messages were touched by hand: how many, and how far was looked; `more`: not to the end.

    `skipped` others are meant, but in flight or without a place to go back to; `next_sequence` was
    the next number of their queue or subscription when the operation began.
    """

    affected: int
    skipped: int
    more: bool
    last_sequence: int
    next_sequence: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed(Reply):
    """A unit of work was committed."""

    enqueued: list[EnqueuedRun]
    consumed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Returned(Reply):
    """A rollback or recover was applied, or (session sequence number 0) a unit of work timed out.

    All credit of the session is withdrawn.
    """

    returned: int
    discarded: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused(Reply):
    """The operation was refused and changed nothing; session -1 where none is known."""

    reason: str
    detail: str
    expected_sequence: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionEnded(Reply):
    """A session is over; session sequence number 0 unless it answers a Close."""

    reason: str
    returned: int
    discarded: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered(Outcome):
    """Messages for one consumer, with delivery numbers from `first_delivery` on.

    `in_doubt`: it is one that a lost session held, and the consumer gets no other for now (H20).
    """

    session: int
    consumer: int
    destination: str
    first_delivery: int
    messages: list[DeliveredMessage]
    in_doubt: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspected(Outcome):
    """The session's client was not heard of and must show itself before the deadline."""

    session: int
    deadline: int


class Addressed(NamedTuple):
    """An outcome and its place in its connection's chain.

    `connection` is None (and lane -1, previous (-1, -2)) for a refusal without a known session.
    """

    connection: bytes | None
    lane: int
    previous_position: int
    previous_index: int
    outcome: Outcome
