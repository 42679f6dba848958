"""Times of the log as aware datetimes, and as texts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
FIRST: Final = datetime(1, 1, 1, tzinfo=UTC)
LAST: Final = datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)


def datetime_from(microseconds: int) -> datetime:
    """An aware UTC time from microseconds since 1970; the first or last one, if it is beyond."""
    try:
        return EPOCH + timedelta(microseconds=microseconds)
    except OverflowError:
        return FIRST if microseconds < 0 else LAST


def utc_text(moment: datetime, precision: str = "auto") -> str:
    """An aware time as ISO 8601 in UTC, `2026-11-20T10:00:00Z`; precision as `isoformat` has it."""
    return moment.astimezone(UTC).isoformat(timespec=precision).replace("+00:00", "Z")


def iso_time(time_us: int | None, *, precision: str = "microseconds") -> str | None:
    """Microseconds since 1970 as ISO 8601 in UTC, or None."""
    return None if time_us is None else utc_text(datetime_from(time_us), precision)
