"""Browsers for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial

from ledgermq.aio.waiting import Closing, Entered
from ledgermq.client.argument_types import typed
from ledgermq.client.browser import Browser as ThreadedBrowser
from ledgermq.client.getting import GetMatch, Order
from ledgermq.client.message import Message

__all__ = ["Browser", "Browsing"]


@typed
class Browser(Closing):
    """Made by `session.browser(...)`; what `ledgermq.Browser` is, awaited."""

    def __init__(self, browser: ThreadedBrowser) -> None:
        self._browser = browser

    @property
    def destination(self) -> str:
        """The queue."""
        return self._browser.destination

    async def first(
        self,
        *,
        order: Order | str | None = None,
        all_messages_available: bool | None = None,
        all_segments_available: bool | None = None,
        complete_message: bool | None = None,
        match: GetMatch | None = None,
    ) -> Message | None:
        """The first message from the front, or None; see `ledgermq.Browser.first`."""
        return await asyncio.to_thread(
            partial(
                self._browser.first,
                order=order,
                all_messages_available=all_messages_available,
                all_segments_available=all_segments_available,
                complete_message=complete_message,
                match=match,
            )
        )

    async def next(
        self,
        *,
        order: Order | str | None = None,
        all_messages_available: bool | None = None,
        all_segments_available: bool | None = None,
        complete_message: bool | None = None,
        match: GetMatch | None = None,
    ) -> Message | None:
        """The next message behind the cursor, or None; see `ledgermq.Browser.next`."""
        return await asyncio.to_thread(
            partial(
                self._browser.next,
                order=order,
                all_messages_available=all_messages_available,
                all_segments_available=all_segments_available,
                complete_message=complete_message,
                match=match,
            )
        )

    async def __aiter__(self) -> AsyncIterator[Message]:
        """The messages from the front; none of them can be acknowledged."""
        for message in await asyncio.to_thread(list, self._browser):
            self._browser._check_open()
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
