"""What keeps the log from being cut: the oldest live messages, as the worker tells them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ledgermq.client.questions import Answer

__all__ = ["LogPins", "Pin"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """A live message whose body stands in the log at `put_position`.

    `sequence` is -1 for an uncommitted and for a blocked put; `enqueued_at` is in µs, None for
    these; `session` is the session that holds it, -1 if none does.
    """

    destination: str
    subscription: str
    sequence: int
    message_id: str
    put_position: int
    put_index: int
    size_bytes: int
    enqueued_at: int | None
    state: str
    session: int

    @property
    def named(self) -> str:
        """The message in one phrase, for people."""
        of = f" (subscription {self.subscription})" if self.subscription else ""
        what = f"message {self.sequence} of"
        if self.sequence < 0:
            what = "a blocked put to" if self.state == "blocked put" else "an uncommitted put to"
        return f"{what} {self.destination}{of}, put at position {self.put_position}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPins:
    """The oldest live messages at a log position, oldest first.

    `journal_position` is where the journal needs the log from, None if it is empty (DB-19);
    `needed_position` the lowest position that one of all these needs, None: none does.
    """

    position: int
    needed_position: int | None
    journal_position: int | None
    pins: tuple[Pin, ...]

    @classmethod
    def from_answer(cls, answer: Answer) -> LogPins:
        """From the worker's answer."""
        known = Pin.__dataclass_fields__
        pins: list[dict[str, Any]] = answer.document["pins"]
        return cls(
            position=answer.position,
            needed_position=answer.document["needed_position"],
            journal_position=answer.document["journal_position"],
            pins=tuple(Pin(**{name: one[name] for name in known}) for one in pins),
        )
