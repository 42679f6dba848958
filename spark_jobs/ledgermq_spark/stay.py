"""What the pass over a log is fed and tells, and what it keeps: stores, and messages in them."""

from __future__ import annotations

from typing import Any, NamedTuple

from ledgermq_spark.settings import DEFAULTS, Settings

__all__ = ["Content", "Origin", "Stay", "Stayed", "Store", "WalkEvent"]

# Where a message was before: destination, sequence, reason, backout_count, enqueued_at.
Origin = dict[str, Any] | None


class WalkEvent(NamedTuple):
    """What the pass is fed, by position, phase, index and offset.

    `what` is entry (its state `time`; phase -1), numbered (a message that expires at `moment`, is
    born at `born_at`, -1: never, at once), handled (by hand; `text`: what was asked for), delivered
    or settled (`text`: how; `flag`: seen).
    """

    position: int
    phase: int
    index: int  # type: ignore[assignment]
    offset: int
    what: str
    time: int = -1
    queue: str = ""
    put_position: int = -1
    put_index: int = -1
    moment: int = -1
    sequence: int = -1
    session: int = -1
    delivery: int = -1
    consumer: int = 0
    flag: bool = False
    text: str = ""
    message_id: bytes | None = None
    priority: int = 4
    persistent: bool = True
    header: str | None = None
    connection: str = ""
    client_id: str = ""
    born_at: int = -1


class Stayed(NamedTuple):
    """What the pass tells: a stay that is numbered, born, expired, moved, retried or removed.

    Or an operation by hand that is refused; `origin` is then why.

    `holder` is the subscription of a copy, -1 for what a queue or topic numbered. `phase` and
    `index` say where in the entry. `origin` is where a numbered message had been, as JSON; `to` and
    `to_sequence` where one that went is now.
    """

    what: str
    put_position: int
    put_index: int
    stay: int
    holder: int
    queue: str
    queue_created: int
    sequence: int
    position: int
    phase: int
    index: int  # type: ignore[assignment]
    time: int
    expires_at: int | None = None
    on_return: bool | None = None
    origin: str | None = None
    to: str | None = None
    to_sequence: int | None = None
    born_at: int | None = None


class Store:
    """A queue, a topic or a subscription that stands, and what it has; a topic has nothing."""

    __slots__ = ("created", "holder", "messages", "name", "next", "settings", "topic")

    def __init__(self, name: str, created: int, holder: int, topic: Store | None = None) -> None:
        self.name = name
        self.created = created
        self.holder = holder
        self.topic = topic
        self.settings = DEFAULTS
        self.messages: dict[int, Stay] = {}
        self.next = 0

    @property
    def order(self) -> int:
        """Its creation, which orders what is due at once."""
        return self.created if self.holder < 0 else self.holder

    @property
    def in_force(self) -> Settings:
        """Its settings; a subscription has those of its topic."""
        return self.settings if self.topic is None else self.topic.settings


class Content(NamedTuple):
    """What a message is, wherever it stays."""

    message_id: bytes | None
    priority: int
    persistent: bool
    header: str | None


class Stay:
    """A message where it stays; `expires_at` -1: its own time never ends."""

    __slots__ = (
        *("backouts", "born_at", "enqueued_at", "expires_at", "held", "is_gone", "message"),
        *("number", "origin", "put", "sequence", "store"),
    )

    def __init__(
        self,
        put: tuple[int, int],
        number: int,
        message: Content,
        store: Store,
        sequence: int,
        enqueued_at: int,
        expires_at: int,
        born_at: int = -1,
        origin: Origin = None,
    ) -> None:
        self.put = put
        self.number = number
        self.message = message
        self.store = store
        self.sequence = sequence
        self.enqueued_at = enqueued_at
        self.expires_at = expires_at
        self.born_at = born_at
        self.origin = origin
        self.backouts = 0
        self.held = False
        self.is_gone = False
