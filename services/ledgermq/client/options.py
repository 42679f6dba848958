"""Options of calls, declared once: each call that takes them says which with `Unpack`.

What a call is not given has the value that USUAL has, else None or False.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, Final, TypedDict

from ledgermq.client.receiving.getting import GetMatch, Order
from ledgermq.client.sending.grouping import GroupPlace
from ledgermq.protocol.operations import PropertyValue


class AckMode(StrEnum):
    """How a session settles what it gets; `connection.session` takes the names as text too.

    AUTO: a message is acknowledged once `receive` has returned it, the iteration has yielded it, or
    the listener has returned (SES-05). The acknowledgement is written with those of its neighbours:
    up to 10 ms after the message was returned if a call waits for the next one, within a few tenths
    of a second if none does, and in any case before the session closes. After a normal close
    nothing that was handed over comes back; after a crash the last messages may, marked as
    redelivered.
    DUPS_OK: as AUTO, but acknowledgements gather for up to a second, which costs the queue manager
    less; after a crash more messages may come again (SES-08).
    CLIENT: `message.acknowledge()` or `session.acknowledge()` settles everything that the session
    has handed over so far (SES-06).
    INDIVIDUAL: `message.acknowledge()` settles that message alone.
    TRANSACTED: `session.commit()` settles everything handed over and puts everything sent, as one
    (SES-12).
    """

    AUTO = "AUTO"
    DUPS_OK = "DUPS_OK"
    CLIENT = "CLIENT"
    INDIVIDUAL = "INDIVIDUAL"
    TRANSACTED = "TRANSACTED"


USUAL: Final[Mapping[str, Any]] = {
    "timeout": 30.0,
    "suspect_timeout_seconds": 15.0,
    # Long enough for a consumer to make room, short enough for an answer before a call gives up.
    "send_timeout_seconds": 10.0,
    "put_messages_max": 250,
    "redelivery_delay_ms": 0,
    "redelivery_limit": -1,
    "ack": AckMode.AUTO,
    "unit_of_work_time_limit_ms": 0,
    "unit_of_work_idle_limit_ms": 0,
    "order": Order.PHYSICAL,
    "consumer_priority": 0,
    "priority": 4,
    "persistent": True,
    "time_to_live": 0,
    "delivery_delay": 0,
    "selector": "",
    "limit": 0,
    "subscription": "",
    "client_id": "",
    "SelectionOptions.durable": True,
    "PurgeOptions.durable": True,
    "HandlingOptions.durable": True,
}
Numbers = Iterable[int | range]


class ConnectionOptions(TypedDict, total=False):
    """How a connection behaves; see `connect`."""

    client_id: str | None
    takeover: str | None
    application: str | None
    timeout: float
    suspect_timeout_seconds: float
    send_timeout_seconds: float
    put_messages_max: int
    allow_pickle: bool
    redelivery_delay_ms: int
    redelivery_limit: int


class ConnectOptions(ConnectionOptions, total=False):
    """The same, and where its log is on Kafka and how to get there."""

    topic_prefix: str | None
    schema_registry: str | None
    kafka: Mapping[str, Any] | None


class SessionOptions(TypedDict, total=False):
    """How a session works; see `Connection.session`."""

    ack: AckMode | str
    transacted: bool
    redelivery_delay_ms: int | None
    unit_of_work_time_limit_ms: int
    unit_of_work_idle_limit_ms: int


class HeaderOptions(TypedDict, total=False):
    """What a message says beside its body."""

    properties: Mapping[str, PropertyValue] | None
    correlation_id: str | None
    reply_to: str | None
    type: str | None


class MessageOptions(HeaderOptions, total=False):
    """What a send says of its message; None: as the producer has it. Times are seconds."""

    priority: int | None
    persistent: bool | None
    time_to_live: float | None
    delivery_delay: float | None


class SendOptions(MessageOptions, total=False):
    """What a send says; for groups see `Producer`."""

    destination: str | None
    group: GroupPlace | None
    logical_order: bool
    segmentation_allowed: bool
    deduplication_id: str | None


class ProducerOptions(TypedDict, total=False):
    """What a producer's messages have that do not say otherwise; see `Session.producer`."""

    priority: int
    persistent: bool
    time_to_live: float
    delivery_delay: float
    redelivery_limit: int | None


class GetOptions(TypedDict, total=False):
    """How a consumer gets and a browser looks; see `Session.consumer`."""

    order: Order | str
    all_messages_available: bool
    all_segments_available: bool
    complete_message: bool
    match: GetMatch | None


class GetOptionsOfCall(TypedDict, total=False):
    """The same for one call; None: as its consumer or browser has it."""

    order: Order | str | None
    all_messages_available: bool | None
    all_segments_available: bool | None
    complete_message: bool | None
    match: GetMatch | None


class BrowserOptions(GetOptions, total=False):
    """What a browser looks at; see `Session.browser`."""

    selector: str | None


class ConsumerOptions(BrowserOptions, total=False):
    """What a consumer is for; see `Session.consumer`."""

    no_local: bool
    subscription: str | None
    durable: bool
    shared: bool
    prefetch: int | None
    redelivery_delay_ms: int | None
    consumer_priority: int


class SourceOptions(TypedDict, total=False):
    """Which messages of a source an administrator means."""

    selector: str
    limit: int
    subscription: str
    client_id: str
    durable: bool


class SelectionOptions(SourceOptions, total=False):
    """The same, or by their numbers; see `Admin.select_messages`."""

    sequences: Numbers | None


class ActingOptions(TypedDict, total=False):
    """Who asks for a change, and whether it is only looked at what it would do."""

    actor: str | None
    dry_run: bool


class PurgeOptions(SourceOptions, ActingOptions, total=False):
    """How messages are purged; see `Admin.purge_queue`."""


class HandlingOptions(SelectionOptions, ActingOptions, total=False):
    """The same of those that numbers name, too; see `Admin.delete_messages`."""
