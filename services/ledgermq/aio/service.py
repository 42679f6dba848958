"""Services: consumers as decorated functions, several messages at a time, until told to stop."""

from __future__ import annotations

import asyncio
import inspect
import logging
import signal
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final, TypeVar, Unpack

import ledgermq
from ledgermq.aio.connection import Connection
from ledgermq.aio.receiving import Consumer, Message
from ledgermq.aio.session import Session
from ledgermq.client.argument_types import typed
from ledgermq.client.connection import Connection as ThreadedConnection
from ledgermq.client.engine.acknowledge_mode import AckMode
from ledgermq.client.options import ConnectOptions, ConsumerOptions
from ledgermq.errors import IllegalStateError, LedgerMQError, TransactionRolledBackError

LOGGER = logging.getLogger("ledgermq.service")
Handler = TypeVar("Handler", bound=Callable[..., Any])
T = TypeVar("T")

CONCURRENCY_MAX: Final = 1_000
REDELIVERY_DELAY_MS: Final = 1_000
STOP_SECONDS: Final = 30.0
BACK_OFF_SECONDS: Final = 0.5
BACK_OFF_SECONDS_MAX: Final = 30.0
# How long a receive waits before it looks whether the service is to stop.
RECEIVE_SECONDS: Final = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class _Route:
    """A function and what it gets; `with_session`: it takes the session too."""

    handler: Callable[..., Any]
    destination: str
    concurrency: int
    transacted: bool
    options: ConsumerOptions
    with_session: bool
    is_coroutine: bool

    @property
    def name(self) -> str:
        return f"{self.handler.__qualname__} of {self.destination}"


@typed
class Service:
    """The consumers of a process, each a function that is called for one message at a time.

        service = aio.Service("kafka://localhost:9092/QM1")

        @service.consumer("queue:orders", concurrency=8)
        async def bill(message):
            ...

        service.run()

    What a function returned from is acknowledged. What it raised an exception for goes back, with
    its delivery count raised, and is delivered again after a delay; how often at most, and where it
    goes then, the queue says (`redelivery_limit`, `error_destination`). With `transacted=True` the
    function is given its session too, `bill(message, session)`: what it sends there is committed
    with the message, or rolled back with it. A function that is no coroutine runs in a thread.

    Where worker or broker are away, or a session was lost, it is tried again after a pause that
    grows from 0.5 to 30 s; any other error of LedgerMQ ends the service.
    """

    def __init__(
        self,
        address: str | Callable[..., ThreadedConnection] = "kafka://localhost:9092",
        *,
        stop_timeout_seconds: float = STOP_SECONDS,
        **settings: Unpack[ConnectOptions],
    ) -> None:
        """Connects nothing yet.

        Args:
            address: As `connect` takes it; or what opens a connection, such as the `connect` of
                `ledgermq.testing.MemoryBroker`.
            stop_timeout_seconds: How long functions may go on once the service is to stop; then
                they are cancelled, and their messages go back.
            settings: Those of `connect`.
        """
        self._address = address
        self._settings = settings
        self._stop_timeout_seconds = stop_timeout_seconds
        self._routes: list[_Route] = []
        self._stopping: asyncio.Event | None = None
        self._threads: ThreadPoolExecutor | None = None

    def consumer(
        self,
        destination: str,
        *,
        concurrency: int = 1,
        transacted: bool = False,
        **options: Unpack[ConsumerOptions],
    ) -> Callable[[Handler], Handler]:
        """Has a function called for each message of a destination.

        Args:
            destination: As `queue:NAME` or `topic:NAME`.
            concurrency: How many messages it works on at a time (1 to 1,000), each in a session of
                its own. Messages of a queue are then begun in their order, not ended in it.
            transacted: Message and what the function sends are one unit of work.
            options: Those of `Session.consumer`. Here `redelivery_delay_ms` is 1,000, so that what
                the function fails on is not tried in a circle, and `prefetch` is 1, so that no
                message waits for a function that is at work while another one is idle.

        Raises:
            IllegalStateError: the service runs, `concurrency` is out of range, or the function does
                not take what it would be given.
        """
        if self._stopping is not None:
            raise IllegalStateError("the service runs: say all its consumers before")
        if not 1 <= concurrency <= CONCURRENCY_MAX:
            raise IllegalStateError(f"concurrency {concurrency} is not in 1 to {CONCURRENCY_MAX:,}")

        def route(handler: Handler) -> Handler:
            is_coroutine = inspect.iscoroutinefunction(handler)
            with_session = transacted and is_coroutine
            try:
                inspect.signature(handler).bind(*("message", "session")[: 1 + with_session])
            except TypeError as error:
                given = "a message and its session" if with_session else "one message"
                name = getattr(handler, "__qualname__", repr(handler))
                raise IllegalStateError(f"{name} is to be called with {given}: {error}") from None
            options.setdefault("prefetch", 1)
            options.setdefault("redelivery_delay_ms", REDELIVERY_DELAY_MS)
            made = _Route(
                handler=handler,
                destination=destination,
                concurrency=concurrency,
                transacted=transacted,
                options=options,
                with_session=with_session,
                is_coroutine=is_coroutine,
            )
            self._routes.append(made)
            return handler

        return route

    def run(self) -> None:
        """Serves until SIGTERM or SIGINT, then lets functions end; for a program's main thread.

        Raises:
            LedgerMQError: it cannot serve; what may pass is tried again instead.
        """

        async def serving() -> None:
            loop = asyncio.get_running_loop()
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, self.stop)
            await self.serve()

        asyncio.run(serving())

    def stop(self) -> None:
        """Ends `serve` once the functions that are at work have returned; from its event loop."""
        if self._stopping is not None:
            self._stopping.set()

    async def serve(self) -> None:
        """Serves until `stop` is called, or the coroutine is cancelled.

        Raises:
            LedgerMQError: it cannot serve; what may pass is tried again instead.
            IllegalStateError: it serves already.
        """
        if self._stopping is not None:
            raise IllegalStateError("the service runs already")
        stopping = self._stopping = asyncio.Event()
        threads = sum(one.concurrency for one in self._routes if not one.is_coroutine)
        self._threads = ThreadPoolExecutor(max(1, threads), "ledgermq-service")
        try:
            connection = await self._tried("connecting", self._connect)
            if connection is not None:
                async with connection:
                    await self._serve_all(connection, stopping)
        finally:
            self._stopping = None
            self._threads.shutdown(wait=False)

    async def _connect(self) -> Connection:
        opened: Callable[..., ThreadedConnection] | str = self._address
        if isinstance(opened, str):
            made = asyncio.to_thread(ledgermq.connect, opened, **self._settings)
        else:
            made = asyncio.to_thread(opened, **self._settings)
        return Connection(await made)

    async def _serve_all(self, connection: Connection, stopping: asyncio.Event) -> None:
        slots = [
            asyncio.create_task(self._tried(one.name, self._slot, connection, one))
            for one in self._routes
            for _ in range(one.concurrency)
        ]
        stop = asyncio.create_task(stopping.wait())
        try:
            waited = asyncio.wait({stop, *slots}, return_when=asyncio.FIRST_COMPLETED)
            ended, _ = await waited
            stopping.set()
            for task in ended - {stop}:
                task.result()
            if slots:
                _, late = await asyncio.wait(slots, timeout=self._stop_timeout_seconds)
                if late:
                    LOGGER.warning("%d functions are still at work and are cancelled", len(late))
        finally:
            stop.cancel()
            for task in slots:
                task.cancel()
            await asyncio.gather(*slots, return_exceptions=True)

    async def _tried(self, what: str, work: Callable[..., Awaitable[T]], *given: Any) -> T | None:
        """What some work returns, tried again while that may help; None if it is to stop before."""
        assert self._stopping is not None, "it serves"
        pause = BACK_OFF_SECONDS
        while not self._stopping.is_set():
            began = asyncio.get_running_loop().time()
            try:
                return await work(*given)
            except LedgerMQError as error:
                if not error.retryable:
                    raise
                if asyncio.get_running_loop().time() - began > BACK_OFF_SECONDS_MAX:
                    pause = BACK_OFF_SECONDS
                LOGGER.warning("%s: %s; tried again in %.1f s", what, error, pause)
            try:
                await asyncio.wait_for(self._stopping.wait(), pause)
            except TimeoutError:
                pause = min(2 * pause, BACK_OFF_SECONDS_MAX)
        return None

    async def _slot(self, connection: Connection, route: _Route) -> None:
        """Works on one message after the other, until the service is to stop."""
        assert self._stopping is not None, "it serves"
        mode = AckMode.TRANSACTED if route.transacted else AckMode.INDIVIDUAL
        async with (
            connection.session(ack=mode) as session,
            session.consumer(route.destination, **route.options) as consumer,
        ):
            while not self._stopping.is_set():
                await self._one(session, consumer, route)

    async def _one(self, session: Session, consumer: Consumer, route: _Route) -> None:
        message = await consumer.receive(RECEIVE_SECONDS)
        if message is None:
            return
        try:
            await self._call(route, message, session)
        except Exception:
            LOGGER.exception(
                "%s failed on message %s, delivery %d; it goes back",
                route.name,
                message.message_id,
                message.delivery_count,
            )
            await (session.rollback() if route.transacted else session.recover())
            return
        if route.transacted:
            try:
                await session.commit()
            except TransactionRolledBackError as error:
                LOGGER.warning("%s was rolled back: %s", route.name, error)
        else:
            await message.acknowledge()

    async def _call(self, route: _Route, message: Message, session: Session) -> None:
        given = (message, session) if route.with_session else (message,)
        if route.is_coroutine:
            await route.handler(*given)
        else:
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(self._threads, route.handler, *given)
