"""Transfers: messages that were got together and go on together, as one message of a queue.

What a queue gives out may come in any order and come again; what is moved to a queue that only a
relay reads has numbers that rise, and each of these is one position of a source. A transfer holds
the messages as they were delivered, so their bytes are never made anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from ledgermq.client.connection import Connection
from ledgermq.client.messages.message import Message, raw_message
from ledgermq.client.options import AckMode
from ledgermq.client.session import Session
from ledgermq.errors import (
    GroupNotAllowedError,
    LedgerMQError,
    MessageTooLargeError,
    MessageUndecodableError,
    TransactionTooLargeError,
)
from ledgermq.protocol.header_size import header_bytes
from ledgermq.protocol.limits import CONTENT_BYTES_MAX
from ledgermq.protocol.operations import NO_HEADER, PutMessage
from ledgermq.protocol.outcomes import Delivered, DeliveredMessage
from ledgermq.wire.framing.codec import UndecodableError, decode_chunk, encode_chunk

MESSAGES_MAX: Final = 500
BYTES_MAX: Final = 1024 * 1024
# What the message around a transfer takes.
AROUND_BYTES: Final = 1024
TYPE: Final = "ledgermq-transfer"
# What a goal says of a message that it can never take.
NEVER_TAKEN: Final = (GroupNotAllowedError, MessageTooLargeError, MessageUndecodableError)
REMEDY: Final = "Move the message to another queue, or delete it (`ledgermq msg --help`)"


class MessageNotRelayedError(LedgerMQError):
    """A message that no transfer has room for, or that its goal could not take out of one."""

    code = "message-not-relayed"


def encode_transfer(origin: str, messages: Sequence[DeliveredMessage]) -> bytes:
    """Messages as they were delivered from `origin`, as the body of a transfer."""
    delivered = Delivered(
        position=-1,
        index=0,
        session=-1,
        consumer=0,
        destination=origin,
        first_delivery=1,
        messages=list(messages),
    )
    return encode_chunk(-1, -1, [delivered])


def decode_transfer(message: Message) -> list[DeliveredMessage]:
    """What a transfer carries; MessageNotRelayedError: it is lost, or none: anybody may put one."""
    try:
        body = message.body
    except MessageUndecodableError as error:
        raise MessageNotRelayedError(
            f"the content of transfer {message.sequence} of {message.destination}, with "
            f"{message.properties.get('messages')} messages that are on no other queue, cannot be "
            "read: the worker's log says why. Delete it (`ledgermq msg --help`), and put its "
            "messages again as they were put before (`ledgermq replay --help`)"
        ) from error
    try:
        outcomes = decode_chunk(body if isinstance(body, bytes) else b"").outcomes
    except (UndecodableError, ValueError):
        outcomes = []
    match outcomes:
        case [Delivered(messages=messages)]:
            return messages
    raise MessageNotRelayedError(
        f"message {message.message_id} on {message.destination} is no transfer: only relays put to "
        "that queue; look at it, and remove it by hand"
    )


def put_message(raw: DeliveredMessage, log_time_us: int) -> PutMessage:
    """A message that was delivered as one to be put: with its identity, and its content as it is.

    What is left of its life by the time of the log that it comes from is left of it: the clock of
    the machine that relays may be another one. How often it may be redelivered is not told to whom
    it is delivered, and where it came from before is not for a sender to say.
    """
    message: PutMessage = {
        "message_id": raw["message_id"],
        "priority": raw["priority"],
        "persistent": raw["persistent"],
        "content": raw["content"],
    }
    told = raw.get("header")
    if told is not None:
        left_us = told["expires_at"] - log_time_us
        message["header"] = {
            **NO_HEADER,
            "properties": told["properties"],
            "correlation_id": told["correlation_id"],
            "type": told["type"],
            "time_to_live_ms": 0 if told["expires_at"] < 0 else max(1, left_us // 1000),
            "group": told.get("group"),
        }
    return message


def moving_session(connection: Connection, mode: AckMode) -> Session:
    """A session from which what comes back counts against no redelivery limit.

    It comes back each time that the other side is away, or this process is killed: that says
    nothing of the message, and a limit would drop it in the end.
    """
    work = connection.open_work(ack=mode)
    work.engine.protocol.has_application = False
    return Session(work)


class Gatherer:
    """Moves what comes to a queue into transfers on another, in units of work.

    What `check` refuses goes into none: their goal could never take it.
    """

    def __init__(
        self,
        connection: Connection,
        queue: str,
        transfers: str,
        check: Callable[[DeliveredMessage], None] = lambda _: None,
    ) -> None:
        self._check = check
        self._session = moving_session(connection, AckMode.TRANSACTED)
        self._origin = "queue:" + queue
        self._consumer = self._session.consumer(self._origin)
        self._producer = self._session.producer("queue:" + transfers)
        self._at_once = MESSAGES_MAX

    def gather(self, wait_seconds: float) -> int:
        """Moves what is there, or comes in time; returns how many messages.

        Raises:
            MessageNotRelayedError: A message is too large, its content is lost, or the goal cannot
                take it; it and what came with it are back.
        """
        found: list[DeliveredMessage] = []
        size_bytes = 0
        wait = wait_seconds
        while len(found) < self._at_once and size_bytes < BYTES_MAX:
            message = self._consumer.receive(wait)
            if message is None:
                break
            wait = 0.0
            found.append(raw_message(message))
            size_bytes += _bytes(found[-1])
        if not found:
            return 0
        # The last one may be much larger than all before it.
        head, last = found[:-1], found[-1:]
        try:
            for part in [head, last] if size_bytes > BYTES_MAX and head else [found]:
                self._put(part)
            self._session.commit()
        except MessageNotRelayedError:
            self._session.rollback()
            raise
        except TransactionTooLargeError as error:
            # A segment of the storage is smaller than that.
            self._session.rollback()
            if len(found) == 1:
                raise MessageNotRelayedError(
                    f"{self._named(found[0])}, has no room in a segment of the storage beside what "
                    "a relay adds to it: alter the queue manager's segment_bytes"
                ) from error
            self._at_once = len(found) // 2
            return self.gather(wait_seconds)
        return len(found)

    def _put(self, messages: Sequence[DeliveredMessage]) -> None:
        # No goal would take these, and what is in a transfer with one could not go on either.
        for one in messages:
            if not one["content"]:
                raise MessageNotRelayedError(
                    f"the content of {self._named(one)}, is lost, and a relay cannot carry it: the "
                    "queue manager could not read it back from its log, and its worker's log says "
                    f"why. {REMEDY}; an archive may have its content (`ledgermq replay --archive`)"
                )
            try:
                self._check(one)
            except NEVER_TAKEN as error:
                raise MessageNotRelayedError(
                    f"{self._named(one)}, cannot be carried: {error}. {REMEDY}"
                ) from error
        body = encode_transfer(self._origin, messages)
        if len(body) > CONTENT_BYTES_MAX - AROUND_BYTES:
            largest = max(messages, key=_bytes)
            raise MessageNotRelayedError(
                f"message {largest['message_id'].hex()} of {self._origin} has "
                f"{_bytes(largest):,} bytes, more than a relay can carry: take it from "
                "the queue by hand"
            )
        self._producer.send(body, type=TYPE, properties={"messages": len(messages)})

    def _named(self, one: DeliveredMessage) -> str:
        return f"message {one['message_id'].hex()} of {self._origin}, number {one['sequence']}"


def _bytes(raw: DeliveredMessage) -> int:
    return len(raw["content"]) + header_bytes(raw.get("header"))
