"""The state of a queue manager: what the fold of its operations has come to.

Plain mutable objects that only the fold changes.
"""

from __future__ import annotations

from typing import Final

from ledgermq.core.state.journal import Journal
from ledgermq.core.state.lifetimes import Lifetimes
from ledgermq.core.state.records import (
    BlockedPut,
    Connection,
    Message,
    Queue,
    Session,
    Subscription,
    SubscriptionKey,
    Topic,
)
from ledgermq.core.state.storage import Storage
from ledgermq.core.structures.lazy_heap import LazyHeap
from ledgermq.protocol.limits import PROTOCOL_VERSION

# Messages by a moment in µs, then by creation of their queue and number.
Deadlines = LazyHeap[tuple[int, int, int, Message]]
SPARE_DEADLINES: Final = 1024


class QueueManager:
    __slots__ = (
        "active_version",
        "automatic_creation",
        "births",
        "blocked_at",
        "blocked_puts",
        "bytes_max",
        "client_ids",
        "connections",
        "deadlines",
        "expiries",
        "journal",
        "lifetimes",
        "messages_max",
        "named",
        "offered_version",
        "position",
        "queues",
        "sessions",
        "standstill",
        "storage",
        "stores",
        "subscriptions",
        "time",
        "time_outs",
        "time_reference",
        "time_stood_still",
        "topics",
        "wait_order",
    )

    def __init__(self) -> None:
        self.active_version = PROTOCOL_VERSION
        # The highest that a worker said it knows.
        self.offered_version = PROTOCOL_VERSION
        self.position = -1
        self.time = -1
        # While state time is ahead of the clock: the append time that it goes on from.
        self.time_reference = -1
        self.time_stood_still = False
        self.automatic_creation = True
        self.wait_order = 0
        self.queues: dict[str, Queue] = {}
        self.topics: dict[str, Topic] = {}
        self.subscriptions: dict[SubscriptionKey, Subscription] = {}
        # All that hold messages, queues and subscriptions, by the position of their creation.
        self.stores: dict[int, Queue] = {}
        self.client_ids: dict[str, Connection] = {}
        self.connections: dict[bytes, Connection] = {}
        self.sessions: dict[int, Session] = {}
        # When sessions end: deadline and handle.
        self.deadlines = LazyHeap[tuple[int, int]](self._is_deadline)
        # Of messages that expire, and of those that are unborn or delayed.
        self.expiries = Deadlines(_is_there, spare=SPARE_DEADLINES)
        self.births = Deadlines(_is_there, spare=SPARE_DEADLINES)
        self.lifetimes = Lifetimes()
        self.storage = Storage()
        self.journal = Journal()
        # Destinations that settings name, and which settings do: destination and name.
        self.named: dict[str, dict[tuple[str, str], None]] = {}
        # Quotas of all queues and topics together; 0: none.
        self.messages_max = 0
        self.bytes_max = 0
        # Puts that wait for a quota, by position; when they are refused: deadline and position.
        self.blocked_puts: dict[int, BlockedPut] = {}
        self.time_outs = LazyHeap[tuple[int, int]](self._is_blocked)
        # The same by destination; and what they wait for, if a look at them found nothing to do.
        self.blocked_at: dict[str, dict[int, BlockedPut]] = {}
        self.standstill: tuple[object, ...] | None = None

    def _is_deadline(self, entry: tuple[int, int]) -> bool:
        session = self.sessions.get(entry[1])
        return session is not None and session.deadline == entry[0]

    def _is_blocked(self, entry: tuple[int, int]) -> bool:
        return entry[1] in self.blocked_puts


def _is_there(entry: tuple[int, int, int, Message]) -> bool:
    message = entry[3]
    return message.queue.messages.get(message.sequence) is message


def new_state() -> QueueManager:
    return QueueManager()
