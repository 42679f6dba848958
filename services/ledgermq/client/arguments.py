"""Arguments checked where a call begins, before it changes or writes anything (decision 29)."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final, NamedTuple

from ledgermq.errors import ArgumentTypeError, IllegalStateError
from ledgermq.errors.shown import shown, type_name
from ledgermq.protocol.limits import TIMING_MS_MAX

# A hundred years: less than what the clocks and locks of Python can wait for.
SECONDS_MAX: Final = TIMING_MS_MAX // 1000
# Times of which there is one if none is given.
USUAL: Final = ("timeout", "delay")
YIELDS: Final = (inspect.isgeneratorfunction, inspect.isasyncgenfunction)
LATE: Final = (inspect.iscoroutinefunction, *YIELDS)


def wrong_type(name: str, value: object, wanted: str) -> ArgumentTypeError:
    """The error for an argument that is of another type than its call takes."""
    kind = type_name(type(value))
    is_time = isinstance(value, timedelta) and not name.endswith("_ms")
    hint = "; write its total_seconds()" if is_time else ""
    return ArgumentTypeError(f"{name} is {shown(value)}, of type {kind}: it must be {wanted}{hint}")


def check_seconds(name: str, seconds: float | None) -> None:
    """Refuses a time-out that is no number from 0 to SECONDS_MAX; None stands for the default."""
    if seconds is None:
        return
    if type(seconds) not in (int, float):
        check_number(name, seconds, " of seconds, or None")
    if not 0 <= seconds <= SECONDS_MAX:
        usual = "; leave it out, or give None, for the default" if name in USUAL else ""
        raise IllegalStateError(
            f"{name} is {shown(seconds)}, must be 0 to {SECONDS_MAX} seconds{usual}"
        )


class Rejection(NamedTuple):
    """How a message is rejected: sent away for good, or put back, after a delay in seconds."""

    reason: str
    requeue: bool
    delay: float | None


def check_rejection(requeue: bool, delay: float | None) -> None:
    """Refuses a delay in seconds that is none, or is for a message that is not put back."""
    check_flag("requeue", requeue)
    check_seconds("delay", delay)
    if delay is not None and not requeue:
        raise IllegalStateError(
            "a delay is for a message that is put back: give requeue=True, or no delay"
        )


def check_number(name: str, value: object, what: str = "") -> None:
    """Refuses with ArgumentTypeError what is no int or float; True and False are none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise wrong_type(name, value, f"a number{what}")


def check_flag(name: str, value: object) -> None:
    """Refuses with ArgumentTypeError what is neither True nor False: "no" would count as true."""
    if not isinstance(value, bool):
        raise wrong_type(name, value, "True or False")


def is_of(kind: Callable[[Any], bool], function: Callable[..., Any]) -> bool:
    """Whether a function, or what an object does when it is called, is of a kind."""
    return kind(function) or kind(type(function).__call__)


def check_callback(callback: Callable[..., object], otherwise: str = "") -> None:
    """Refuses what does nothing yet when it is called, so that all it is told would be lost."""
    if any(is_of(kind, callback) for kind in LATE):
        raise IllegalStateError(
            f"{shown(callback)} does nothing yet when it is called, as it is a coroutine function "
            f"or has a yield: give a plain function{otherwise}"
        )
