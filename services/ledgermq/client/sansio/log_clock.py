"""What time it is by the log, as far as a client can tell: never later than it is, hardly earlier.

Records of a lane bear the broker's time of their append. Reading takes a while, so the largest
difference to the own clock is the best; those that are old are forgotten, because either clock may
be set.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

UNKNOWN: Final = -1
KEPT_SECONDS: Final = 30.0
SECOND_US: Final = 1_000_000


class LogClock:
    """The log's clock, seen from one lane; noted by one thread, read by any."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since = 0.0
        # The largest difference of these seconds, and of those before.
        self._newer: float | None = None
        self._older: float | None = None

    def note(self, appended_us: int) -> None:
        """A record was appended at this time, and is here now."""
        now = self._clock()
        difference = appended_us - now * SECOND_US
        if self._newer is None or now - self._since > KEPT_SECONDS:
            self._older, self._newer, self._since = self._newer, difference, now
        else:
            self._newer = max(self._newer, difference)

    def now_us(self) -> int:
        """The time of the log in µs since 1970, or UNKNOWN."""
        newer, older = self._newer, self._older
        if newer is None:
            return UNKNOWN
        difference = newer if older is None else max(newer, older)
        return round(self._clock() * SECOND_US + difference)
