"""Operations by hand: on messages, and which they mean (PROTOCOL.md §17); on the journal (§21)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

from ledgermq.core.operations import SessionOperation

__all__ = [
    "BackUpJournal",
    "CopyMessages",
    "DeleteMessages",
    "HandlingOperation",
    "MessageSelection",
    "MoveMessages",
    "PurgeQueue",
    "SequenceRange",
]


class SequenceRange(TypedDict):
    """Sequence numbers, first to last, both included."""

    first: int
    last: int


class MessageSelection(TypedDict):
    """Messages of a queue or subscription, by selector and by number."""

    source: str
    subscription: str
    client_id: str
    durable: bool
    selector: str
    sequences: list[SequenceRange]
    after_sequence: int
    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlingOperation(SessionOperation):
    """What the operations by hand have in common: which messages, who asked for it, and why."""

    selection: MessageSelection
    actor: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgeQueue(HandlingOperation):
    """Removes the messages of a queue or subscription."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteMessages(HandlingOperation):
    """Removes messages that are named by selector or number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveMessages(HandlingOperation):
    """Moves messages to a destination, or each back to the one that it came from."""

    target: str = ""
    to_origin: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyMessages(HandlingOperation):
    """Puts copies of messages to a destination."""

    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BackUpJournal(SessionOperation):
    """Tells that the journal was archived up to a position, and what stays in it (DB-19)."""

    actor: str
    reason: str
    through: int
    kept_from: int
    needed_from: int
