"""Requests and replies for asyncio."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from ledgermq.aio.waiting import Closing
from ledgermq.client.argument_types import typed
from ledgermq.client.arguments import check_seconds
from ledgermq.client.requesting import check_for_requests

if TYPE_CHECKING:
    from ledgermq.aio.consumer import Consumer, Message
    from ledgermq.aio.producer import Producer
    from ledgermq.aio.session import Session
    from ledgermq.client.message_kinds import Sendable

__all__ = ["Requestor"]


@typed
class Requestor(Closing):
    """Made by `session.requestor(destination)`; one request at a time. See `ledgermq.Requestor`."""

    def __init__(
        self, session: Session, producer: Producer, consumer: Consumer, reply_to: str
    ) -> None:
        self._session = session
        self._producer = producer
        self._consumer = consumer
        self.reply_to = reply_to

    @classmethod
    async def open(cls, session: Session, destination: str) -> Requestor:
        """A requestor with its temporary queue.

        Raises:
            IllegalStateError: the session is transacted.
        """
        check_for_requests(session._session)
        producer = session.producer(destination)
        reply_to = await session.temporary_queue()
        return cls(session, producer, await session.consumer(reply_to), reply_to)

    async def request(
        self, body: Sendable, *, timeout: float | None = None, **fields: Any
    ) -> Message | None:
        """Sends a request and waits for its reply; None after `timeout` seconds without one."""
        check_seconds("timeout", timeout)
        loop = asyncio.get_running_loop()
        deadline = None if timeout is None else loop.time() + timeout
        receipt = await self._producer.send(body, reply_to=self.reply_to, **fields)
        wanted = (receipt.message_id, fields.get("correlation_id") or receipt.message_id)
        while True:
            left = None if deadline is None else max(0.0, deadline - loop.time())
            reply = await self._consumer.receive(left)
            if reply is None or reply.correlation_id in wanted:
                return reply

    async def close(self) -> None:
        """Ends it and its temporary queue. Closing twice does nothing."""
        if self._consumer._consumer.is_closed:
            return
        await self._consumer.close()
        if not self._session.is_closed:
            await self._session.delete_temporary(self.reply_to)
