"""Deadlines of messages: when they expire, when they may be delivered (INF-01, SES-66).

A heap whose entries outlive their messages: one whose message is gone is passed over, and when
such entries are many, the heap is made anew.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ledgermq.core.state import Message

__all__ = ["MessageDeadlines"]

SPARE_ENTRIES = 1024


class MessageDeadlines:
    """Messages by a moment, then by creation of their queue and sequence number."""

    __slots__ = ("_entries", "_entries_max")

    def __init__(self) -> None:
        self._entries: list[tuple[int, int, int, Message]] = []
        self._entries_max = SPARE_ENTRIES

    def add(self, message: Message, due: int) -> None:
        """Notes the moment of a numbered message, in µs."""
        entry = (due, message.queue.created_position, message.sequence, message)
        heapq.heappush(self._entries, entry)
        if len(self._entries) > self._entries_max:
            self._entries = [one for one in self._entries if _stands(one[3])]
            heapq.heapify(self._entries)
            self._entries_max = 2 * len(self._entries) + SPARE_ENTRIES

    def next(self) -> int | None:
        """The next of these times, in µs."""
        entries = self._entries
        while entries and not _stands(entries[0][3]):
            heapq.heappop(entries)
        return entries[0][0] if entries else None

    def take_due(self, time: int) -> list[Message]:
        """Removes and returns the messages whose time has come, in order."""
        entries = self._entries
        found: list[Message] = []
        while entries and entries[0][0] <= time:
            message = heapq.heappop(entries)[3]
            if _stands(message):
                found.append(message)
        return found


def _stands(message: Message) -> bool:
    return message.queue.messages.get(message.sequence) is message
