"""A session's calls as steps between their waits, so that threads and coroutines share them.

A call that waits is a generator, which runs with the lock of its session held. It yields a moment
of the monotonic clock, or None for never, and goes on with whether there was news of the session
before that moment. Where it waits for something else, such as the answer to a question, it yields
what is to be called without the lock, and goes on with what that returned. So there is nothing
between two yields that another thread or coroutine could come in between.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar

from ledgermq.client.arguments import check_number, check_seconds
from ledgermq.errors import OutOfTurnError

T = TypeVar("T")
FIRST_PAUSE_SECONDS: Final = 0.02
# Each time it asks is an operation on the log.
PAUSE_MAX_SECONDS: Final = 1.0


Steps: TypeAlias = Generator["float | Callable[[], Any] | None", Any, T]


class Outside(partial[Any]):
    """What is called without the lock, and by a coroutine in its own thread: it is a moment.

    Or should be: what traces is the application's.
    """


def aside(call: Callable[[], T]) -> Steps[T]:
    """Calls something without the lock and goes on with what it returned."""
    result: T = yield call
    return result


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
