"""What a connection runs while it is open: one reader, one thread of heartbeats, its sessions."""

from __future__ import annotations

import itertools
import logging
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Final, Unpack, final

from ledgermq.client.closing import close_aside, is_interrupted
from ledgermq.client.engine.engine import Engine
from ledgermq.client.engine.work import Services, Work
from ledgermq.client.link.broker_news import BRING_BACK
from ledgermq.client.link.heartbeats import Heartbeats
from ledgermq.client.link.questions import Questions
from ledgermq.client.link.route import Route
from ledgermq.client.link.router import Opening, Router
from ledgermq.client.options import USUAL, AckMode, SessionOptions
from ledgermq.client.problems import Problems
from ledgermq.client.reasons import error_of_reason
from ledgermq.client.settings import ConnectionSettings, checked_delay_ms, checked_whole
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
ALIVE: weakref.WeakSet[Running] = weakref.WeakSet()


@final
class Running:
    """The reader, the heartbeats and the sessions of a connection, until it is closed.

    Its threads have this, and not the connection: nobody could tell otherwise that an application
    has dropped that.

    Attributes:
        closed: Whether it was closed, or is being closed.
        forked: Whether this is the child of a fork, where nothing of it can be used.
        works: The sessions that the application has opened.
    """

    def __init__(
        self, settings: ConnectionSettings, route: Callable[[ConnectionSettings, float], Route]
    ) -> None:
        self.settings = settings
        self.closed = self.forked = False
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._control_lock = threading.Lock()
        self.works: dict[Work, None] = {}
        self._temporaries = itertools.count(1)
        deadline = time.monotonic() + settings.timeout_seconds
        self.lane, self.transport = route(settings, deadline)
        self.questions = Questions(settings, self.lane.lane, self.transport)
        self.problems = Problems()
        self.router = Router(self.questions, self.problems)
        self.heartbeats = Heartbeats(
            self.router, self.transport, settings.suspect_timeout_seconds / 3
        )
        self.reader = threading.Thread(target=self._read, name="ledgermq-reader", daemon=True)
        ALIVE.add(self)
        try:
            # There may be no thread to be had any more.
            self.reader.start()
            self.heartbeats.start()
            self.control = self._open(AckMode.AUTO, max(0.1, deadline - time.monotonic()))
        except BaseException:
            self.stop(0.0)
            raise
        self._services = Services(
            questions=self.questions,
            name_temporary=self._name_temporary,
            soon=self.heartbeats.soon,
            closed=self._session_closed,
        )

    def open_work(self, owner: Callable[[], object], **options: Unpack[SessionOptions]) -> Work:
        """Opens a session; `owner` is the connection that stays while somebody has the session."""
        self.check_usable()
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
            options.get("redelivery_delay_ms"), self.settings.redelivery_delay_ms
        )
        timing_ms = {"redelivery_delay_ms": delay_ms}
        for name in ("unit_of_work_time_limit_ms", "unit_of_work_idle_limit_ms"):
            timing_ms[name] = checked_whole(name, options.get(name, USUAL[name]), 0, TIMING_MS_MAX)
        engine = self._open(mode, self.settings.timeout_seconds, **timing_ms)
        engine.report = self.problems.report
        work = Work(engine, self._services, owner)
        with self._lock:
            self.works[work] = None
        return work

    def leave(self) -> None:
        """Has it closed soon, as nobody has the connection any more; called at any moment.

        Nothing is waited for, and no lock taken, not even that of an event: Python may drop the
        connection while this thread has that.
        """
        self.heartbeats.last_deed = self._close_left

    def _close_left(self) -> None:
        try:
            self.close(None)
        except LedgerMQError as problem:
            LOGGER.warning("closing a connection that was dropped did not work: %s", problem)

    def _name_temporary(self, kind: str) -> str:
        """A new destination `KIND:temporary/CONNECTION/NUMBER`; those of a connection differ."""
        return f"{kind}:temporary/{self.settings.identity.hex()}/{next(self._temporaries)}"

    def check_usable(self) -> None:
        """Refuses use after the end."""
        if self.forked:
            raise IllegalStateError(FORKED)
        if self.closed:
            raise ConnectionClosedError("the connection is closed; connect again")
        if self.router.broken is not None:
            raise ConnectionClosedError(self.router.broken)

    def control_session(self) -> Engine:
        """The administration's session, open as long as the connection; anew if it was lost."""
        self.check_usable()
        with self._control_lock:
            if self.control.lost is not None:
                self.router.sessions.pop(self.control.handle, None)
                self.control = self._open(AckMode.AUTO, self.settings.timeout_seconds)
            return self.control

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
            self.router.sessions.pop(engine.handle, None)

    def _open_once(
        self, mode: AckMode, timeout_seconds: float, timing_ms: Mapping[str, int]
    ) -> Engine:
        """Writes Open and waits for Opened; the first operation then confirms the session."""
        settings = self.settings
        key = os.urandom(16)
        opening = Opening(
            partial(
                Engine,
                mode=mode.value,
                settings=settings,
                lane=self.lane.lane,
                transport=self.transport,
                log_time=self.lane.log_time,
            )
        )
        self.router.openings[key] = opening
        operation = Open(
            connection=settings.identity,
            lane=self.lane.lane,
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
            self.lane.lane,
            -1,
            "ledgermq.operation.Open",
        )
        try:
            self.transport.write(encode_operation(operation), with_identity(shared, -1, 0))
            # Given up before this opening was noted, nobody would answer it.
            asking_seconds = min(ASKING_SECONDS, timeout_seconds / 4)
            waited = opening.answered.wait
            answered = self.router.broken is not None or waited(timeout_seconds - asking_seconds)
            worker_at = None
            if not answered:
                limit = time.monotonic() + asking_seconds
                worker_at = self.questions.position(asking_seconds)
                answered = waited(max(0.0, limit - time.monotonic()))
        finally:
            del self.router.openings[key]
        if self.transport.refused is not None:
            raise self.transport.refused
        if not answered:
            raise self._unanswered(timeout_seconds, worker_at)
        if opening.engine is None:
            refused = opening.refused
            if refused is None:
                raise ConnectionClosedError(self.router.broken or "the connection is closed")
            raise error_of_reason(
                refused.reason,
                refused.detail,
                queue_manager=settings.queue_manager,
                position=refused.position,
            )
        return opening.engine

    def _unanswered(self, timeout_seconds: float, worker_at: int | None) -> WorkerUnavailableError:
        settings, away = self.settings, self.transport.away
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
            self.works.pop(work, None)
        if work.engine.ended:
            self.router.sessions.pop(work.engine.handle, None)

    def _read(self) -> None:
        """The reader thread: everything that the lane brings, to the end of the last session."""
        served_at = 0.0
        while not self._stopping.is_set():
            try:
                values, missing = self.lane.read(READ_SECONDS)
                if values:
                    self.router.take(values)
                    if self.closed and all(engine.ended for engine in self.router.engines()):
                        return
                # Reports hold on to what was written; nobody waits for them here.
                if time.monotonic() - served_at > SERVE_SECONDS:
                    served_at = time.monotonic()
                    self.transport.serve()
                if missing:
                    self.router.catch_up()
                refused = self.transport.refused
                if refused is not None and self.router.broken is None:
                    self.router.give_up(f"{refused}. Connect again when that is done")
            except ConnectionClosedError:
                return
            except Exception:
                if self._stopping.is_set():
                    return
                LOGGER.exception("the reader of a connection goes on after an error")
                time.sleep(READ_SECONDS)

    def close(self, timeout: float | None) -> None:
        """See `ledgermq.Connection.close`."""
        if self.forked or self.closed:
            return
        with self._lock:
            for work in self.works:
                work.refuse_close()
        if any(is_interrupted(engine.lock) for engine in self.router.engines()):
            close_aside(partial(self.close, timeout))
            return
        wanted = self.settings.timeout_seconds if timeout is None else timeout
        deadline = time.monotonic() + wanted
        try:
            self.closed = True
            problems = self._end_sessions(deadline)
            self.stop(max(0.05, deadline - time.monotonic()))
        except BaseException:
            # Ctrl-C: heartbeats would keep its sessions alive, and nobody can close it again.
            self.stop(0.0)
            raise
        if problems:
            raise problems[0]

    def _end_sessions(self, deadline: float) -> list[LedgerMQError]:
        """Closes all that is open; what was raised meanwhile."""
        problems: list[LedgerMQError] = []
        with self._lock:
            sessions = list(self.works)
        # First those with listeners, all at once: none of these begins with another message, and
        # the other sessions, which they may use, stay open until they have returned (SES-21).
        listening = [one for one in sessions if one.listening.active and one.begin_close()]
        others = [one for one in sessions if one not in listening]
        for work in others:
            work.end_receives()
        self._finish_closes(listening, deadline, problems)
        closing = [one for one in others if one.begin_close()]
        try:
            # Of thousands none waits for the outcome of another before its Close is written.
            for work in closing:
                work.write_close()
            self._finish_closes(closing, deadline, problems)
        except BaseException:
            for work in closing:
                work.leave()
            raise
        control = self.control
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

    def _finish_closes(
        self, closing: Iterable[Work], deadline: float, problems: list[LedgerMQError]
    ) -> None:
        for work in closing:
            try:
                work.finish_close(max(0.05, deadline - time.monotonic()))
            except LedgerMQError as error:
                problems.append(error)

    def stay_behind(self) -> None:
        """In the child of a fork: nothing of it can be used; its locks may be held for ever."""
        self.forked = True
        self._lock = threading.Lock()
        self._control_lock = threading.Lock()
        error = IllegalStateError(FORKED)
        self.questions.give_up(error)
        for engine in self.router.engines():
            engine.stay_behind(error)

    def stop(self, timeout_seconds: float) -> None:
        """Ends what runs, and its sessions without a word to the queue manager."""
        self.closed = True
        self._stopping.set()
        self.heartbeats.stop()
        self.transport.close(timeout_seconds)
        for opening in list(self.router.openings.values()):
            opening.answered.set()
        if threading.current_thread() is not self.reader and self.reader.is_alive():
            self.reader.join()
        self.lane.close()
        for engine in self.router.engines():
            engine.forget("the connection was closed")
        ALIVE.discard(self)


def _mark_forked() -> None:
    for running in list(ALIVE):
        running.stay_behind()


os.register_at_fork(after_in_child=_mark_forked)
