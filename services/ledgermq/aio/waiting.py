"""Waiting for a session's news in coroutines, beside the threads that wait for it."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Coroutine, Generator
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from ledgermq.client.protocol import Pending
from ledgermq.client.session_core import SessionCore
from ledgermq.errors import LedgerMQError
from ledgermq.protocol.outcomes import Reply

__all__ = ["Closing", "Entered", "News", "Waker"]

LOGGER = logging.getLogger("ledgermq.client")


class Waker:
    """Wakes coroutines of one event loop from other threads, many with one call."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self._due: deque[asyncio.Future[None]] = deque()
        self._called = False

    def wake(self, waiting: list[asyncio.Future[None]]) -> None:
        """Lets futures happen soon; from any thread."""
        self._due.extend(waiting)
        if self._called:
            return
        self._called = True
        try:
            self.loop.call_soon_threadsafe(self._wake)
        except RuntimeError:
            self._due.clear()  # the loop is closed, and nobody waits in it

    def _wake(self) -> None:
        # In this order: what is added after the deque was emptied finds the flag down.
        self._called = False
        while self._due:
            future = self._due.popleft()
            if not future.done():
                future.set_result(None)


class NewsCondition(threading.Condition):
    """A session's condition that wakes coroutines too."""

    def __init__(self, lock: threading.Lock, waker: Waker) -> None:
        super().__init__(lock)
        self._waker = waker
        self._futures: list[asyncio.Future[None]] = []

    def future_locked(self) -> asyncio.Future[None]:
        """Happens with the next news."""
        future = self._waker.loop.create_future()
        self._futures.append(future)
        return future

    def forget_locked(self, future: asyncio.Future[None]) -> None:
        """Nobody waits for it any more."""
        if future in self._futures:
            self._futures.remove(future)

    def notify_all(self) -> None:
        """Wakes threads and coroutines."""
        super().notify_all()
        if self._futures:
            futures, self._futures = self._futures, []
            self._waker.wake(futures)


class News:
    """What happens to one session, for coroutines."""

    def __init__(self, core: SessionCore, waker: Waker) -> None:
        self._core = core
        self._loop = waker.loop
        with core.lock:
            self._condition = NewsCondition(core.lock, waker)
            core.condition = self._condition

    def deadline(self, timeout: float | None) -> float | None:
        """A moment on the loop's clock; None for never."""
        return None if timeout is None else self._loop.time() + timeout

    def future_locked(self) -> asyncio.Future[None]:
        """To be taken under the lock in which there was no news yet, and waited for without it."""
        self._core.send_held_locked()
        return self._condition.future_locked()

    async def wait(self, future: asyncio.Future[None], deadline: float | None) -> bool:
        """Waits for news; False once the deadline has passed."""
        try:
            if deadline is None:
                await future
                return True
            left = deadline - self._loop.time()
            if left > 0:
                await asyncio.wait((future,), timeout=left)
            return future.done()
        finally:
            if not future.done():
                with self._core.lock:
                    self._condition.forget_locked(future)

    async def room(self, timeout: float | None) -> None:
        """Waits while too many operations are unanswered; see `wait_for_room_locked`."""
        core = self._core
        if not core.protocol.full:
            return
        deadline = self.deadline(core.timeout_seconds if timeout is None else timeout)
        while True:
            with core.lock:
                if not core.protocol.full or core.ended:
                    return
                future = self.future_locked()
            if not await self.wait(future, deadline):
                return  # the call that follows says what it waited for

    async def reply(self, pending: Pending, timeout: float | None) -> Reply:
        """Waits for an operation's reply.

        Raises:
            OutcomeUnknownError: no reply within the time-out.
            LedgerMQError: the operation was refused, or the session was lost.
        """
        await self.settled(pending, timeout)
        return self._core.reply_of(pending)

    async def settled(self, pending: Pending, timeout: float | None) -> None:
        """Waits until an operation has a reply or an error.

        Raises:
            OutcomeUnknownError: neither came within the time-out.
        """
        core = self._core
        wanted = core.timeout_seconds if timeout is None else timeout
        deadline = self.deadline(wanted)
        while True:
            with core.lock:
                if pending.settled:
                    return
                future = self.future_locked()
            if not await self.wait(future, deadline):
                raise core.unknown(pending, wanted)


class Closing:
    """Closes itself at the end of an `async with` block."""

    async def close(self) -> None:
        """Closes it."""
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            await self.close()
        except LedgerMQError as problem:
            if kind is None:
                raise
            LOGGER.warning("closing %r after an exception did not work: %s", self, problem)


Thing = TypeVar("Thing", bound=Closing)


class Entered(Generic[Thing]):
    """Something that is being opened: `await` it and close it, or use it with `async with`."""

    def __init__(self, opening: Coroutine[Any, Any, Thing]) -> None:
        self._opening = opening
        self._thing: Thing | None = None

    def __await__(self) -> Generator[Any, None, Thing]:
        return self._opening.__await__()

    async def __aenter__(self) -> Thing:
        self._thing = await self
        return self._thing

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._thing is not None, "entered before it is left"
        await self._thing.__aexit__(kind, error, trace)
