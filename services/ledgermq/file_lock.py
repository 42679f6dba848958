"""The lock of a file, waited for: whoever looks at it or is being killed holds it for a moment."""

from __future__ import annotations

import fcntl
import time
from typing import IO, Any, Final

POLL_SECONDS: Final = 0.02


def lock_within(seconds: float, file: IO[Any] | int) -> bool:
    """Locks an open file for its holder alone; False if others hold it for longer than that."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(POLL_SECONDS)
        else:
            return True
