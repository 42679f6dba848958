"""Room for a Put: in the quotas, the storage and one unit of work (PROTOCOL.md §16, §19; INF-04).

Quotas hold up puts and nothing else: what is there is never taken away, and a commit, a message
that goes elsewhere or one that comes back is never refused by a quota (decision 19).
"""

from __future__ import annotations

from collections.abc import Iterable

from ledgermq.core.destinations.settings_in_force import THE_QUEUE_MANAGER
from ledgermq.core.state.manager import QueueManager
from ledgermq.core.state.records import SIZE, Message, Queue, Session
from ledgermq.core.state.resume_mark import ResumeMark
from ledgermq.protocol.limits import UNIT_OF_WORK_DESTINATIONS_MAX
from ledgermq.protocol.reasons import Reason, Refusal
from ledgermq.protocol.settings import DEFAULTS


def has_quota(state: QueueManager, queue: Queue) -> bool:
    """Whether a put to a queue or topic may be held up: by a quota, its own or that of all, or by
    the storage, where that has a limit.
    """
    if queue.own_settings is not DEFAULTS or state.storage.settings.segments_max:
        return True
    return state.messages_max > 0 or state.bytes_max > 0


def fits(state: QueueManager, queue: Queue, messages: list[Message], size_bytes: int) -> bool:
    return used_up_quota(state, queue, len(messages), size_bytes) is None and state.storage.fits(
        map(SIZE, messages)
    )


def used_up_quota(
    state: QueueManager, queue: Queue | None, count: int, size_bytes: int
) -> str | None:
    """Whose quota has no room for messages, in words; None: they may be put with all kept.

    It has none while it holds puts up, until it has drained to its resume mark. A queue that is not
    there yet has no quota of its own.
    """
    if queue is not None and (
        _holds_up(queue.resume_mark) or _is_exceeded_by(queue, count, size_bytes)
    ):
        return queue.destination
    if _holds_up(state.resume_mark) or _all_is_exceeded_by(state, count, size_bytes):
        return THE_QUEUE_MANAGER
    return None


def _holds_up(mark: ResumeMark | None) -> bool:
    return mark is not None and mark.holds_up


def _is_exceeded_by(queue: Queue, count: int, size_bytes: int) -> bool:
    """Whether so much more is too much for the quota of a queue or topic."""
    settings = queue.settings
    if settings.messages_max and queue.held_messages + count > settings.messages_max:
        return True
    return settings.bytes_max > 0 and queue.held_bytes + size_bytes > settings.bytes_max


def _all_is_exceeded_by(state: QueueManager, count: int, size_bytes: int) -> bool:
    if state.messages_max and state.held_messages + count > state.messages_max:
        return True
    return state.bytes_max > 0 and state.held_bytes + size_bytes > state.bytes_max


def has_room(state: QueueManager) -> bool:
    """Whether the quota of all has room for any message."""
    return not _holds_up(state.resume_mark) and not _all_is_exceeded_by(state, 1, 0)


def has_room_at(state: QueueManager, queue: Queue | None) -> bool:
    """Whether a put may find room in the quota of a queue or topic, or its look change that of all.

    One that holds up whoever finds it used up is looked at by each.
    """
    if queue is None or state.resume_mark is not None:
        return True
    return not _holds_up(queue.resume_mark) and not _is_exceeded_by(queue, 1, 0)


def hold_up(state: QueueManager, queue: Queue | None, count: int, size_bytes: int) -> None:
    """A put waits: the quotas that have no room for it hold puts up until they have drained."""
    mark = None if queue is None else queue.resume_mark
    if queue is not None and mark is not None and _is_exceeded_by(queue, count, size_bytes):
        held_up = mark.holds_up
        mark.holds_up = not mark.is_reached(queue.held_messages, queue.held_bytes)
        if held_up and not mark.holds_up:
            state.stir(queue.destination)
    mark = state.resume_mark
    if mark is not None and _all_is_exceeded_by(state, count, size_bytes):
        mark.holds_up = not mark.is_reached(state.held_messages, state.held_bytes)


def resume(state: QueueManager, waited_at: Iterable[Queue | None]) -> None:
    """Quotas that have drained hold up nothing any longer; puts wait at these destinations."""
    for queue in waited_at:
        mark = None if queue is None else queue.resume_mark
        if queue is not None and mark is not None and mark.holds_up:
            mark.holds_up = not mark.is_reached(queue.held_messages, queue.held_bytes)
    mark = state.resume_mark
    if mark is not None and mark.holds_up:
        mark.holds_up = not mark.is_reached(state.held_messages, state.held_bytes)


def larger_than_whole(state: QueueManager, queue: Queue, count: int, size_bytes: int) -> str | None:
    """Which quota messages exceed by themselves, in words, so that they never fit; None: none."""
    quotas = (
        (queue.destination, queue.settings.messages_max, queue.settings.bytes_max),
        (THE_QUEUE_MANAGER, state.messages_max, state.bytes_max),
    )
    for whose, messages_max, bytes_max in quotas:
        if messages_max and count > messages_max:
            return f"{count} messages at once are more than the quota of {whose}, {messages_max}"
        if bytes_max and size_bytes > bytes_max:
            return f"{size_bytes} bytes at once are more than the quota of {whose}, {bytes_max}"
    return None


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
