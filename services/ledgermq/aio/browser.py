"""Browsers for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Unpack

from ledgermq.aio.waiting import Closing, Entered
from ledgermq.client.argument_types import typed
from ledgermq.client.messages.message import Message
from ledgermq.client.options import GetOptionsOfCall
from ledgermq.client.receiving.browser import Browser as ThreadedBrowser


@typed
class Browser(Closing):
    """Made by `session.browser(...)`; what `ledgermq.Browser` is, awaited."""

    def __init__(self, browser: ThreadedBrowser) -> None:
        self._browser = browser

    @property
    def destination(self) -> str:
        """The queue."""
        return self._browser.destination

    async def first(self, **options: Unpack[GetOptionsOfCall]) -> Message | None:
        """The first message from the front, or None; see `ledgermq.Browser.first`."""
        return await asyncio.to_thread(self._browser.first, **options)

    async def next(self, **options: Unpack[GetOptionsOfCall]) -> Message | None:
        """The next message behind the cursor, or None; see `ledgermq.Browser.next`."""
        return await asyncio.to_thread(self._browser.next, **options)

    def cursor_on(self, destination: str) -> int:
        """See `ledgermq.Browser.cursor_on`."""
        return self._browser.cursor_on(destination)

    async def __aiter__(self) -> AsyncIterator[Message]:
        """The messages from the front; none of them can be acknowledged."""
        for message in await asyncio.to_thread(list, self._browser):
            assert self.destination, "there while it is open, else it raises"
            yield message

    async def close(self) -> None:
        """Ends it. Closing twice does nothing."""
        self._browser.close()


class Browsing(Entered[Browser]):
    """A browser that is being made: awaited, entered, or iterated over at once."""

    async def __aiter__(self) -> AsyncIterator[Message]:
        """The messages from the front."""
        async for message in await self:
            yield message
