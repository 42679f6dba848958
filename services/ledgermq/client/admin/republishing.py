"""Republishing: copies of journaled messages are put again, and say what they are copies of.

A copy is a new message with an identity of its own. Its properties are those of the original, and
beside them `LedgerMQ_JournalMessageId`, `LedgerMQ_JournalDestination` and
`LedgerMQ_JournalPosition`: whoever republishes a message twice finds two copies that bear the same
id. A copy of a copy names the first original (DB-19).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from ledgermq.client.engine.acknowledge_mode import AckMode
from ledgermq.client.messages.message import Message
from ledgermq.client.sending.grouping import GroupPlace, place_of
from ledgermq.errors import LedgerMQError, RepublishStoppedError
from ledgermq.protocol.outcomes import DeliveredMessage

if TYPE_CHECKING:
    from ledgermq.client.connection import Connection
    from ledgermq.client.sending.producer import Producer
    from ledgermq.client.session import Session
    from ledgermq.wire.content.journaled import JournaledMessage


MESSAGE_ID: Final = "LedgerMQ_JournalMessageId"
DESTINATION: Final = "LedgerMQ_JournalDestination"
POSITION: Final = "LedgerMQ_JournalPosition"
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
            "properties": header.get("properties", {}),
            "correlation_id": header.get("correlation_id"),
            "type": header.get("type"),
            "expires_at": -1,
            "deliver_at": -1,
            "group": header.get("group"),
            "origin": None,
        },
    }
    return Message(raw, one.destination)


def republish(
    connection: Connection,
    messages: Iterable[JournaledMessage],
    *,
    to: str | None = None,
    time_to_live: float = 0,
    groups: bool = True,
    tell: Callable[[int], None] | None = None,
) -> int:
    """Puts copies of journaled messages, in their order, and returns how many.

    They are persistent, and have the body, properties, correlation id, reply destination, type,
    priority and redelivery limit of the originals, but no delivery delay. They are put in units of
    work of at most 100 messages and 256 KiB, or one message.

    Args:
        connection: Where they are put.
        messages: Which, as `ledgermq_spark.journal` and its archive tell them.
        to: The destination; None: for each the one that it was put to.
        time_to_live: Of the copies, in seconds; 0: they do not expire. Those of the originals are
            over by now, as a rule.
        groups: Whether copies on a queue have their places in groups; without, each stands alone.
        tell: Called with how many were republished, whenever some more were.

    Raises:
        RepublishStoppedError: A message could not be put; those of earlier units of work were.
    """
    done = 0
    with connection.session(ack=AckMode.TRANSACTED) as session:
        work = _Work(session, to, time_to_live, groups)
        try:
            for one in messages:
                if work.is_full_with(one):
                    done += work.commit()
                    if tell is not None:
                        tell(done)
                work.put(one)
            done += work.commit()
        except LedgerMQError as error:
            raise RepublishStoppedError(
                f"{done} messages were republished, then it stopped: {error}. Go on behind those, "
                "once that is mended"
            ) from error
    return done


@dataclass(slots=True)
class _Work:
    """A unit of work of copies, and the producers that they need."""

    session: Session
    to: str | None
    time_to_live: float
    groups: bool
    count: int = 0
    size_bytes: int = 0
    producers: dict[tuple[str, int], Producer] = field(default_factory=dict)

    def is_full_with(self, one: JournaledMessage) -> bool:
        size_bytes = self.size_bytes + len(one.content)
        return self.count >= MESSAGES_MAX or (self.count > 0 and size_bytes > BYTES_MAX)

    def put(self, one: JournaledMessage) -> None:
        message = journal_message(one)
        destination = self.to or one.destination
        limit = (one.header or {}).get("redelivery_limit", -1)
        producer = self.producers.get((destination, limit))
        if producer is None:
            producer = self.session.producer(
                destination, time_to_live=self.time_to_live, redelivery_limit=limit
            )
            self.producers[destination, limit] = producer
        kept = self.groups and destination.startswith("queue:")
        producer.send(
            message,
            properties=_named(one, dict(message.properties)),
            priority=one.priority,
            persistent=True,
            group=_place(one) if kept else None,
        )
        self.count += 1
        self.size_bytes += len(one.content)

    def commit(self) -> int:
        count, self.count, self.size_bytes = self.count, 0, 0
        if count:
            self.session.commit()
        return count


def _named(one: JournaledMessage, properties: dict[str, Any]) -> dict[str, Any]:
    """Properties that say what a message is a copy of, unless it is one already."""
    if MESSAGE_ID not in properties:
        properties[MESSAGE_ID] = one.message_id
        properties[DESTINATION] = one.destination
        properties[POSITION] = one.position
    return properties


def _place(one: JournaledMessage) -> GroupPlace | None:
    group = (one.header or {}).get("group")
    return None if group is None else place_of(group)
