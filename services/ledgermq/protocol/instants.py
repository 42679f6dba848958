"""Times of the log as aware datetimes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def datetime_from(microseconds: int) -> datetime:
    """An aware UTC time from microseconds since 1970."""
    return EPOCH + timedelta(microseconds=microseconds)
