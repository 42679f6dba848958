"""Message listeners: a session's own thread hands its messages to callbacks, one at a time.

From the first listener on, the session belongs to that thread (SES-02): the callbacks may use the
session, other threads may only close it or its consumers.
"""

from __future__ import annotations

import inspect
import logging
import threading
import time
from collections.abc import Callable
from typing import Final, Protocol

from ledgermq.client.engine.engine import Engine
from ledgermq.client.engine.lease import Lease
from ledgermq.client.engine.settling import Settling
from ledgermq.client.engine.steps import Steps
from ledgermq.client.engine.unseen import Unseen
from ledgermq.client.messages.message import Message
from ledgermq.client.sansio.buffer import ConsumerBuffer
from ledgermq.client.tracing import processing
from ledgermq.errors import IllegalStateError, LedgerMQError
from ledgermq.protocol.outcomes import DeliveredMessage

LOGGER = logging.getLogger("ledgermq.client")
PAUSE_FIRST_SECONDS: Final = 0.05
PAUSE_MAX_SECONDS: Final = 5.0

Listener = Callable[[Message], object]


class Source(Protocol):
    """A consumer, as its listener's thread needs it."""

    subscription: str | None

    @property
    def buffer(self) -> ConsumerBuffer: ...

    def ask(self) -> Steps[None]: ...

    def take_locked(self) -> tuple[int, int, DeliveredMessage]:
        """Takes the next message with the first and the last of its deliveries."""

    def message(self, raw: DeliveredMessage, delivery: int) -> Message: ...


class Listening:
    def __init__(self, engine: Engine, settling: Settling, unseen: Unseen, lease: Lease) -> None:
        self._engine = engine
        self._lease = lease
        self._unseen = unseen
        self._settling = settling
        self._listeners: dict[Source, Listener] = {}
        self._thread: threading.Thread | None = None
        self._busy_with: Source | None = None
        self._failures = 0

    def set_locked(self, consumer: Source, listener: Listener | None) -> None:
        if listener is None:
            self.leave_locked(consumer)
            return
        if self._thread is None:
            name = f"ledgermq-listener-{self._engine.handle}"
            thread = threading.Thread(target=self._run, name=name, daemon=True)
            # It waits for the lock; there may be no thread to be had, and then nothing is changed.
            thread.start()
            self._thread = thread
            self._engine.owner = thread.ident
        self._listeners[consumer] = listener
        consumer.buffer.put_back_gathered()
        self._engine.notify_locked()

    def get(self, consumer: Source) -> Listener | None:
        return self._listeners.get(consumer)

    @property
    def active(self) -> bool:
        """Whether the session belongs to the listeners' thread."""
        return self._thread is not None

    @property
    def is_mine(self) -> bool:
        return threading.current_thread() is self._thread

    def refuse_close(self) -> None:
        """Refuses that a listener closes its own session, which would wait for it (SES-22)."""
        if self.is_mine:
            raise IllegalStateError("a listener cannot close its own session: close it elsewhere")

    def leave_locked(self, consumer: Source) -> None:
        """Takes a consumer's listener away and waits until it has returned (SES-21).

        After the last listener it waits for their thread too, so that whoever goes on finds the
        session free (SES-02).
        """
        self._listeners.pop(consumer, None)
        self._engine.notify_locked()
        while self._is_elsewhere() and self._is_leaving(consumer):
            self._engine.condition.wait()

    def _is_leaving(self, consumer: Source) -> bool:
        """Whether the thread still calls this consumer's listener, or is only about to end."""
        if self._busy_with is None:
            return not self._listeners
        return self._busy_with is consumer

    def _is_elsewhere(self) -> bool:
        """Whether its thread is another one; in the child of a fork there is none."""
        return not self.is_mine and self._thread is not None and self._thread.is_alive()

    def end(self) -> None:
        """Waits for the thread, which ends when its session is closing or lost (SES-21)."""
        thread = self._thread
        if thread is not None:
            thread.join()

    # -- the listeners' thread ---------------------------------------------------------------------

    def _run(self) -> None:
        engine = self._engine
        try:
            while self._call_next() or self._goes_on():
                pass
        except LedgerMQError as error:
            # Nobody waits here: the session's next call from outside raises it again.
            engine.defer(error)
            LOGGER.error("the listeners of session %d end", engine.handle)
            engine.report(error)
        finally:
            with engine.lock:
                self._leave_session_locked()

    def _goes_on(self) -> bool:
        """Whether a listener was set while the thread was about to end; else it has ended."""
        engine = self._engine
        with engine.lock:
            if self._listeners and not engine.closing and not engine.ended:
                return True
            self._leave_session_locked()
        if engine.lost is not None:
            LOGGER.error("the listeners of session %d end: %s", engine.handle, engine.lost)
        return False

    def _leave_session_locked(self) -> None:
        if self.is_mine:
            self._thread = None
            self._busy_with = None
            self._engine.owner = None
            self._engine.notify_locked()

    def _call_next(self) -> bool:
        """Waits for a message and hands it over; False when there is nothing to wait for."""
        engine, settling = self._engine, self._settling
        with engine.lock:
            consumer = self._wait_locked()
            if consumer is None:
                return False
            listener = self._listeners[consumer]
            delivery, last, raw = consumer.take_locked()
            self._busy_with = consumer
            settling.call_locked(delivery, last)
        message = consumer.message(raw, delivery)
        failed = False
        try:
            with processing(message.destination, raw, consumer.subscription):
                _done(listener(message))
        except BaseException:
            # A cancelled coroutine and sys.exit() too: they would end this thread in silence.
            failed = True
            LOGGER.exception("the listener of %s failed on %r", message.destination, message)
        try:
            if failed:
                self._failed(delivery)
            else:
                self._failures = 0
                with engine.lock:
                    settling.returned_locked(delivery, last)
        finally:
            with engine.lock:
                self._busy_with = None
                engine.notify_locked()
        return True

    def _wait_locked(self) -> Source | None:
        """Waits until a consumer with a listener has a message; the one with the oldest."""
        engine = self._engine
        while self._listeners and not engine.closing and not engine.ended:
            for consumer in list(self._listeners):
                engine.run_locked(consumer.ask())
            ready = [one for one in self._listeners if one.buffer.count]
            if ready:
                first = min(ready, key=lambda one: one.buffer.next_delivery)
                if not self._lease.holds_locked():
                    engine.wait_locked(None)
                elif not first.buffer.in_doubt:
                    return first
                else:
                    engine.run_locked(self._unseen.report_doubt(first.buffer))
                continue
            engine.wait_locked(self._settling.gather_locked(None))
        return None

    def _failed(self, first: int) -> None:
        """AUTO and DUPS_OK: the message comes back, after a pause that grows with each failure.

        In the other modes nothing happens: the application settles or rolls back as it likes.
        """
        if not self._settling.automatic:
            return
        self._failures += 1
        self._engine.run(self._settling.return_failed(first))
        pause = min(PAUSE_FIRST_SECONDS * 2 ** (self._failures - 1), PAUSE_MAX_SECONDS)
        deadline = time.monotonic() + pause
        with self._engine.lock:
            self._busy_with = None  # nobody need wait for the pause
            self._engine.notify_locked()
            while self._listeners and not self._engine.closing:
                if not self._engine.wait_locked(deadline):
                    return


def _done(returned: object) -> None:
    """Refuses what a lambda around a coroutine function returns: the work has not begun."""
    if inspect.iscoroutine(returned):
        returned.close()
        raise IllegalStateError(
            "the listener returned a coroutine, which nobody awaits here: consume in a coroutine "
            "of ledgermq.aio"
        )
