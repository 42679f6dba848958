"""Topics and subscriptions as state: a topic numbers messages, its subscriptions keep them.

A topic message gets one number, also without subscribers, and is unconsumed while any subscription
still has it (SEQ-17). A subscription is a queue of its own that holds copies under the topic's
numbers: everything that consumers do with a queue they do with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ledgermq.core.fifo import use_fifo_mode
from ledgermq.core.group_order import use_group_order
from ledgermq.core.selecting import matches, value_in
from ledgermq.core.state import Connection, Message, Queue, QueueManager
from ledgermq.protocol.limits import BLOCK_MESSAGES
from ledgermq.selector import Selector

__all__ = ["Publication", "Subscription", "SubscriptionKey", "Topic"]

# How a message leaves a subscription.
CONSUMED, EXPIRED, MOVED, DROPPED = "consumed", "expired", "moved", "dropped"
# The kind of a shared subscription that has ended while deliveries of it are in flight (SES-43).
ENDED = "ended"


class SubscriptionKey(NamedTuple):
    """Identity of a subscription: `kind` durable, shared, consumer or ended (SES-41, 45, 61).

    Durable ones, shared or not, share their names (SES-60); shared ones that are not durable have
    names apart (SES-61). That of a single consumer is named by its session and number, one that
    has ended while deliveries of it are in flight by its name and creation.
    """

    kind: str
    name: str
    client_id: str


class Publication:
    """A topic message that some subscription still has: how many, and when it was numbered."""

    __slots__ = ("enqueued_at", "holders")

    def __init__(self, enqueued_at: int) -> None:
        self.enqueued_at = enqueued_at
        self.holders = 0


class Subscription(Queue):
    """A subscription: the messages of a topic that it has and nobody consumed yet."""

    __slots__ = ("added", "durable", "key", "no_local", "selector", "shared", "topic")

    def __init__(
        self,
        topic: Topic,
        key: SubscriptionKey,
        created_position: int,
        *,
        shared: bool,
        selector: Selector | None,
        no_local: bool,
    ) -> None:
        super().__init__(key.name, created_position)
        self.topic = topic
        self.key = key
        self.settings = topic.settings
        self.unacknowledged_max = topic.unacknowledged_max
        use_fifo_mode(self)
        use_group_order(self)
        self.durable = key.kind == "durable"
        self.shared = shared
        self.selector = selector
        self.no_local = no_local
        self.added = 0

    @property
    def destination(self) -> str:
        """What its consumers call it: the topic."""
        return self.topic.destination

    # The topic stores them, once for all subscriptions.
    stores = False

    @property
    def retires(self) -> bool:  # type: ignore[override]
        """Whether nothing keeps it: not durable, and no receiver left (SES-43)."""
        return not self.durable and not self.consumers

    @property
    def has_ended(self) -> bool:
        """Whether it is there for what sessions hold of it only."""
        return self.key.kind == ENDED

    def end(self) -> None:
        """Gives up its name, and gets nothing more."""
        self.topic.hand_no_more(self)
        name = f"{self.key.name}#{self.created_position}"
        self.key = SubscriptionKey(ENDED, name, self.key.client_id)
        self.name = name

    def wants(self, message: Message, sender: Connection | None) -> bool:
        """Whether a published message is for it: noLocal, then the selector (SES-53, SES-71)."""
        if self.no_local and sender is not None and self._is_local(sender):
            return False
        return self.selector is None or matches(self.selector, message)

    def _is_local(self, sender: Connection) -> bool:
        if sender.client_id and sender.client_id == self.key.client_id:
            return True
        return any(one.session.connection is sender for one in self.consumers.values())

    def add(self, state: QueueManager, published: Message) -> None:
        """Keeps a copy of a message that was just numbered."""
        copy = published.copy_for(self)
        state.lifetimes.note(self, copy.enqueued_at)
        self.messages[copy.sequence] = copy
        self.message_bytes += copy.size_bytes
        self.note_high()
        if self.group_order is not None:
            self.group_order.add([copy])
        self.available.extend(self.wait_for_birth(state, [copy]))
        self.touched_blocks[copy.sequence // BLOCK_MESSAGES] = None
        self.next_sequence = copy.sequence + 1
        self.added += 1

    def consume(self, message: Message) -> None:
        """Takes a message out for good; the topic counts it with its last copy."""
        super().consume(message)
        self.topic.let_go(message, CONSUMED)

    def expire(self, message: Message) -> None:
        """Takes out a message whose time is over; the topic counts it with its last copy."""
        super().expire(message)
        self.topic.let_go(message, EXPIRED)

    def move_away(self, message: Message) -> None:
        """Takes out a message that goes elsewhere; the topic counts it with its last copy."""
        super().move_away(message)
        self.topic.let_go(message, MOVED)

    def discard(self, message: Message) -> None:
        """Takes out a message that has nowhere to go; the topic counts it with its last copy."""
        super().discard(message)
        self.topic.let_go(message, DROPPED)

    def remove(self, message: Message) -> None:
        """Takes out a message by hand; the topic counts it as dropped with its last copy."""
        super().remove(message)
        self.topic.let_go(message, DROPPED)

    def drop(self) -> None:
        """Lets go of all messages, because the subscription goes."""
        for message in self.messages.values():
            self.topic.let_go(message, DROPPED)
        self.messages = {}
        self.message_bytes = 0


class Topic(Queue):
    """A topic: it numbers messages, hands copies to its subscriptions and keeps none itself.

    `dropped` counts messages that left without being consumed: no subscription wanted them, or the
    last that had them went.
    """

    __slots__ = ("_by_value", "_reached", "dropped", "publications", "subscriptions")

    def __init__(self, name: str, created_position: int) -> None:
        super().__init__(name, created_position)
        self.dropped = 0
        # By rising sequence number, as the messages of a queue.
        self.publications: dict[int, Publication] = {}
        self.subscriptions: dict[int, Subscription] = {}
        # Subscriptions whose selector asks for one value of an identifier, by that value; the
        # others stand under "". A publication looks at those that may want it only.
        self._by_value: dict[str, dict[str | bool, dict[int, Subscription]]] = {}
        self._reached: dict[int, Subscription] = {}

    @property
    def destination(self) -> str:
        """What its consumers and producers call it."""
        return "topic:" + self.name

    def enqueue(
        self, state: QueueManager, messages: list[Message], sender: Connection | None
    ) -> int:
        """Numbers messages and hands copies to the subscriptions there are now (SES-70)."""
        first = self.next_sequence
        for sequence, message in enumerate(messages, first):
            message.sequence = sequence
            message.enqueued_at = state.time
            self._publish(state, message, sender)
        self.next_sequence = first + len(messages)
        self.note_high()
        return first

    @property
    def held_messages(self) -> int:
        """Unconsumed messages and uncommitted puts: each once, whoever has it."""
        return len(self.publications) + self.uncommitted_puts

    def _publish(self, state: QueueManager, message: Message, sender: Connection | None) -> None:
        publication = Publication(message.enqueued_at)
        for subscription in self._candidates(message):
            if subscription.wants(message, sender):
                subscription.add(state, message)
                publication.holders += 1
                self._reached[subscription.created_position] = subscription
        if publication.holders:
            self.publications[message.sequence] = publication
            self.message_bytes += message.size_bytes
        else:
            self.dropped += 1
            self.last_consumed_enqueued_at = message.enqueued_at
            message.segment.release(message.size_bytes)

    def _candidates(self, message: Message) -> list[Subscription]:
        """Subscriptions that may want a message, in the order in which they were made."""
        found: list[Subscription] = []
        for name, by_value in self._by_value.items():
            value = "" if name == "" else value_in(message, name)
            if isinstance(value, (str, bool)):
                found.extend(by_value.get(value, {}).values())
        found.sort(key=_created_position)
        return found

    def served(self) -> Iterable[Queue]:
        """The subscriptions that were reached since this was last asked."""
        reached, self._reached = self._reached, {}
        return reached.values()

    def let_go(self, message: Message, how: str) -> None:
        """A subscription no longer has a message; the last one decides how it is counted."""
        publication = self.publications[message.sequence]
        publication.holders -= 1
        if publication.holders:
            return
        del self.publications[message.sequence]
        self.message_bytes -= message.size_bytes
        message.segment.release(message.size_bytes)
        self.last_consumed_enqueued_at = publication.enqueued_at
        if how == CONSUMED:
            self.sent_and_committed += 1
        elif how == EXPIRED:
            self.expired += 1
        elif how == MOVED:
            self.moved += 1
        else:
            self.dropped += 1

    def subscribe(self, subscription: Subscription) -> None:
        """Hands later messages to a subscription."""
        position = subscription.created_position
        self.subscriptions[position] = subscription
        if not subscription.has_ended:
            name, value = _asked_value(subscription.selector)
            self._by_value.setdefault(name, {}).setdefault(value, {})[position] = subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        """Ends what `subscribe` began."""
        del self.subscriptions[subscription.created_position]
        if not subscription.has_ended:
            self.hand_no_more(subscription)

    def hand_no_more(self, subscription: Subscription) -> None:
        """Hands no later messages to a subscription."""
        position = subscription.created_position
        self._reached.pop(position, None)
        name, value = _asked_value(subscription.selector)
        by_value = self._by_value[name]
        del by_value[value][position]
        if not by_value[value]:
            del by_value[value]
        if not by_value:
            del self._by_value[name]

    def release_all(self) -> None:
        """Gives up the room of all that its subscriptions have."""
        for subscription in self.subscriptions.values():
            subscription.drop()

    def find_publications(self) -> None:
        """Works out who still has which message, from the subscriptions (after a restart)."""
        found: dict[int, Publication] = {}
        for message in self._kept():
            publication = found.get(message.sequence)
            if publication is None:
                publication = found[message.sequence] = Publication(message.enqueued_at)
                self.message_bytes += message.size_bytes
                message.segment.hold(message.size_bytes)
            publication.holders += 1
        self.publications = dict(sorted(found.items()))

    def _kept(self) -> Iterator[Message]:
        for subscription in self.subscriptions.values():
            yield from subscription.messages.values()

    @property
    def min_sequence(self) -> int:
        """Number of the first message that a subscription still has, or the next (SEQ-17)."""
        return next(iter(self.publications), self.next_sequence)

    @property
    def max_sequence(self) -> int:
        """Number of the last message that a subscription still has, or the next (SEQ-17)."""
        return next(reversed(self.publications), self.next_sequence)


def _created_position(subscription: Subscription) -> int:
    return subscription.created_position


def _asked_value(selector: Selector | None) -> tuple[str, str | bool]:
    """The identifier and value that a message must have to match, or two empty texts."""
    if selector is not None:
        for name, value in selector.equalities:
            if isinstance(value, (str, bool)):
                return name, value
    return "", ""
