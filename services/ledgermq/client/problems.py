"""What goes wrong while nobody calls: it is logged, and an exception listener is told."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from ledgermq.client.engine.callbacks import Callbacks
from ledgermq.errors import LedgerMQError

LOGGER = logging.getLogger("ledgermq.client")
ExceptionListener = Callable[[LedgerMQError], object]


class Problems:
    """Those of one connection and its sessions.

    Attributes:
        listener: Who is told of each in a thread of its own, one at a time; nobody waits for it, so
            it may close the connection (SES-23).
    """

    def __init__(self) -> None:
        self.listener: ExceptionListener | None = None
        self._callbacks = Callbacks()

    def report(self, error: LedgerMQError) -> None:
        """Logs an error and has the listener called soon, if there is one."""
        LOGGER.error("%s", error)
        if self.listener is not None:
            self._callbacks.soon(partial(self.listener, error))
