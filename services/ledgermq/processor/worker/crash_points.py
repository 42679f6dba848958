"""Crash points: places where a test may have the process killed, named by LEDGERMQ_CRASH_AT.

`LEDGERMQ_CRASH_AT=after-produce:3` kills the process with SIGKILL when it comes to that point for
the third time. Without the variable a point costs one comparison.
"""

from __future__ import annotations

import os
import signal

CRASH_POINTS = (
    "after-fold",
    "after-produce",
    "before-chunks",
    "after-chunks",
    "before-manifest",
    "after-manifest",
    "before-offset-commit",
    "after-offset-commit",
    "after-tidying",
)


_point, _, _count = os.environ.get("LEDGERMQ_CRASH_AT", "").partition(":")
_remaining = int(_count or 1)


def crash_point(name: str) -> None:
    global _remaining
    if name == _point:
        _remaining -= 1
        if _remaining == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def is_armed(name: str) -> bool:
    """Whether a test asked for a crash here: then the caller makes sure that the point is real."""
    return name == _point
