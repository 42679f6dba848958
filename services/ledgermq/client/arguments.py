"""Arguments checked where a call begins, before it changes or writes anything (decision 29)."""

from __future__ import annotations

from typing import Final

from ledgermq.core.limits import TIMING_MS_MAX
from ledgermq.errors import ArgumentTypeError, IllegalStateError

__all__ = ["SECONDS_MAX", "check_flag", "check_number", "check_seconds"]

# A hundred years: less than what the clocks and locks of Python can wait for.
SECONDS_MAX: Final = TIMING_MS_MAX // 1000


def check_seconds(name: str, seconds: float | None) -> None:
    """Refuses a time-out that is no number of seconds from 0 on; None stands for the default.

    Raises:
        ArgumentTypeError: it is neither a number nor None.
        IllegalStateError: it is negative, too large, infinite or no number ("nan").
    """
    if seconds is None:
        return
    check_number(name, seconds, " of seconds, or None")
    if not 0 <= seconds <= SECONDS_MAX:
        raise IllegalStateError(
            f"{name} is {seconds}, must be 0 to {SECONDS_MAX} seconds; leave it out, or give None, "
            "for the usual one"
        )


def check_number(name: str, value: object, what: str = "") -> None:
    """Refuses what is no int or float; True and False are none.

    Raises:
        ArgumentTypeError: it is something else.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ArgumentTypeError(
            f"{name} is {value!r}, a {type(value).__name__}: it must be a number{what}"
        )


def check_flag(name: str, value: object) -> None:
    """Refuses what is neither True nor False: "no" would count as true.

    Raises:
        ArgumentTypeError: it is something else.
    """
    if not isinstance(value, bool):
        raise ArgumentTypeError(
            f"{name} is {value!r}, a {type(value).__name__}: it must be True or False"
        )
