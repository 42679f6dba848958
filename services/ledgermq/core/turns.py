"""Whose turn it is among many consumers that wait at one queue (H23).

Fewest deliveries in flight first, ties to the longest wait. Kept from one delivery to the next, so
that a message costs the same with ten waiting consumers and with a thousand. A consumer joins again
whenever its place changes; the entry of its old place is passed over when it comes up.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ledgermq.core.state import Consumer

__all__ = ["Turns", "is_held_back", "turn_of"]

SPARE_ENTRIES = 64
Entry = tuple[int, int, int, int]


def turn_of(consumer: Consumer) -> Entry:
    """A consumer's place: fewest in flight, longest wait; then its session and number."""
    handle = consumer.session.handle
    return (consumer.in_flight, consumer.waiting_since, handle, consumer.number)


def is_held_back(consumer: Consumer) -> bool:
    """Whether it gets nothing for now.

    Its session is suspected (H23), or its unit of work was ended by administration; or it has a
    doubt in hand (H20).
    """
    session = consumer.session
    return session.suspected or consumer.doubt != 0 or session.unit_of_work_ended_by != ""


class Turns:
    """The waiting consumers of one queue in order; `ready` are those that wait, by key."""

    __slots__ = ("_entries", "_held_back", "_ready")

    def __init__(self, ready: Mapping[tuple[int, int], Consumer]) -> None:
        self._ready = ready
        self._held_back: list[Entry] = []
        self._entries: list[Entry] = []
        self._order()

    def _order(self) -> None:
        self._entries = [turn_of(one) for one in self._ready.values()]
        heapq.heapify(self._entries)

    def join(self, consumer: Consumer) -> None:
        """Notes the place of a consumer that waits: it is new here, or its place has changed."""
        if len(self._entries) > 2 * len(self._ready) + SPARE_ENTRIES:
            self._order()
        heapq.heappush(self._entries, turn_of(consumer))

    def first(self) -> Consumer | None:
        """Whose turn it is; None if nobody waits who may be given anything."""
        entries = self._entries
        while entries:
            entry = entries[0]
            consumer = self._ready.get((entry[2], entry[3]))
            if consumer is not None and entry == turn_of(consumer):
                if not is_held_back(consumer):
                    return consumer
                self._held_back.append(entry)
            heapq.heappop(entries)
        return None

    def rest(self) -> None:
        """Lets those who were passed over wait on; to be called after each use of `first`."""
        for entry in self._held_back:
            heapq.heappush(self._entries, entry)
        self._held_back.clear()
