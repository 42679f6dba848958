"""Producers for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

from ledgermq.aio.group_sender import GroupSender
from ledgermq.aio.waiting import News
from ledgermq.client.argument_types import typed
from ledgermq.client.arguments import check_seconds
from ledgermq.client.destinations import is_topic
from ledgermq.client.grouping import GroupPlace
from ledgermq.client.making import Sending
from ledgermq.client.message_kinds import Sendable
from ledgermq.client.producer import Producer as ThreadedProducer
from ledgermq.client.putting import Grouping, Putting
from ledgermq.client.receipts import SendReceipt
from ledgermq.errors import LedgerMQError, OutcomeUnknownError
from ledgermq.wire.content import PropertyValue

__all__ = ["Producer"]


@typed
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
        group: GroupPlace | None = None,
        logical_order: bool = False,
        segmentation_allowed: bool = False,
        timeout: float | None = None,
    ) -> SendReceipt:
        """Sends one message and waits until the queue manager has numbered it.

        In a transacted session it joins the unit of work. Messages in logical order are sent one
        after the other: await each before the next. Raises what `ledgermq.Producer.send`
        raises. When the coroutine is cancelled, the message may be sent all the same.
        """
        check_seconds("timeout", timeout)
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
        if group is not None or logical_order or segmentation_allowed or self._producer._states:
            grouping = Grouping(group, logical_order, segmentation_allowed)
            return (await self._put(body, destination, sending, grouping, timeout))[0]
        await self._news.room(timeout)
        started = self._producer._start(body, destination, sending, timeout)
        if isinstance(started, SendReceipt):
            return started
        reply = await self._news.reply(started, timeout)
        assert started.result is not None, "a send knows what its reply means"
        receipt: SendReceipt = started.result(reply)
        return receipt

    async def send_segmented(
        self,
        body: Sendable,
        *,
        max_segment: int,
        destination: str | None = None,
        properties: Mapping[str, PropertyValue] | None = None,
        correlation_id: str | None = None,
        reply_to: str | None = None,
        type: str | None = None,  # noqa: A002 - the name that the message's field has
        priority: int | None = None,
        persistent: bool | None = None,
        time_to_live: float | None = None,
        delivery_delay: float | None = None,
        group: GroupPlace | None = None,
        logical_order: bool = False,
        timeout: float | None = None,
    ) -> list[SendReceipt]:
        """Sends text or bytes in segments of at most `max_segment` bytes each.

        Raises what `ledgermq.Producer.send_segmented` raises. When the coroutine is cancelled, some
        of the segments may be sent all the same.
        """
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
        grouping = Grouping(group, logical_order, max_segment=max_segment)
        return await self._put(body, destination, sending, grouping, timeout)

    def group(
        self, group_id: bytes | None = None, after: int = 0, *, destination: str | None = None
    ) -> GroupSender:
        """A sender of one group's messages in logical order, for an `async with` block.

        Takes and raises what `ledgermq.Producer.group` does.
        """
        return GroupSender(self, self._producer.group(group_id, after, destination=destination))

    async def _put(
        self,
        body: Sendable,
        destination: str | None,
        sending: Sending,
        grouping: Grouping,
        timeout: float | None,
    ) -> list[SendReceipt]:
        """Puts one message, whole or in segments, and waits for its outcomes."""
        check_seconds("timeout", timeout)
        producer, core = self._producer, self._producer._core
        target = producer._target(destination)
        await self._news.room(timeout)
        if grouping.segmentation_allowed and not is_topic(target):
            known = await asyncio.to_thread(producer.learn_bytes_max, target)
            grouping = grouping._replace(bytes_max=known)
        putting = Putting(producer, target, body, sending, grouping)
        while True:
            with core.lock:
                pending = putting.begin_locked(timeout)
            if pending is None:
                return putting.finished()
            try:
                reply = await self._news.reply(pending, timeout)
            except OutcomeUnknownError:
                raise
            except LedgerMQError:
                putting.refused()
                raise
            assert pending.result is not None, "a put knows what its reply means"
            pending.result(reply)
            await self._news.room(timeout)

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
        """Ends it; what was sent stays sent. Closing twice does nothing.

        Warns of a group left open, as `ledgermq.Producer.close` does (GRP-41, GRP-42).
        """
        self._producer.close()
