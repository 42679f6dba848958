"""Producers for asyncio."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Unpack

from ledgermq.aio.group_sender import GroupSender
from ledgermq.aio.waiting import Taking
from ledgermq.client.argument_types import typed
from ledgermq.client.arguments import check_seconds
from ledgermq.client.messages.message_kinds import Sendable
from ledgermq.client.options import MessageOptions, SendOptions
from ledgermq.client.sending.group_sender import GroupNumbers
from ledgermq.client.sending.grouping import GroupPlace
from ledgermq.client.sending.putter import Putter
from ledgermq.client.sending.putting import Grouping
from ledgermq.client.sending.receipts import SendReceipt


@typed
class Producer:
    """Made by `session.producer(...)`."""

    def __init__(self, putter: Putter, taking: Taking) -> None:
        self._putter = putter
        self._taking = taking

    @property
    def destination(self) -> str | None:
        """Where it sends to; None if each message says so."""
        self._putter.check_open()
        return self._putter.destination

    async def send(
        self, body: Sendable, *, timeout: float | None = None, **options: Unpack[SendOptions]
    ) -> SendReceipt:
        """Sends one message and waits until the queue manager has numbered it.

        In a transacted session it joins the unit of work. Messages in logical order are sent one
        after the other: await each before the next. Raises what `ledgermq.Producer.send`
        raises. When the coroutine is cancelled, the message may be sent all the same.
        """
        return await self._taking.run(self._putter.send(body, timeout, options))

    async def send_segmented(
        self,
        body: Sendable,
        *,
        max_segment: int,
        destination: str | None = None,
        group: GroupPlace | None = None,
        logical_order: bool = False,
        timeout: float | None = None,
        **options: Unpack[MessageOptions],
    ) -> list[SendReceipt]:
        """Sends text or bytes in segments of at most `max_segment` bytes each.

        Raises what `ledgermq.Producer.send_segmented` raises. When the coroutine is cancelled, some
        of the segments may be sent all the same.
        """
        grouping = Grouping(group, logical_order, max_segment=max_segment)
        target, sending = self._putter.target(destination), self._putter.sending(options)
        return await self._taking.run(self._putter.put(body, target, sending, grouping, timeout))

    def group(
        self, group_id: bytes | None = None, after: int = 0, *, destination: str | None = None
    ) -> GroupSender:
        """A sender of one group's messages in logical order, for an `async with` block.

        Takes and raises what `ledgermq.Producer.group` does.
        """
        numbers = GroupNumbers(self._putter, group_id, after, destination)
        return GroupSender(numbers, self._taking)

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
        check_seconds("timeout", timeout)
        futures = [
            await self._taking.run(self._putter.send_async(body, {"destination": destination}))
            for body in bodies
        ]
        if not self._putter.work.transacted:
            await self._taking.run(self._putter.flush(timeout))
        return [future.result(0) for future in futures]

    def close(self) -> None:
        """Ends it; what was sent stays sent. Closing twice does nothing.

        Warns of a group left open, as `ledgermq.Producer.close` does (GRP-41, GRP-42).
        """
        self._putter.close()
