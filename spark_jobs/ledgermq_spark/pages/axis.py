"""An axis of time for charts and timelines: where its marks are, and what is written at them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final, TypeAlias

# How far to the right a time in µs is.
Across: TypeAlias = Callable[[int], float]
SECOND: Final = 1_000_000
MINUTE, HOUR, DAY = 60 * SECOND, 3_600 * SECOND, 86_400 * SECOND
# How far apart marks may be, in µs.
STEPS: Final = (
    *(size * unit for unit in (1, 10, 100, 1_000, 10_000, 100_000) for size in (1, 2, 5)),
    *(size * SECOND for size in (1, 2, 5, 10, 20, 30)),
    *(size * MINUTE for size in (1, 2, 5, 10, 20, 30)),
    *(size * HOUR for size in (1, 2, 3, 6, 12)),
    *(size * DAY for size in (1, 2, 7, 14, 30, 60, 90, 180, 365)),
)


def ticks(begin: int, end: int, most: int) -> list[tuple[int, str]]:
    """So many round moments at most between two times in µs, each with its text in UTC."""
    span = max(1, end - begin)
    step = next((one for one in STEPS if span / one < most), STEPS[-1])
    while span / step >= most:
        step *= 2
    first = -(-begin // step) * step
    return [(at, _text(at, step)) for at in range(first, end + 1, step)]


def _text(at: int, step: int) -> str:
    told = datetime.fromtimestamp(at // SECOND, UTC).replace(microsecond=at % SECOND)
    if at % DAY == 0:
        return told.strftime("%Y-%m-%d")
    if step >= MINUTE:
        return told.strftime("%H:%M")
    if step >= SECOND:
        return told.strftime("%H:%M:%S")
    return told.strftime("%H:%M:%S.%f")[: -3 if step >= 1_000 else None]


def across(begin: int, end: int, left: float, right: float) -> Across:
    """The places of times between those of both ends."""
    span = max(1, end - begin)
    return lambda at: left + (at - begin) / span * (right - left)
