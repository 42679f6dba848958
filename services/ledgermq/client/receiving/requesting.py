"""Requests and replies over a temporary queue (Jakarta Messaging's QueueRequestor)."""

from __future__ import annotations

import time
from typing import Any

from ledgermq.client.argument_types import typed
from ledgermq.client.closing import Closing
from ledgermq.client.engine.work import Work
from ledgermq.client.messages.message import Message
from ledgermq.client.messages.message_kinds import Sendable
from ledgermq.client.messages.property_access import PropertyAccess
from ledgermq.client.receiving.consumer import Consumer
from ledgermq.client.sending.producer import Producer
from ledgermq.errors import IllegalStateError


def answer_to(request: Message, fields: dict[str, Any]) -> str:
    """Where the answer to a request goes; sets its correlation id, unless one was given.

    Raises:
        IllegalStateError: the request has no `reply_to`.
    """
    if request.reply_to is None:
        raise IllegalStateError(f"{request!r} has no reply_to: nobody waits for an answer")
    fields.setdefault("correlation_id", request.correlation_id or request.message_id)
    return request.reply_to


def ids_of_answers(request_id: str, body: Sendable, fields: dict[str, Any]) -> tuple[str, str]:
    """By which correlation ids `request` knows its answer: its own one, else its message id."""
    given = fields.get("correlation_id")
    if given is None and isinstance(body, PropertyAccess):
        given = body.correlation_id
    return request_id, given or request_id


def check_is_open(is_closed: bool) -> None:
    """Refuses a requestor that was closed, before anything is sent."""
    if is_closed:
        raise IllegalStateError("the requestor is closed; make another one")


def check_for_requests(transacted: bool) -> None:
    """Refuses a transacted session."""
    if transacted:
        raise IllegalStateError(
            "a request in a transacted session would be sent with its commit, and its reply "
            "would never come: use another session"
        )


@typed
class Requestor(Closing):
    """Made by `session.requestor(destination)`; one request at a time.

    Each request names a temporary queue of its own connection as `reply_to`. A reply bears the
    request's message id, or the correlation id that the request had, as its correlation id; what
    comes too late for a request that was given up is acknowledged unseen.

    Attributes:
        reply_to: The temporary queue, as a destination.
    """

    def __init__(self, producer: Producer, consumer: Consumer, work: Work) -> None:
        self._producer = producer
        self._consumer = consumer
        self._work = work
        self.reply_to = consumer.destination
        self._is_closed = False
        self._is_over = False

    def request(
        self, body: Sendable, *, timeout: float | None = None, **fields: Any
    ) -> Message | None:
        """Sends a request and waits for its reply; None after `timeout` seconds without one.

        `fields` are options of `Producer.send`. The time runs from the call; the send alone may
        take the connection's time-out. None: it waits for as long as it takes. The reply is
        acknowledged in AUTO and DUPS_OK, else it is for the caller to acknowledge.

        Raises:
            IllegalStateError: the requestor is closed.
            LedgerMQError: what `Producer.send` and `Consumer.receive` raise.
        """
        check_is_open(self._is_closed)
        deadline = None if timeout is None else time.monotonic() + timeout
        receipt = self._producer.send(body, reply_to=self.reply_to, **fields)
        wanted = ids_of_answers(receipt.message_id, body, fields)
        while True:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            reply = self._consumer.receive(left)
            if reply is None or reply.correlation_id in wanted:
                return reply
            self._work.engine.run(self._consumer._shared.leave_aside(reply))

    def close(self) -> None:
        """Ends it and its temporary queue. Closing twice does nothing.

        Raises:
            DestinationInUseError: a reply was not acknowledged; do that, and close it again.
            LedgerMQError: what `Consumer.close` raises.
        """
        self._is_closed = True
        self._consumer.close()
        self._producer.close()
        if not self._is_over and not self._work.is_closed:
            self._work.engine.run(self._work.delete_temporary(self.reply_to))
        self._is_over = True
