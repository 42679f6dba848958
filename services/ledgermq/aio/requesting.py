"""Requests and replies for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from ledgermq.aio.consumer import Consumer, Message
from ledgermq.aio.producer import Producer
from ledgermq.aio.waiting import Closing
from ledgermq.client.argument_types import typed
from ledgermq.client.arguments import check_seconds
from ledgermq.client.messages.message_kinds import Sendable


@typed
class Requestor(Closing):
    """Made by `session.requestor(destination)`; one request at a time. See `ledgermq.Requestor`."""

    def __init__(
        self, producer: Producer, consumer: Consumer, leave: Callable[[str], Awaitable[None]]
    ) -> None:
        self._producer = producer
        self._consumer = consumer
        # Ends the temporary queue, if the session is open still.
        self._leave = leave
        self.reply_to = consumer.destination

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
        if not self._consumer.is_closed:
            await self._consumer.close()
            await self._leave(self.reply_to)
