"""How a session's deliveries leave flight: consumed, given back, or lost with their session."""

from __future__ import annotations

from collections.abc import Iterator

from ledgermq_spark.acts import Act
from ledgermq_spark.refusing import ScannedSession

__all__ = ["runs", "settle", "settle_lost", "together"]


def runs(numbers: list[int]) -> Iterator[tuple[int, int]]:
    """Rising numbers as runs of (first, last)."""
    first = last = None
    for number in numbers:
        if last is not None and number == last + 1:
            last = number
            continue
        if first is not None and last is not None:
            yield first, last
        first = last = number
    if first is not None and last is not None:
        yield first, last


def settle(
    session: ScannedSession,
    numbers: list[int],
    position: int | None,
    how: str,
    backed_out: set[int] | None,
) -> Iterator[Act]:
    """Takes deliveries out of flight; `backed_out` None: they are consumed."""
    if backed_out is None:
        yield from _part(session, numbers, position, how)
        return
    seen = [one for one in numbers if one in backed_out]
    unseen = [one for one in numbers if one not in backed_out]
    yield from _part(session, seen, position, how, flag=True)
    yield from _part(session, unseen, position, how, flag=False)


def together(session: ScannedSession, last: int) -> list[int]:
    """The deliveries of a logical message got complete up to its last segment; else that one."""
    numbers = [last]
    while numbers[-1] in session.inner:
        numbers.append(numbers[-1] - 1)
    return numbers


def settle_lost(session: ScannedSession, position: int | None, how: str) -> Iterator[Act]:
    """What a lost session held goes back: a backout each, counted if it was handed over (H20)."""
    numbers = list(session.in_flight)
    handed = {one for one in numbers if one <= session.handed or one in session.handing}
    unknown = [one for one in numbers if one not in handed]
    yield from _part(session, sorted(handed), position, how, flag=True, text="counted")
    yield from _part(session, unknown, position, how, flag=True, text="uncounted")


def _part(
    session: ScannedSession,
    numbers: list[int],
    position: int | None,
    how: str,
    *,
    flag: bool | None = None,
    text: str | None = None,
) -> Iterator[Act]:
    deadline = session.deadline if position is None else None
    for number in numbers:
        session.in_flight.pop(number, None)
        session.doubts.pop(number, None)
        session.inner.discard(number)
    for first, last in runs(numbers):
        yield Act(
            "settled",
            session.handle,
            position,
            deadline,
            how,
            first=first,
            last=last,
            flag=flag,
            text=text,
        )
