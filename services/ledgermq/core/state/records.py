"""The records of the state that name each other: messages, what has them, who gets them.

Fields, and what follows from fields alone; what happens to them is decided elsewhere. A message is
in one of three places, and INF-19 rests on it: in the open puts of a session (uncommitted put),
among the available or waiting messages of its queue, or among the deliveries of a session. Numbered
messages stand in `Queue.messages` in the last two cases.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Final

from ledgermq.core.state.group import Group
from ledgermq.core.state.group_order import GroupOrder, SortKey
from ledgermq.core.state.held_header import HeldHeader
from ledgermq.core.state.known_ids import Deduplication, OpenId
from ledgermq.core.state.message_states import (
    GONE_BY,
    PUBLISHED,
    UNACKNOWLEDGED,
    UNCOMMITTED,
    UNCOMMITTED_GET,
)
from ledgermq.core.state.resume_mark import ResumeMark
from ledgermq.core.state.storage import Segment
from ledgermq.core.state.taken import Taken
from ledgermq.core.state.topics import ENDED, Binding, Publication, SubscriptionKey
from ledgermq.core.structures.available import Available
from ledgermq.core.structures.by_value import ByValue
from ledgermq.core.structures.lazy_heap import LazyHeap
from ledgermq.core.structures.newest import Newest
from ledgermq.protocol.get_options import PLAIN, GroupPosition, Options
from ledgermq.protocol.operations import Commit
from ledgermq.protocol.outcomes import Origin, Reply
from ledgermq.protocol.settings import DEFAULTS, Settings
from ledgermq.selector import Selector, text_of

SIZE: Final = attrgetter("size_bytes")
# By which what comes first is found: in order of delivery, and of what was made.
SORT_KEY: Final = attrgetter("sort_key")
CREATED_POSITION: Final = attrgetter("created_position")
# The text of a selector, empty for none, and the options.
OrderKey = tuple[str, Options]
# Name and partition.
SourceKey = tuple[str, int]
# In flight, waits since, session, number: who comes first among the consumers that wait.
WaitingKey = tuple[int, int, int, int, int]


@dataclass(slots=True, eq=False, repr=False)
class Times:
    """When a message expires and when it may be delivered, in µs, and how often; -1: none.

    A numbered message that is in nobody's hands and not to be delivered yet waits until a moment:
    it is unborn, or delayed. What is unborn was never delivered, and waits for its own birth.
    """

    expires_at: int
    deliver_at: int
    redelivery_limit: int = -1
    waits_until: int = -1

    @property
    def is_unborn(self) -> bool:
        """Whether it waits to be delivered for the first time (INF-01)."""
        return 0 <= self.waits_until == self.deliver_at

    @property
    def is_delayed(self) -> bool:
        """Whether it waits to be delivered again (INF-10)."""
        return 0 <= self.waits_until != self.deliver_at

    @property
    def is_empty(self) -> bool:
        return self.expires_at < 0 and self.deliver_at < 0 and self.redelivery_limit < 0


class Message:
    """A live message; its body stays in the log at (put_position, put_index), or at `body`."""

    __slots__ = (
        "backout_count",
        "body",
        "consumer",
        "enqueued_at",
        "header",
        "message_id",
        "origin",
        "persistent",
        "priority",
        "put_index",
        "put_position",
        "queue",
        "segment",
        "sequence",
        "size_bytes",
        "times",
    )

    # Where it is stored; every message that was accepted has one.
    segment: Segment
    # Those of a message in no group; kept by class, so that they cost it nothing.
    group: Group[GroupedMessage] | None = None
    group_sequence: int = 1
    flags: int = 0
    offset: int = 0
    length: int = 0

    def __init__(
        self,
        queue: Queue,
        put_position: int,
        put_index: int,
        message_id: bytes,
        priority: int,
        persistent: bool,
        size_bytes: int,
        header: HeldHeader | None = None,
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
        # Where it was before it was moved here.
        self.origin: Origin | None = None
        self.backout_count = 0
        self.consumer: Consumer | None = None
        # Where it was written again last (H24).
        self.body: tuple[int, int] | None = None

    @property
    def is_held(self) -> bool:
        return self.consumer is not None

    @property
    def is_available(self) -> bool:
        """Whether a numbered message that is in its queue is available."""
        return self.consumer is None and not self.waits

    @property
    def waits(self) -> bool:
        return self.times is not None and self.times.waits_until >= 0

    @property
    def is_delayed(self) -> bool:
        return self.times is not None and self.times.is_delayed

    def wait_until(self, moment: int) -> None:
        """Lets it wait until a moment in µs; -1: no longer."""
        times = self.times or Times(-1, -1)
        times.waits_until = moment
        self.times = None if moment < 0 and times.is_empty else times

    @property
    def sort_key(self) -> SortKey:
        """The place of a numbered message in delivery order: highest priority, lowest number."""
        return (-self.priority, self.sequence)

    @property
    def group_key(self) -> bytes | None:
        """What its group goes by: JMSXGroupID if it is text, else the group id."""
        if self.header is not None:
            named = self.header.properties.get("JMSXGroupID")
            if isinstance(named, str):
                return named.encode()
        return None if self.group is None else self.group.group_id

    @property
    def body_position(self) -> tuple[int, int]:
        return self.body or (self.put_position, self.put_index)


class GroupedMessage(Message):
    """A message of a group; `group` is that of its queue, before numbering of its unit of work."""

    __slots__ = ("flags", "group", "group_sequence")

    group: Group[GroupedMessage]


class SegmentMessage(GroupedMessage):
    """A segment: its data are `length` long from `offset` on in their logical message."""

    __slots__ = ("length", "offset")


def bytes_of(messages: Iterable[Message]) -> int:
    return sum(map(SIZE, messages))


class Order(Available[Message]):
    """The messages that a selector and options want; `users` are the consumers that use it.

    `wants` says whether it wants a message, by what never changes of that. It is in `filled`, of
    all orders of the queue those that have entries, from when something is added on.
    """

    __slots__ = ("filled", "options", "selector", "users", "wants")

    def __init__(
        self,
        selector: Selector | None,
        options: Options,
        wants: Callable[[Message], bool],
        may_be_taken: Callable[[Message], bool],
        filled: dict[Order, None],
    ) -> None:
        super().__init__(may_be_taken)
        self.selector = selector
        self.options = options
        self.wants = wants
        self.filled = filled
        self.users: dict[tuple[int, int], Consumer] = {}

    def extend(self, items: Iterable[Message]) -> None:
        super().extend(items)
        if self.has_entries:
            self.filled[self] = None

    def offer(self, item: Message) -> None:
        super().offer(item)
        self.filled[self] = None

    @property
    def is_of_whole_queue(self) -> bool:
        """Whether it leaves nothing out for what a message says; there are 16 such orders."""
        return self.selector is None and self.options[4:] == PLAIN[4:]


@dataclass(slots=True, eq=False, repr=False)
class Affinity:
    """Which consumer of a queue each bucket of groups is bonded to.

    `aside` is what came up in an order that others use too, for whom it belongs to.
    """

    bonds: dict[int, Consumer] = field(default_factory=dict)
    aside: dict[Available[Message], dict[tuple[int, int], LazyHeap[SortKey]]] = field(
        default_factory=dict
    )


@dataclass(slots=True, eq=False, repr=False)
class Queue:
    name: str
    created_position: int
    description: str = ""
    message_bytes_max: int = 0
    gets_disabled: bool = False
    unacknowledged_max: int = 0
    # What it says itself; and that with what it takes from the queue manager.
    own_settings: Settings = DEFAULTS
    settings: Settings = DEFAULTS
    inherits_redelivery: bool = True
    # The connection that a temporary queue lives with.
    owner: Connection | None = None
    next_sequence: int = 0
    last_consumed_enqueued_at: int = -1
    # The first number that may still be within the maximum lifetime.
    lifetime_sequence: int = 0
    # How many messages are in each state, and their bytes; how many are gone for each cause.
    counts: list[int] = field(default_factory=lambda: [0] * (PUBLISHED + 1))
    sizes: list[int] = field(default_factory=lambda: [0] * (PUBLISHED + 1))
    gone: dict[str, int] = field(default_factory=lambda: dict.fromkeys(GONE_BY.values(), 0))
    # The most that it held at a time, current and pending.
    messages_high: int = 0
    bytes_high: int = 0
    # By rising sequence number.
    messages: dict[int, Message] = field(default_factory=dict)
    available: Available[Message] = field(default_factory=lambda: Available(may_be_given))
    # Those of what its consumers select.
    orders: dict[OrderKey, Order] = field(default_factory=dict)
    orders_by_value: ByValue[OrderKey, Order, Message] = field(default_factory=ByValue)
    filled_orders: dict[Order, None] = field(default_factory=dict)
    # Its consumers that select nothing.
    unselecting: dict[tuple[int, int], Consumer] = field(default_factory=dict)
    groups: dict[bytes, Group[GroupedMessage]] = field(default_factory=dict)
    # The groups that only one consumer gets, because it is inside of them.
    reserved: dict[bytes, Consumer] = field(default_factory=dict)
    affinity: Affinity | None = None
    # None: groups do not keep their order.
    group_order: GroupOrder[Message] | None = None
    # Messages in doubt by number, and how many of their backouts do not count (H20).
    doubts: dict[int, int] = field(default_factory=dict)
    consumers: dict[tuple[int, int], Consumer] = field(default_factory=dict)
    # Those of them that have credit and are not held back; in order, once several were at a time.
    ready: dict[tuple[int, int], Consumer] = field(default_factory=dict)
    waiting: LazyHeap[WaitingKey] | None = None
    # What was received and is here, in the order of first delivery; None: CONCURRENT (DB-22).
    received: OrderedDict[int, None] | None = None
    # The last position taken of each partition of a source (§5).
    sources: dict[SourceKey, int] = field(default_factory=dict)
    # Whether it delivers to one consumer at a time; to which it delivered last (§18).
    single_active_consumer: bool = False
    active: Consumer | None = None
    # How many messages are available at most, 0: any number; of which value one alone (§23).
    available_max: int = 0
    last_value_key: str = ""
    newest: Newest[Message] | None = None
    # None: it does not look for puts that come twice.
    deduplication: Deduplication | None = None
    # None: puts that wait for its quota go on when there is room.
    resume_mark: ResumeMark | None = None
    # Blocks changed since the checkpointer looked last; nothing in the fold reads it.
    touched_blocks: dict[int, None] = field(default_factory=dict)
    # What the last checkpoint told of it, None once that changed; nothing in the fold reads it.
    taken: Taken | None = None

    @property
    def retires(self) -> bool:
        """Whether nothing keeps it once its last receiver is gone; of subscriptions only."""
        return False

    @property
    def destination(self) -> str:
        return "queue:" + self.name

    @property
    def temporary(self) -> bool:
        return self.owner is not None

    @property
    def receivers(self) -> int:
        """How many consumers are open."""
        return len(self.consumers)

    @property
    def in_flight(self) -> int:
        return self.counts[UNACKNOWLEDGED] + self.counts[UNCOMMITTED_GET]

    @property
    def message_bytes(self) -> int:
        return sum(self.sizes) - self.sizes[UNCOMMITTED]

    @property
    def held_messages(self) -> int:
        """How many messages count against its quota: current and pending ones."""
        return sum(self.counts)

    @property
    def held_bytes(self) -> int:
        return sum(self.sizes)

    @property
    def unconsumed(self) -> dict[int, Message] | dict[int, Publication]:
        """By rising sequence number, so that its ends are the lowest and the highest."""
        return self.messages

    @property
    def message_count(self) -> int:
        return len(self.unconsumed)

    @property
    def min_sequence(self) -> int:
        """Number of the first unconsumed message, or the next number (SEQ-06, SEQ-09)."""
        return next(iter(self.unconsumed), self.next_sequence)

    @property
    def max_sequence(self) -> int:
        """Number of the last unconsumed message, or the next number (SEQ-07, SEQ-09)."""
        return next(reversed(self.unconsumed), self.next_sequence)


def may_be_given(message: Message) -> bool:
    """Whether a message may be delivered now: it is in its queue, in nobody's hands, not delayed,
    behind no delayed one of its group that keeps its order, and its group is reserved for nobody.
    """
    queue = message.queue
    if message.consumer is not None or queue.messages.get(message.sequence) is not message:
        return False
    if message.waits:
        return False
    if queue.group_order is not None and queue.group_order.holds_back(message):
        return False
    return (
        not queue.reserved or message.group is None or message.group.group_id not in queue.reserved
    )


@dataclass(slots=True, eq=False, repr=False)
class Subscription(Queue):
    """A subscription: the messages of a topic that it has and nobody consumed yet.

    Everything that consumers do with a queue they do with it.
    """

    topic: Topic = field(kw_only=True)
    key: SubscriptionKey = field(kw_only=True)
    shared: bool = field(kw_only=True)
    selector: Selector | None = field(kw_only=True)
    no_local: bool = field(kw_only=True)
    durable: bool = field(kw_only=True)
    added: int = 0

    @property
    def destination(self) -> str:
        return self.topic.destination

    @property
    def retires(self) -> bool:
        """Whether nothing keeps it: not durable, and no receiver left (SES-43)."""
        return not self.durable and not self.consumers

    @property
    def has_ended(self) -> bool:
        """Whether it is there only for what sessions hold of it."""
        return self.key.kind == ENDED


@dataclass(slots=True, eq=False, repr=False)
class Topic(Queue):
    """A topic: it numbers messages, hands copies to its subscriptions and keeps none itself.

    A topic message gets one number, also without subscribers, and is unconsumed while any
    subscription still has it (SEQ-17). Those that left without being consumed count as dropped: no
    subscription wanted them and it does not move these, or the last that had them went.
    """

    # By rising sequence number, as the messages of a queue.
    publications: dict[int, Publication] = field(default_factory=dict)
    subscriptions: dict[int, Subscription] = field(default_factory=dict)
    # Those of them that are handed copies: a publication looks at those only that may want it.
    by_value: ByValue[int, Subscription, Message] = field(default_factory=ByValue)
    # Whether what no subscription wants goes to the error destination.
    moves_unrouted: bool = False
    # The bindings that take in its name, by creation: a publication looks at few of those, too.
    bindings: ByValue[int, Binding, Message] = field(default_factory=ByValue)

    @property
    def destination(self) -> str:
        return "topic:" + self.name

    @property
    def receivers(self) -> int:
        """How many consumers all of its subscriptions have open."""
        return sum(one.receivers for one in self.subscriptions.values())

    @property
    def unconsumed(self) -> dict[int, Publication]:
        """What a subscription still has (SEQ-17)."""
        return self.publications


@dataclass(slots=True, eq=False, repr=False)
class Consumer:
    """A consumer of one queue in one session; a receiver of the queue while it is open."""

    session: Session
    number: int
    queue: Queue
    selector: Selector | None = None
    # -1: that of the session (INF-15).
    redelivery_delay_ms: int = -1
    consumer_priority: int = 0
    credit: int = 0
    in_flight: int = 0
    waiting_since: int = 0
    open: bool = True
    # Its delivery in doubt that was not reported as handed over; 0: none (H20).
    doubt: int = 0
    options: Options = PLAIN
    # The order of what it selects; None: that of all.
    order: Order | None = None
    # What comes next in the group that it is in, and what came after what it consumed last.
    group_position: GroupPosition | None = None
    settled_position: GroupPosition | None = None
    # The group that nobody else gets.
    reserved_group: bytes | None = None

    @property
    def order_key(self) -> OrderKey | None:
        """Key of the order of what it selects; None: that of all."""
        if self.selector is None and self.options == PLAIN:
            return None
        return (text_of(self.selector), self.options)

    @property
    def key(self) -> tuple[int, int]:
        return (self.session.handle, self.number)

    def hold(self, count: int) -> None:
        """Counts so many deliveries more, or fewer, that are in flight."""
        held, created = self.session.in_flight, self.queue.created_position
        self.in_flight += count
        held[created] = held.get(created, 0) + count
        if not held[created]:
            del held[created]


@dataclass(slots=True, eq=False, repr=False)
class Connection:
    """A client's connection: the lane that it reads and the end of its chain of outcomes."""

    identity: bytes
    lane: int
    client_id: str = ""
    takeover: bytes = b""
    # Its temporary queues and topics, by destination; they live as long as it does.
    owned: dict[str, Queue] = field(default_factory=dict)
    last_position: int = -1
    last_index: int = -1
    sessions: dict[int, Session] = field(default_factory=dict)


@dataclass(slots=True, eq=False, repr=False)
class Session:
    handle: int
    connection: Connection
    session_key: bytes
    acknowledge_mode: str
    suspect_timeout_ms: int
    redelivery_delay_ms: int = 0
    transacted: bool = field(init=False)
    confirmed: bool = False
    suspected: bool = False
    deadline: int = -1
    last_sequence: int = 0
    answered_through: int = 0
    replies: dict[int, Reply] = field(default_factory=dict)
    next_delivery: int = 1
    consumer_highest: int = 0
    consumers: dict[int, Consumer] = field(default_factory=dict)
    deliveries: dict[int, Message] = field(default_factory=dict)
    # How many of them each of its queues has, by creation; those that have some.
    in_flight: dict[int, int] = field(default_factory=dict)
    # Up to where the application was handed everything; what is in flight above that and was
    # reported as handed over too.
    handed_through: int = 0
    handed_doubts: dict[int, None] = field(default_factory=dict)
    # By destination; how much they take together.
    open_puts: dict[str, list[Message]] = field(default_factory=dict)
    open_bytes: int = 0
    open_ids: list[OpenId] = field(default_factory=list)
    # Time in µs of the first operation of the unit of work, as long as it holds something.
    unit_of_work_began_at: int = -1
    # What or who ended it, and why, until the session rolls back; else empty.
    unit_of_work_ended_by: str = ""
    # Whether that was a time limit. The limits of the session itself; when a unit of work that
    # holds something breaks one, in µs; -1: never.
    unit_of_work_timed_out: bool = False
    unit_of_work_time_limit_ms: int = 0
    unit_of_work_idle_limit_ms: int = 0
    unit_of_work_over_at: int = -1
    unit_of_work_idle_at: int = -1
    # The groups among them, by destination and group id.
    open_groups: dict[tuple[str, bytes], Group[GroupedMessage]] = field(default_factory=dict)
    # Puts that wait for a quota, by their numbers; the commit that waits for them.
    blocked: dict[int, BlockedPut] = field(default_factory=dict)
    waiting_commit: Commit | None = None

    def __post_init__(self) -> None:
        self.transacted = self.acknowledge_mode == "TRANSACTED"

    @property
    def has_unit_of_work(self) -> bool:
        return self.transacted and bool(self.open_puts or self.deliveries)


@dataclass(slots=True, eq=False, repr=False, kw_only=True)
class BlockedPut:
    """A put that waits for a quota; times in µs.

    `created_position` is that of its destination, or its own position where there was none;
    `logical_order` are the indexes of messages whose writer keeps the logical order.
    """

    position: int
    session: Session
    sequence: int
    destination: str
    created_position: int
    since: int
    deadline: int
    messages: list[Message]
    logical_order: list[int]
    deduplication_id: str | None = None

    @property
    def size_bytes(self) -> int:
        return bytes_of(self.messages)
