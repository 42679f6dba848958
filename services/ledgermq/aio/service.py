"""Services: consumers as decorated functions, several messages at a time, until told to stop."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import inspect
import itertools
import logging
import queue
import signal
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar, Unpack

import ledgermq
from ledgermq.aio.connection import Connection
from ledgermq.aio.receiving import Consumer, Message
from ledgermq.aio.session import Session
from ledgermq.aio.waiting import opened_aside
from ledgermq.client.argument_types import typed
from ledgermq.client.arguments import (
    SECONDS_MAX,
    YIELDS,
    check_number,
    check_rejection,
    is_of,
    wrong_type,
)
from ledgermq.client.connection import Connection as ThreadedConnection
from ledgermq.client.destinations import checked_destination, is_topic
from ledgermq.client.options import AckMode, ConnectOptions, ConsumerOptions
from ledgermq.errors import (
    AlreadySettledError,
    DeliveryUnknownError,
    IllegalStateError,
    LedgerMQError,
    OutcomeUnknownError,
    TransactionRolledBackError,
    TransactionTooLargeError,
)
from ledgermq.errors.shown import shown
from ledgermq.protocol.limits import DESCRIPTION_CHARACTERS_MAX

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
# How long what was worked on waits for its turn in a queue of the FIFO mode PROTECTED. Not for
# ever: an older message that went back may wait for a function that waits here.
TURN_SECONDS: Final = 30.0


class MessageRejectedError(Exception):
    """Raised by a function of a service: its message is to be rejected, or put back alone.

    The text of the exception is the reason. See `ledgermq.Message.reject` for the arguments, and
    for what becomes of the message; what the function sent in its unit of work is rolled back.

    Raises:
        ArgumentTypeError: `requeue` is neither True nor False, or the delay is no number.
        IllegalStateError: the delay is negative, too long, or given without `requeue`.
    """

    # Of a class derived from this one, too, that calls no `__init__` but its own.
    requeue: bool = False
    delay: float | None = None

    def __init__(
        self, reason: str = "", *, requeue: bool = False, delay: float | None = None
    ) -> None:
        super().__init__(reason)
        check_rejection(requeue, delay)
        self.requeue, self.delay = requeue, delay


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
        return f"{_name_of(self.handler)} of {self.destination}"


def _name_of(handler: Callable[..., Any]) -> str:
    """Objects that can be called, and `functools.partial`, have no name of their own."""
    return getattr(handler, "__qualname__", None) or repr(handler)


def _given(*, transacted: bool, is_coroutine: bool) -> str:
    """What a function is called with, in words."""
    if not transacted:
        return "one message"
    if is_coroutine:
        return "a message and its session"
    return "one message alone, as only coroutine functions are given the session"


class _SlotThread:
    """A thread that calls a plain function for one message after the other.

    Or connects. Those of a ThreadPoolExecutor would keep the process alive until the last call has
    returned, though the service has given it up.
    """

    _numbers = itertools.count()

    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        name = f"ledgermq-service-{next(self._numbers)}"
        threading.Thread(target=self._work, name=name, daemon=True).start()

    def call(self, function: Callable[..., Any], *given: Any) -> asyncio.Future[Any]:
        """Calls a function; what it returns, or raises."""
        future: concurrent.futures.Future[Any] = concurrent.futures.Future()
        future.set_running_or_notify_cancel()

        def work() -> None:
            try:
                future.set_result(_called(function, *given))
            except BaseException as error:
                future.set_exception(error)

        self._calls.put(work)
        return asyncio.wrap_future(future)

    def end(self) -> None:
        """Ends it once the call that it is at has returned."""
        self._calls.put(None)

    def _work(self) -> None:
        while (work := self._calls.get()) is not None:
            work()


def _called(function: Callable[..., Any], *given: Any) -> Any:
    """What a function returns; no future takes StopIteration, and nobody would be told."""
    try:
        return function(*given)
    except StopIteration as error:
        raise RuntimeError(f"{_name_of(function)} raised StopIteration") from error


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
    goes then, the queue says (`redelivery_limit`, `error_destination`). With MessageRejectedError
    it goes there at once. With `transacted=True` a coroutine function is given its session too,
    `bill(message, session)`: what it sends there is committed with the message, or rolled back
    with it. Any other function is given the message alone, in a thread.

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
                they are cancelled, and their messages go back. A function in a thread is left to
                itself then, and ends with the process.
            settings: Those of `connect`, which checks them when the service connects.

        Raises:
            ArgumentTypeError: address or time-out is of another type.
            IllegalStateError: the time-out is out of range.
        """
        if not isinstance(address, str) and not callable(address):
            raise wrong_type("address", address, "text, or what opens a connection")
        check_number("stop_timeout_seconds", stop_timeout_seconds, " of seconds")
        if not 0 <= stop_timeout_seconds <= SECONDS_MAX:
            raise IllegalStateError(
                f"stop_timeout_seconds is {shown(stop_timeout_seconds)}, must be 0 to {SECONDS_MAX}"
            )
        self._address = address
        self._settings = settings
        self._stop_timeout_seconds = stop_timeout_seconds
        self._routes: list[_Route] = []
        self._serves = False
        # There before the first `serve` begins, so that a stop before that holds for it.
        self._stopping: asyncio.Event | None = asyncio.Event()

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
                its own. Messages of a queue are then begun in their order, not ended in it. More
                than one of a topic take `subscription=NAME, shared=True`.
            transacted: Message and what the function sends are one unit of work.
            options: Those of `Session.consumer`. Here `redelivery_delay_ms` is 1,000, so that what
                the function fails on is not tried in a circle, and `prefetch` is 1, so that no
                message waits for a function that is at work while another one is idle.

        Raises:
            InvalidDestinationError: the destination is none.
            IllegalStateError: the service runs, `concurrency` is out of range or would have each
                message of a topic worked on more than once, or the function does not take what it
                would be given.
        """
        if self._serves:
            raise IllegalStateError("the service runs: say all its consumers before")
        if not 1 <= concurrency <= CONCURRENCY_MAX:
            raise IllegalStateError(
                f"concurrency {shown(concurrency)} is not in 1 to {CONCURRENCY_MAX:,}"
            )
        destination = checked_destination(destination)
        if concurrency > 1 and is_topic(destination) and not options.get("shared"):
            raise IllegalStateError(
                f"each of {concurrency} consumers of {destination} would be given every message: "
                "give subscription=NAME and shared=True, by which they share them, or "
                "concurrency=1"
            )

        def route(handler: Handler) -> Handler:
            is_coroutine = is_of(inspect.iscoroutinefunction, handler)
            if any(is_of(kind, handler) for kind in YIELDS):
                raise IllegalStateError(
                    f"{_name_of(handler)} has a yield, so that calling it does nothing yet: give a "
                    "function that returns once the message is worked on"
                )
            with_session = transacted and is_coroutine
            try:
                with contextlib.suppress(ValueError):  # written in C, it need not say
                    inspect.signature(handler).bind(*("message", "session")[: 1 + with_session])
            except TypeError as error:
                given = _given(transacted=transacted, is_coroutine=is_coroutine)
                name = _name_of(handler)
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
            IllegalStateError: in another thread, which gets no signals, or in an event loop; or it
                has no consumer.
        """
        if threading.current_thread() is not threading.main_thread():
            raise IllegalStateError(
                "run is for the main thread, which gets the signals: await serve() in an event "
                "loop of this one"
            )
        with contextlib.suppress(RuntimeError):
            asyncio.get_running_loop()
            raise IllegalStateError("an event loop runs here already: await serve() in it")

        async def serving() -> None:
            loop = asyncio.get_running_loop()
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, self.stop)
            await self.serve()

        asyncio.run(serving())

    def stop(self) -> None:
        """Ends `serve` once the functions that are at work have returned; from its event loop.

        Before the first `serve` has begun it holds for that; after one has ended it does nothing.
        """
        if self._stopping is not None:
            self._stopping.set()

    async def serve(self) -> None:
        """Serves until `stop` is called, or the coroutine is cancelled.

        Raises:
            LedgerMQError: it cannot serve; what may pass is tried again instead.
            IllegalStateError: it serves already, or has no consumer.
        """
        if self._serves:
            raise IllegalStateError("the service runs already")
        if not self._routes:
            raise IllegalStateError(
                "the service has no consumer, and would wait for nothing: say what it calls with "
                "@service.consumer(...) before it runs, and import the modules that do so"
            )
        self._serves = True
        stopping = self._stopping = self._stopping or asyncio.Event()
        try:
            connection = await self._connected(stopping)
            if connection is not None:
                async with connection:
                    await self._serve_all(connection, stopping)
        finally:
            self._stopping = None
            self._serves = False

    async def _connected(self, stopping: asyncio.Event) -> Connection | None:
        """A connection; None if it is to stop before: no attempt is waited for then."""
        connecting = asyncio.create_task(self._tried("connecting", self._connect))
        stop = asyncio.create_task(stopping.wait())
        try:
            await asyncio.wait({connecting, stop}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            if connecting.done() and connecting.exception() is None:
                connection = connecting.result()
                if connection is not None:
                    await connection.close()
            raise
        finally:
            stop.cancel()
            connecting.cancel()
        return connecting.result() if connecting.done() else None

    async def _connect(self) -> Connection:
        opened: Callable[..., ThreadedConnection] | str = self._address
        if isinstance(opened, str):
            opened = partial(ledgermq.connect, opened)
        connect_aside = partial(opened, **self._settings)
        thread = _SlotThread()
        try:
            return Connection(
                await opened_aside(connect_aside, ThreadedConnection.close, thread.call)
            )
        finally:
            thread.end()

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
                # An unknown outcome is that of the service's own call: the session it was of has
                # ended, and its message was settled, or comes again.
                if not error.retryable and not isinstance(error, OutcomeUnknownError):
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
        thread = None if route.is_coroutine else _SlotThread()
        try:
            async with (
                connection.session(ack=mode) as session,
                session.consumer(route.destination, **route.options) as consumer,
            ):
                while not self._stopping.is_set():
                    await self._one(session, consumer, route, thread)
        finally:
            if thread is not None:
                thread.end()

    async def _one(
        self, session: Session, consumer: Consumer, route: _Route, thread: _SlotThread | None
    ) -> None:
        message = await consumer.receive(RECEIVE_SECONDS)
        if message is None:
            return
        try:
            # In a task of its own: a function that cancels its task does not cancel the service's.
            await asyncio.create_task(self._call(route, message, session, thread))
        except (Exception, asyncio.CancelledError) as problem:
            if isinstance(problem, asyncio.CancelledError) and _is_cancelled():
                raise
            rejection = _rejection_in(problem)
            if rejection is None:
                await self._give_back(session, message, route)
            else:
                await self._reject(session, message, route, rejection)
        else:
            await self._settle(session, message, route)

    async def _reject(
        self, session: Session, message: Message, route: _Route, why: MessageRejectedError
    ) -> None:
        try:
            # An exception may quote anything, such as the name of a file that is no text.
            reason = str(why).encode("utf-8", "backslashreplace").decode()
            check_rejection(why.requeue, why.delay)
        except Exception:
            # What it says was changed since it was made, or is another class's own.
            await self._give_back(session, message, route)
            return
        LOGGER.warning("%s rejected message %s: %s", route.name, message.message_id, reason)
        try:
            # The function may have done so itself.
            with contextlib.suppress(AlreadySettledError):
                told = reason[:DESCRIPTION_CHARACTERS_MAX]
                await message.reject(told, requeue=why.requeue, delay=why.delay)
        except DeliveryUnknownError as error:
            _tell_taken_away(route, message, error)
        if route.transacted:
            await session.rollback()

    async def _give_back(self, session: Session, message: Message, route: _Route) -> None:
        """Called in the handling of what the function raised."""
        LOGGER.exception(
            "%s failed on message %s, delivery %d; it goes back",
            route.name,
            message.message_id,
            message.delivery_count,
        )
        await (session.rollback() if route.transacted else session.recover())

    async def _settle(self, session: Session, message: Message, route: _Route) -> None:
        try:
            if route.transacted:
                await session.commit(turn_timeout=TURN_SECONDS)
            else:
                # The function may have done so itself; there is nothing else to acknowledge.
                await session.acknowledge(turn_timeout=TURN_SECONDS)
        except TransactionRolledBackError as error:
            LOGGER.warning("%s was rolled back: %s", route.name, error)
        except TransactionTooLargeError:
            # What the function did not wait for with a flush is refused only now.
            await self._give_back(session, message, route)
        except DeliveryUnknownError as error:
            _tell_taken_away(route, message, error)

    async def _call(
        self, route: _Route, message: Message, session: Session, thread: _SlotThread | None
    ) -> None:
        given = (message, session) if route.with_session else (message,)
        if thread is None:
            await route.handler(*given)
        else:
            returned = await thread.call(route.handler, *given)
            # As of a lambda around a coroutine function: the work is only begun with this.
            if inspect.isawaitable(returned):
                await returned


def _rejection_in(problem: BaseException) -> MessageRejectedError | None:
    """The rejection that a function raised, or one of the tasks of a task group in it."""
    if isinstance(problem, BaseExceptionGroup):
        found = problem.subgroup(MessageRejectedError)
        return None if found is None else _rejection_in(found.exceptions[0])
    return problem if isinstance(problem, MessageRejectedError) else None


def _tell_taken_away(route: _Route, message: Message, error: DeliveryUnknownError) -> None:
    """A time limit or an administrator was faster; the service goes on with what comes next."""
    LOGGER.warning(
        "message %s was taken away while %s worked on it: %s", message.message_id, route.name, error
    )


def _is_cancelled() -> bool:
    """Whether the service cancels this slot, and not only what it awaits was cancelled."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
