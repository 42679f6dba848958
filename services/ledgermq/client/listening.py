"""Message listeners: a session's own thread hands its messages to callbacks, one at a time.

From the first listener on, the session belongs to that thread (SES-02): the callbacks may use the
session, other threads may only close it or its consumers.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ledgermq.client.message import Message
from ledgermq.client.session_core import SessionCore
from ledgermq.client.settling import Settling
from ledgermq.errors import IllegalStateError, LedgerMQError

if TYPE_CHECKING:
    from ledgermq.client.consumer import Consumer

__all__ = ["Listener", "Listening"]

LOGGER = logging.getLogger("ledgermq.client")
PAUSE_FIRST_SECONDS: Final = 0.05
PAUSE_MAX_SECONDS: Final = 5.0

Listener = Callable[[Message], object]


class Listening:
    """The listeners of one session and the thread that calls them."""

    def __init__(self, core: SessionCore, settling: Settling) -> None:
        self._core = core
        self._settling = settling
        self._listeners: dict[Consumer, Listener] = {}
        self._thread: threading.Thread | None = None
        self._busy_with: Consumer | None = None
        self._failures = 0

    def set_locked(self, consumer: Consumer, listener: Listener | None) -> None:
        """Gives a consumer a listener in place of the one it had, or none."""
        if listener is None:
            self._listeners.pop(consumer, None)
        else:
            self._listeners[consumer] = listener
            consumer._buffer.put_back_gathered()
            if self._thread is None:
                name = f"ledgermq-listener-{self._core.handle}"
                self._thread = threading.Thread(target=self._run, name=name, daemon=True)
                self._thread.start()
                self._core.owner = self._thread.ident
        self._core.condition.notify_all()

    def get(self, consumer: Consumer) -> Listener | None:
        """The listener of a consumer."""
        return self._listeners.get(consumer)

    @property
    def active(self) -> bool:
        """Whether the session belongs to the listeners' thread."""
        return self._thread is not None

    @property
    def is_mine(self) -> bool:
        """Whether this very thread is calling a listener."""
        return threading.current_thread() is self._thread

    def refuse_close(self) -> None:
        """Refuses that a listener closes its own session, which would wait for it (SES-22)."""
        if self.is_mine:
            raise IllegalStateError("a listener cannot close its own session: close it elsewhere")

    def leave_locked(self, consumer: Consumer) -> None:
        """Takes a consumer's listener away and waits until it has returned (SES-21)."""
        self._listeners.pop(consumer, None)
        self._core.condition.notify_all()
        while self._busy_with is consumer and not self.is_mine:
            self._core.condition.wait()

    def end(self) -> None:
        """Waits for the thread, which ends when its session is closing or lost (SES-21)."""
        thread = self._thread
        if thread is not None:
            thread.join()

    # -- the listeners' thread ---------------------------------------------------------------------

    def _run(self) -> None:
        core = self._core
        try:
            while self._call_next() or self._goes_on():
                pass
        except LedgerMQError as error:
            # Nobody waits here: the session's next call from outside raises it again.
            core.defer(error)
            LOGGER.error("the listeners of session %d end: %s", core.handle, error)
        finally:
            with core.lock:
                self._leave_session_locked()

    def _goes_on(self) -> bool:
        """Whether a listener was set while the thread was about to end; else it has ended."""
        core = self._core
        with core.lock:
            if self._listeners and not core.closing and not core.ended:
                return True
            self._leave_session_locked()
        if core.lost is not None:
            LOGGER.error("the listeners of session %d end: %s", core.handle, core.lost)
        return False

    def _leave_session_locked(self) -> None:
        if self.is_mine:
            self._thread = None
            self._busy_with = None
            self._core.owner = None
            self._core.condition.notify_all()

    def _call_next(self) -> bool:
        """Waits for a message and hands it over; False when there is nothing to wait for."""
        core, settling = self._core, self._settling
        with core.lock:
            consumer = self._wait_locked()
            if consumer is None:
                return False
            listener = self._listeners[consumer]
            delivery, last, raw = consumer.take_locked()
            self._busy_with = consumer
            settling.call_locked(delivery, last)
        message = Message(raw, consumer._destination, delivery, consumer._session)
        failed = False
        try:
            listener(message)
        except Exception:
            failed = True
            LOGGER.exception("the listener of %s failed on %r", consumer._destination, message)
        try:
            if failed:
                self._failed(delivery)
            else:
                self._failures = 0
                with core.lock:
                    settling.returned_locked(delivery, last)
        finally:
            with core.lock:
                self._busy_with = None
                core.condition.notify_all()
        return True

    def _wait_locked(self) -> Consumer | None:
        """Waits until a consumer with a listener has a message; the one with the oldest."""
        core = self._core
        while self._listeners and not core.closing and not core.ended:
            for consumer in list(self._listeners):
                consumer.ask_locked()
            ready = [one for one in self._listeners if one._buffer.count]
            if ready:
                first = min(ready, key=lambda one: one._buffer.next_delivery)
                if not first._buffer.in_doubt:
                    return first
                core.tell_doubt_locked(first._buffer)
                continue
            self._settling.write_locked()
            core.wait_locked(None)
        return None

    def _failed(self, first: int) -> None:
        """AUTO and DUPS_OK: the message comes back, after a pause that grows with each failure.

        In the other modes nothing happens: the application settles or rolls back as it likes.
        """
        if not self._settling.automatic:
            return
        self._failures += 1
        self._settling.return_failed(first)
        pause = min(PAUSE_FIRST_SECONDS * 2 ** (self._failures - 1), PAUSE_MAX_SECONDS)
        deadline = time.monotonic() + pause
        with self._core.lock:
            while not self._core.closing and self._core.wait_locked(deadline):
                pass
