"""Whether a Put has room in the storage, alone or with its unit of work (PROTOCOL.md §19)."""

from __future__ import annotations

from ledgermq.core.state.manager import QueueManager
from ledgermq.core.state.records import Message, Session
from ledgermq.protocol.limits import UNIT_OF_WORK_DESTINATIONS_MAX
from ledgermq.protocol.reasons import Reason, Refusal


def storage_full(state: QueueManager, size_bytes: int) -> Refusal:
    """Refuses what may not wait for room in the storage (DB-20)."""
    settings = state.storage.settings
    return Refusal(
        Reason.STORAGE_FULL,
        f"there is no room for {size_bytes} bytes: the {settings.segments_max} segments of "
        f"{settings.segment_bytes} bytes that may be are full or pinned by live messages",
    )


def check_transaction_size(
    state: QueueManager, session: Session, messages: list[Message], size_bytes: int
) -> Refusal | None:
    """Refuses a unit of work, or outside one a message, that is larger than a segment (DB-09).

    And a unit of work for more destinations than the outcome of its commit has room for.
    """
    destination = messages[0].queue.destination
    if (
        len(session.open_puts) >= UNIT_OF_WORK_DESTINATIONS_MAX
        and destination not in session.open_puts
    ):
        return Refusal(
            Reason.TRANSACTION_TOO_LARGE,
            f"the unit of work has puts to {len(session.open_puts)} destinations, one commit puts "
            "to no more; commit what it holds",
        )
    limit = state.storage.settings.segment_bytes
    if session.open_bytes + size_bytes <= limit:
        return None
    if session.transacted:
        return Refusal(
            Reason.TRANSACTION_TOO_LARGE,
            f"with {size_bytes} bytes more the unit of work had "
            f"{session.open_bytes + size_bytes}, a segment takes {limit}; commit what it holds",
        )
    largest = max(message.size_bytes for message in messages)
    if largest <= limit:
        return None
    return Refusal(
        Reason.TRANSACTION_TOO_LARGE, f"a message takes {largest} bytes, a segment takes {limit}"
    )
