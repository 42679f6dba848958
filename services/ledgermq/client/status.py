"""Statuses as administration reads them: one record per kind of answer (PROTOCOL.md §9)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ledgermq.client.message import datetime_from
from ledgermq.client.questions import Answer

__all__ = ["CheckpointStatus", "QueueManagerStatus", "QueueStatus", "SessionStatus"]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueStatus:
    """One queue at one log position; current + pending = message_count + uncommitted_puts.

    Attributes:
        position: Log position that this is true at.
        receivers: Open consumers.
        current: Messages available.
        pending: Uncommitted puts, unacknowledged and uncommitted gets together.
        min_sequence: Number of the first unconsumed message, or the next number without any.
        max_sequence: Number of the last unconsumed message, or the next number without any.
        first_enqueued_at: When that first one was numbered; None: the queue never held any.
    """

    name: str
    position: int
    created_position: int
    description: str
    message_bytes_max: int
    suspended: bool
    receivers: int
    message_count: int
    sent_and_committed: int
    removed_by_administration: int
    min_sequence: int
    max_sequence: int
    next_sequence: int
    first_enqueued_at: datetime | None
    last_enqueued_at: datetime | None
    current: int
    pending: int
    uncommitted_puts: int
    unacknowledged: int
    uncommitted_gets: int

    @classmethod
    def from_document(cls, position: int, document: dict[str, Any]) -> QueueStatus:
        """From the worker's document."""
        times = {
            name: None if document[name] is None else datetime_from(document[name])
            for name in ("first_enqueued_at", "last_enqueued_at")
        }
        return cls(**_known(cls, {**document, **times, "position": position}))


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueManagerStatus:
    """A queue manager as a whole; `time` is log time, None before the first entry."""

    name: str
    position: int
    time: datetime | None
    version: int
    automatic_creation: bool
    queues: int
    connections: int
    sessions: int
    worker: str

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> QueueManagerStatus:
        """From the worker's document."""
        time = document["time"]
        known = time is not None and time >= 0
        return cls(**_known(cls, {**document, "time": datetime_from(time) if known else None}))


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionStatus:
    """An open session, named by its handle."""

    session: int
    connection: str
    acknowledge_mode: str
    suspected: bool
    consumers: int
    in_flight: int
    open_puts: int
    last_sequence: int

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> SessionStatus:
        """From the worker's document."""
        return cls(**_known(cls, document))


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointStatus:
    """A durable checkpoint: the live state, named by its digest."""

    position: int
    digest: str
    manifest: Any

    @classmethod
    def from_answer(cls, answer: Answer) -> CheckpointStatus:
        """From the worker's answer."""
        return cls(**_known(cls, answer.document))


def _known(kind: Any, document: dict[str, Any]) -> dict[str, Any]:
    """The fields this version knows; a newer worker may tell more."""
    return {name: document[name] for name in kind.__dataclass_fields__}
