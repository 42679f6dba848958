"""Deadlines are rounded, so that they do not storm (H7)."""

from __future__ import annotations

from typing import Final

from ledgermq.protocol.limits import TIME_ROUNDING_US

MILLISECOND_US: Final = 1_000


def rounded(time: int) -> int:
    """A deadline in µs, rounded up to 50 ms (H7)."""
    return -(-time // TIME_ROUNDING_US) * TIME_ROUNDING_US
