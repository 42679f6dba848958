"""What the pass over a log is fed and tells, and what it keeps: stores, and messages in them."""

from __future__ import annotations

from bisect import bisect_left
from typing import Any, NamedTuple

from ledgermq_spark.derivation.destinations import is_topic
from ledgermq_spark.derivation.parked import ParkedGroups
from ledgermq_spark.derivation.settings import DEFAULTS, Settings

# Where a message was before: destination, sequence, reason, backout_count, enqueued_at.
Origin = dict[str, Any] | None


class WalkEvent(NamedTuple):
    """What the pass is fed, by position, phase, index and offset.

    `what` is entry (its state `time`; phase -1), numbered (a message that expires at `moment`, is
    born at `born_at`, -1: never, at once), handled (by hand; `text`: what was asked for), delivered
    or settled (`text`: how; `flag`: seen, `uncounted`: by nobody that is known; `delay_ms`: what
    consumer or session ask for; `moment`: when the deadline was that ended its session), ended (a
    session, by its deadline at `moment`, after all that it held was settled). The
    `moment` of an entry is its append time.
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
    delay_ms: int = 0
    uncounted: bool = False


class Stayed(NamedTuple):
    """What the pass tells: a stay that is numbered, born, expired, moved, retried or removed.

    Or one that came back: it is delayed (until `born_at`), offered again after that, or it came
    back too often (redelivery-limit: it went elsewhere, else dropped), or followed one that had
    (group-parked). Or an operation by hand
    that is refused; `origin` is then why.

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

    __slots__ = (
        *("created", "holder", "is_over", "limits", "messages", "name", "next", "parked"),
        *("settings", "topic"),
    )

    def __init__(self, name: str, created: int, holder: int, topic: Store | None = None) -> None:
        self.name = name
        self.created = created
        self.holder = holder
        self.topic = topic
        self.settings = DEFAULTS
        # Redelivery limits of what is put, from after a position on.
        self.limits: list[tuple[int, int]] = []
        self.messages: dict[int, Stay] = {}
        self.parked = ParkedGroups()
        self.next = 0
        # Whether it is there for what sessions hold of it only.
        self.is_over = False

    def end(self) -> None:
        """It ends, and what it has; of a subscription what is held may still be settled."""
        self.is_over = True
        for stay in self.messages.values():
            stay.is_gone = not (stay.held and self.topic is not None)

    @property
    def order(self) -> int:
        """Its creation, which orders what is due at once."""
        return self.created if self.holder < 0 else self.holder

    def limit_at(self, position: int) -> int:
        """The redelivery limit of what was put there by an entry; -1: none."""
        found = bisect_left(self.limits, (position,))
        return self.limits[found - 1][1] if found else -1

    @property
    def destination(self) -> str:
        """What the log calls it, or the topic that it is a subscription of."""
        return self.name if is_topic(self.name) else f"queue:{self.name}"

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
    """A message where it stays; `expires_at` -1: its own time never ends; `limit` -1: none."""

    __slots__ = (
        *("backouts", "born_at", "enqueued_at", "expires_at", "held", "is_gone", "limit"),
        *("message", "number", "origin", "put", "returned_at", "sequence", "store", "uncounted"),
        "until",
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
        limit: int = -1,
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
        self.limit = limit
        self.backouts = 0
        # Backouts of which nobody knows whether the application saw the message.
        self.uncounted = 0
        # Until when it is delayed; -1: it is not.
        self.until = -1
        self.held = False
        # The entry and its phase that it returned at last.
        self.returned_at = (-1, 0)
        self.is_gone = False

    def as_origin(self, reason: str) -> Origin:
        """What a message that goes elsewhere says of where it was, and why it went."""
        return {
            "destination": self.store.destination,
            "sequence": self.sequence,
            "reason": reason,
            "backout_count": self.backouts,
            "enqueued_at": self.enqueued_at,
        }

    def copy_in(self, subscription: Store) -> Stay:
        """The copy of a topic's message that a subscription gets."""
        times = (self.enqueued_at, self.expires_at, self.born_at)
        place = (self.put, self.number, self.message, subscription, self.sequence)
        return Stay(*place, *times, self.origin, self.limit)
