"""Relays as they are defined: each is a queue of transfers whose description says all of it."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

from ledgermq.errors import DestinationExistsError, LedgerMQError, QueueNotFoundError
from ledgermq.protocol.limits import is_name
from ledgermq.wire.topics.identity import log_identity

if TYPE_CHECKING:
    from ledgermq.client.connection import Connection
    from ledgermq.protocol.documents.destinations import QueueStatus
    from ledgermq.wire.topics.log_topics import Topics

PREFIX: Final = "relay/"


class RelayNotFoundError(LedgerMQError, LookupError):
    """There is no relay of a name."""

    code = "relay-unknown"


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
    """The relay that a queue of transfers belongs to, if it is one."""
    if not status.name.startswith(PREFIX):
        return None
    try:
        return Definition(name=status.name.removeprefix(PREFIX), **json.loads(status.description))
    except (ValueError, TypeError):
        return None


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
    except QueueNotFoundError:
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


def source_name(
    connection: Connection, transfers: str, bootstrap: str, topics: Topics, timeout_seconds: float
) -> str:
    """What goals know a queue of transfers by: its place on its log, which no other ever has."""
    topic_id = log_identity(bootstrap, topics.operations, timeout_seconds).topic_id
    created = connection.admin.queue_status(transfers).created_position
    return f"ledgermq:{topic_id}/{connection.queue_manager}/{transfers}/{created}"
