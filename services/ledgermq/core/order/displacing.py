"""Displacement: of what is available only the newest is kept, if a queue says so (§23)."""

from __future__ import annotations

from ledgermq.core.entry import Entry
from ledgermq.core.moves import move
from ledgermq.core.state.message_states import AVAILABLE, DISPLACED, GONE
from ledgermq.core.state.records import Message, Queue, oldest_available


def keep_newest(queue: Queue, available_max: int) -> None:
    """Sets how many messages are available at most; 0: any number."""
    queue.available_max = available_max
    if not available_max:
        queue.oldest = None
    elif queue.oldest is None:
        here = [one for one in queue.messages.values() if one.is_available]
        queue.oldest = oldest_available(here)


def displace(entry: Entry, queue: Queue) -> bool:
    """Lets the oldest go of what is available beyond that; returns whether there was any."""
    surplus = queue.counts[AVAILABLE] - queue.available_max
    if queue.oldest is None or surplus <= 0:
        return False
    oldest: dict[int, Message] = {}
    while len(oldest) < surplus:
        found = queue.oldest.first()
        assert found is not None, "what is counted is there"
        # A message that came back has an entry for each time.
        queue.oldest.pop()
        oldest[found[0]] = found[1]
    move(entry, queue, [*oldest.values()], AVAILABLE, GONE, cause=DISPLACED)
    return True
