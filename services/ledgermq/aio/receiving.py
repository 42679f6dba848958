"""Consumers with their messages, browsers and requestors for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Unpack

from ledgermq.aio.sending import Producer
from ledgermq.aio.waiting import Closing, Entered, Taking, awaited
from ledgermq.client.argument_types import typed
from ledgermq.client.arguments import Rejection
from ledgermq.client.closing import WhileOpen
from ledgermq.client.messages.message import Message as ThreadedMessage
from ledgermq.client.messages.message_kinds import Sendable
from ledgermq.client.options import GetOptionsOfCall
from ledgermq.client.receiving.browser import Browser as ThreadedBrowser
from ledgermq.client.receiving.getter import Getter, OfConsumer
from ledgermq.client.receiving.requesting import check_is_open, ids_of_answers
from ledgermq.errors import IllegalStateError


@typed
class Browser(Closing):
    """Made by `session.browser(...)`; what `ledgermq.Browser` is, awaited."""

    destination = WhileOpen[str]("_browser.destination")
    selector = WhileOpen[str]("_browser.selector")
    position = WhileOpen[int]("_browser.position")

    def __init__(self, browser: ThreadedBrowser) -> None:
        self._browser = browser

    def _check_open(self) -> None:
        self._browser._check_open()

    def __repr__(self) -> str:
        return repr(self._browser)

    async def first(self, **options: Unpack[GetOptionsOfCall]) -> ThreadedMessage | None:
        """The first message from the front, or None; see `ledgermq.Browser.first`."""
        return await asyncio.to_thread(self._browser.first, **options)

    async def next(self, **options: Unpack[GetOptionsOfCall]) -> ThreadedMessage | None:
        """The next message behind the cursor, or None; see `ledgermq.Browser.next`."""
        return await asyncio.to_thread(self._browser.next, **options)

    def cursor_on(self, destination: str) -> int:
        """See `ledgermq.Browser.cursor_on`."""
        return self._browser.cursor_on(destination)

    async def __aiter__(self) -> AsyncIterator[ThreadedMessage]:
        """The messages from the front, read page by page; none of them can be acknowledged."""
        pages = self._browser._pages()
        while (page := await asyncio.to_thread(next, pages, None)) is not None:
            for raw in page:
                self._browser._check_open()
                yield self._browser._message(raw)

    async def close(self) -> None:
        """Ends it. Closing twice does nothing."""
        self._browser.close()


class Browsing(Entered[Browser]):
    """A browser that is being made: awaited, entered, or iterated over at once."""

    async def __aiter__(self) -> AsyncIterator[ThreadedMessage]:
        """The messages from the front."""
        async for message in await self:
            yield message


@typed
class Message(ThreadedMessage):
    """A message as `ledgermq.Message` has it; settling it is awaited."""

    __slots__ = ()

    async def acknowledge(  # type: ignore[override]
        self, *, timeout: float | None = None
    ) -> None:
        """See `ledgermq.Message.acknowledge`; it is waited for."""
        await self._got().acknowledge(self.deliveries, timeout, True)

    async def reject(  # type: ignore[override]
        self,
        reason: str = "",
        *,
        requeue: bool = False,
        delay: float | None = None,
        timeout: float | None = None,
    ) -> None:
        """See `ledgermq.Message.reject`; it is waited for."""
        await self._got().reject(self.deliveries, Rejection(reason, requeue, delay), timeout)


@typed
class Consumer(OfConsumer, Closing):
    """Made by `session.consumer(...)`; iterate over it with `async for`.

    Its calls and attributes take, do and raise what those of `ledgermq.Consumer` do; there are no
    listeners.
    """

    __slots__ = ("_taking",)

    def __init__(self, getter: Getter[Message], taking: Taking) -> None:
        self._shared = getter
        self._taking = taking

    async def receive(
        self,
        timeout: float | None = None,
        *,
        under_cursor: Browser | None = None,
        **options: Unpack[GetOptionsOfCall],
    ) -> Message | None:
        """See `ledgermq.Consumer.receive`. When the coroutine is cancelled, no message is lost."""
        steps = self._shared.receive(timeout, under_cursor, options)
        return await self._taking.run(steps)

    receive_many = awaited(Getter[Message].receive_many)
    receive_group = awaited(Getter[Message].receive_group)

    def __aiter__(self) -> AsyncIterator[Message]:
        """Messages for as long as consumer and session are open; raises what `receive` raises."""
        self._check_open()
        return self._until_idle(None)

    def until_idle(self, seconds: float) -> AsyncIterator[Message]:
        """See `ledgermq.Consumer.until_idle`."""
        self._check_open()
        return self._until_idle(seconds)

    async def _until_idle(self, seconds: float | None) -> AsyncIterator[Message]:
        while not self._shared.closed:
            message = await self.receive(seconds)
            if message is None:
                return
            yield message

    async def close(self, *, timeout: float | None = None) -> None:
        """See `ledgermq.Consumer.close`."""
        self._taking.check_loop()
        if not self._shared.closed:
            self._shared.closed = True
            await self._taking.to_the_end(self._close(timeout))
            self._shared.warn_of_rest()

    async def _close(self, timeout: float | None) -> None:
        with self._shared.closing():
            await self._taking.run(self._shared.close(timeout))


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
        self._is_closed = False
        self._is_over = False
        self._is_asking = False
        self.reply_to = consumer.destination

    async def request(
        self, body: Sendable, *, timeout: float | None = None, **fields: Any
    ) -> Message | None:
        """Sends a request and waits for its reply; see `ledgermq.Requestor.request`.

        Raises:
            IllegalStateError: another coroutine waits for a reply here.
        """
        check_is_open(self._is_closed)
        if self._is_asking:
            raise IllegalStateError(
                "another coroutine waits for a reply of this requestor, and each would take the "
                "replies of the other: make a requestor for each"
            )
        self._is_asking = True
        try:
            return await self._request(body, timeout, fields)
        finally:
            self._is_asking = False

    async def _request(
        self, body: Sendable, timeout: float | None, fields: dict[str, Any]
    ) -> Message | None:
        loop = asyncio.get_running_loop()
        deadline = None if timeout is None else loop.time() + timeout
        receipt = await self._producer.send(body, reply_to=self.reply_to, **fields)
        wanted = ids_of_answers(receipt.message_id, body, fields)
        while True:
            left = None if deadline is None else max(0.0, deadline - loop.time())
            reply = await self._consumer.receive(left)
            if reply is None or reply.correlation_id in wanted:
                return reply
            await self._consumer._taking.run(self._consumer._shared.leave_aside(reply))

    async def close(self) -> None:
        """Ends it and its temporary queue; see `ledgermq.Requestor.close`."""
        self._is_closed = True
        await self._consumer.close()
        if not self._is_over:
            await self._leave(self.reply_to)
        self._is_over = True
