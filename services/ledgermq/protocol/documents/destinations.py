"""Queues, topics and subscriptions as answers report them (PROTOCOL.md §9)."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ledgermq.protocol.documents.fields import BESIDE
from ledgermq.protocol.topic_patterns import names_of, takes_in


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockedStatus:
    """Sends that a quota holds up; they are in no other figure (INF-05).

    Attributes:
        puts: Operations that wait.
        messages: Messages of those.
        bytes: Sizes of these messages.
        since: Log time of the one that has waited longest; None: nothing waits.
    """

    puts: int
    messages: int
    bytes: int
    since: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueStatus:
    """One queue at one log position; current + pending = message_count + uncommitted_puts.

    The same holds for bytes, which are sizes of content and header; what a count counts, the
    figure of its name and `_bytes` sums up.

    Attributes:
        position: Log position that this is true at.
        message_bytes_max: Largest content of a message in bytes; 0: the limit of the log.
        unacknowledged_max: How many of its messages a session may hold unsettled before it is
            given no more (SES-07); 0: no limit.
        group_affinity: Whether the messages of a group all go to one consumer.
        groups: Groups, and messages in segments, of which it holds something.
        temporary: Whether it ends with the connection that made it (SES-39).
        settings: Its further settings by name, as in `ledgermq.QueueSettings`.
        inherited: Settings of redelivery that it takes from the queue manager, by name.
        receivers: Open consumers.
        moved: Messages that went elsewhere by a rule, or because an administrator moved them.
        dropped: Messages that were delivered too often and had nowhere to go.
        current: Messages available.
        pending: Unborn, delayed, uncommitted puts, unacknowledged and uncommitted gets together.
        expired: Messages whose time to live or lifetime ran out (SES-66, DB-18).
        unborn: Messages that are not to be delivered yet (INF-01).
        delayed: Messages that came back and wait for their redelivery delay (INF-10).
        min_sequence: Number of the first unconsumed message, or the next number without any.
        max_sequence: Number of the last unconsumed message, or the next number without any.
        first_enqueued_at: When that first one was numbered; None: the queue never held any.
        messages_high: The most messages that it held at a time, current and pending.
        bytes_high: The most bytes of messages that it held at a time.
        blocked: Sends that a quota holds up; None where all queues were asked for.
    """

    name: str
    position: int = field(metadata=BESIDE)
    created_position: int
    description: str
    message_bytes_max: int
    unacknowledged_max: int
    group_affinity: bool
    groups: int
    temporary: bool
    gets_disabled: bool
    settings: dict[str, Any]
    inherited: dict[str, Any]
    receivers: int
    message_count: int
    sent_and_committed: int
    expired: int
    displaced: int
    removed_by_administration: int
    moved: int
    dropped: int
    min_sequence: int
    max_sequence: int
    next_sequence: int
    first_enqueued_at: datetime | None
    last_enqueued_at: datetime | None
    current: int
    pending: int
    unborn: int
    delayed: int
    uncommitted_puts: int
    unacknowledged: int
    uncommitted_gets: int
    message_bytes: int
    current_bytes: int
    pending_bytes: int
    unborn_bytes: int
    delayed_bytes: int
    uncommitted_puts_bytes: int
    unacknowledged_bytes: int
    uncommitted_gets_bytes: int
    messages_high: int
    bytes_high: int
    blocked: BlockedStatus | None = None

    @property
    def destination(self) -> str:
        """The queue as a destination."""
        return f"queue:{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicStatus:
    """One topic at one log position; a message counts while a subscription has it (SEQ-17).

    next_sequence = sent_and_committed + expired + displaced + moved + dropped + message_count.

    Attributes:
        position: Log position that this is true at.
        message_bytes_max: Largest content of a message in bytes; 0: the limit of the log.
        unacknowledged_max: How many messages of a subscription a session may hold unsettled
            before it is given no more of that (SES-07); 0: no limit.
        temporary: Whether it ends with the connection that made it (SES-39).
        settings: Its further settings by name, and those of its subscriptions.
        inherited: Settings of redelivery that it takes from the queue manager, by name.
        subscriptions: Subscriptions of every kind.
        receivers: Open consumers of all of them.
        message_count: Messages that at least one subscription has and did not consume.
        sent_and_committed: Messages of which the last copy was consumed.
        moved: Messages of which the last copy went elsewhere, and, if the topic moves these, that
            no subscription wanted.
        dropped: Other messages that no subscription wanted; those whose last subscription went, or
            of which administration removed the last copy.
        min_sequence: Number of the first unconsumed message, or the next number without any.
        max_sequence: Number of the last unconsumed message, or the next number without any.
        first_enqueued_at: When that first one was numbered; None: the topic never had any.
        message_bytes: Sizes of what `message_count` counts, each once.
        messages_high: The most messages that it held at a time, uncommitted puts too.
        bytes_high: The most bytes of messages that it held at a time.
        blocked: Sends that a quota holds up; None where all topics were asked for.
    """

    name: str
    position: int = field(metadata=BESIDE)
    created_position: int
    description: str
    message_bytes_max: int
    unacknowledged_max: int
    temporary: bool
    settings: dict[str, Any]
    inherited: dict[str, Any]
    subscriptions: int
    receivers: int
    message_count: int
    sent_and_committed: int
    expired: int
    displaced: int
    moved: int
    dropped: int
    min_sequence: int
    max_sequence: int
    next_sequence: int
    first_enqueued_at: datetime | None
    last_enqueued_at: datetime | None
    uncommitted_puts: int
    message_bytes: int
    uncommitted_puts_bytes: int
    messages_high: int
    bytes_high: int
    blocked: BlockedStatus | None = None

    @property
    def destination(self) -> str:
        """The topic as a destination."""
        return f"topic:{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionStatus:
    """One subscription of a topic at one log position; its messages bear the topic's numbers.

    added = sent_and_committed + expired + displaced + removed_by_administration + moved + dropped +
    message_count; current + pending = message_count.

    Attributes:
        topic: Name of the topic.
        position: Log position that this is true at.
        kind: `durable`, `shared` (not durable), `consumer`: of one consumer alone, or `ended`: a
            shared one without consumers, of which sessions still hold messages.
        name: Its name; of kind `consumer`, session and number of the consumer.
        client_id: Client id that it belongs to, empty for none.
        shared: Whether several consumers may use it at a time.
        selector: What it is restricted to, empty: every message.
        no_local: Whether it leaves out messages of its own connection and client id.
        receivers: Open consumers.
        added: Copies that it was handed since it was made.
        min_sequence: Number of the first message that it has, or the one after the last it had.
        max_sequence: Number of the last message that it has, or the one after the last it had.
        first_enqueued_at: When that first one was numbered; None: it never had any.
        current: Messages available.
        pending: Unborn, delayed, unacknowledged and uncommitted gets together.
        messages_high: The most messages that it held at a time.
        bytes_high: The most bytes of messages that it held at a time.
    """

    topic: str
    position: int = field(metadata=BESIDE)
    created_position: int
    kind: str
    name: str
    client_id: str
    shared: bool
    selector: str
    no_local: bool
    receivers: int
    message_count: int
    added: int
    sent_and_committed: int
    expired: int
    displaced: int
    removed_by_administration: int
    moved: int
    dropped: int
    min_sequence: int
    max_sequence: int
    first_enqueued_at: datetime | None
    last_enqueued_at: datetime | None
    current: int
    pending: int
    unborn: int
    delayed: int
    unacknowledged: int
    uncommitted_gets: int
    message_bytes: int
    current_bytes: int
    pending_bytes: int
    unborn_bytes: int
    delayed_bytes: int
    unacknowledged_bytes: int
    uncommitted_gets_bytes: int
    messages_high: int
    bytes_high: int

    @property
    def durable(self) -> bool:
        """Whether it outlives its consumers."""
        return self.kind == "durable"


@dataclass(frozen=True, slots=True, kw_only=True)
class BindingStatus:
    """What is put to some topics goes on to a destination (PROTOCOL.md §5, Bind).

    Attributes:
        topics: Pattern of their names: words between dots or slashes; `*` is any one word, `#` any
            number of them.
        position: Log position that this is true at.
        destination: Where it goes, as `queue:NAME` or `topic:NAME`.
        selector: What it is restricted to, empty: every message.
        created_position: Log position that it was made at.
    """

    topics: str
    position: int = field(metadata=BESIDE)
    destination: str
    selector: str
    created_position: int

    def takes_in(self, topic: str) -> bool:
        """Whether the name of a topic is one of the pattern."""
        return takes_in(names_of(self.topics), topic)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceStatus:
    """How far a destination has taken a partition of a source, another log (PROTOCOL.md §5).

    Attributes:
        position: Log position that this is true at.
        destination: Which one, as `queue:NAME` or `topic:NAME`.
        name: Name of the source.
        partition: Its partition.
        taken: The last position taken of it.
    """

    position: int = field(metadata=BESIDE)
    destination: str
    name: str
    partition: int
    taken: int
