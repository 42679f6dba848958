"""Deadlines are rounded up (PROTOCOL.md §6)."""

from __future__ import annotations

from typing import Final

ROUNDING_US: Final = 50_000


def rounded(moment: int) -> int:
    """A moment in µs, rounded up as deadlines are."""
    return -(-moment // ROUNDING_US) * ROUNDING_US
