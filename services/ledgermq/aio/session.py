"""Sessions for asyncio."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from functools import partial
from typing import Any, Unpack

from ledgermq.aio.browser import Browser, Browsing
from ledgermq.aio.consumer import Consumer, Message
from ledgermq.aio.producer import Producer
from ledgermq.aio.requesting import Requestor
from ledgermq.aio.waiting import Closing, Entered, Taking, Waker
from ledgermq.client.argument_types import typed
from ledgermq.client.arguments import check_seconds
from ledgermq.client.engine.acknowledge_mode import AckMode
from ledgermq.client.engine.work import Work
from ledgermq.client.messages.message_kinds import Sendable
from ledgermq.client.options import BrowserOptions, ConsumerOptions, ProducerOptions
from ledgermq.client.receiving.getter import Getter
from ledgermq.client.receiving.requesting import answer_to, check_for_requests
from ledgermq.client.sending.putter import Putter
from ledgermq.client.sending.receipts import CommitReceipt, SendReceipt
from ledgermq.errors import OutOfTurnError, TransactionTooLargeError


@typed
class Session(Closing):
    """Made by `connection.session(...)`; of one event loop.

    Several coroutines may wait in it, such as one that receives and one that sends. What was sent
    or got by all of them is one unit of work.
    """

    def __init__(self, work: Work, waker: Waker) -> None:
        self._work = work
        self._engine = work.engine
        self._taking = Taking(work.engine, waker)

    @property
    def ack_mode(self) -> AckMode:
        """How this session settles what it gets."""
        self._engine.check_open()
        return self._work.mode

    @property
    def transacted(self) -> bool:
        """Whether it works in units of work."""
        self._engine.check_open()
        return self._work.transacted

    @property
    def handle(self) -> int:
        """The log position of the operation that opened it; its name in the queue manager."""
        self._engine.check_open()
        return self._engine.handle

    @property
    def is_closed(self) -> bool:
        """Whether it was closed or lost."""
        return self._work.is_closed

    def producer(self, destination: str | None, **options: Unpack[ProducerOptions]) -> Producer:
        """A sender to one destination; with None, each send names its own.

        The rest holds for messages that do not say otherwise: priority 0 to 9, delivery mode,
        seconds until a message expires and before which it is not delivered (0: none), and how
        often it is redelivered at most; see `ledgermq.Session.producer`.

        Raises:
            InvalidDestinationError: the text is no destination.
            IllegalStateError: the limit is out of range.
        """
        return Producer(Putter(self._work, destination, options), self._taking)

    def consumer(self, destination: str, **options: Unpack[ConsumerOptions]) -> Entered[Consumer]:
        """A receiver from one destination; see `ledgermq.Session.consumer`."""

        async def opening() -> Consumer:
            getter = Getter(self._work, destination, options)
            await self._taking.run_to_the_end(getter.open())
            return Consumer(getter, self._taking)

        return Entered(opening())

    def browser(self, destination: str, **options: Unpack[BrowserOptions]) -> Browsing:
        """Looks at the messages of a queue; see `ledgermq.Session.browser`.

        `browser = await session.browser(...)`, `async with session.browser(...) as browser`, or
        at once `async for message in session.browser(...)`.
        """

        async def opening() -> Browser:
            self._engine.check_open()
            browse = partial(self._work.services.browse, engine=self._engine, shared=True)
            return Browser(await asyncio.to_thread(browse, destination, **options))

        return Browsing(opening())

    async def unsubscribe(self, subscription: str) -> None:
        """Ends a durable subscription; see `ledgermq.Session.unsubscribe`."""
        await self._taking.run_to_the_end(self._work.unsubscribe(subscription))

    async def temporary_queue(self) -> str:
        """Makes a queue that lives as long as the connection (SES-39); its destination."""
        return await self._taking.run_to_the_end(self._work.make_temporary("queue"))

    async def temporary_topic(self) -> str:
        """Makes a topic that lives as long as the connection (SES-39); its destination."""
        return await self._taking.run_to_the_end(self._work.make_temporary("topic"))

    async def delete_temporary(self, destination: str) -> None:
        """Ends a temporary destination; see `ledgermq.Session.delete_temporary`."""
        await self._taking.run_to_the_end(self._work.delete_temporary(destination))

    def requestor(self, destination: str) -> Entered[Requestor]:
        """Sends requests to a destination and gets their replies; see `ledgermq.Requestor`."""

        async def opening() -> Requestor:
            check_for_requests(self.transacted)
            producer = self.producer(destination)
            reply_to = await self.temporary_queue()
            return Requestor(producer, await self.consumer(reply_to), self._leave)

        return Entered(opening())

    async def _leave(self, destination: str) -> None:
        if not self.is_closed:
            await self.delete_temporary(destination)

    async def reply(self, request: Message, body: Sendable, **fields: Any) -> SendReceipt:
        """Answers a request; see `ledgermq.Session.reply`."""
        return await self.producer(answer_to(request, fields)).send(body, **fields)

    async def commit(
        self, *, timeout: float | None = None, turn_timeout: float = 0.0
    ) -> CommitReceipt:
        """Puts everything sent and consumes everything handed over since the last commit, as one.

        While the FIFO mode PROTECTED of a queue refuses it, it is asked again for `turn_timeout`
        seconds.

        Raises:
            OutOfTurnError: it still is refused; the unit of work is as it was.
            TransactionTooLargeError: a put was too large for it; it goes on without that. Or more
                was got than one commit can name: roll back.
            TransactionRolledBackError: it could not be done, and all of it was undone.
            TransactionInDoubtError: no outcome within the time-out; see its `resolve`.
            IllegalStateError: the session is not transacted, or closed.
        """
        return await self._taking.run(self._work.commit(timeout, turn_timeout))

    async def rollback(self, *, timeout: float | None = None) -> None:
        """Undoes everything sent and everything got since the last commit.

        Raises:
            IllegalStateError: the session is not transacted, or closed.
            OutcomeUnknownError: no outcome within the time-out.
        """
        check_seconds("timeout", timeout)
        await self._taking.run_to_the_end(self._work.commits.roll_back(timeout))

    async def acknowledge(self, *, timeout: float | None = None, turn_timeout: float = 0.0) -> None:
        """Acknowledges everything that the session has handed over (CLIENT, INDIVIDUAL).

        Raises:
            OutOfTurnError: as `ledgermq.Session.acknowledge`.
            IllegalStateError: the session is transacted or closed.
            OutcomeUnknownError: no outcome within the time-out.
        """
        await self._taking.run_to_the_end(self._work.acknowledge(timeout, turn_timeout))

    async def recover(self, *, timeout: float | None = None) -> None:
        """Returns everything unacknowledged; delivery begins again with the oldest.

        Raises:
            IllegalStateError: the session is transacted or closed.
            OutcomeUnknownError: no outcome within the time-out.
        """
        await self._taking.run_to_the_end(self._work.recover(timeout))

    @contextlib.asynccontextmanager
    async def transaction(self, *, turn_timeout: float = 0.0) -> AsyncIterator[Session]:
        """A unit of work as a block; see `ledgermq.Session.transaction`."""
        check_seconds("turn_timeout", turn_timeout)
        with self._engine.lock:
            self._work.commits.check_no_unit_locked()
        try:
            yield self
        except BaseException:
            await self.rollback()
            raise
        try:
            await self.commit(turn_timeout=turn_timeout)
        except (OutOfTurnError, TransactionTooLargeError):
            await self.rollback()
            raise

    async def close(self, *, timeout: float | None = None) -> None:
        """Ends the session: what was handed over and not settled goes back.

        Raises:
            OutcomeUnknownError: no outcome within the time-out.
            SessionLostError: AUTO: the session was lost before its last acknowledgements counted.
        """
        check_seconds("timeout", timeout)
        if not self._work.begin_close():
            return
        try:
            await self._taking.run_to_the_end(self._work.close(timeout))
        finally:
            self._work.services.closed(self._work)
        self._engine.raise_deferred()
