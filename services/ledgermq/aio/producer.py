"""Producers for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

from ledgermq.aio.waiting import News
from ledgermq.client.message_kinds import Sendable
from ledgermq.client.producer import Producer as ThreadedProducer
from ledgermq.client.receipts import SendReceipt
from ledgermq.wire.content import PropertyValue

__all__ = ["Producer"]


class Producer:
    """Made by `session.producer(...)`."""

    def __init__(self, producer: ThreadedProducer, news: News) -> None:
        self._producer = producer
        self._news = news

    @property
    def destination(self) -> str | None:
        """Where it sends to; None if each message says so."""
        return self._producer.destination

    async def send(
        self,
        body: Sendable,
        *,
        destination: str | None = None,
        properties: Mapping[str, PropertyValue] | None = None,
        correlation_id: str | None = None,
        reply_to: str | None = None,
        type: str | None = None,  # noqa: A002 - the name that the message's field has
        priority: int | None = None,
        persistent: bool | None = None,
        time_to_live: float | None = None,
        delivery_delay: float | None = None,
        timeout: float | None = None,
    ) -> SendReceipt:
        """Sends one message and waits until the queue manager has numbered it.

        In a transacted session it joins the unit of work. Raises what `ledgermq.Producer.send`
        raises. When the coroutine is cancelled, the message may be sent all the same.
        """
        await self._news.room(timeout)
        sending = self._producer._sending(
            properties,
            correlation_id,
            reply_to,
            type,
            priority,
            persistent,
            time_to_live,
            delivery_delay,
        )
        started = self._producer._start(body, destination, sending)
        if isinstance(started, SendReceipt):
            return started
        reply = await self._news.reply(started, timeout)
        assert started.result is not None, "a send knows what its reply means"
        receipt: SendReceipt = started.result(reply)
        return receipt

    async def send_many(
        self,
        bodies: Iterable[Sendable],
        *,
        destination: str | None = None,
        timeout: float | None = None,
    ) -> list[SendReceipt]:
        """Sends many bodies, batched, and waits for all outcomes.

        Raises:
            LedgerMQError: the first failure, after all have their outcomes.
        """
        return await asyncio.to_thread(
            self._producer.send_many, list(bodies), destination=destination, timeout=timeout
        )

    def close(self) -> None:
        """Ends it; what was sent stays sent. Closing twice does nothing."""
        self._producer.close()
