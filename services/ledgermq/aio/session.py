"""Sessions for asyncio."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from ledgermq.aio.consumer import Consumer
from ledgermq.aio.producer import Producer
from ledgermq.aio.waiting import Closing, Entered, News, Waker
from ledgermq.client.acknowledge_mode import AckMode
from ledgermq.client.receipts import CommitReceipt
from ledgermq.client.session import Session as ThreadedSession
from ledgermq.errors import SessionLostError

__all__ = ["Session"]


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

    def producer(self, destination: str | None) -> Producer:
        """A sender to one destination, as `queue:NAME`; with None, each send names its own.

        Raises:
            InvalidDestinationError: the text is no destination.
        """
        return Producer(self._session.producer(destination), self._news)

    def consumer(self, destination: str, *, prefetch: int | None = None) -> Entered[Consumer]:
        """A receiver from one destination; see `ledgermq.Session.consumer`.

        Raises:
            QueueNotFoundError: there is no such queue and queues are not created on first use.
            InvalidDestinationError: the text is no destination.
        """

        async def opening() -> Consumer:
            found = await asyncio.to_thread(self._session.consumer, destination, prefetch=prefetch)
            return Consumer(found, self._news)

        return Entered(opening())

    async def commit(self, *, timeout: float | None = None) -> CommitReceipt:
        """Puts everything sent and consumes everything handed over since the last commit, as one.

        Raises:
            TransactionRolledBackError: it could not be done, and all of it was undone.
            TransactionInDoubtError: no outcome within the time-out; see its `resolve`.
            IllegalStateError: the session is not transacted, or closed.
        """
        await self._news.room(timeout)
        with self._core.lock:
            commitment = self._session._begin_commit_locked()
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
        if self._core.lost is not None or commitment.in_doubt:
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

    async def acknowledge(self, *, timeout: float | None = None) -> None:
        """Acknowledges everything that the session has handed over (CLIENT, INDIVIDUAL).

        Raises:
            IllegalStateError: the session is transacted or closed.
            OutcomeUnknownError: no outcome within the time-out.
        """
        await asyncio.to_thread(self._session.acknowledge, timeout=timeout)

    async def recover(self, *, timeout: float | None = None) -> None:
        """Returns everything unacknowledged; delivery begins again with the oldest.

        Raises:
            IllegalStateError: the session is transacted or closed.
            OutcomeUnknownError: no outcome within the time-out.
        """
        await asyncio.to_thread(self._session.recover, timeout=timeout)

    @contextlib.asynccontextmanager
    async def transaction(self) -> AsyncIterator[Session]:
        """A unit of work as a block: commits at its end, rolls back when it raises."""
        self._session._check_no_unit()
        try:
            yield self
        except BaseException:
            await self.rollback()
            raise
        await self.commit()

    async def close(self, *, timeout: float | None = None) -> None:
        """Ends the session: what was handed over and not settled goes back.

        Raises:
            OutcomeUnknownError: no outcome within the time-out.
            SessionLostError: AUTO: the session was lost before its last acknowledgements counted.
        """
        await asyncio.to_thread(self._session.close, timeout=timeout)
