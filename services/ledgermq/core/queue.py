"""Queues as state: what waits, in which order, and what is counted.

A queue numbers messages, keeps them until they leave for good, and keeps those that wait in orders
of delivery. Subscriptions of topics are queues too (`topics.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledgermq.core.available import Available
from ledgermq.core.group import Group
from ledgermq.core.message import AWAY, MEMBER, GroupedMessage, Message
from ledgermq.core.orders import Order, OrderKey
from ledgermq.protocol.limits import BLOCK_MESSAGES
from ledgermq.protocol.settings import DEFAULTS

if TYPE_CHECKING:
    from collections import OrderedDict
    from collections.abc import Iterable

    from ledgermq.core.affinity import Affinity
    from ledgermq.core.group_order import GroupOrder
    from ledgermq.core.state import Connection, Consumer, QueueManager
    from ledgermq.core.turns import Turns

__all__ = ["Queue"]


class Queue:
    """A queue: its settings, its numbered messages and its counters.

    `owner` is the connection that a temporary queue lives with; `orders` are those of what its
    consumers select; `kept` the groups that are kept for a consumer.
    """

    __slots__ = (
        "affinity",
        "available",
        "bytes_high",
        "consumers",
        "created_position",
        "delayed",
        "delayed_bytes",
        "description",
        "doubts",
        "dropped",
        "expired",
        "gets_disabled",
        "group_order",
        "groups",
        "kept",
        "last_consumed_enqueued_at",
        "lifetime_sequence",
        "message_bytes",
        "message_bytes_max",
        "messages",
        "messages_high",
        "moved",
        "name",
        "next_sequence",
        "orders",
        "owner",
        "ready",
        "received",
        "removed_by_administration",
        "sent_and_committed",
        "settings",
        "touched_blocks",
        "turns",
        "unacknowledged",
        "unacknowledged_bytes",
        "unacknowledged_max",
        "unborn",
        "unborn_bytes",
        "uncommitted_gets",
        "uncommitted_gets_bytes",
        "uncommitted_puts",
        "uncommitted_puts_bytes",
    )

    def __init__(self, name: str, created_position: int) -> None:
        self.name = name
        self.created_position = created_position
        self.description = ""
        self.message_bytes_max = 0
        self.gets_disabled = False
        self.unacknowledged_max = 0
        self.settings = DEFAULTS
        self.owner: Connection | None = None
        self.next_sequence = 0
        self.sent_and_committed = 0
        self.removed_by_administration = 0
        self.expired = 0
        self.moved = 0
        self.dropped = 0
        self.lifetime_sequence = 0
        self.unborn = 0
        self.delayed = 0
        self.last_consumed_enqueued_at = -1
        # By rising sequence number, so that the ends of the mapping are min and max.
        self.messages: dict[int, Message] = {}
        self.available = Available()
        self.orders: dict[OrderKey, Order] = {}
        self.groups: dict[bytes, Group] = {}
        self.kept: dict[bytes, Consumer] = {}
        self.affinity: Affinity | None = None
        self.group_order: GroupOrder | None = None  # None: groups do not keep their order.
        # Messages in doubt by number, and how many of their backouts do not count (H20).
        self.doubts: dict[int, int] = {}
        self.consumers: dict[tuple[int, int], Consumer] = {}
        self.ready: dict[tuple[int, int], Consumer] = {}
        # Whose turn it is, once several have waited at a time.
        self.turns: Turns | None = None
        # What was received and is here, in the order of first delivery; None: CONCURRENT (DB-22).
        self.received: OrderedDict[int, None] | None = None
        self.uncommitted_puts = 0
        self.unacknowledged = 0
        self.uncommitted_gets = 0
        # Sizes of all numbered messages that are here, and of those in each state but available.
        self.message_bytes = 0
        self.unborn_bytes = 0
        self.delayed_bytes = 0
        self.uncommitted_puts_bytes = 0
        self.unacknowledged_bytes = 0
        self.uncommitted_gets_bytes = 0
        # The most that it held at a time, current and pending.
        self.messages_high = 0
        self.bytes_high = 0
        # Blocks changed since the checkpointer looked last; nothing in the fold reads it.
        self.touched_blocks: dict[int, None] = {}

    # Whether nothing keeps it once its last receiver is gone; of subscriptions only.
    retires = False
    # Whether its messages are stored for it alone; those of subscriptions are the topic's.
    stores = True

    @property
    def destination(self) -> str:
        """What its consumers and producers call it."""
        return "queue:" + self.name

    def enqueue(
        self,
        state: QueueManager,
        messages: list[Message],
        sender: Connection | None,  # noqa: ARG002 (topics ask who it was)
    ) -> int:
        """Numbers messages and makes them available (SEQ-01, SEQ-05); returns the first number."""
        first = sequence = self.next_sequence
        store, time = self.messages, state.time
        state.lifetimes.note(self, time)
        timed = grouped = False
        added_bytes = 0
        for message in messages:
            message.sequence = sequence
            message.enqueued_at = time
            store[sequence] = message
            sequence += 1
            added_bytes += message.size_bytes
            timed = timed or message.times is not None
            grouped = grouped or message.group is not None
        self.next_sequence = sequence
        self.message_bytes += added_bytes
        self.note_high()
        born = self.wait_for_birth(state, messages) if timed else messages
        self.available.extend(born)
        for order in self.orders.values():
            order.extend([one for one in born if order.wants(one)])
        if self.group_order is not None:
            self.group_order.add(messages)
        if grouped:
            self.group(messages)
        blocks = range(first // BLOCK_MESSAGES, (sequence - 1) // BLOCK_MESSAGES + 1)
        self.touched_blocks.update(dict.fromkeys(blocks))
        return first

    @property
    def held_messages(self) -> int:
        """How many messages count against its quota: current and pending ones."""
        return len(self.messages) + self.uncommitted_puts

    @property
    def held_bytes(self) -> int:
        """Sizes of the messages that count against its quota."""
        return self.message_bytes + self.uncommitted_puts_bytes

    def note_high(self) -> None:
        """Notes what it holds, if that is the most so far; after messages were added."""
        self.messages_high = max(self.messages_high, self.held_messages)
        self.bytes_high = max(self.bytes_high, self.held_bytes)

    def served(self) -> Iterable[Queue]:
        """Whose consumers may be served after an `enqueue`."""
        return (self,)

    def group(self, messages: Iterable[Message]) -> None:
        """Lets numbered messages join their groups here."""
        for message in messages:
            if isinstance(message, GroupedMessage):
                group_id = message.group.group_id
                group = self.groups.get(group_id) or Group(group_id)
                self.groups[group_id] = message.group = group
                # It may have been a member of the groups of its unit of work.
                message.flags &= ~(MEMBER | AWAY)
                group.add(message)
                self._offer_what_became_whole(group, message)

    def _offer_what_became_whole(self, group: Group, item: GroupedMessage) -> None:
        """Offers again what may have been passed over before an item was there."""
        for order in self.orders.values():
            if order.options.needs_segments:
                whole = group.members() if group.is_available else group.unit_of(item)
                order.offer_wanted(whole or ())

    def give_back(self, message: Message) -> None:
        """Makes a delivered message available again, at the place of its number."""
        self.available.give_back(message)
        if self.group_order is not None:
            self.group_order.came_back(message)
        for order in self.orders.values():
            order.offer_wanted((message,))
        if isinstance(message, GroupedMessage):
            message.group.came(message)
            self._offer_what_became_whole(message.group, message)

    def release(self, group_id: bytes) -> None:
        """Ends that a group is kept for a consumer."""
        del self.kept[group_id]
        group = self.groups.get(group_id)
        if group is not None and (group.away < group.count or group.clashing):
            self.offer_again(group.items())

    def offer_again(self, messages: Iterable[Message]) -> None:
        """Offers those that are available in every order that wants them: they were kept back."""
        here = [one for one in messages if one.is_here]
        for message in here:
            self.available.offer(message)
        for order in self.orders.values():
            order.offer_wanted(here)

    def add_consumer(self, consumer: Consumer) -> None:
        """Lets a consumer take from here."""
        self.consumers[consumer.key] = consumer
        self.use_order(consumer)

    def drop_consumer(self, consumer: Consumer) -> None:
        """Ends what `add_consumer` began."""
        self.ready.pop(consumer.key, None)
        del self.consumers[consumer.key]
        self.leave_order(consumer)
        if self.affinity is not None:
            self.affinity.drop(consumer)

    def use_order(self, consumer: Consumer) -> None:
        """Gives a consumer the order of what it selects, made anew if nobody else uses it."""
        key = consumer.order_key
        if key is None:
            return
        order = self.orders.get(key)
        if order is None:
            order = self.orders[key] = Order(self, consumer.selector, consumer.options)
        order.users += 1
        consumer.order = order

    def leave_order(self, consumer: Consumer) -> None:
        """Ends what `use_order` began; an order of few goes with its last user.

        That of a whole queue costs a look at all of it, so it stays for the next consumer.
        """
        order, key = consumer.order, consumer.order_key
        if order is None or key is None:
            return
        consumer.order = None
        order.users -= 1
        if not order.users and not order.is_of_whole_queue:
            del self.orders[key]
            if self.affinity is not None:
                self.affinity.forget(order)

    def consume(self, message: Message) -> None:
        """Takes a message out for good, as sent and committed (SEQ-14)."""
        self.forget(message)
        self.sent_and_committed += 1

    def wait_for_birth(self, state: QueueManager, messages: list[Message]) -> list[Message]:
        """Schedules messages that nobody holds; returns those that are available at once."""
        available = []
        for message in messages:
            times = message.times
            if times is None:
                available.append(message)
                continue
            if times.deliver_at > state.time:
                times.waits_until = times.deliver_at
            state.schedule(message, times)
            if times.is_unborn:
                self.unborn += 1
                self.unborn_bytes += message.size_bytes
            elif times.is_delayed:
                self.delayed += 1
                self.delayed_bytes += message.size_bytes
            else:
                available.append(message)
        return available

    def stop_waiting(self, message: Message) -> None:
        """Ends that a message is unborn or delayed; it is not available by that."""
        assert message.times is not None, "only what waits stops"
        if message.times.is_unborn:
            self.unborn -= 1
            self.unborn_bytes -= message.size_bytes
        else:
            self.delayed -= 1
            self.delayed_bytes -= message.size_bytes
            # Whether it waits again stands in a checkpoint; births follow from the time.
            self.touched_blocks[message.sequence // BLOCK_MESSAGES] = None
        message.wait_until(-1)
        if self.group_order is not None:
            self.group_order.free(self, message)

    def delay(self, message: Message, until: int) -> None:
        """Lets a message that came back wait until a moment in µs (INF-10)."""
        self.delayed += 1
        self.delayed_bytes += message.size_bytes
        message.wait_until(until)
        if self.group_order is not None:
            self.group_order.hold(message)

    def withdraw(self, message: Message) -> None:
        """Takes a message that nobody holds from those that wait."""
        if message.waits:
            self.stop_waiting(message)
        else:
            self.available.leave()

    def move_away(self, message: Message) -> None:
        """Takes out for good a message that goes elsewhere, that neither waits nor is held."""
        self.forget(message)
        self.moved += 1

    def discard(self, message: Message) -> None:
        """Takes out for good a message that has nowhere to go, that neither waits nor is held."""
        self.forget(message)
        self.dropped += 1

    def remove(self, message: Message) -> None:
        """Takes out for good, by hand, a message that neither waits nor is held."""
        self.forget(message)
        self.removed_by_administration += 1

    def expire(self, message: Message) -> None:
        """Takes out for good a message whose time is over, that neither waits nor is held."""
        self.forget(message)
        self.expired += 1

    def forget(self, message: Message) -> None:
        """Takes a numbered message out of the queue for good."""
        sequence = message.sequence
        del self.messages[sequence]
        if self.group_order is not None:
            self.group_order.remove(message)
        self.message_bytes -= message.size_bytes
        if isinstance(message, GroupedMessage):
            self._leave_group(message.group, message)
        if self.doubts:
            self.doubts.pop(sequence, None)
        if self.received:
            self.received.pop(sequence, None)
        self.touched_blocks[sequence // BLOCK_MESSAGES] = None
        self.last_consumed_enqueued_at = message.enqueued_at
        if self.stores:
            message.segment.release(message.size_bytes)

    def release_all(self) -> None:
        """Gives up the room of all its messages, because it goes with them."""
        for message in self.messages.values():
            message.segment.release(message.size_bytes)
        self.messages = {}

    def _leave_group(self, group: Group, item: GroupedMessage) -> None:
        clashing = bool(group.clashing)
        group.remove(item)
        if not group.slots:
            del self.groups[group.group_id]
        elif clashing and self.orders:
            # What clashed with it may be a member now.
            for order in self.orders.values():
                order.offer_wanted([one for one in group.members() if one.is_here])

    @property
    def min_sequence(self) -> int:
        """Number of the first unconsumed message, or the next number (SEQ-06, SEQ-09)."""
        return next(iter(self.messages), self.next_sequence)

    @property
    def max_sequence(self) -> int:
        """Number of the last unconsumed message, or the next number (SEQ-07, SEQ-09)."""
        return next(reversed(self.messages), self.next_sequence)
