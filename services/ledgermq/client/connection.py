"""Connections: the way from an application to one queue manager.

It has one producer to the log, one reader of its outcome lane and one thread of heartbeats, for any
number of sessions. Any number of threads may use it. It does not survive a fork: the child connects
anew.
"""

from __future__ import annotations

import itertools
import logging
import os
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Final, Unpack

from ledgermq.client.admin.admin import Admin
from ledgermq.client.argument_types import typed
from ledgermq.client.arguments import check_callback
from ledgermq.client.closing import Closing, close_aside, is_interrupted
from ledgermq.client.engine.engine import Engine
from ledgermq.client.engine.work import Services, Work
from ledgermq.client.link.broker_news import BRING_BACK
from ledgermq.client.link.heartbeats import Heartbeats
from ledgermq.client.link.questions import Questions
from ledgermq.client.link.route import Route, kafka_route
from ledgermq.client.link.router import Opening, Router
from ledgermq.client.options import USUAL, AckMode, BrowserOptions, ConnectOptions, SessionOptions
from ledgermq.client.problems import ExceptionListener, Problems
from ledgermq.client.reasons import error_of_reason
from ledgermq.client.receiving.browser import Browser
from ledgermq.client.session import Session
from ledgermq.client.settings import (
    ConnectionSettings,
    checked_delay_ms,
    checked_whole,
    settings_from,
)
from ledgermq.errors import (
    ConnectionClosedError,
    IllegalStateError,
    LedgerMQError,
    OutcomeUnknownError,
    WorkerUnavailableError,
)
from ledgermq.errors.shown import shown
from ledgermq.protocol.limits import TIMING_MS_MAX
from ledgermq.protocol.operations import Close, Open
from ledgermq.wire.framing.codec import encode_operation
from ledgermq.wire.framing.headers import operation_headers, with_identity

LOGGER = logging.getLogger("ledgermq.client")
READ_SECONDS: Final = 0.2
SERVE_SECONDS: Final = 0.02
# How long, of the time that there is for an opening, a worker that does not open is asked.
ASKING_SECONDS: Final = 1.0
# An Open without a further operation ends after 30 s on the log's clock (H16).
CERTAINLY_CONFIRMED_SECONDS: Final = 15.0
FORKED: Final = "a connection does not survive a fork: connect again in the child process"
_ALIVE: weakref.WeakSet[Connection] = weakref.WeakSet()


@typed
class Connection(Closing):
    """Made by `connect`; closes itself and its sessions at the end of a `with` block.

    Any number of threads may use it, with a session for each. In the child of a fork every call
    raises IllegalStateError: connect again there.
    """

    def __init__(
        self,
        settings: ConnectionSettings,
        route: Callable[[ConnectionSettings, float], Route] = kafka_route,
    ) -> None:
        self._settings = settings
        self._closed = False
        self._stopping = threading.Event()
        self._forked = False
        self._lock = threading.Lock()
        self._control_lock = threading.Lock()
        self._work: dict[Work, None] = {}
        self._temporaries = itertools.count(1)
        deadline = time.monotonic() + settings.timeout_seconds
        self._lane, self._transport = route(settings, deadline)
        self._questions = Questions(settings, self._lane.lane, self._transport)
        self._problems = Problems()
        self._router = Router(self._questions, self._problems)
        self._heartbeats = Heartbeats(
            self._router, self._transport, settings.suspect_timeout_seconds / 3
        )
        self._reader = threading.Thread(target=self._read, name="ledgermq-reader", daemon=True)
        _ALIVE.add(self)
        try:
            # There may be no thread to be had any more.
            self._reader.start()
            self._heartbeats.start()
            self._control = self._open(AckMode.AUTO, max(0.1, deadline - time.monotonic()))
        except BaseException:
            self._stop(0.0)
            raise
        self._services = Services(
            questions=self._questions,
            name_temporary=self._name_temporary,
            soon=self._heartbeats.soon,
            closed=self._session_closed,
        )
        self._admin = Admin(self._control_session, self._questions)

    @property
    def queue_manager(self) -> str:
        """Name of the queue manager."""
        return self._settings.queue_manager

    @property
    def identity(self) -> str:
        """This connection's identity: 32 hexadecimal digits."""
        return self._settings.identity.hex()

    @property
    def admin(self) -> Admin:
        """Administration of the queue manager.

        Raises:
            ConnectionClosedError: the connection is closed, or cannot go on.
        """
        self._check_usable()
        return self._admin

    @property
    def is_closed(self) -> bool:
        """Whether it was closed."""
        return self._closed

    @property
    def exception_listener(self) -> ExceptionListener | None:
        """Who is told of what goes wrong while nobody calls, if there is one."""
        return self._problems.listener

    def set_exception_listener(self, listener: ExceptionListener | None) -> None:
        """Has a function called with what goes wrong while nobody calls; None ends that.

        It is given the error that the next call of the session, or of the connection, raises:
        SessionLostError for a session that was lost or ended by administration,
        ConnectionClosedError for a connection that cannot go on, and what ended the message
        listeners of a session. All of these are logged as well.

        It is called in a thread of its own, once for each error, and may close the connection and
        connect again: no close waits for it (SES-23).

        Raises:
            IllegalStateError: a coroutine function, or one with a yield.
            ConnectionClosedError: the connection is closed, or cannot go on: it would not be told.
        """
        if listener is not None:
            self._check_usable()
            check_callback(listener)
        self._problems.listener = listener

    def session(self, **options: Unpack[SessionOptions]) -> Session:
        """Opens a session, for one thread at a time (SES-01).

        A unit of work that breaks a time limit is rolled back: send and receive raise
        TransactionRolledBackError until `rollback()`, commit raises it once.

        Args:
            ack: How the session settles what it gets, also as text: "CLIENT"; see `AckMode`.
            transacted: True is `ack=AckMode.TRANSACTED`, whichever mode `ack` names (SES-09).
            redelivery_delay_ms: How long what goes back waits before it is delivered again, where
                consumer or destination do not say; None: as the connection has it (INF-09).
            unit_of_work_time_limit_ms: How long a unit of work may be open. 0: no limit but the
                queue manager's; of the two the shorter one holds.
            unit_of_work_idle_limit_ms: How long it may be open without a put or get; 0 likewise.

        Raises:
            WorkerUnavailableError: no worker answered within the time-out.
            ConnectionClosedError: the connection is closed, or cannot go on.
            IllegalStateError: `ack` is no mode, or the delay or a limit is out of range.
        """
        return Session(self.open_work(**options))

    def open_work(self, **options: Unpack[SessionOptions]) -> Work:
        """Opens a session, for threads or coroutines; see `session`."""
        self._check_usable()
        ack = options.get("ack", USUAL["ack"])
        try:
            mode = AckMode(ack)
        except ValueError:
            raise IllegalStateError(
                f"{shown(ack)} is no acknowledge mode; there are {', '.join(AckMode)}"
            ) from None
        if options.get("transacted"):
            mode = AckMode.TRANSACTED
        delay_ms = checked_delay_ms(
            options.get("redelivery_delay_ms"), self._settings.redelivery_delay_ms
        )
        timing_ms = {"redelivery_delay_ms": delay_ms}
        for name in ("unit_of_work_time_limit_ms", "unit_of_work_idle_limit_ms"):
            timing_ms[name] = checked_whole(name, options.get(name, USUAL[name]), 0, TIMING_MS_MAX)
        engine = self._open(mode, self._settings.timeout_seconds, **timing_ms)
        engine.report = self._problems.report
        work = Work(engine, self._services)
        with self._lock:
            self._work[work] = None
        return work

    def browser(self, destination: str, **options: Unpack[BrowserOptions]) -> Browser:
        """Looks at the available messages of a queue without getting them (SES-40).

        Takes and raises what `Session.browser` does, but belongs to no session: it works until it
        or the connection is closed, and then raises ConnectionClosedError.
        """
        self._check_usable()
        return Browser(self._questions, destination, **options)

    def _name_temporary(self, kind: str) -> str:
        """A new destination `KIND:temporary/CONNECTION/NUMBER`; those of a connection differ."""
        return f"{kind}:temporary/{self.identity}/{next(self._temporaries)}"

    def _check_usable(self) -> None:
        """Refuses use after the end."""
        if self._forked:
            raise IllegalStateError(FORKED)
        if self._closed:
            raise ConnectionClosedError("the connection is closed; connect again")
        if self._router.broken is not None:
            raise ConnectionClosedError(self._router.broken)

    def _control_session(self) -> Engine:
        """The administration's session, open as long as the connection; anew if it was lost."""
        self._check_usable()
        with self._control_lock:
            if self._control.lost is not None:
                self._router.sessions.pop(self._control.handle, None)
                self._control = self._open(AckMode.AUTO, self._settings.timeout_seconds)
            return self._control

    def _open(self, mode: AckMode, timeout_seconds: float, **timing_ms: int) -> Engine:
        """Opens a session that lives: anew, where its answer came too late to confirm it (H16)."""
        deadline = time.monotonic() + timeout_seconds
        left = timeout_seconds
        while True:
            asked_at = time.monotonic()
            engine = self._open_once(mode, left, timing_ms)
            confirming = engine.show_life()
            now = time.monotonic()
            if confirming is not None and now - asked_at > CERTAINLY_CONFIRMED_SECONDS:
                with suppress(OutcomeUnknownError):
                    engine.run(engine.settled(confirming, deadline - now))
            left = deadline - time.monotonic()
            if engine.lost is None or left <= 0:
                return engine
            self._router.sessions.pop(engine.handle, None)

    def _open_once(
        self, mode: AckMode, timeout_seconds: float, timing_ms: Mapping[str, int]
    ) -> Engine:
        """Writes Open and waits for Opened; the first operation then confirms the session."""
        settings = self._settings
        key = os.urandom(16)
        opening = Opening(
            partial(
                Engine,
                mode=mode.value,
                settings=settings,
                lane=self._lane.lane,
                transport=self._transport,
                log_time=self._lane.log_time,
            )
        )
        self._router.openings[key] = opening
        operation = Open(
            connection=settings.identity,
            lane=self._lane.lane,
            session_key=key,
            acknowledge_mode=mode.value,
            suspect_timeout_ms=settings.suspect_timeout_ms,
            client=f"ledgermq-python {settings.application}".rstrip(),
            client_id=settings.client_id,
            takeover=settings.takeover,
            **timing_ms,
        )
        shared = operation_headers(
            settings.queue_manager,
            settings.identity,
            self._lane.lane,
            -1,
            "ledgermq.operation.Open",
        )
        try:
            self._transport.write(encode_operation(operation), with_identity(shared, -1, 0))
            # Given up before this opening was noted, nobody would answer it.
            asking_seconds = min(ASKING_SECONDS, timeout_seconds / 4)
            waited = opening.answered.wait
            answered = self._router.broken is not None or waited(timeout_seconds - asking_seconds)
            worker_at = None
            if not answered:
                limit = time.monotonic() + asking_seconds
                worker_at = self._questions.position(asking_seconds)
                answered = waited(max(0.0, limit - time.monotonic()))
        finally:
            del self._router.openings[key]
        if self._transport.refused is not None:
            raise self._transport.refused
        if not answered:
            raise self._unanswered(timeout_seconds, worker_at)
        if opening.engine is None:
            refused = opening.refused
            if refused is None:
                raise ConnectionClosedError(self._router.broken or "the connection is closed")
            raise error_of_reason(
                refused.reason,
                refused.detail,
                queue_manager=settings.queue_manager,
                position=refused.position,
            )
        return opening.engine

    def _unanswered(self, timeout_seconds: float, worker_at: int | None) -> WorkerUnavailableError:
        settings, away = self._settings, self._transport.away
        if worker_at is not None:
            return WorkerUnavailableError(
                f"a worker of {settings.queue_manager} answers, but within {timeout_seconds:.3g} s "
                f"it folded the log at {settings.bootstrap} no further than position {worker_at}: "
                "it is behind, or waits at the next record. Its log says why"
            )
        if away:
            return WorkerUnavailableError(
                f"no worker of {settings.queue_manager} answered within {timeout_seconds:.3g} s, "
                f"and {away}: {BRING_BACK}"
            )
        return WorkerUnavailableError(
            f"the log at {settings.bootstrap} is there, but no worker of "
            f"{settings.queue_manager} answered within {timeout_seconds:.3g} s: start one with "
            f"`ledgermq worker`, or `ledgermq up` for broker and worker"
        )

    def _session_closed(self, work: Work) -> None:
        with self._lock:
            self._work.pop(work, None)
        if work.engine.ended:
            self._router.sessions.pop(work.engine.handle, None)

    def _read(self) -> None:
        """The reader thread: everything that the lane brings, to the end of the last session."""
        served_at = 0.0
        while not self._stopping.is_set():
            try:
                values, missing = self._lane.read(READ_SECONDS)
                if values:
                    self._router.take(values)
                    if self._closed and all(engine.ended for engine in self._router.engines()):
                        return
                # Reports hold on to what was written; nobody waits for them here.
                if time.monotonic() - served_at > SERVE_SECONDS:
                    served_at = time.monotonic()
                    self._transport.serve()
                if missing:
                    self._router.catch_up()
                refused = self._transport.refused
                if refused is not None and self._router.broken is None:
                    self._router.give_up(f"{refused}. Connect again when that is done")
            except ConnectionClosedError:
                return
            except Exception:
                if self._stopping.is_set():
                    return
                LOGGER.exception("the reader of a connection goes on after an error")
                time.sleep(READ_SECONDS)

    def close(self, *, timeout: float | None = None) -> None:
        """Closes its sessions, then itself; closing twice does nothing. From any thread.

        Listeners that are running have its sessions until they return; none begins with another
        message (SES-21).

        By a signal handler, as `Session.close`.

        Args:
            timeout: Seconds for all of it together; None: the connection's time-out.

        Raises:
            OutcomeUnknownError: a session's end was not confirmed within the time-out; it ends by
                itself when the queue manager hears no more of it.
            LedgerMQError: the first error of closing a session.
            IllegalStateError: called by a listener or a completion callback of its own (SES-19,
                SES-22); nothing was closed.
        """
        if self._forked or self._closed:
            return
        with self._lock:
            for work in self._work:
                work.refuse_close()
        if any(is_interrupted(engine.lock) for engine in self._router.engines()):
            close_aside(partial(self.close, timeout=timeout))
            return
        wanted = self._settings.timeout_seconds if timeout is None else timeout
        deadline = time.monotonic() + wanted
        try:
            self._closed = True
            problems = self._end_sessions(deadline)
            self._stop(max(0.05, deadline - time.monotonic()))
        except BaseException:
            # Ctrl-C: heartbeats would keep its sessions alive, and nobody can close it again.
            self._stop(0.0)
            raise
        if problems:
            raise problems[0]

    def _end_sessions(self, deadline: float) -> list[LedgerMQError]:
        """Closes all that is open; what was raised meanwhile."""
        problems: list[LedgerMQError] = []
        with self._lock:
            sessions = list(self._work)
        # First those with listeners, all at once: none of these begins with another message, and
        # the other sessions, which they may use, stay open until they have returned (SES-21).
        listening = [one for one in sessions if one.listening.active and one.begin_close()]
        others = [one for one in sessions if one not in listening]
        for work in others:
            work.end_receives()
        for end in [*(one.finish_close for one in listening), *(one.end for one in others)]:
            try:
                end(max(0.05, deadline - time.monotonic()))
            except LedgerMQError as error:
                problems.append(error)
        control = self._control
        try:
            with control.lock:
                control.closing = True
                if not control.ended:
                    pending = control.write_locked(Close, seen=[])
                    left = max(0.05, deadline - time.monotonic())
                    control.run_locked(control.reply(pending, left))
        except LedgerMQError as error:
            if not control.ended:
                problems.append(error)
        return problems

    def _stay_behind(self) -> None:
        """In the child of a fork: nothing of it can be used; its locks may be held for ever."""
        self._forked = True
        self._lock = threading.Lock()
        self._control_lock = threading.Lock()
        error = IllegalStateError(FORKED)
        self._questions.give_up(error)
        for engine in self._router.engines():
            engine.stay_behind(error)

    def _stop(self, timeout_seconds: float) -> None:
        self._closed = True
        self._stopping.set()
        self._heartbeats.stop()
        self._transport.close(timeout_seconds)
        for opening in list(self._router.openings.values()):
            opening.answered.set()
        if threading.current_thread() is not self._reader and self._reader.is_alive():
            self._reader.join()
        self._lane.close()
        for engine in self._router.engines():
            engine.forget("the connection was closed")
        _ALIVE.discard(self)

    def __repr__(self) -> str:
        state = "closed" if self._closed else "open"
        return f"Connection({self.queue_manager} at {self._settings.bootstrap}, {state})"


@typed
def connect(
    address: str = "kafka://localhost:9092", **settings: Unpack[ConnectOptions]
) -> Connection:
    """Connects to a queue manager: `kafka://HOST:PORT[,HOST:PORT...][/QUEUE-MANAGER]`, else QM1.

    Args:
        address: Brokers and queue manager.
        client_id: The client whose durable subscriptions these are; only one connection at a time
            has it.
        takeover: A secret of this client. Started again with the same one, it ends a connection
            that still has its client id; without, it is refused until that one has ended.
        application: A name of your own for logs of the broker.
        timeout: How many seconds (30) connecting may take, and a call waits for its outcome unless
            it says otherwise.
        suspect_timeout_seconds: After how much silence (15 s; 1 to 45) the queue manager suspects
            this connection, and how long its sessions then have to show themselves before they end
            and what they hold goes to others. After that much silence they ask before they hand
            over what was fetched ahead.
        send_timeout_seconds: How long (10 s) a send may wait for room where a quota is used up,
            before it fails with QuotaExceededError (INF-03, INF-20); at most up to a second before
            the call's own time-out. 0: it fails at once.
        topic_prefix: First part of the log topics' names; None: `ledgermq`.
        schema_registry: Address of a Confluent-compatible schema registry,
            `http[s]://[USER:PASSWORD@]HOST:PORT[/PATH]`: what is written is framed for the tools of
            Kafka. None: LEDGERMQ_SCHEMA_REGISTRY of the environment; empty: none.
        put_messages_max: Up to how many messages (250; 1 to 10,000) one operation gathers in
            transacted and asynchronous sends.
        allow_pickle: Reads object messages that were sent as pickles. Reading one runs code that
            its sender chose: for queues whose every sender is trusted. Warns (PickleWarning).
        redelivery_delay_ms: How long what its sessions roll back or recover waits before it is
            delivered again, where session, consumer or destination do not say (INF-09).
        kafka: Options of Kafka's clients by librdkafka's names, such as `security.protocol`; on top
            of LEDGERMQ_KAFKA_CONFIG and LEDGERMQ_KAFKA_<NAME> in the environment.
        redelivery_limit: How often what it sends is redelivered at most, before that goes to the
            error destination or is dropped, where producer or destination do not say (INF-16);
            -1: no limit.

    Raises:
        AddressError: address or settings cannot be used.
        AuthenticationFailedError: Kafka and this client do not trust each other.
        AccessDeniedError: Kafka does not let this client do what it must; the text says what.
        BrokerUnavailableError: no Kafka broker answers within the time-out.
        LogError: the log topics are missing or not as they should be.
        QueueManagerNotFoundError: the registry has no queue manager of this name.
        SchemaRegistryError: a schema registry was named and does not answer, or refuses a schema.
        InvalidClientIDError: another connection has the client id; or the text is none, and then
            the error is not `retryable`.
        WorkerUnavailableError: no worker of the queue manager answers within the time-out.
    """
    return Connection(settings_from(address, **settings))


def _mark_forked() -> None:
    for connection in list(_ALIVE):
        connection._stay_behind()


os.register_at_fork(after_in_child=_mark_forked)
