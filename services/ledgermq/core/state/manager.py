"""The state of a queue manager: what the fold of its operations has come to.

Plain mutable objects that only the fold changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Final, NamedTuple

from ledgermq.core.state.journal import Journal
from ledgermq.core.state.lifetimes import Lifetimes
from ledgermq.core.state.records import (
    BlockedPut,
    Connection,
    Message,
    Queue,
    Session,
    Subscription,
    Topic,
)
from ledgermq.core.state.resume_mark import ResumeMark
from ledgermq.core.state.storage import Storage
from ledgermq.core.state.topics import Binding, SubscriptionKey
from ledgermq.core.structures.lazy_heap import LazyHeap
from ledgermq.protocol.limits import FIRST_VERSION
from ledgermq.protocol.settings import DEFAULTS, Settings

# Messages by a moment in µs, then by creation of their queue and number.
Deadlines = LazyHeap[tuple[int, int, int, Message]]
SPARE_DEADLINES: Final = 1024


class WaitsFor(NamedTuple):
    """What decides of all blocked puts whether they go on: what is allowed, and the room left."""

    allowed: tuple[object, ...]
    room: tuple[object, ...]


@dataclass(slots=True, eq=False, repr=False)
class QueueManager:
    active_version: int = FIRST_VERSION
    # The highest that a worker said it knows.
    offered_version: int = FIRST_VERSION
    position: int = -1
    time: int = -1
    # While state time is ahead of the clock: the append time that it goes on from.
    time_reference: int = -1
    time_stood_still: bool = False
    automatic_creation: bool = True
    wait_order: int = 0
    queues: dict[str, Queue] = field(default_factory=dict)
    topics: dict[str, Topic] = field(default_factory=dict)
    subscriptions: dict[SubscriptionKey, Subscription] = field(default_factory=dict)
    # By pattern and destination, in the order in which they were made.
    bindings: dict[tuple[str, str], Binding] = field(default_factory=dict)
    # The same by what is before the first wild word of their patterns, then by creation.
    bindings_by_stem: dict[str, dict[int, Binding]] = field(default_factory=dict)
    # All that hold messages, queues and subscriptions, by the position of their creation.
    stores: dict[int, Queue] = field(default_factory=dict)
    client_ids: dict[str, Connection] = field(default_factory=dict)
    connections: dict[bytes, Connection] = field(default_factory=dict)
    sessions: dict[int, Session] = field(default_factory=dict)
    # When sessions end: deadline and handle.
    deadlines: LazyHeap[tuple[int, int]] = field(init=False)
    # Of messages that expire, and of those that are unborn or delayed.
    expiries: Deadlines = field(default_factory=lambda: Deadlines(_is_there, spare=SPARE_DEADLINES))
    births: Deadlines = field(default_factory=lambda: Deadlines(_is_there, spare=SPARE_DEADLINES))
    lifetimes: Lifetimes = field(default_factory=Lifetimes)
    storage: Storage = field(default_factory=Storage)
    journal: Journal = field(default_factory=Journal)
    # Destinations that settings name, and which settings do: destination and name.
    named: dict[str, dict[tuple[str, str], None]] = field(default_factory=dict)
    # Quotas of all queues and topics together; 0: none.
    messages_max: int = 0
    bytes_max: int = 0
    # Messages and bytes, current and pending, of all queues and topics. A message of a topic counts
    # once, however many subscriptions have it.
    held_messages: int = 0
    held_bytes: int = 0
    resume_mark: ResumeMark | None = None
    # Redelivery where queues and topics say nothing themselves; all other settings are defaults.
    redelivery: Settings = DEFAULTS
    # How long units of work may be open, and without a put or get; 0: no limit.
    unit_of_work_time_limit_ms: int = 0
    unit_of_work_idle_limit_ms: int = 0
    # When units of work break a limit: moment and handle.
    unit_limits: LazyHeap[tuple[int, int]] = field(init=False)
    # Puts that wait for a quota, by position; when they are refused: deadline and position.
    blocked_puts: dict[int, BlockedPut] = field(default_factory=dict)
    time_outs: LazyHeap[tuple[int, int]] = field(init=False)
    # The same by destination. Where something changed since they were looked at, and whether that
    # may concern each of them, or is but room; and what all of them wait for, as it was then.
    blocked_at: dict[str, dict[int, BlockedPut]] = field(default_factory=dict)
    stirred: dict[str, bool] = field(default_factory=dict)
    waits_for: WaitsFor | None = None

    def __post_init__(self) -> None:
        self.deadlines = LazyHeap(self._is_deadline)
        self.time_outs = LazyHeap(self._is_blocked)
        self.unit_limits = LazyHeap(self._is_unit_limit)

    @property
    def destinations(self) -> Iterator[Queue]:
        """Queues, then topics, in the order in which they were made."""
        return chain(self.queues.values(), self.topics.values())

    def stir(self, destination: str, *, each: bool = False) -> None:
        """Has the puts that wait for a destination looked at: `each`, or from the first on."""
        if destination in self.blocked_at:
            self.stirred[destination] = each or self.stirred.get(destination, False)

    def _is_deadline(self, entry: tuple[int, int]) -> bool:
        session = self.sessions.get(entry[1])
        return session is not None and session.deadline == entry[0]

    def _is_unit_limit(self, entry: tuple[int, int]) -> bool:
        session = self.sessions.get(entry[1])
        if session is None or not session.has_unit_of_work:
            return False
        return entry[0] in (session.unit_of_work_over_at, session.unit_of_work_idle_at)

    def _is_blocked(self, entry: tuple[int, int]) -> bool:
        return entry[1] in self.blocked_puts


def _is_there(entry: tuple[int, int, int, Message]) -> bool:
    message = entry[3]
    return message.queue.messages.get(message.sequence) is message


def new_state() -> QueueManager:
    return QueueManager()
