"""Taking the steps of a session's calls in coroutines, beside the threads that take theirs."""

from __future__ import annotations

import asyncio
import functools
import logging
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextlib import AbstractAsyncContextManager, suppress
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Self, TypeVar

from ledgermq.client.closing import Uncopied
from ledgermq.client.engine.engine import Engine
from ledgermq.client.engine.steps import Outside, Steps, signature_of
from ledgermq.errors import IllegalStateError, LedgerMQError

T = TypeVar("T")
P = ParamSpec("P")
Opened = TypeVar("Opened", bound="Closing")
LOGGER = logging.getLogger("ledgermq.client")


class Waker:
    """Wakes coroutines of one event loop from other threads, many with one call."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self._due: deque[asyncio.Future[None]] = deque()
        self._called = False

    def check_loop(self) -> None:
        """Refuses another event loop than that of the connection, where nothing would wake it."""
        if asyncio.get_running_loop() is not self.loop:
            raise IllegalStateError(
                "this connection belongs to another event loop: connect again in this one, and "
                "close the connection, which any loop may do"
            )

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

    def call(self, function: Callable[[T], object], argument: T) -> None:
        """Has a function called by the loop; from any thread."""
        with suppress(RuntimeError):  # the loop is closed
            self.loop.call_soon_threadsafe(function, argument)

    def _wake(self) -> None:
        # In this order: what is added after the deque was emptied finds the flag down.
        self._called = False
        while self._due:
            future = self._due.popleft()
            if not future.done():
                future.set_result(None)


class Taking:
    """Takes the steps of one session's calls in coroutines of one event loop."""

    def __init__(self, engine: Engine, waker: Waker) -> None:
        self._engine = engine
        self._waker = waker
        self.check_loop = waker.check_loop
        self._futures: list[asyncio.Future[None]] = []
        self._to_the_end: set[asyncio.Task[Any]] = set()
        engine.on_news = self._wake_locked

    def _wake_locked(self) -> None:
        if self._futures:
            futures, self._futures = self._futures, []
            self._waker.wake(futures)

    async def run(self, steps: Steps[T]) -> T:
        """Takes the steps of a call; where the coroutine is cancelled, the rest is not taken."""
        self.check_loop()
        take_next: Callable[[], float | Callable[[], Any] | None] = functools.partial(next, steps)
        try:
            while True:
                with self._engine.lock:
                    wanted = take_next()
                    news = None if callable(wanted) else self._news_locked()
                came: Any = True
                try:
                    if isinstance(wanted, Outside):
                        came = wanted()
                    elif callable(wanted):
                        came = await asyncio.to_thread(wanted)
                    elif news is not None:
                        came = await self._wait(news, wanted)
                except Exception as error:
                    take_next = functools.partial(steps.throw, error)
                else:
                    take_next = functools.partial(steps.send, came)
        except StopIteration as end:
            result: T = end.value
            return result
        finally:
            with self._engine.lock:
                steps.close()

    async def run_to_the_end(self, steps: Steps[T]) -> T:
        """Takes the steps of a call, all of them even where the coroutine is cancelled."""
        self.check_loop()
        return await self.to_the_end(self.run(steps))

    async def to_the_end(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Awaits what goes on even where whoever awaits it is cancelled."""
        return await asyncio.shield(self._start(coroutine))

    async def or_closed(self, opening: Callable[[], Coroutine[Any, Any, Opened]]) -> Opened:
        """What is being opened; if the coroutine is cancelled, it is closed once it is there."""
        task = self._start(opening())
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            self._start(_close_opened(task))
            raise

    def _start(self, coroutine: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.get_running_loop().create_task(coroutine)
        self._to_the_end.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._to_the_end.discard(task)
        if not task.cancelled():
            task.exception()  # somebody has asked for it, even if nobody waits any more

    def _news_locked(self) -> asyncio.Future[None]:
        """A future that happens with the next news."""
        self._engine.send_held_locked()
        future = self._waker.loop.create_future()
        self._futures.append(future)
        return future

    async def _wait(self, news: asyncio.Future[None], deadline: float | None) -> bool:
        """Waits for news; False once the deadline has passed."""
        try:
            if deadline is None:
                await news
                return True
            left = deadline - time.monotonic()
            if left > 0:
                await asyncio.wait((news,), timeout=left)
            return news.done()
        finally:
            if not news.done():
                with self._engine.lock:
                    if news in self._futures:
                        self._futures.remove(news)


def awaited(
    method: Callable[Concatenate[Any, P], Steps[T]], *, to_the_end: bool = False
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """A method of the part that threads and coroutines share, as one that takes its steps.

    Its class has that part as `_shared`. `to_the_end`: all of them even if it is cancelled.
    """

    @functools.wraps(method)
    async def call(one: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        run = one._taking.run_to_the_end if to_the_end else one._taking.run
        result: T = await run(method(one._shared, *args, **kwargs))
        return result

    call.__signature__ = signature_of(method)  # type: ignore[attr-defined]
    return call


class Closing(Uncopied):
    """Closes itself at the end of an `async with` block."""

    __slots__ = ()

    async def close(self) -> None:
        """Closes it."""
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            await self.close()
        except LedgerMQError as problem:
            if kind is None:
                raise
            LOGGER.warning("closing %r after an exception did not work: %s", self, problem)


async def _close_opened(opening: asyncio.Task[Opened]) -> None:
    await (await opening).close()


async def opened_aside(
    open_it: Callable[[], T],
    close_it: Callable[[T], None],
    in_thread: Callable[[Callable[[], T]], Awaitable[T]] = asyncio.to_thread,
) -> T:
    """Opens something in a thread; if the coroutine is cancelled, it is closed once it is there."""
    lock = threading.Lock()
    opened: list[T] = []
    given_up = False

    def work() -> T:
        found = open_it()
        with lock:
            opened.append(found)
            if not given_up:
                return found
        _close_aside(close_it, found)
        return found

    try:
        return await in_thread(work)
    except asyncio.CancelledError:
        with lock:
            given_up = True
            found = opened[0] if opened else None
        if found is not None:
            asyncio.get_running_loop().run_in_executor(None, _close_aside, close_it, found)
        raise


def _close_aside(close_it: Callable[[T], None], thing: T) -> None:
    try:
        close_it(thing)
    except LedgerMQError as problem:
        LOGGER.warning("closing %r, for which nobody waits any more, failed: %s", thing, problem)


class Again(Generic[Opened]):
    """A block that begins anew each time that it is entered, after it was left."""

    def __init__(self, begin: Callable[[], AbstractAsyncContextManager[Opened]]) -> None:
        self._begin = begin

    async def __aenter__(self) -> Opened:
        block = self._begin()
        entered = await block.__aenter__()
        self._block = block
        return entered

    async def __aexit__(self, *error: Any) -> bool | None:
        return await self._block.__aexit__(*error)


class Entered(Coroutine[Any, Any, Opened]):
    """Something that is being opened: `await` it and close it, or use it with `async with`.

    Tasks take it too, as they take any coroutine.
    """

    def __init__(self, opening: Coroutine[Any, Any, Opened]) -> None:
        self._opening = opening
        self._thing: Opened | None = None

    def __await__(self) -> Generator[Any, None, Opened]:
        return self._opening.__await__()

    def send(self, value: Any) -> Any:
        """As of any coroutine."""
        return self._opening.send(value)

    def throw(self, *problem: Any) -> Any:
        """As of any coroutine."""
        return self._opening.throw(*problem)

    def close(self) -> None:
        """As of any coroutine: it is not begun, or not gone on with."""
        self._opening.close()

    if not TYPE_CHECKING:  # to which any name would be known then

        def __getattr__(self, name: str) -> Any:
            raise AttributeError(
                f"it is only being opened, and has no {name} yet: `await` it, or enter it with "
                "`async with`"
            )

    async def __aenter__(self) -> Opened:
        self._thing = await self
        return self._thing

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        assert self._thing is not None, "entered before it is left"
        await self._thing.__aexit__(kind)
