"""Copies of messages that were read from the log or an archive: how they are put in their order.

A copy is a new message with an identity of its own. It does not expire unless that is asked for,
and is not delayed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from ledgermq.client.destinations import is_topic
from ledgermq.client.messages.message import Message
from ledgermq.client.sending.grouping import GroupPlace, place_of, places
from ledgermq.client.sending.making import Sending, make_message
from ledgermq.client.sending.segmenting import body_bytes
from ledgermq.errors import LedgerMQError, QueueNotFoundError, TopicNotFoundError
from ledgermq.protocol.limits import TEMPORARY
from ledgermq.protocol.outcomes import EMPTY_HEADER, DeliveredMessage

if TYPE_CHECKING:
    from ledgermq.client.connection import Connection
    from ledgermq.client.sending.producer import Producer
    from ledgermq.client.session import Session
    from ledgermq.wire.content.journaled import JournaledMessage


# How much goes into one unit of work; less than the smallest segment that anybody should choose.
MESSAGES_MAX: Final = 100
BYTES_MAX: Final = 256 * 1024


def journal_message(one: JournaledMessage) -> Message:
    """A journaled message as it would be browsed on its queue."""
    header = one.header or {}
    raw: DeliveredMessage = {
        "sequence": one.sequence,
        "put_position": one.put_position,
        "put_index": one.put_index,
        "message_id": bytes.fromhex(one.message_id),
        "priority": one.priority,
        "persistent": one.persistent,
        "backout_count": 0,
        "enqueued_at": round(one.enqueued_at.timestamp() * 1_000_000),
        "content": one.content,
        "header": {
            **EMPTY_HEADER,
            "properties": header.get("properties", {}),
            "correlation_id": header.get("correlation_id"),
            "type": header.get("type"),
            "group": header.get("group"),
        },
    }
    return Message(raw, one.destination)


def why_no_copy(
    one: JournaledMessage, marks: dict[str, Any], *, to: str | None = None, groups: bool = True
) -> str:
    """Why a `Copier` can make no copy of a message, whatever its destination has; empty: it can.

    Writers of another make may have put a body that is none, or what our client does not send.
    """
    message = journal_message(one)
    destination, place = _goal(one, to, groups)
    if destination.partition(":")[2].startswith(TEMPORARY):
        return f"{destination} is temporary: it ends with its connection, for ever"
    try:
        is_segment = place is not None and place.is_segment
        length = len(body_bytes(message.unloaded_body, destination)) if is_segment else 0
        (group,) = places(None, place, [length], logical_order=False, destination=destination)
        sending = Sending({**message.properties, **marks})
        make_message(destination, message, sending, group)
    except LedgerMQError as error:
        return str(error)
    return ""


def why_no_put(connection: Connection, destination: str) -> str:
    """Why a destination takes no put of anything now; empty: it may."""
    name = destination.partition(":")[2]
    try:
        status = (
            connection.admin.topic(name)
            if is_topic(destination)
            else connection.admin.queue_status(name)
        )
    except (QueueNotFoundError, TopicNotFoundError):
        if connection.admin.queue_manager_status().automatic_creation:
            return ""
        return f"{destination} is not there, and automatic creation is off: create it"
    return f"puts to {destination} are disabled" if status.settings["puts_disabled"] else ""


def units_of(
    messages: Iterable[JournaledMessage],
    due_in: Callable[[JournaledMessage], float] = lambda _: 0.0,
) -> Iterator[list[JournaledMessage]]:
    """What goes into one unit of work after the other: 100 messages and 256 KiB, or one message.

    It waits until a message is due, in so many seconds; nothing waits in one unit with it.
    """
    unit: list[JournaledMessage] = []
    size_bytes = 0
    for one in messages:
        is_full = len(unit) >= MESSAGES_MAX or size_bytes + len(one.content) > BYTES_MAX
        if unit and (is_full or due_in(one) > 0):
            yield unit
            unit, size_bytes = [], 0
        time.sleep(max(0.0, due_in(one)))
        unit.append(one)
        size_bytes += len(one.content)
    if unit:
        yield unit


@dataclass(slots=True, kw_only=True)
class Copier:
    """Puts copies in a transacted session; whoever uses it commits.

    `to` None: each goes where its original was put to. `time_to_live` is in seconds, 0: for ever.
    Copies on a queue have their places in `groups`.
    """

    session: Session
    to: str | None = None
    time_to_live: float = 0
    groups: bool = True
    _producers: dict[tuple[str, int], Producer] = field(default_factory=dict)

    def put(self, one: JournaledMessage, *, marks: dict[str, Any], persistent: bool = True) -> None:
        """Puts a copy that has the `marks` beside the properties of its original."""
        message = journal_message(one)
        destination, place = _goal(one, self.to, self.groups)
        limit = (one.header or {}).get("redelivery_limit", -1)
        producer = self._producers.get((destination, limit))
        if producer is None:
            producer = self.session.producer(
                destination, time_to_live=self.time_to_live, redelivery_limit=limit
            )
            self._producers[destination, limit] = producer
        producer.send(
            message,
            properties={**message.properties, **marks},
            priority=one.priority,
            persistent=persistent,
            group=place,
        )


def _goal(one: JournaledMessage, to: str | None, groups: bool) -> tuple[str, GroupPlace | None]:
    """Where a copy goes, and its place in a group there; a topic has none."""
    destination = to or one.destination
    group = (one.header or {}).get("group")
    if group is None or not groups or is_topic(destination):
        return destination, None
    return destination, place_of(group)
