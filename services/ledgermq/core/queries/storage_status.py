"""What the storage is like: its segments, and what keeps each of them from being free (§9, §19)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ledgermq.core.state.manager import QueueManager
from ledgermq.core.state.records import Message
from ledgermq.core.state.storage import Segment
from ledgermq.protocol.documents.fields import Document, document_of
from ledgermq.protocol.documents.storage import OldestMessage, SegmentState, StorageStatus

SEGMENTS_OF_PAGE_MAX: Final = 10_000


def storage_status(state: QueueManager, after: int, limit: int) -> Document:
    """The sums of all segments, and a page of those whose number is above `after`.

    It looks at every message of the queue manager, for the oldest of each segment.
    """
    storage = state.storage
    segments = list(storage.segments.values())
    page = [one for one in segments if one.number > after]
    shown = page[: max(1, min(limit, SEGMENTS_OF_PAGE_MAX))]
    oldest = _oldest(state, [one for one in shown if one.live_messages])
    sums = document_of(
        StorageStatus,
        storage.settings,
        allocated=len(segments),
        free=len(storage.free),
        bytes=sum(one.bytes for one in segments),
        live_bytes=sum(one.live_bytes for one in segments),
        live_messages=sum(one.live_messages for one in segments),
        segments=[_segment(state, one, oldest.get(one.number)) for one in shown],
        cache=None,
        log=None,
    )
    return sums | {"more": len(shown) < len(page)}


def _segment(state: QueueManager, segment: Segment, oldest: Message | None) -> Document:
    return document_of(
        SegmentState,
        segment,
        number=f"{segment.number:x}",
        state=_state(state, segment),
        oldest=None if oldest is None else _told(oldest),
    )


def _state(state: QueueManager, segment: Segment) -> str:
    if segment is state.storage.active:
        return "active"
    return "pinned" if segment.live_messages else "free"


def _oldest(state: QueueManager, segments: list[Segment]) -> dict[int, Message]:
    """The live message of each segment that was put first, by the number of the segment."""
    found: dict[int, Message] = {}
    wanted = {one.number: None for one in segments}
    for message in _live(state):
        number = message.segment.number
        if number not in wanted:
            continue
        known = found.get(number)
        if known is None or _put_order(message) < _put_order(known):
            found[number] = message
    return found


def _live(state: QueueManager) -> Iterator[Message]:
    for store in state.stores.values():
        yield from store.messages.values()
    for session in state.sessions.values():
        for messages in session.open_puts.values():
            yield from messages


def _put_order(message: Message) -> tuple[int, ...]:
    """By when it was put; of messages with one body, open puts come last."""
    return (
        message.put_position,
        message.put_index,
        message.sequence < 0,
        message.queue.created_position,
        message.sequence,
    )


def _told(message: Message) -> Document:
    return document_of(
        OldestMessage,
        message,
        destination=message.queue.destination,
        enqueued_at=message.enqueued_at if message.sequence >= 0 else None,
    )
