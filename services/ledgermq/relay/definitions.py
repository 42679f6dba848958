"""Relays as they are defined: each is a queue of transfers whose description says all of it."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from ledgermq.client.connection import Connection
from ledgermq.errors import (
    BrokerUnavailableError,
    DestinationExistsError,
    InvalidDestinationError,
    LedgerMQError,
)
from ledgermq.protocol.documents.destinations import QueueStatus
from ledgermq.protocol.limits import is_name
from ledgermq.wire.kafka.settings import client_options
from ledgermq.wire.topics.identity import log_identity
from ledgermq.wire.topics.log_topics import Topics, is_log_topic
from ledgermq.wire.topics.reading import LogUnreadableError

PREFIX: Final = "relay/"
# What Kafka says of a name that no topic has, or none may have.
NO_TOPIC: Final = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.TOPIC_EXCEPTION)


class RelayNotFoundError(LedgerMQError, LookupError):
    """There is no relay of a name."""

    code = "relay-unknown"


class TopicNotBridgedError(LedgerMQError):
    """A topic of Kafka that no bridge reads or writes."""

    code = "topic-not-bridged"


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """From a queue of this queue manager to a destination of another.

    Attributes:
        name: What it is called; its transfers are on the queue `relay/NAME`.
        queue: Where messages come from.
        to: Where they go, as `queue:NAME` or `topic:NAME`.
        queue_manager: The other queue manager.
        bootstrap: Its Kafka; empty: the same.
        topic_prefix: Prefix of its log topics; empty: the same.
    """

    name: str
    queue: str
    to: str
    queue_manager: str
    bootstrap: str = ""
    topic_prefix: str = ""

    @property
    def transfers(self) -> str:
        """Name of its queue of transfers."""
        return PREFIX + self.name

    def create(self, connection: Connection) -> int:
        """Makes its queue of transfers; DestinationExistsError: there is a relay of its name."""
        told = {key: value for key, value in asdict(self).items() if value and key != "name"}
        return connection.admin.create_queue(self.transfers, description=json.dumps(told))


def definition_from(status: QueueStatus) -> Definition | None:
    """The relay that a queue of transfers belongs to, if it is one; anybody may have made it."""
    if not status.name.startswith(PREFIX):
        return None
    try:
        found = Definition(name=status.name.removeprefix(PREFIX), **json.loads(status.description))
    except (ValueError, TypeError, RecursionError):
        return None
    return found if all(isinstance(one, str) for one in asdict(found).values()) else None


def definitions(connection: Connection) -> Iterator[tuple[Definition, QueueStatus]]:
    """All relays of a queue manager by name, each with the status of its queue of transfers."""
    for status in connection.admin.list_queues():
        found = definition_from(status)
        if found is not None:
            yield found, status


def find_definition(connection: Connection, name: str) -> tuple[Definition, QueueStatus]:
    """RelayNotFoundError: there is none of the name."""
    try:
        status = connection.admin.queue_status(PREFIX + name)
    except InvalidDestinationError:
        # No queue is there, or none may be called so.
        found = None
    else:
        found = definition_from(status)
        if found is not None:
            return found, status
    raise RelayNotFoundError(
        f"there is no relay {name} on {connection.queue_manager}; see `ledgermq relay list`"
    )


def bridge_transfers(connection: Connection, queue: str, topic: str) -> str:
    """The queue of transfers from a queue to a topic of Kafka, made if it is not there."""
    name = f"bridge/{queue}/{topic}"
    if not is_name(name):
        name = "bridge/" + hashlib.sha256(f"{queue} {topic}".encode()).hexdigest()[:32]
    with contextlib.suppress(DestinationExistsError):
        connection.admin.create_queue(name, description=f"queue:{queue} to topic {topic} of Kafka")
    return name


def check_topic(bootstrap: str, topic: str, timeout_seconds: float) -> None:
    """See whether a topic of Kafka is one that a bridge may begin with.

    Raises:
        TopicNotBridgedError: It is not there, or is a log topic: what a bridge reads there it would
            cause, without end, and a transaction there leaves a hole that no worker folds beyond.
        AccessDeniedError: We may not see it.
        BrokerUnavailableError: Kafka does not answer.
    """
    admin = AdminClient(client_options(bootstrap, {"log_level": 0}))
    try:
        log_identity(bootstrap, topic, timeout_seconds, admin)
        beside = admin.list_topics(timeout=timeout_seconds).topics
    except LogUnreadableError as error:
        cause = error.__cause__
        if isinstance(cause, KafkaException) and cause.args[0].code() in NO_TOPIC:
            raise TopicNotBridgedError(
                f"there is no topic {topic} of Kafka at {bootstrap}: create it first"
            ) from error
        raise BrokerUnavailableError(f"{error}; run it again when Kafka answers") from error
    except KafkaException as error:
        raise BrokerUnavailableError(
            f"Kafka at {bootstrap} does not tell its topics: {error.args[0].str()}; run it again "
            "when Kafka answers"
        ) from error
    if is_log_topic(topic, beside):
        raise TopicNotBridgedError(
            f"{topic} is a log topic of LedgerMQ: a bridge neither reads it, as that adds to it "
            "without end, nor writes to it, as no worker could fold what comes after"
        )


def source_name(
    connection: Connection, transfers: str, bootstrap: str, topics: Topics, timeout_seconds: float
) -> str:
    """What goals know a queue of transfers by: its place on its log, which no other ever has."""
    topic_id = log_identity(bootstrap, topics.operations, timeout_seconds).topic_id
    created = connection.admin.queue_status(transfers).created_position
    return f"ledgermq:{topic_id}/{connection.queue_manager}/{transfers}/{created}"
