"""Connections for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from typing import Unpack

import ledgermq
from ledgermq.aio.admin import Admin
from ledgermq.aio.receiving import Browser, Browsing
from ledgermq.aio.session import Session
from ledgermq.aio.waiting import Closing, Entered, Waker, opened_aside
from ledgermq.client.argument_types import typed
from ledgermq.client.arguments import check_callback
from ledgermq.client.connection import Connection as ThreadedConnection
from ledgermq.client.engine.work import Work
from ledgermq.client.messages.message import Message
from ledgermq.client.options import BrowserOptions, ConnectOptions, SessionOptions
from ledgermq.client.problems import ExceptionListener


@typed
def connect(
    address: str = "kafka://localhost:9092", **settings: Unpack[ConnectOptions]
) -> Entered[Connection]:
    """Connects to a queue manager; takes what `ledgermq.connect` takes, and raises what it raises.

    `connection = await connect(...)`, or `async with connect(...) as connection`.
    """

    async def opening() -> Connection:
        connect_aside = partial(ledgermq.connect, address, **settings)
        return Connection(await opened_aside(connect_aside, ThreadedConnection.close))

    return Entered(opening())


@typed
class Connection(Closing):
    """A connection used from one event loop; made of one that is open already."""

    def __init__(self, connection: ThreadedConnection) -> None:
        self._connection = connection
        self._waker = Waker()

    @property
    def queue_manager(self) -> str:
        """Name of the queue manager."""
        return self._connection.queue_manager

    @property
    def identity(self) -> str:
        """This connection's identity: 32 hexadecimal digits."""
        return self._connection.identity

    @property
    def admin(self) -> Admin:
        """As `ledgermq.Connection.admin`, awaited: `await connection.admin.list_queues()`."""
        return Admin(self._connection.admin)

    @property
    def is_closed(self) -> bool:
        """Whether it was closed."""
        return self._connection.is_closed

    @property
    def exception_listener(self) -> ExceptionListener | None:
        """Who is told of what goes wrong while nobody awaits, if there is one."""
        called = self._connection.exception_listener
        return called.args[0] if isinstance(called, partial) else None

    def set_exception_listener(self, listener: ExceptionListener | None) -> None:
        """See `ledgermq.Connection.set_exception_listener`; it is called by the event loop."""
        if listener is None:
            self._connection.set_exception_listener(None)
        else:
            check_callback(listener)
            self._connection.set_exception_listener(partial(self._waker.call, listener))

    def session(self, **options: Unpack[SessionOptions]) -> Entered[Session]:
        """See `ledgermq.Connection.session`."""

        async def opening() -> Session:
            self._waker.check_loop()
            open_work = partial(self._connection.open_work, **options)
            return Session(await opened_aside(open_work, Work.end), self._waker)

        return Entered(opening())

    def browser(self, destination: str, **options: Unpack[BrowserOptions]) -> Browsing:
        """See `ledgermq.Connection.browser`; made as `Session.browser` is."""

        async def opening() -> Browser:
            browse = self._connection.browser
            return Browser(await asyncio.to_thread(browse, destination, **options))

        return Browsing(opening())

    async def browse(
        self, destination: str, **options: Unpack[BrowserOptions]
    ) -> AsyncIterator[Message]:
        """Looks at the messages available in a queue without getting them (SES-40).

        They are read page by page. Takes and raises what `ledgermq.Session.browser` does.
        """
        async for message in self.browser(destination, **options):
            yield message

    async def close(self, *, timeout: float | None = None) -> None:
        """See `ledgermq.Connection.close`."""
        await asyncio.to_thread(self._connection.close, timeout=timeout)

    def __repr__(self) -> str:
        return repr(self._connection)
