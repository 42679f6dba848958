"""Statuses as administration reads them: one record per kind of answer (PROTOCOL.md §9)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ledgermq.client.instants import datetime_from
from ledgermq.client.journal_status import JournalBackup
from ledgermq.client.questions import Answer

__all__ = [
    "BlockedStatus",
    "CheckpointStatus",
    "QueueManagerStatus",
    "QueueStatus",
    "SessionStatus",
    "SubscriptionStatus",
    "TopicStatus",
]


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

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> BlockedStatus:
        """From the worker's document."""
        return cls(**_known(cls, document | {"since": _moment(document["since"])}))


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
        receivers: Open consumers.
        moved: Messages that went elsewhere by rule or by hand.
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
    position: int
    created_position: int
    description: str
    message_bytes_max: int
    unacknowledged_max: int
    group_affinity: bool
    groups: int
    temporary: bool
    gets_disabled: bool
    settings: dict[str, Any]
    receivers: int
    message_count: int
    sent_and_committed: int
    expired: int
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

    @classmethod
    def from_document(cls, position: int, document: dict[str, Any]) -> QueueStatus:
        """From the worker's document."""
        return cls(**_known(cls, _told(document, position)))


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicStatus:
    """One topic at one log position; a message counts while a subscription has it (SEQ-17).

    next_sequence = sent_and_committed + expired + moved + dropped + message_count.

    Attributes:
        position: Log position that this is true at.
        message_bytes_max: Largest content of a message in bytes; 0: the limit of the log.
        unacknowledged_max: How many messages of a subscription a session may hold unsettled
            before it is given no more of that (SES-07); 0: no limit.
        temporary: Whether it ends with the connection that made it (SES-39).
        settings: Its further settings by name, and those of its subscriptions.
        subscriptions: Subscriptions of every kind.
        receivers: Open consumers of all of them.
        message_count: Messages that at least one subscription has and did not consume.
        sent_and_committed: Messages of which the last copy was consumed.
        moved: Messages of which the last copy went elsewhere.
        dropped: Messages that no subscription wanted, or whose last subscription went.
        min_sequence: Number of the first unconsumed message, or the next number without any.
        max_sequence: Number of the last unconsumed message, or the next number without any.
        first_enqueued_at: When that first one was numbered; None: the topic never had any.
        message_bytes: Sizes of what `message_count` counts, each once.
        messages_high: The most messages that it held at a time, uncommitted puts too.
        bytes_high: The most bytes of messages that it held at a time.
        blocked: Sends that a quota holds up; None where all topics were asked for.
    """

    name: str
    position: int
    created_position: int
    description: str
    message_bytes_max: int
    unacknowledged_max: int
    temporary: bool
    settings: dict[str, Any]
    subscriptions: int
    receivers: int
    message_count: int
    sent_and_committed: int
    expired: int
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

    @classmethod
    def from_document(cls, position: int, document: dict[str, Any]) -> TopicStatus:
        """From the worker's document."""
        return cls(**_known(cls, _told(document, position)))


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionStatus:
    """One subscription of a topic at one log position; its messages bear the topic's numbers.

    added = sent_and_committed + expired + moved + dropped + message_count;
    current + pending = message_count.

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
    position: int
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

    @classmethod
    def from_document(cls, position: int, document: dict[str, Any]) -> SubscriptionStatus:
        """From the worker's document."""
        return cls(**_known(cls, _told(document, position)))


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueManagerStatus:
    """A queue manager as a whole; `time` is log time, None before the first entry.

    `time_reference` is the append time that log time goes on from, at 7/8 of the clock's pace,
    while it is ahead of the clock because that was set back; None while it is not.
    `queues`, `topics`, `subscriptions`, `connections` and `sessions` are how many there are;
    `maximum_lifetime_ms` is how long a message stays at most, 0: for ever. `messages_max` and
    `bytes_max` are the quotas of all queues and topics together, 0: none; `messages` and `bytes`
    are what counts against them, current and pending (INF-04). `journaling` says whether messages
    put now are journaled (DB-17), `journal_lifetime_ms` how long, 0: for ever; `journal_from` where
    on the log the journal begins, `journal_needed_from` from where on it needs the log, None where
    it is empty; `journal_backup` what its last backup told, None: there was none (DB-19).
    """

    name: str
    position: int
    time: datetime | None
    time_reference: datetime | None
    version: int
    automatic_creation: bool
    maximum_lifetime_ms: int
    messages_max: int
    bytes_max: int
    messages: int
    bytes: int
    journaling: bool
    journal_lifetime_ms: int
    journal_from: int | None
    journal_needed_from: int | None
    journal_backup: JournalBackup | None
    queues: int
    topics: int
    subscriptions: int
    connections: int
    sessions: int
    worker: str

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> QueueManagerStatus:
        """From the worker's document."""
        time = document["time"]
        known = time is not None and time >= 0
        told = {
            "time": datetime_from(time) if known else None,
            "time_reference": _moment(document["time_reference"]),
            "journal_backup": JournalBackup.from_document(document["journal_backup"]),
        }
        return cls(**_known(cls, {**document, **told}))


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionStatus:
    """An open session, named by its handle.

    Attributes:
        client_id: Client id of its connection, empty for none.
        suspected: Whether its client has not been heard of for its suspect time-out.
        consumers: Open consumers.
        consumers_paused: Those of them that get nothing because the session holds as many
            unsettled messages as the queue's `unacknowledged_max` allows.
        consumers_in_doubt: Consumers that get nothing because they were sent a message that an
            application may have fallen over, and have not handed it over yet.
        in_flight: Deliveries not settled.
        open_puts: Messages put in the unit of work that is open.
        unit_of_work_began_at: Since when a unit of work holds something; None: none does.
        unit_of_work_ended: Whether administration ended its unit of work, and it has not rolled
            back yet.
    """

    session: int
    connection: str
    client_id: str
    acknowledge_mode: str
    suspected: bool
    consumers: int
    consumers_paused: int
    consumers_in_doubt: int
    in_flight: int
    open_puts: int
    last_sequence: int
    unit_of_work_began_at: datetime | None
    unit_of_work_ended: bool

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> SessionStatus:
        """From the worker's document."""
        began = document["unit_of_work_began_at"]
        told = {"unit_of_work_began_at": _moment(began)}
        return cls(**_known(cls, {**document, **told}))


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointStatus:
    """A durable checkpoint: the live state, named by its digest."""

    position: int
    digest: str
    manifest: Any

    @classmethod
    def from_answer(cls, answer: Answer) -> CheckpointStatus:
        """From the worker's answer."""
        return cls(**_known(cls, answer.document))


def _moment(time: int | None) -> datetime | None:
    return None if time is None else datetime_from(time)


def _told(document: dict[str, Any], position: int) -> dict[str, Any]:
    """A destination's document with times that programs know."""
    told = {name: _moment(document[name]) for name in ("first_enqueued_at", "last_enqueued_at")}
    blocked = document.get("blocked")
    return (
        document
        | told
        | {
            "blocked": None if blocked is None else BlockedStatus.from_document(blocked),
            "position": position,
        }
    )


def _known(kind: Any, document: dict[str, Any]) -> dict[str, Any]:
    """The fields this version knows; a newer worker may tell more."""
    return {name: document[name] for name in kind.__dataclass_fields__}
