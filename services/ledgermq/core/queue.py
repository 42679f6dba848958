"""Messages and queues as state: what waits, in which order, and what is counted.

A queue numbers messages, keeps them until they leave for good, and keeps those that wait in orders
of delivery. Subscriptions of topics are queues too (`topics.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledgermq.core.available import Available
from ledgermq.core.limits import BLOCK_MESSAGES
from ledgermq.core.operations import Header
from ledgermq.core.selecting import matches, matching, order_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ledgermq.core.selector import Selector
    from ledgermq.core.state import Connection, Consumer, QueueManager
    from ledgermq.core.turns import Turns

__all__ = ["Message", "Queue", "Times"]


class Times:
    """When a message expires and when it may be delivered, in µs; -1: none.

    `unborn`: it is numbered, and not to be delivered yet (INF-01).
    """

    __slots__ = ("deliver_at", "expires_at", "unborn")

    def __init__(self, expires_at: int, deliver_at: int) -> None:
        self.expires_at = expires_at
        self.deliver_at = deliver_at
        self.unborn = False


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
        "times",
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
        header: Header | None = None,
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
        self.times: Times | None = None
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
        if self.times is not None:
            copy.times = Times(self.times.expires_at, self.times.deliver_at)
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
        "doubts",
        "expired",
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
        "turns",
        "unacknowledged",
        "unacknowledged_max",
        "unborn",
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
        self.expired = 0
        self.unborn = 0
        self.last_consumed_enqueued_at = -1
        # By rising sequence number, so that the ends of the mapping are min and max.
        self.messages: dict[int, Message] = {}
        self.available = Available()
        self.selected: dict[str, tuple[Selector, Available]] = {}
        # Messages in doubt by number, and how many of their backouts do not count (H20).
        self.doubts: dict[int, int] = {}
        self.consumers: dict[tuple[int, int], Consumer] = {}
        self.ready: dict[tuple[int, int], Consumer] = {}
        # Whose turn it is, once several have waited at a time.
        self.turns: Turns | None = None
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
        state: QueueManager,
        messages: list[Message],
        sender: Connection,  # noqa: ARG002 (topics ask who it was)
    ) -> int:
        """Numbers messages and makes them available (SEQ-01, SEQ-05); returns the first number."""
        first = sequence = self.next_sequence
        store, time = self.messages, state.time
        timed = False
        for message in messages:
            message.sequence = sequence
            message.enqueued_at = time
            store[sequence] = message
            sequence += 1
            timed = timed or message.times is not None
        self.next_sequence = sequence
        born = self.wait_for_birth(state, messages) if timed else messages
        self.available.extend(born)
        for selector, order in self.selected.values():
            order.extend(matching(selector, born))
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

    def wait_for_birth(self, state: QueueManager, messages: list[Message]) -> list[Message]:
        """Schedules messages that were just numbered; returns those that are available at once."""
        born = []
        for message in messages:
            times = message.times
            if times is not None:
                state.schedule(message, times)
                times.unborn = times.deliver_at > state.time
            if times is not None and times.unborn:
                self.unborn += 1
            else:
                born.append(message)
        return born

    def bear(self, message: Message) -> None:
        """Makes a message available whose time has come, at the place of its number (INF-01)."""
        assert message.times is not None, "only what was unborn is born"
        message.times.unborn = False
        self.unborn -= 1
        self.give_back(message)

    def withdraw(self, message: Message) -> None:
        """Takes a message that nobody holds from those that wait."""
        if message.times is not None and message.times.unborn:
            self.unborn -= 1
        else:
            self.available.leave()

    def expire(self, message: Message) -> None:
        """Takes out for good a message whose time is over, that neither waits nor is held."""
        self.forget(message)
        self.expired += 1

    def forget(self, message: Message) -> None:
        """Takes a numbered message out of the queue for good."""
        sequence = message.sequence
        del self.messages[sequence]
        if self.doubts:
            self.doubts.pop(sequence, None)
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
