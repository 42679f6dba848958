"""Storage: the room that messages take, accounted for in segments (PROTOCOL.md §19, DB-05..16).

Messages live in the log (D6); segments are an account over it, which says when there is no more
room, and what keeps room from being free. A segment is clean again when no live message is left in
it. That is looked at between entries and before room is needed, not at once: a message that goes
elsewhere leaves its queue first and keeps its segment all the same.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Final, Protocol

# The first one of the figure that the rules come from (DB-11).
FIRST_SEGMENT: Final = 0x7EF325
SEGMENT_BYTES_MAX: Final = 2**40
SEGMENTS_MAX: Final = 99_999


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageSettings:
    """How large a segment is, in bytes, and how many there are; `segments_max` 0: no limit."""

    segment_bytes: int = 16 * 1024 * 1024
    segments_min: int = 4
    segments_max: int = 0

    def changed(self, given: dict[str, int | None]) -> StorageSettings:
        """The same object if nothing is given."""
        changes = {name: one for name, one in given.items() if one is not None}
        return replace(self, **changes) if changes else self

    def wrong(self) -> str | None:
        if not 0 < self.segment_bytes <= SEGMENT_BYTES_MAX:
            return f"segment_bytes is {self.segment_bytes}, must be 1 to {SEGMENT_BYTES_MAX}"
        if not 0 < self.segments_min <= SEGMENTS_MAX:
            return f"segments_min is {self.segments_min}, must be 1 to {SEGMENTS_MAX}"
        if self.segments_max and not self.segments_min <= self.segments_max <= SEGMENTS_MAX:
            return (
                f"segments_max is {self.segments_max}, must be 0 (no limit) or segments_min, "
                f"{self.segments_min}, to {SEGMENTS_MAX}"
            )
        return None


class Stored(Protocol):
    """What takes room."""

    segment: Segment
    size_bytes: int


@dataclass(slots=True, eq=False, repr=False)
class Segment:
    """A segment: `bytes` were appended since it was clean, the live ones are needed still."""

    number: int
    emptied: list[Segment]
    bytes: int = 0
    live_bytes: int = 0
    live_messages: int = 0

    def hold(self, size_bytes: int, count: int = 1) -> None:
        self.live_bytes += size_bytes
        self.live_messages += count

    def free(self, size_bytes: int, count: int = 1) -> None:
        """Some of its live messages, of this size together, are gone (DB-14)."""
        self.live_bytes -= size_bytes
        self.live_messages -= count
        if not self.live_messages:
            self.emptied.append(self)


class Storage:
    __slots__ = ("active", "emptied", "free", "next_number", "segments", "settings")

    def __init__(self) -> None:
        self.settings = StorageSettings()
        self.next_number = FIRST_SEGMENT
        self.segments: dict[int, Segment] = {}
        # Segments that had no live message left when it went; some may have one again.
        self.emptied: list[Segment] = []
        # Heap of the numbers of those that are neither active nor pinned.
        self.free: list[int] = []
        self.active = self._new()
        self._add_missing()

    def _new(self) -> Segment:
        segment = Segment(self.next_number, self.emptied)
        self.next_number += 1
        self.segments[segment.number] = segment
        return segment

    def _add_missing(self) -> None:
        while len(self.segments) < self.settings.segments_min:
            heapq.heappush(self.free, self._new().number)

    def clean(self) -> None:
        """Frees the segments in which no live message is left (DB-15)."""
        if not self.emptied:
            return
        most = self.settings.segments_max
        for segment in sorted(self.emptied, key=attrgetter("number")):
            # One that was emptied twice is clean the second time.
            if segment.live_messages or not segment.bytes:
                continue
            segment.bytes = 0
            if segment is self.active:
                continue
            if most and len(self.segments) > most:
                del self.segments[segment.number]
            else:
                heapq.heappush(self.free, segment.number)
        self.emptied.clear()

    def fits(self, sizes: Iterable[int]) -> bool:
        """Whether there is room for messages of these sizes in bytes, in this order."""
        limit, most = self.settings.segment_bytes, self.settings.segments_max
        if not most:
            return True
        self.clean()
        room = limit - self.active.bytes
        further = len(self.free) + max(most - len(self.segments), 0)
        for size_bytes in sizes:
            if size_bytes > room:
                further -= 1
                room = limit
            room -= size_bytes
        return further >= 0

    def append(self, messages: Sequence[Stored], size_bytes: int) -> None:
        """Stores messages, of this size together, for which there is room (DB-12, DB-13)."""
        self.clean()
        active, limit = self.active, self.settings.segment_bytes
        if active.bytes + size_bytes <= limit:
            for message in messages:
                message.segment = active
            active.bytes += size_bytes
            active.live_bytes += size_bytes
            active.live_messages += len(messages)
            return
        for message in messages:
            if active.bytes + message.size_bytes > limit:
                active = self._next()
            message.segment = active
            active.bytes += message.size_bytes
            active.hold(message.size_bytes)

    def _next(self) -> Segment:
        free = self.free
        self.active = self.segments[heapq.heappop(free)] if free else self._new()
        return self.active

    def change(self, settings: StorageSettings) -> None:
        self.clean()
        self.settings = settings
        self._add_missing()
        spare = max(len(self.segments) - settings.segments_min, 0)
        ordered = sorted(self.free)
        kept = max(len(ordered) - spare, 0)
        for number in ordered[kept:]:
            del self.segments[number]
        # What is sorted is a heap.
        self.free = ordered[:kept]

    def find_free(self) -> None:
        """Works out which are free, once the live messages are there."""
        self.free = [
            one.number
            for one in self.segments.values()
            if not one.live_messages and one is not self.active
        ]
