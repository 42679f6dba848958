"""How a session's deliveries leave flight: consumed, given back, or lost with their session."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ledgermq_spark.derivation.acts import Act, Event
from ledgermq_spark.derivation.refusing import ScannedSession, Segment


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


def take_segment(session: ScannedSession, number: int, event: Event, text: str) -> int | None:
    """Notes a claimed delivery of a segment.

    Returns the delivery of the beginning of its logical message, if it came with that: to a
    consumer that gets messages complete, right behind what comes before it. Who is inside a logical
    message already gets the rest segment by segment.
    """
    told: dict[str, Any] = json.loads(text)
    if "s" not in told["f"]:
        return None
    entry, offset = (event.position, event.phase), told["o"]
    segment = Segment(
        event.consumer, told["i"], told["n"], offset, offset + told["l"], entry, unit=None
    )
    consumer = session.consumers.get(event.consumer)
    if consumer is not None and consumer.complete:
        before = session.segments.get(number - 1)
        if not offset:
            segment = segment._replace(unit=number)
        elif before is not None and before.entry == entry and segment.goes_on(before):
            segment = segment._replace(unit=before.unit)
    session.segments[number] = segment
    return segment.unit if offset else None


def handed_with(session: ScannedSession, last: int) -> list[int]:
    """A delivery in flight, and those of its consumer before it; nothing if it is not in flight."""
    consumer = session.in_flight.get(last)
    if consumer is None:
        return []
    held = session.in_flight.items()
    return [number for number, holder in held if number <= last and holder == consumer]


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
        session.segments.pop(number, None)
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
