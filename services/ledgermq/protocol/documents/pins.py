"""What keeps the log from being cut: the oldest live messages (PROTOCOL.md §20)."""

from __future__ import annotations

from dataclasses import dataclass, field

from ledgermq.protocol.documents.fields import BESIDE


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """A live message whose body stands in the log at `body_position`, put at `put_position`.

    `created_position` is that of its queue or subscription (of a put that is not numbered, of its
    destination); `sequence` is -1 for an uncommitted and for a blocked put;
    `enqueued_at` is in µs, None for these; `session` is the session that holds it, -1 if none does.
    """

    destination: str
    subscription: str
    created_position: int
    sequence: int
    message_id: str
    put_position: int
    put_index: int
    body_position: int
    body_index: int
    size_bytes: int
    enqueued_at: int | None
    state: str
    session: int

    @property
    def put_place(self) -> tuple[int, int]:
        """Position and index of its Put."""
        return self.put_position, self.put_index

    @property
    def body_place(self) -> tuple[int, int]:
        """Position and index of what has its body."""
        return self.body_position, self.body_index

    @property
    def named(self) -> str:
        """The message in one phrase, for people."""
        again = ""
        if self.body_position != self.put_position:
            again = f", written again at {self.body_position}"
        of = f" (subscription {self.subscription})" if self.subscription else ""
        what = f"message {self.sequence} of"
        if self.sequence < 0:
            what = "a blocked put to" if self.state == "blocked put" else "an uncommitted put to"
        return f"{what} {self.destination}{of}, put at position {self.put_position}{again}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPins:
    """The oldest live messages at a log position, oldest first.

    `journal_position` is where the journal needs the log from, None if it is empty (DB-19);
    `needed_position` the lowest position that one of all these needs, None: none does.
    """

    position: int = field(metadata=BESIDE)
    needed_position: int | None
    journal_position: int | None
    pins: tuple[Pin, ...]
