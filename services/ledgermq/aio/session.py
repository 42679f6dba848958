"""Sessions for asyncio."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from functools import partial
from typing import Any, Unpack

from ledgermq.aio.receiving import Browser, Browsing, Consumer, Message, Requestor
from ledgermq.aio.sending import Producer
from ledgermq.aio.waiting import Again, Closing, Entered, Taking, Waker, awaited
from ledgermq.client.argument_types import typed
from ledgermq.client.engine.work import OfSession, Work
from ledgermq.client.messages.message_kinds import Sendable
from ledgermq.client.options import BrowserOptions, ConsumerOptions, ProducerOptions
from ledgermq.client.receiving.browser import Browser as ThreadedBrowser
from ledgermq.client.receiving.getter import Getter
from ledgermq.client.receiving.requesting import answer_to, check_for_requests
from ledgermq.client.sending.putter import Putter
from ledgermq.client.sending.receipts import SendReceipt
from ledgermq.errors import LedgerMQError, OutOfTurnError, TransactionTooLargeError

LOGGER = logging.getLogger("ledgermq.client")


@typed
class Session(OfSession, Closing):
    """Made by `connection.session(...)`; of one event loop.

    Several coroutines may wait in it, such as one that receives and one that sends. What was sent
    or got by all of them is one unit of work. Its calls take, do and raise what those of
    `ledgermq.Session` do; there is no `commit_async`. Used in another event loop than that of its
    connection they raise IllegalStateError.
    """

    def __init__(self, work: Work, waker: Waker) -> None:
        self._work = self._shared = work
        self._owner = work.owner()
        self._engine = work.engine
        self._taking = Taking(work.engine, waker)

    def producer(self, destination: str | None, **options: Unpack[ProducerOptions]) -> Producer:
        """A sender to one destination; see `ledgermq.Session.producer`."""
        return Producer(Putter(self._work, destination, options), self._taking)

    def consumer(self, destination: str, **options: Unpack[ConsumerOptions]) -> Entered[Consumer]:
        """A receiver from one destination; see `ledgermq.Session.consumer`."""

        async def opening() -> Consumer:
            getter = Getter(self._work, destination, options, Message, self._taking.run)
            made = Consumer(getter, self._taking)
            await self._taking.run(getter.open(made))
            return made

        return Entered(self._taking.or_closed(opening))

    def browser(self, destination: str, **options: Unpack[BrowserOptions]) -> Browsing:
        """Looks at the messages of a queue; see `ledgermq.Session.browser`.

        `browser = await session.browser(...)`, `async with session.browser(...) as browser`, or
        at once `async for message in session.browser(...)`.
        """

        async def opening() -> Browser:
            questions, engine = self._work.services.questions, self._engine
            browse = partial(
                ThreadedBrowser, questions, destination, engine, owner=self, shared=True
            )
            return Browser(await asyncio.to_thread(browse, **options))

        return Browsing(opening())

    unsubscribe = awaited(Work.unsubscribe, to_the_end=True)
    temporary_queue = awaited(Work.temporary_queue, to_the_end=True)
    temporary_topic = awaited(Work.temporary_topic, to_the_end=True)
    delete_temporary = awaited(Work.delete_temporary, to_the_end=True)
    commit = awaited(Work.commit)
    rollback = awaited(Work.rollback, to_the_end=True)
    recover = awaited(Work.recover, to_the_end=True)
    flush = awaited(Work.flush)

    async def acknowledge(self, *, timeout: float | None = None, turn_timeout: float = 0.0) -> None:
        """See `ledgermq.Session.acknowledge`; it is waited for."""
        steps = self._work.acknowledge(timeout=timeout, turn_timeout=turn_timeout)
        await self._taking.run_to_the_end(steps)

    def requestor(self, destination: str) -> Entered[Requestor]:
        """Sends requests to a destination and gets their replies; see `ledgermq.Requestor`."""

        async def opening() -> Requestor:
            check_for_requests(self.transacted)
            producer = self.producer(destination)
            reply_to = await self.temporary_queue()
            return Requestor(producer, await self.consumer(reply_to), self._leave)

        return Entered(self._taking.or_closed(opening))

    async def _leave(self, destination: str) -> None:
        if not self.is_closed:
            await self.delete_temporary(destination)

    async def reply(self, request: Message, body: Sendable, **fields: Any) -> SendReceipt:
        """Answers a request; see `ledgermq.Session.reply`."""
        return await self.producer(answer_to(request, fields)).send(body, **fields)

    def transaction(self, *, turn_timeout: float = 0.0) -> Again[Session]:
        """A unit of work as a block; see `ledgermq.Session.transaction`."""
        return Again(partial(self._transaction, turn_timeout))

    @contextlib.asynccontextmanager
    async def _transaction(self, turn_timeout: float) -> AsyncIterator[Session]:
        with self._work.commits.block():
            try:
                yield self
            except BaseException:
                try:
                    await self.rollback()
                except LedgerMQError as error:
                    LOGGER.warning("the rollback after an exception did not work: %s", error)
                raise
            try:
                await self.commit(turn_timeout=turn_timeout)
            except (OutOfTurnError, TransactionTooLargeError):
                await self.rollback()
                raise

    async def close(self, *, timeout: float | None = None) -> None:
        """See `ledgermq.Session.close`."""
        self._taking.check_loop()
        if self._work.begin_close():
            await self._taking.to_the_end(self._end(timeout))

    async def _end(self, timeout: float | None) -> None:
        try:
            await self._taking.run(self._work.close(timeout))
        finally:
            self._work.leave()
        self._engine.raise_deferred()
