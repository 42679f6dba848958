"""Completion callbacks of a session: called one at a time, in a thread of their own (SES-19).

What ends the session waits for its callbacks, so none of them may do that; other sessions are free.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Final

from ledgermq.errors import IllegalStateError, LedgerMQError

LOGGER = logging.getLogger("ledgermq.client")
# For how long a thread without a callback to call is kept.
IDLE_SECONDS: Final = 1.0
_CALLING = threading.local()


class Callbacks:
    """The callbacks of one session that are due; its thread is there while some are.

    Attributes:
        left: In the child of a fork: no outcome will come any more, and nothing is called back.
    """

    left: LedgerMQError | None = None

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._due: deque[Callable[[], object]] = deque()
        self._thread: threading.Thread | None = None

    def stay_behind(self, error: LedgerMQError) -> None:
        """In the child of a fork: none is due, and no thread has its lock."""
        self.__init__()  # type: ignore[misc]
        self.left = error

    def soon(self, callback: Callable[[], object]) -> None:
        """Has it called after those that are due already."""
        with self._condition:
            self._due.append(callback)
            self._condition.notify_all()
            if self._thread is None:
                thread = threading.Thread(target=self._run, name="ledgermq-callbacks", daemon=True)
                try:
                    thread.start()
                except RuntimeError as error:
                    # The reader calls this, and has more to tell.
                    LOGGER.error("completion callbacks wait for the next one: %s", error)
                else:
                    self._thread = thread

    def call(self, callback: Callable[[], object]) -> None:
        """Calls it in this thread; what it raises is logged."""
        before: tuple[Callbacks, ...] = getattr(_CALLING, "by", ())
        _CALLING.by = (*before, self)
        try:
            callback()
        except Exception:
            LOGGER.exception("a callback of the application failed")
        finally:
            _CALLING.by = before

    def refuse(self, what: str) -> None:
        """Refuses, in a callback of this session, what would wait for that callback (SES-19)."""
        if self in getattr(_CALLING, "by", ()):
            raise IllegalStateError(
                f"{what} cannot be called by a completion callback of the session itself, which it "
                "would wait for: call it in another thread"
            )

    def wait(self, timeout_seconds: float) -> None:
        """Waits until none is due; goes on after the time-out, and says so (SES-18)."""
        deadline = time.monotonic() + timeout_seconds
        with self._condition:
            while self._due:
                left = deadline - time.monotonic()
                if left <= 0:
                    LOGGER.warning("a completion callback takes longer than %g s", timeout_seconds)
                    return
                self._condition.wait(left)

    def _run(self) -> None:
        while True:
            with self._condition:
                if not self._due:
                    self._condition.wait(IDLE_SECONDS)
                if not self._due:
                    self._thread = None
                    return
                callback = self._due[0]
            try:
                self.call(callback)
            except BaseException:
                # A cancelled coroutine and sys.exit() too: the callbacks behind it are still due.
                LOGGER.exception("a callback of the application failed")
            with self._condition:
                # Only now: who waits, waits until it has returned.
                self._due.popleft()
                self._condition.notify_all()
