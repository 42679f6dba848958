"""Operations: what clients and workers ask for, one frozen record per entry of the log.

Field names, order and meaning are those of the schemas `ledgermq.operation.*`; PROTOCOL.md §5 says
what each does. Messages inside a Put stay the mappings that the codec reads: they are the only
part that comes by the hundred.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, NotRequired, TypeAlias, TypedDict

PropertyValue: TypeAlias = bool | int | float | str


class Group(TypedDict):
    """A message's place in a group, and a segment's in its logical message (PROTOCOL.md §13)."""

    group_id: bytes
    group_sequence: int
    offset: int
    length: int
    in_group: bool
    last_in_group: bool
    segment: bool
    last_segment: bool
    logical_order: bool


class GetOptions(TypedDict):
    """Which messages a consumer gets, and in which order (PROTOCOL.md §13)."""

    logical_order: bool
    all_messages_available: bool
    all_segments_available: bool
    complete_message: bool
    message_id: bytes
    correlation_id: str | None
    group_id: bytes
    group_sequence: int
    offset: int
    sequence: int


class Header(TypedDict):
    """What a sender may give beside the content; times in milliseconds from the send."""

    properties: dict[str, PropertyValue]
    correlation_id: str | None
    type: str | None
    time_to_live_ms: int
    delivery_delay_ms: int
    age_ms: int
    group: NotRequired[Group | None]
    redelivery_limit: NotRequired[int]


# One that says nothing.
NO_HEADER: Final[Header] = {
    "properties": {},
    "correlation_id": None,
    "type": None,
    "time_to_live_ms": 0,
    "delivery_delay_ms": 0,
    "age_ms": 0,
    "group": None,
    "redelivery_limit": -1,
}


class PutMessage(TypedDict):
    """One message inside a Put: what the fold needs, and the content as its writer wrote it.

    `header` is left out where there is nothing in it.
    """

    message_id: bytes
    priority: int
    persistent: bool
    content: bytes
    header: NotRequired[Header]


class Source(TypedDict):
    """A part of another log, of which the messages of a Put were made (PROTOCOL.md §5)."""

    name: str
    partition: int
    first: int
    last: int


class DeliveryRange(TypedDict):
    """Deliveries of one session, first to last, both included."""

    first: int
    last: int


def deliveries_in(ranges: Iterable[DeliveryRange]) -> list[int]:
    """The numbers of the deliveries in ranges."""
    return [number for one in ranges for number in range(one["first"], one["last"] + 1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """Any entry of the operations log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable(Operation):
    """A record that is no operation this version reads; refused with its reason (§8)."""

    reason: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Open(Operation):
    """Opens a session; its log position becomes the session's handle."""

    connection: bytes
    lane: int
    session_key: bytes
    acknowledge_mode: str
    suspect_timeout_ms: int
    client: str = ""
    client_id: str = ""
    takeover: bytes = b""
    redelivery_delay_ms: int = 0
    unit_of_work_time_limit_ms: int = 0
    unit_of_work_idle_limit_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionOperation(Operation):
    """An operation inside a session, numbered so that it acts at most once (§4)."""

    session: int
    session_sequence: int
    answered_through: int
    handed_through: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenConsumer(SessionOperation):
    """Opens a consumer of a queue or subscription; it gets nothing before it has credit."""

    consumer: int
    destination: str
    selector: str = ""
    no_local: bool = False
    subscription: str = ""
    durable: bool = False
    shared: bool = False
    redelivery_delay_ms: int = -1
    consumer_priority: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CloseConsumer(SessionOperation):
    """Closes a consumer; deliveries that the application never saw go back."""

    consumer: int
    unseen: list[DeliveryRange]


@dataclass(frozen=True, slots=True, kw_only=True)
class GiveBack(SessionOperation):
    """Returns deliveries of an open consumer that the application never saw."""

    consumer: int
    unseen: list[DeliveryRange]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reject(SessionOperation):
    """Returns deliveries that the application will not settle, for redelivery or for good."""

    consumer: int
    deliveries: list[DeliveryRange]
    requeue: bool
    reason: str
    redelivery_delay_ms: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Put(SessionOperation):
    """Puts messages to one destination, in a unit of work if the session is transacted.

    `blocking_ms`: how long it may wait for a quota; 0: it does not wait (INF-03). `source`: what
    the messages were made of, which the destination takes once.
    """

    destination: str
    messages: list[PutMessage]
    blocking_ms: int = 0
    source: Source | None = None
    deduplication_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Get(SessionOperation):
    """Grants a consumer standing credit for further messages; options hold for all of it."""

    consumer: int
    credit: int
    options: GetOptions | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledge(SessionOperation):
    """Settles deliveries of a session that is not transacted."""

    deliveries: list[DeliveryRange]


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit(SessionOperation):
    """Ends a unit of work: its puts are numbered, its gets consumed."""

    deliveries: list[DeliveryRange]
    puts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollback(SessionOperation):
    """Ends a unit of work: its puts vanish, its gets return."""

    seen: list[DeliveryRange]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recover(SessionOperation):
    """Returns everything unsettled of a session that is not transacted."""

    seen: list[DeliveryRange]


@dataclass(frozen=True, slots=True, kw_only=True)
class Close(SessionOperation):
    """Closes a session: open puts vanish, unsettled deliveries return."""

    seen: list[DeliveryRange]


@dataclass(frozen=True, slots=True, kw_only=True)
class Alive(SessionOperation):
    """Shows that a session lives, and that `handing` is handed over, as what came before it is."""

    handing: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateQueue(SessionOperation):
    """Creates a queue."""

    queue: str
    description: str = ""
    message_bytes_max: int = 0
    unacknowledged_max: int = 0
    group_affinity: bool = False
    settings: dict[str, Any] | None = None
    deduplication_window_ms: int = 0
    deduplication_ids_max: int = 0
    messages_resume: int = 0
    bytes_resume: int = 0
    inherits_redelivery: bool = True
    single_active_consumer: bool = False
    available_max: int = 0
    last_value_key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterQueue(SessionOperation):
    """Changes settings of a queue; None leaves a setting as it is."""

    queue: str
    description: str | None = None
    message_bytes_max: int | None = None
    gets_disabled: bool | None = None
    unacknowledged_max: int | None = None
    group_affinity: bool | None = None
    settings: dict[str, Any] | None = None
    deduplication_window_ms: int | None = None
    deduplication_ids_max: int | None = None
    messages_resume: int | None = None
    bytes_resume: int | None = None
    inherits_redelivery: bool | None = None
    single_active_consumer: bool | None = None
    available_max: int | None = None
    last_value_key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteQueue(SessionOperation):
    """Deletes a queue that nobody uses."""

    queue: str
    purge: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTopic(SessionOperation):
    """Creates a topic."""

    topic: str
    description: str = ""
    message_bytes_max: int = 0
    settings: dict[str, Any] | None = None
    unacknowledged_max: int = 0
    deduplication_window_ms: int = 0
    deduplication_ids_max: int = 0
    messages_resume: int = 0
    bytes_resume: int = 0
    inherits_redelivery: bool = True
    single_active_consumer: bool = False
    moves_unrouted: bool = False
    available_max: int = 0
    last_value_key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterTopic(SessionOperation):
    """Changes settings of a topic; None leaves a setting as it is."""

    topic: str
    description: str | None = None
    message_bytes_max: int | None = None
    settings: dict[str, Any] | None = None
    unacknowledged_max: int | None = None
    deduplication_window_ms: int | None = None
    deduplication_ids_max: int | None = None
    messages_resume: int | None = None
    bytes_resume: int | None = None
    inherits_redelivery: bool | None = None
    single_active_consumer: bool | None = None
    moves_unrouted: bool | None = None
    available_max: int | None = None
    last_value_key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteTopic(SessionOperation):
    """Deletes a topic that nobody uses; purge: with its durable subscriptions."""

    topic: str
    purge: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTemporary(SessionOperation):
    """Creates a temporary queue or topic of the session's connection (SES-39)."""

    destination: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsubscribe(SessionOperation):
    """Deletes a durable subscription of the connection's client id (SES-62)."""

    subscription: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bind(SessionOperation):
    """Has topics hand copies of what is put to them on to a destination."""

    topics: str
    destination: str
    selector: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unbind(SessionOperation):
    """Ends a binding."""

    topics: str
    destination: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterQueueManager(SessionOperation):
    """Changes settings of the queue manager; None leaves a setting as it is."""

    automatic_creation: bool | None = None
    maximum_lifetime_ms: int | None = None
    segment_bytes: int | None = None
    segments_min: int | None = None
    segments_max: int | None = None
    messages_max: int | None = None
    bytes_max: int | None = None
    journaling: bool | None = None
    journal_lifetime_ms: int | None = None
    unit_of_work_time_limit_ms: int | None = None
    unit_of_work_idle_limit_ms: int | None = None
    messages_resume: int | None = None
    bytes_resume: int | None = None
    redelivery: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Upgrade(SessionOperation):
    """Sets the protocol version that later entries are read by (H3)."""

    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Correct(SessionOperation):
    """Repairs one message's state by hand after a fault of the fold (H4)."""

    queue: str
    sequence: int
    action: str
    actor: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RollbackTransaction(SessionOperation):
    """Ends the unit of work of a session by administration: its puts vanish, its gets return."""

    target_session: int
    actor: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EndSession(SessionOperation):
    """Ends a session by administration."""

    target_session: int
    actor: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick(Operation):
    """Lets time pass when a deadline is due and nothing else arrives."""

    worker: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeAgreed(Operation):
    """Lets a leap of time count, if the writer's clock agrees with the log's (H6)."""

    worker: str
    writer_time: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect(Operation):
    """Puts sessions under suspicion whose client is not heard of (H5)."""

    worker: str
    sessions: list[int]
