"""Consumers for asyncio, and the messages they get."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Unpack

from ledgermq.aio.browser import Browser
from ledgermq.aio.waiting import Closing, Taking
from ledgermq.client.argument_types import typed
from ledgermq.client.arguments import check_seconds
from ledgermq.client.messages.message import Message as ThreadedMessage
from ledgermq.client.options import GetOptionsOfCall
from ledgermq.client.receiving.getter import Getter
from ledgermq.protocol.outcomes import DeliveredMessage


@typed
class Message(ThreadedMessage):
    """A message as `ledgermq.Message` has it; acknowledging is awaited."""

    __slots__ = ()

    async def acknowledge(  # type: ignore[override]
        self, *, timeout: float | None = None
    ) -> None:
        """See `ledgermq.Message.acknowledge`; it is waited for."""
        assert self._acknowledge is not None, "it was got"
        await self._acknowledge(self.deliveries, timeout, True)


@typed
class Consumer(Closing):
    """Made by `session.consumer(...)`; iterate over it with `async for`."""

    def __init__(self, getter: Getter, taking: Taking) -> None:
        self._getter = getter
        self._taking = taking

    @property
    def destination(self) -> str:
        """Where it receives from."""
        self._getter.check_open()
        return self._getter.destination

    @property
    def is_closed(self) -> bool:
        """Whether it was closed, by itself or with its session."""
        return self._getter.closed or self._getter.work.is_closed

    async def receive(
        self,
        timeout: float | None = None,
        *,
        under_cursor: Browser | None = None,
        **options: Unpack[GetOptionsOfCall],
    ) -> Message | None:
        """See `ledgermq.Consumer.receive`. When the coroutine is cancelled, no message is lost."""
        check_seconds("timeout", timeout)
        if under_cursor is not None and timeout is None:
            timeout = 0.0
        getter = self._getter
        wanted = getter.wanted(options, under_cursor)
        taken = await self._taking.run(getter.receive(timeout, wanted))
        return self._message(taken[0][2], taken[0][0]) if taken else None

    async def receive_group(self, timeout: float | None = None) -> list[Message]:
        """See `ledgermq.Consumer.receive_group`. When cancelled, it loses no message."""
        check_seconds("timeout", timeout)
        taken = await self._taking.run(self._getter.receive_group(timeout))
        return [self._message(raw, first) for first, _, raw in taken]

    def _message(self, raw: DeliveredMessage, delivery: int) -> Message:
        getter = self._getter
        return Message(
            raw,
            getter.destination,
            delivery,
            self._acknowledge,
            allow_pickle=getter.allow_pickle,
        )

    async def _acknowledge(self, deliveries: range, timeout: float | None, _: bool) -> None:
        steps = self._getter.work.acknowledge_message(deliveries, timeout)
        await self._taking.run(steps)

    async def __aiter__(self) -> AsyncIterator[Message]:
        """Messages for as long as consumer and session are open."""
        while not self._getter.closed:
            message = await self.receive()
            if message is None:
                return
            yield message

    async def close(self, *, timeout: float | None = None) -> None:
        """See `ledgermq.Consumer.close`."""
        check_seconds("timeout", timeout)
        if not self._getter.closed:
            self._getter.closed = True
            await self._taking.run_to_the_end(self._getter.close(timeout))
            self._getter.warn_of_rest()
