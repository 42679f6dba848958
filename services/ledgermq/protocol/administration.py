"""Operations by hand, on messages and on the journal (PROTOCOL.md §17, §21, §22)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

from ledgermq.protocol.limits import ACTOR_CHARACTERS_MAX, DESCRIPTION_CHARACTERS_MAX
from ledgermq.protocol.operations import Header, Operation, Put, PutMessage, SessionOperation


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


class MessagePlace(TypedDict):
    """Where a numbered message is: a queue or subscription by its creation, and the number."""

    created_position: int
    sequence: int


class RelocatedMessage(TypedDict):
    """A message that is written again as it was put; `header` is a list of one, or of none."""

    put_position: int
    put_index: int
    places: list[MessagePlace]
    message: PutMessage
    header: list[Header]


@dataclass(frozen=True, slots=True, kw_only=True)
class Relocate(SessionOperation):
    """Writes old live messages again, so that the log below can be trimmed (H24)."""

    messages: list[RelocatedMessage]
    actor: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionOffered(Operation):
    """Tells the highest protocol version that a worker knows, for an Upgrade to make active."""

    worker: str
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionsSkipped(Operation):
    """Declares positions below, at which every worker stops, to be passed over (§8)."""

    first: int
    last: int
    actor: str
    reason: str

    def counts_at(self, position: int) -> bool:
        """Whether it counts where it stands: it names what is below it, who asks for it, and why.

        The fold refuses what does not.
        """
        below = 0 <= self.first <= self.last < position
        who = 0 < len(self.actor) <= ACTOR_CHARACTERS_MAX
        return below and who and 0 < len(self.reason) <= DESCRIPTION_CHARACTERS_MAX


def bodies_in(operation: Operation) -> list[bytes] | None:
    """The contents that stand in an entry of the log, by index; None: it has none."""
    if isinstance(operation, Put):
        return [one["content"] for one in operation.messages]
    if isinstance(operation, Relocate):
        return [one["message"]["content"] for one in operation.messages]
    return None
