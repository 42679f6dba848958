"""One connection for test after test: to open one for each takes longer than most of them."""

from __future__ import annotations

from collections.abc import Callable

import ledgermq


class LentConnection:
    """Lends a connection in which no session is open."""

    def __init__(self, connect: Callable[[], ledgermq.Connection]) -> None:
        self._connect = connect
        self._opened: ledgermq.Connection | None = None

    def take(self) -> ledgermq.Connection:
        """The connection, another one if a test has closed it."""
        if self._opened is None or self._opened.is_closed:
            self._opened = self._connect()
        return self._opened

    def give_back(self) -> None:
        """A test is over: no other is to have its sessions, or a connection that it broke."""
        if self._opened is not None and (
            self._opened._running.works or self._opened._running.router.broken
        ):
            self.close()

    def close(self) -> None:
        """Closes it, with what a test has left open."""
        opened, self._opened = self._opened, None
        if opened is not None:
            opened.close()
