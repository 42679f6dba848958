"""Ways to change one row of the frames of a log, so that it is lawful no longer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Row = tuple[Any, ...]
# A frame, and what changes its rows, given the names of its columns.
Tampering = tuple[str, Callable[[list[Row], Sequence[str]], None]]


def without(which: str, **told: Any) -> Tampering:
    """What takes the first row out that has these values."""

    def change(rows: list[Row], names: Sequence[str]) -> None:
        rows.remove(next(one for one in rows if _matches(one, names, told)))

    return (which, change)


def other(which: str, told: dict[str, Any], **values: Any) -> Tampering:
    """What gives the first row that has some values other ones."""

    def change(rows: list[Row], names: Sequence[str]) -> None:
        at = next(at for at, one in enumerate(rows) if _matches(one, names, told))
        named = dict(zip(names, rows[at], strict=True)) | values
        rows[at] = tuple(named.values())

    return (which, change)


def _matches(row: Row, names: Sequence[str], told: dict[str, Any]) -> bool:
    """Whether a row has some values."""
    named = dict(zip(names, row, strict=True))
    return all(named[name] == value for name, value in told.items())
