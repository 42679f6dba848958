"""Asking again until it is one's turn (FIFO mode PROTECTED, PROTOCOL.md §18)."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TypeVar

from ledgermq.client.arguments import check_number, check_seconds
from ledgermq.errors import OutOfTurnError

__all__ = ["Patience", "ask_in_turn"]

T = TypeVar("T")
FIRST_PAUSE_SECONDS: Final = 0.02
# Each time it asks is an operation on the log.
PAUSE_MAX_SECONDS: Final = 1.0


class Patience:
    """For how long, in seconds, and how often something out of turn is asked again."""

    def __init__(self, turn_timeout: float) -> None:
        check_number("turn_timeout", turn_timeout, " of seconds")
        check_seconds("turn_timeout", turn_timeout)
        self._deadline = time.monotonic() + turn_timeout
        self._pause = FIRST_PAUSE_SECONDS

    def next_pause(self) -> float | None:
        """How long to wait before asking again, longer each time; None: long enough."""
        left = self._deadline - time.monotonic()
        if left <= 0:
            return None
        pause = min(self._pause, left)
        self._pause = min(2 * self._pause, PAUSE_MAX_SECONDS)
        return pause


def ask_in_turn(ask: Callable[[], T], turn_timeout: float) -> T:
    """Asks until it is not refused as out of turn, for so many seconds.

    Raises:
        OutOfTurnError: it still was when the time was over.
    """
    patience = Patience(turn_timeout)
    while True:
        try:
            return ask()
        except OutOfTurnError:
            pause = patience.next_pause()
            if pause is None:
                raise
        time.sleep(pause)
