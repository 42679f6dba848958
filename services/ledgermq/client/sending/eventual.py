"""Something that many futures wait for together: it happens once."""

from __future__ import annotations

import threading
from collections.abc import Callable

from ledgermq.errors import LedgerMQError


class Eventual:
    """An event with an error or none; `call` and `calls` have something done when it happens."""

    __slots__ = ("_callbacks", "_event", "_lock", "error")

    def __init__(self) -> None:
        self.error: LedgerMQError | None = None
        self._event = threading.Event()
        self._lock = threading.Lock()
        self._callbacks: list[Callable[[], None]] = []

    def happen(self, error: LedgerMQError | None = None) -> None:
        """Lets it happen; what was to be called is called in this thread."""
        self.error = error
        with self._lock:
            self._event.set()
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    @property
    def happened(self) -> bool:
        return self._event.is_set()

    def wait(self, timeout_seconds: float | None) -> bool:
        return self._event.wait(timeout_seconds)

    def call(self, callback: Callable[[], None]) -> None:
        """Calls what does not wait when it happens, or now if it has."""
        if not self.calls(callback):
            callback()

    def calls(self, callback: Callable[[], None]) -> bool:
        """Whether it will call what does not wait when it happens; False if it has."""
        with self._lock:
            if self._event.is_set():
                return False
            self._callbacks.append(callback)
            return True
