"""Sessions for asyncio."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

from ledgermq.aio.browser import Browser, Browsing
from ledgermq.aio.consumer import Consumer, Message
from ledgermq.aio.producer import Producer
from ledgermq.aio.requesting import Requestor
from ledgermq.aio.waiting import Closing, Entered, News, Waker
from ledgermq.client.acknowledge_mode import AckMode
from ledgermq.client.argument_types import typed
from ledgermq.client.arguments import check_seconds
from ledgermq.client.getting import GetMatch, Getting, Order
from ledgermq.client.message_kinds import Sendable
from ledgermq.client.receipts import CommitReceipt, SendReceipt
from ledgermq.client.requesting import answer_to
from ledgermq.client.session import Session as ThreadedSession
from ledgermq.client.taking_turns import Patience
from ledgermq.errors import OutOfTurnError, SessionLostError, TransactionTooLargeError

__all__ = ["Session"]


@typed
class Session(Closing):
    """Made by `connection.session(...)`; of one event loop.

    Several coroutines may wait in it, such as one that receives and one that sends. What was sent
    or got by all of them is one unit of work.
    """

    def __init__(self, session: ThreadedSession, waker: Waker) -> None:
        self._session = session
        self._core = session._core
        self._news = News(session._core, waker)

    @property
    def ack_mode(self) -> AckMode:
        """How this session settles what it gets."""
        return self._session.ack_mode

    @property
    def transacted(self) -> bool:
        """Whether it works in units of work."""
        return self._session.transacted

    @property
    def handle(self) -> int:
        """The log position of the operation that opened it; its name in the queue manager."""
        return self._session.handle

    @property
    def is_closed(self) -> bool:
        """Whether it was closed or lost."""
        return self._session.is_closed

    def producer(
        self,
        destination: str | None,
        *,
        priority: int = 4,
        persistent: bool = True,
        time_to_live: float = 0,
        delivery_delay: float = 0,
        redelivery_limit: int | None = None,
    ) -> Producer:
        """A sender to one destination; with None, each send names its own.

        The rest holds for messages that do not say otherwise: priority 0 to 9, delivery mode,
        seconds until a message expires and before which it is not delivered (0: none), and how
        often it is redelivered at most; see `ledgermq.Session.producer`.

        Raises:
            InvalidDestinationError: the text is no destination.
            IllegalStateError: the limit is out of range.
        """
        made = self._session.producer(
            destination,
            priority=priority,
            persistent=persistent,
            time_to_live=time_to_live,
            delivery_delay=delivery_delay,
            redelivery_limit=redelivery_limit,
        )
        return Producer(made, self._news)

    def consumer(
        self,
        destination: str,
        *,
        selector: str | None = None,
        no_local: bool = False,
        subscription: str | None = None,
        durable: bool = False,
        shared: bool = False,
        prefetch: int | None = None,
        order: Order | str = Order.PHYSICAL,
        all_messages_available: bool = False,
        all_segments_available: bool = False,
        complete_message: bool = False,
        match: GetMatch | None = None,
        redelivery_delay_ms: int | None = None,
    ) -> Entered[Consumer]:
        """A receiver from one destination; see `ledgermq.Session.consumer`."""

        async def opening() -> Consumer:
            found = await asyncio.to_thread(
                self._session.consumer,
                destination,
                selector=selector,
                no_local=no_local,
                subscription=subscription,
                durable=durable,
                shared=shared,
                prefetch=prefetch,
                order=order,
                all_messages_available=all_messages_available,
                all_segments_available=all_segments_available,
                complete_message=complete_message,
                match=match,
                redelivery_delay_ms=redelivery_delay_ms,
            )
            return Consumer(found, self._news)

        return Entered(opening())

    def browser(
        self,
        destination: str,
        *,
        selector: str | None = None,
        order: Order | str = Order.PHYSICAL,
        all_messages_available: bool = False,
        all_segments_available: bool = False,
        complete_message: bool = False,
        match: GetMatch | None = None,
    ) -> Browsing:
        """Looks at the messages of a queue; see `ledgermq.Session.browser`.

        `browser = await session.browser(...)`, `async with session.browser(...) as browser`, or
        at once `async for message in session.browser(...)`.
        """

        async def opening() -> Browser:
            self._core.check_open()
            getting = Getting(
                order, all_messages_available, all_segments_available, complete_message, match
            )
            browse = partial(self._session._browse, shared=True)
            return Browser(
                await asyncio.to_thread(browse, destination, selector, getting, self._core)
            )

        return Browsing(opening())

    async def unsubscribe(self, subscription: str) -> None:
        """Ends a durable subscription; see `ledgermq.Session.unsubscribe`."""
        await asyncio.to_thread(self._session.unsubscribe, subscription)

    async def temporary_queue(self) -> str:
        """Makes a queue that lives as long as the connection (SES-39); its destination."""
        return await asyncio.to_thread(self._session.temporary_queue)

    async def temporary_topic(self) -> str:
        """Makes a topic that lives as long as the connection (SES-39); its destination."""
        return await asyncio.to_thread(self._session.temporary_topic)

    async def delete_temporary(self, destination: str) -> None:
        """Ends a temporary destination; see `ledgermq.Session.delete_temporary`."""
        await asyncio.to_thread(self._session.delete_temporary, destination)

    def requestor(self, destination: str) -> Entered[Requestor]:
        """Sends requests to a destination and gets their replies; see `ledgermq.Requestor`."""

        async def opening() -> Requestor:
            return await Requestor.open(self, destination)

        return Entered(opening())

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
        check_seconds("timeout", timeout)
        patience = Patience(turn_timeout)
        while True:
            try:
                return await self._commit(timeout)
            except OutOfTurnError:
                pause = patience.next_pause()
                if pause is None:
                    raise
            await asyncio.sleep(pause)

    async def _commit(self, timeout: float | None) -> CommitReceipt:
        await self._news.room(timeout)
        with self._core.lock:
            commitment = self._session._begin_commit_locked(waited=True)
        assert commitment.pending is not None, "a commitment has an operation"
        await self._news.settled(commitment.pending, timeout)
        while True:
            with self._core.lock:
                if commitment.finished:
                    break
                future = self._news.future_locked()
            await self._news.wait(future, None)
        error = commitment.error
        if error is None:
            return commitment.get()
        if self._core.lost is not None or commitment.stays:
            raise error
        with contextlib.suppress(SessionLostError):
            await self.rollback(timeout=timeout)
        raise commitment.rolled_back()

    async def rollback(self, *, timeout: float | None = None) -> None:
        """Undoes everything sent and everything got since the last commit.

        Raises:
            IllegalStateError: the session is not transacted, or closed.
            OutcomeUnknownError: no outcome within the time-out.
        """
        await asyncio.to_thread(self._session.rollback, timeout=timeout)

    async def acknowledge(self, *, timeout: float | None = None, turn_timeout: float = 0.0) -> None:
        """Acknowledges everything that the session has handed over (CLIENT, INDIVIDUAL).

        Raises:
            OutOfTurnError: as `ledgermq.Session.acknowledge`.
            IllegalStateError: the session is transacted or closed.
            OutcomeUnknownError: no outcome within the time-out.
        """
        await asyncio.to_thread(
            self._session.acknowledge, timeout=timeout, turn_timeout=turn_timeout
        )

    async def recover(self, *, timeout: float | None = None) -> None:
        """Returns everything unacknowledged; delivery begins again with the oldest.

        Raises:
            IllegalStateError: the session is transacted or closed.
            OutcomeUnknownError: no outcome within the time-out.
        """
        await asyncio.to_thread(self._session.recover, timeout=timeout)

    @contextlib.asynccontextmanager
    async def transaction(self, *, turn_timeout: float = 0.0) -> AsyncIterator[Session]:
        """A unit of work as a block; see `ledgermq.Session.transaction`."""
        check_seconds("turn_timeout", turn_timeout)
        self._session._check_no_unit()
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
        await asyncio.to_thread(self._session.close, timeout=timeout)
