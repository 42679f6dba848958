"""Storing: whether a Put has room, and settings that say how much there is (PROTOCOL.md §19)."""

from __future__ import annotations

from ledgermq.core.message import Message
from ledgermq.core.operations import AlterQueueManager
from ledgermq.core.reasons import (
    SETTING_INVALID,
    STORAGE_FULL,
    TRANSACTION_TOO_LARGE,
    Refusal,
)
from ledgermq.core.state import QueueManager, Session
from ledgermq.core.storage import StorageSettings

__all__ = ["check_storage", "check_transaction_size", "configure_storage", "store"]


def store(state: QueueManager, session: Session, messages: list[Message]) -> Refusal | None:
    """Stores the messages of a Put, or says why there is no room for them (DB-09, DB-12, DB-13)."""
    sizes = [message.size_bytes for message in messages]
    size_bytes = sum(sizes)
    refusal = check_transaction_size(state, session, sizes, size_bytes)
    if refusal is not None:
        return refusal
    if not state.storage.fits(sizes):
        settings = state.storage.settings
        return Refusal(
            STORAGE_FULL,
            f"there is no room for {size_bytes} bytes: segments_max is {settings.segments_max}, "
            f"and live messages keep what is full, of {settings.segment_bytes} bytes each",
        )
    state.storage.append(messages, size_bytes)
    if session.transacted:
        session.open_bytes += size_bytes
    return None


def check_transaction_size(
    state: QueueManager, session: Session, sizes: list[int], size_bytes: int
) -> Refusal | None:
    """Refuses a unit of work, or outside one a message, that is larger than a segment (DB-09).

    `sizes` are those of a Put's messages in bytes, `size_bytes` their sum.
    """
    limit = state.storage.settings.segment_bytes
    if session.open_bytes + size_bytes <= limit:
        return None
    if session.transacted:
        return Refusal(
            TRANSACTION_TOO_LARGE,
            f"with {size_bytes} bytes more the unit of work had "
            f"{session.open_bytes + size_bytes}, a segment takes {limit}; commit what it holds",
        )
    largest = max(sizes)
    if largest <= limit:
        return None
    return Refusal(
        TRANSACTION_TOO_LARGE, f"a message takes {largest} bytes, a segment takes {limit}"
    )


def check_storage(state: QueueManager, operation: AlterQueueManager) -> Refusal | None:
    """Refuses settings of the storage that are out of range."""
    wrong = _changed(state, operation).wrong()
    return None if wrong is None else Refusal(SETTING_INVALID, wrong)


def configure_storage(state: QueueManager, operation: AlterQueueManager) -> None:
    """Changes those settings of the storage that are given, and were checked."""
    if any(one is not None for one in _given(operation).values()):
        state.storage.change(_changed(state, operation))


def _changed(state: QueueManager, operation: AlterQueueManager) -> StorageSettings:
    return state.storage.settings.changed(_given(operation))


def _given(operation: AlterQueueManager) -> dict[str, int | None]:
    return {
        "segment_bytes": operation.segment_bytes,
        "segments_min": operation.segments_min,
        "segments_max": operation.segments_max,
    }
