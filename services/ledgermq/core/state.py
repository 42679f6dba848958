"""The state of a queue manager: what the fold of its operations has come to.

Plain mutable objects that only the fold changes. A message's place is one of three, and INF-19
rests on it: in the open puts of a session (uncommitted put), among the available messages of its
queue, or among the deliveries of a session (unacknowledged or uncommitted get). Numbered messages
stand in `Queue.messages` in the last two cases.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledgermq.core.journal import Journal
from ledgermq.core.lifetimes import Lifetimes
from ledgermq.core.message import Message, Times
from ledgermq.core.message_deadlines import MessageDeadlines
from ledgermq.core.queue import Queue
from ledgermq.core.storage import Storage
from ledgermq.protocol.get_options import PLAIN, Place
from ledgermq.protocol.limits import PROTOCOL_VERSION
from ledgermq.protocol.outcomes import Reply

if TYPE_CHECKING:
    from ledgermq.core.blocked import BlockedPut
    from ledgermq.core.group import Group
    from ledgermq.core.orders import Order, OrderKey
    from ledgermq.core.topics import Subscription, SubscriptionKey, Topic
    from ledgermq.protocol.operations import Commit
    from ledgermq.selector import Selector

__all__ = ["Connection", "Consumer", "Message", "Queue", "QueueManager", "Session", "new_state"]


class Consumer:
    """A consumer of one queue in one session; a receiver of the queue while it is open."""

    __slots__ = (
        "credit",
        "doubt",
        "in_flight",
        "kept",
        "number",
        "open",
        "options",
        "order",
        "place",
        "queue",
        "redelivery_delay_ms",
        "selector",
        "session",
        "settled_place",
        "waiting_since",
    )

    def __init__(
        self,
        session: Session,
        number: int,
        queue: Queue,
        selector: Selector | None = None,
        redelivery_delay_ms: int = -1,
    ) -> None:
        self.session = session
        self.number = number
        self.queue = queue
        self.selector = selector
        # -1: that of the session (INF-15).
        self.redelivery_delay_ms = redelivery_delay_ms
        self.credit = 0
        self.in_flight = 0
        self.waiting_since = 0
        self.open = True
        # Its delivery in doubt that was not told as handed over; 0: none (H20).
        self.doubt = 0
        self.options = PLAIN
        # The order of what it selects; None: that of all.
        self.order: Order | None = None
        # What comes next in the group that it is in, and what came after what it consumed last.
        self.place: Place | None = None
        self.settled_place: Place | None = None
        # The group that is kept for it.
        self.kept: bytes | None = None

    @property
    def order_key(self) -> OrderKey | None:
        """Key of the order of what it selects; None: that of all."""
        if self.selector is None and self.options == PLAIN:
            return None
        return ("" if self.selector is None else self.selector.text, self.options)

    @property
    def key(self) -> tuple[int, int]:
        """Key within its queue: session handle and consumer number."""
        return (self.session.handle, self.number)


class Connection:
    """A client's connection: the lane that it reads and the end of its chain of outcomes.

    `owned` are its temporary queues and topics, by destination; they live as long as it does.
    """

    __slots__ = (
        "client_id",
        "identity",
        "lane",
        "last_index",
        "last_position",
        "owned",
        "sessions",
        "takeover",
    )

    def __init__(
        self, identity: bytes, lane: int, client_id: str = "", takeover: bytes = b""
    ) -> None:
        self.identity = identity
        self.lane = lane
        self.client_id = client_id
        self.takeover = takeover
        self.owned: dict[str, Queue] = {}
        self.last_position = -1
        self.last_index = -1
        self.sessions: dict[int, Session] = {}


class Session:
    """A session: its numbering, its unit of work, its deliveries in flight."""

    __slots__ = (
        "acknowledge_mode",
        "answered_through",
        "blocked",
        "confirmed",
        "connection",
        "consumer_highest",
        "consumers",
        "deadline",
        "deliveries",
        "handed_doubts",
        "handed_through",
        "handle",
        "last_sequence",
        "next_delivery",
        "open_bytes",
        "open_groups",
        "open_puts",
        "redelivery_delay_ms",
        "replies",
        "session_key",
        "suspect_timeout_ms",
        "suspected",
        "transacted",
        "unit_of_work_began_at",
        "unit_of_work_ended_by",
        "waiting_commit",
    )

    def __init__(
        self,
        handle: int,
        connection: Connection,
        session_key: bytes,
        acknowledge_mode: str,
        suspect_timeout_ms: int,
        redelivery_delay_ms: int = 0,
    ) -> None:
        self.handle = handle
        self.connection = connection
        self.session_key = session_key
        self.acknowledge_mode = acknowledge_mode
        self.transacted = acknowledge_mode == "TRANSACTED"
        self.suspect_timeout_ms = suspect_timeout_ms
        self.redelivery_delay_ms = redelivery_delay_ms
        self.confirmed = False
        self.suspected = False
        self.deadline = -1
        self.last_sequence = 0
        self.answered_through = 0
        self.replies: dict[int, Reply] = {}
        self.next_delivery = 1
        self.consumer_highest = 0
        self.consumers: dict[int, Consumer] = {}
        self.deliveries: dict[int, Message] = {}
        # Up to where the application was handed everything; what is in flight above that and was
        # told as handed over too.
        self.handed_through = 0
        self.handed_doubts: dict[int, None] = {}
        # By destination; how much they take together.
        self.open_puts: dict[str, list[Message]] = {}
        self.open_bytes = 0
        # Time in µs of the first operation of the unit of work, as long as it holds something.
        self.unit_of_work_began_at = -1
        # Who ended it by administration, and why, until the session rolls back; else empty.
        self.unit_of_work_ended_by = ""
        # The groups among them, by destination and group id.
        self.open_groups: dict[tuple[str, bytes], Group] = {}
        # Puts that wait for a quota, by their numbers; the commit that waits for them.
        self.blocked: dict[int, BlockedPut] = {}
        self.waiting_commit: Commit | None = None

    def let_open_puts_go(self, destination: str) -> None:
        """Lets the open puts to a destination vanish, and gives up their room."""
        for message in self.open_puts.pop(destination, ()):
            self.open_bytes -= message.size_bytes
            message.segment.release(message.size_bytes)

    @property
    def has_unit_of_work(self) -> bool:
        """Whether it is transacted and holds puts or gets that are not committed."""
        return self.transacted and bool(self.open_puts or self.deliveries)

    def begin_unit_of_work(self, time: int) -> None:
        """Notes when a unit of work begins: before what is put or got first is added to it."""
        if not self.open_puts and not self.deliveries:
            self.unit_of_work_began_at = time


class QueueManager:
    """The whole state at one log position."""

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
        # Heap of (deadline, session handle); entries whose session moved on are passed over.
        self.deadlines: list[tuple[int, int]] = []
        # Of messages that expire, and of those that are unborn or delayed.
        self.expiries = MessageDeadlines()
        self.births = MessageDeadlines()
        self.lifetimes = Lifetimes()
        self.storage = Storage()
        self.journal = Journal()
        # Destinations that settings name, and which settings do: destination and name.
        self.named: dict[str, dict[tuple[str, str], None]] = {}
        # Quotas of all queues and topics together; 0: none.
        self.messages_max = 0
        self.bytes_max = 0
        # Puts that wait for a quota, by position, and a heap of (deadline, position); entries of
        # what waits no longer are passed over.
        self.blocked_puts: dict[int, BlockedPut] = {}
        # The same by destination; and what they wait for, if a look at them found nothing to do.
        self.blocked_at: dict[str, dict[int, BlockedPut]] = {}
        self.standstill: tuple[object, ...] | None = None
        self.time_outs: list[tuple[int, int]] = []

    def schedule(self, message: Message, times: Times) -> None:
        """Notes when a numbered message expires, and until when it waits."""
        if times.expires_at >= 0:
            self.expiries.add(message, times.expires_at)
        if times.waits_until >= 0:
            self.births.add(message, times.waits_until)


def new_state() -> QueueManager:
    """The state before the first entry of the log."""
    return QueueManager()
