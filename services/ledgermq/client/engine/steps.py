"""A session's calls as steps between their waits, so that threads and coroutines share them.

A call that waits is a generator, which runs with the lock of its session held. It yields a moment
of the monotonic clock, or None for never, and goes on with whether there was news of the session
before that moment. What waits for something else, such as the answer to a question, it yields as an
`Aside`: that is called without the lock. So there is nothing between two yields that another thread
or coroutine could come in between.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from typing import Any, Final, Generic, TypeAlias, TypeVar

from ledgermq.client.arguments import check_number, check_seconds
from ledgermq.errors import OutOfTurnError

T = TypeVar("T")
FIRST_PAUSE_SECONDS: Final = 0.02
# Each time it asks is an operation on the log.
PAUSE_MAX_SECONDS: Final = 1.0


class Aside(Generic[T]):
    """Something to call without the lock; `result` is there once it was."""

    __slots__ = ("_call", "result")
    result: T

    def __init__(self, call: Callable[[], T]) -> None:
        self._call = call

    def run(self) -> None:
        self.result = self._call()


Steps: TypeAlias = Generator["float | Aside[Any] | None", bool, T]


def aside(call: Callable[[], T]) -> Steps[T]:
    """Calls something without the lock and goes on with what it returned."""
    asked = Aside(call)
    yield asked
    return asked.result


def again_while_out_of_turn(ask: Callable[[], Steps[T]], turn_timeout: float) -> Steps[T]:
    """Asks for so many seconds until it is not refused as out of turn (PROTOCOL.md §18)."""
    check_number("turn_timeout", turn_timeout, " of seconds")
    check_seconds("turn_timeout", turn_timeout)
    deadline = time.monotonic() + turn_timeout
    pause = FIRST_PAUSE_SECONDS
    while True:
        try:
            return (yield from ask())
        except OutOfTurnError:
            now = time.monotonic()
            if now >= deadline:
                raise
        until = min(now + pause, deadline)
        pause = min(2 * pause, PAUSE_MAX_SECONDS)
        while (yield until):
            pass
