"""A session's calls as steps between their waits, so that threads and coroutines share them.

A call that waits is a generator, which runs with the lock of its session held. It yields a moment
of the monotonic clock, or None for never, and goes on with whether there was news of the session
before that moment. Where it waits for something else, such as the answer to a question, it yields
what is to be called without the lock, and goes on with what that returned. So there is nothing
between two yields that another thread or coroutine could come in between.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Generator
from functools import partial, wraps
from typing import Any, Concatenate, Final, ParamSpec, TypeAlias, TypeVar

from ledgermq.errors import OutOfTurnError

T = TypeVar("T")
P = ParamSpec("P")
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


def taken(method: Callable[Concatenate[Any, P], Steps[T]]) -> Callable[Concatenate[Any, P], T]:
    """A method of the part that threads and coroutines share, as one of a thread.

    Its class has that part as `_shared`, and the engine of the session as `_engine`.
    """

    @wraps(method)
    def call(one: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        result: T = one._engine.run(method(one._shared, *args, **kwargs))
        return result

    call.__signature__ = signature_of(method)  # type: ignore[attr-defined]
    return call


def signature_of(method: Callable[..., Steps[Any]]) -> inspect.Signature:
    """That of whoever takes all steps of a method, and returns what they return."""
    signature = inspect.signature(method)
    returned = signature.return_annotation.removeprefix("Steps[").removesuffix("]")
    return signature.replace(return_annotation=returned)


def again_while_out_of_turn(ask: Callable[[], Steps[T]], turn_timeout: float) -> Steps[T]:
    """Asks for so many seconds until it is not refused as out of turn (PROTOCOL.md §18)."""
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
