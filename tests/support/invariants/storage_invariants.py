"""Invariants of the storage: its sums against the messages that there are (DB-12 to DB-15)."""

from __future__ import annotations

from collections.abc import Iterator

from ledgermq.core.state.manager import QueueManager
from ledgermq.core.state.records import Message


def stored_messages(state: QueueManager) -> Iterator[Message]:
    """Every live message once; one of a topic as the copy of its first subscription."""
    for queue in state.queues.values():
        yield from queue.messages.values()
    for topic in state.topics.values():
        told: dict[int, None] = {}
        for subscription in topic.subscriptions.values():
            for sequence, message in subscription.messages.items():
                if sequence not in told:
                    told[sequence] = None
                    yield message
    for session in state.sessions.values():
        for messages in session.open_puts.values():
            yield from messages


def check_storage(state: QueueManager) -> None:
    """Raises AssertionError unless segments and messages agree."""
    storage = state.storage
    assert not storage.emptied, "segments are not cleaned between entries"
    sums = {number: [0, 0] for number in storage.segments}
    moved: dict[int, None] = {}
    for message in stored_messages(state):
        number = message.segment.number
        assert storage.segments[number] is message.segment, f"segment {number:x} is not known"
        sums[number][0] += message.size_bytes
        sums[number][1] += 1
        if message.origin is not None:
            moved[number] = None
    numbers = list(storage.segments)
    assert numbers == sorted(numbers), "segments stand in order of their numbers"
    assert numbers[-1] < storage.next_number, "the next number is that of a segment"
    assert storage.segments[storage.active.number] is storage.active, "the active segment"
    for number, segment in storage.segments.items():
        where = f"segment {number:x}"
        assert [segment.live_bytes, segment.live_messages] == sums[number], f"{where}: live"
        assert bool(segment.bytes) == bool(segment.live_messages), f"{where}: clean (DB-15)"
        fits = segment.live_bytes <= segment.bytes
        assert fits or number in moved, f"{where}: more than was appended"
    free = [one.number for one in storage.segments.values() if not one.live_messages]
    free = [number for number in free if number != storage.active.number]
    assert sorted(storage.free) == free, "free segments"
    most = storage.settings.segments_max
    assert len(numbers) >= storage.settings.segments_min, "fewer segments than there must be"
    assert not most or len(numbers) <= most or not free, "more segments than there may be"
    for handle, session in state.sessions.items():
        held = sum(one.size_bytes for puts in session.open_puts.values() for one in puts)
        assert session.open_bytes == held, f"session {handle}: bytes of the unit of work"
