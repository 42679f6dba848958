"""The state of a queue manager: what the fold of its operations has come to.

Plain mutable objects that only the fold changes. A message's place is one of three, and INF-19
rests on it: in the open puts of a session (uncommitted put), among the available messages of its
queue, or among the deliveries of a session (unacknowledged or uncommitted get). Numbered messages
stand in `Queue.messages` in the last two cases.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledgermq.core.available import Available
from ledgermq.core.limits import BLOCK_MESSAGES, PROTOCOL_VERSION
from ledgermq.core.operations import HeaderBranch
from ledgermq.core.outcomes import Reply
from ledgermq.core.selecting import matches, matching, order_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ledgermq.core.selector import Selector
    from ledgermq.core.topics import Subscription, SubscriptionKey, Topic

__all__ = ["Connection", "Consumer", "Message", "Queue", "QueueManager", "Session", "new_state"]


class Message:
    """A live message; its body stays in the log at (put_position, put_index)."""

    __slots__ = (
        "backout_count",
        "consumer",
        "enqueued_at",
        "header",
        "message_id",
        "persistent",
        "priority",
        "put_index",
        "put_position",
        "queue",
        "sequence",
        "size_bytes",
    )

    def __init__(
        self,
        queue: Queue,
        put_position: int,
        put_index: int,
        message_id: bytes,
        priority: int,
        persistent: bool,
        size_bytes: int,
        header: HeaderBranch | None = None,
    ) -> None:
        self.queue = queue
        self.put_position = put_position
        self.put_index = put_index
        self.message_id = message_id
        self.priority = priority
        self.persistent = persistent
        self.size_bytes = size_bytes
        self.header = header
        self.sequence = -1
        self.enqueued_at = -1
        self.backout_count = 0
        self.consumer: Consumer | None = None

    def copy_for(self, queue: Queue) -> Message:
        """The same message, numbered as this one, in another queue."""
        copy = Message(
            queue,
            self.put_position,
            self.put_index,
            self.message_id,
            self.priority,
            self.persistent,
            self.size_bytes,
            self.header,
        )
        copy.sequence = self.sequence
        copy.enqueued_at = self.enqueued_at
        return copy


class Queue:
    """A queue: its settings, its numbered messages and its counters.

    `owner` is the connection that a temporary queue lives with; `selected` the orders of those
    available messages that a selector in use matches, by its text.
    """

    __slots__ = (
        "available",
        "consumers",
        "created_position",
        "description",
        "last_consumed_enqueued_at",
        "message_bytes_max",
        "messages",
        "name",
        "next_sequence",
        "owner",
        "ready",
        "removed_by_administration",
        "selected",
        "sent_and_committed",
        "suspended",
        "touched_blocks",
        "unacknowledged",
        "unacknowledged_max",
        "uncommitted_gets",
        "uncommitted_puts",
    )

    def __init__(self, name: str, created_position: int) -> None:
        self.name = name
        self.created_position = created_position
        self.description = ""
        self.message_bytes_max = 0
        self.suspended = False
        self.unacknowledged_max = 0
        self.owner: Connection | None = None
        self.next_sequence = 0
        self.sent_and_committed = 0
        self.removed_by_administration = 0
        self.last_consumed_enqueued_at = -1
        # By rising sequence number, so that the ends of the mapping are min and max.
        self.messages: dict[int, Message] = {}
        self.available = Available()
        self.selected: dict[str, tuple[Selector, Available]] = {}
        self.consumers: dict[tuple[int, int], Consumer] = {}
        self.ready: dict[tuple[int, int], Consumer] = {}
        self.uncommitted_puts = 0
        self.unacknowledged = 0
        self.uncommitted_gets = 0
        # Blocks changed since the checkpointer looked last; nothing in the fold reads it.
        self.touched_blocks: dict[int, None] = {}

    # Whether nothing keeps it once its last receiver is gone; of subscriptions only.
    retires = False

    @property
    def destination(self) -> str:
        """What its consumers and producers call it."""
        return "queue:" + self.name

    def enqueue(
        self,
        messages: list[Message],
        time: int,
        sender: Connection,  # noqa: ARG002 (topics ask who it was)
    ) -> int:
        """Numbers messages and makes them available (SEQ-01, SEQ-05); returns the first number."""
        first = sequence = self.next_sequence
        store = self.messages
        for message in messages:
            message.sequence = sequence
            message.enqueued_at = time
            store[sequence] = message
            sequence += 1
        self.next_sequence = sequence
        self.available.extend(messages)
        for selector, order in self.selected.values():
            order.extend(matching(selector, messages))
        touched = self.touched_blocks
        for block in range(first // BLOCK_MESSAGES, (sequence - 1) // BLOCK_MESSAGES + 1):
            touched[block] = None
        return first

    def served(self) -> Iterable[Queue]:
        """Whose consumers may be served after an `enqueue`."""
        return (self,)

    def give_back(self, message: Message) -> None:
        """Makes a delivered message available again, at the place of its number."""
        self.available.give_back(message)
        for selector, order in self.selected.values():
            if matches(selector, message):
                order.give_back(message)

    def add_consumer(self, consumer: Consumer) -> None:
        """Lets a consumer take from here; makes the order of what its selector matches."""
        self.consumers[consumer.key] = consumer
        selector = consumer.selector
        if selector is not None and selector.text not in self.selected:
            self.selected[selector.text] = (selector, order_of(selector, self.available))

    def drop_consumer(self, consumer: Consumer) -> None:
        """Ends what `add_consumer` began; the order goes with its last user."""
        self.ready.pop(consumer.key, None)
        del self.consumers[consumer.key]
        selector = consumer.selector
        if selector is not None and all(
            one.selector is None or one.selector.text != selector.text
            for one in self.consumers.values()
        ):
            del self.selected[selector.text]

    def consume(self, message: Message) -> None:
        """Takes a message out for good, as sent and committed (SEQ-14)."""
        self.forget(message)
        self.sent_and_committed += 1

    def forget(self, message: Message) -> None:
        """Takes a numbered message out of the queue for good."""
        sequence = message.sequence
        del self.messages[sequence]
        self.touched_blocks[sequence // BLOCK_MESSAGES] = None
        self.last_consumed_enqueued_at = message.enqueued_at

    @property
    def min_sequence(self) -> int:
        """Number of the first unconsumed message, or the next number (SEQ-06, SEQ-09)."""
        return next(iter(self.messages), self.next_sequence)

    @property
    def max_sequence(self) -> int:
        """Number of the last unconsumed message, or the next number (SEQ-07, SEQ-09)."""
        return next(reversed(self.messages), self.next_sequence)


class Consumer:
    """A consumer of one queue in one session; a receiver of the queue while it is open."""

    __slots__ = (
        "credit",
        "in_flight",
        "number",
        "open",
        "queue",
        "selector",
        "session",
        "waiting_since",
    )

    def __init__(
        self, session: Session, number: int, queue: Queue, selector: Selector | None = None
    ) -> None:
        self.session = session
        self.number = number
        self.queue = queue
        self.selector = selector
        self.credit = 0
        self.in_flight = 0
        self.waiting_since = 0
        self.open = True

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
        "confirmed",
        "connection",
        "consumer_highest",
        "consumers",
        "deadline",
        "deliveries",
        "handle",
        "last_sequence",
        "next_delivery",
        "open_puts",
        "replies",
        "session_key",
        "suspect_timeout_ms",
        "suspected",
        "transacted",
    )

    def __init__(
        self,
        handle: int,
        connection: Connection,
        session_key: bytes,
        acknowledge_mode: str,
        suspect_timeout_ms: int,
    ) -> None:
        self.handle = handle
        self.connection = connection
        self.session_key = session_key
        self.acknowledge_mode = acknowledge_mode
        self.transacted = acknowledge_mode == "TRANSACTED"
        self.suspect_timeout_ms = suspect_timeout_ms
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
        # By destination.
        self.open_puts: dict[str, list[Message]] = {}


class QueueManager:
    """The whole state at one log position."""

    __slots__ = (
        "active_version",
        "automatic_creation",
        "client_ids",
        "connections",
        "deadlines",
        "position",
        "queues",
        "sessions",
        "stores",
        "subscriptions",
        "time",
        "time_stood_still",
        "topics",
        "wait_order",
    )

    def __init__(self) -> None:
        self.active_version = PROTOCOL_VERSION
        self.position = -1
        self.time = -1
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


def new_state() -> QueueManager:
    """The state before the first entry of the log."""
    return QueueManager()
