"""What keeps the log from being cut: the oldest live messages (PROTOCOL.md §20)."""

from __future__ import annotations

from dataclasses import dataclass, field

from ledgermq.protocol.documents.fields import BESIDE


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """A live message: the log is needed from where its body is.

    Attributes:
        destination: Where it is, or is put to, as `queue:NAME` or `topic:NAME`.
        subscription: The subscription whose copy it is; empty: there is none, or it has no name.
        created_position: Log position at which its queue or subscription was made; of a put that is
            not numbered, its destination.
        sequence: Its sequence number; -1: it is an uncommitted or a blocked put.
        message_id: 32 hexadecimal digits.
        put_position: Log position of the Put that brought it.
        put_index: Its place in that Put, from 0.
        body_position: Log position of what has its body: of its Put, or of the operation that wrote
            it again.
        body_index: Its place there.
        size_bytes: Size of its content and header.
        enqueued_at: Log time at which it was numbered, in µs since 1970 UTC; None: it is an
            uncommitted or a blocked put.
        state: Its state, as `available`, `unacknowledged`, `uncommitted put` or `blocked put`.
        session: Handle of the session that holds it; -1: none does.
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
    """What the log cannot be cut below, at a log position: live messages and the journal.

    Attributes:
        position: Log position that this is true at.
        needed_position: The lowest position that a live message or the journal needs; None: none
            of them needs the log.
        journal_position: From where on the journal needs the log (DB-19); None: it is empty.
        pins: The live messages whose bodies are lowest on the log, the lowest first; as many as
            were asked for.
    """

    position: int = field(metadata=BESIDE)
    needed_position: int | None
    journal_position: int | None
    pins: tuple[Pin, ...]
