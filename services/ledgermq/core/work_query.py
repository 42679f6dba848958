"""Units of work and sessions as questions tell them (PROTOCOL.md §9, §18)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from ledgermq.core.delivery import is_paused, may_take
from ledgermq.core.fifo import first_received, is_serialized
from ledgermq.core.message import Message
from ledgermq.core.paging import page_of, place_in
from ledgermq.core.state import Consumer, QueueManager, Session

__all__ = [
    "is_turn_of",
    "session_document",
    "session_entries",
    "session_status",
    "session_statuses",
    "transaction_document",
    "transaction_entries",
]

Document = dict[str, Any]
# Deliveries that the document of one session tells one by one.
DELIVERIES_TOLD: Final = 1_000
# Destinations in one entry of a list of units of work.
DESTINATIONS_TOLD: Final = 1_000
WORK: Final = ("puts", "gets")


def session_statuses(state: QueueManager) -> list[Document]:
    """The open sessions by handle."""
    return [status for _, status in session_entries(state, "")]


def session_entries(state: QueueManager, after: str) -> Iterator[tuple[str, Document]]:
    """The open sessions behind a handle; with each the place behind it."""
    behind = place_in(after)
    for handle, session in state.sessions.items():
        if handle > behind:
            yield str(handle), session_status(session)


def session_status(session: Session) -> Document:
    """One session in numbers."""
    began_at = session.unit_of_work_began_at if session.has_unit_of_work else None
    return {
        "session": session.handle,
        "connection": session.connection.identity.hex(),
        "client_id": session.connection.client_id,
        "acknowledge_mode": session.acknowledge_mode,
        "suspected": session.suspected,
        "consumers": sum(1 for one in session.consumers.values() if one.open),
        "consumers_paused": sum(1 for one in session.consumers.values() if is_paused(one)),
        "consumers_in_doubt": sum(1 for one in session.consumers.values() if one.doubt),
        "in_flight": len(session.deliveries),
        "open_puts": sum(len(messages) for messages in session.open_puts.values()),
        "last_sequence": session.last_sequence,
        "unit_of_work_began_at": began_at,
        "unit_of_work_ended": session.unit_of_work_ended_by != "",
    }


def transaction_entries(state: QueueManager, after: str) -> Iterator[tuple[str, Document]]:
    """The open units of work behind a place, by session; a large one has several entries."""
    behind, _, part = after.partition(" ")
    from_handle, from_part = place_in(behind), place_in(part)
    for handle, session in state.sessions.items():
        if handle < from_handle or not session.has_unit_of_work:
            continue
        items = list(_held(session, 0))
        for start in range(0, max(len(items), 1), DESTINATIONS_TOLD):
            if handle > from_handle or start > from_part:
                told = items[start : start + DESTINATIONS_TOLD]
                yield f"{handle} {start}", _work_head(session) | _by_kind(WORK, told)


def transaction_document(session: Session, after: str = "") -> tuple[Document, str]:
    """What a unit of work holds, by destination; since when in µs. And the place behind that."""
    told, behind = page_of(_numbered(_held(session, place_in(after) + 1), after))
    return _work_head(session) | _by_kind(WORK, told), behind


def _work_head(session: Session) -> Document:
    return {
        "session": session.handle,
        "connection": session.connection.identity.hex(),
        "client_id": session.connection.client_id,
        "began_at": session.unit_of_work_began_at,
    }


def _held(session: Session, first: int) -> Iterator[Document]:
    """What a unit of work holds, one destination each, from one on; puts before gets."""
    held = {"puts": session.open_puts, "gets": _by_destination(session)}
    items = ((kind, *one) for kind, found in held.items() for one in found.items())
    for kind, destination, messages in islice(items, first, None):
        yield {kind: {"destination": destination, **_counted(messages)}}


def _numbered(items: Iterator[Document], after: str) -> Iterator[tuple[str, Document]]:
    """Items with the place behind each, where the first stands behind `after`."""
    for number, item in enumerate(items, place_in(after) + 1):
        yield str(number), item


def _by_kind(kinds: tuple[str, ...], told: list[Document]) -> dict[str, list[Document]]:
    """Items that each are under one name, as a list for each name."""
    return {kind: [one[kind] for one in told if kind in one] for kind in kinds}


def _by_destination(session: Session) -> dict[str, list[Message]]:
    found: dict[str, list[Message]] = {}
    for message in session.deliveries.values():
        found.setdefault(message.queue.destination, []).append(message)
    return found


def _counted(messages: list[Message]) -> Document:
    return {"messages": len(messages), "bytes": sum(one.size_bytes for one in messages)}


def session_document(session: Session, after: str = "") -> tuple[Document, str]:
    """One session with its consumers, what it holds, and why it gets nothing.

    Consumers and what its unit of work holds come page by page; and the place behind this one.
    """
    first = place_in(after) + 1
    told = [] if first else list(islice(session.deliveries.items(), DELIVERIES_TOLD))
    listed, behind = page_of(_numbered(_listed(session, first), after))
    lists = _by_kind(("consumer_list", *WORK), listed)
    work = None
    if session.has_unit_of_work:
        work = _work_head(session) | {kind: lists[kind] for kind in WORK}
    document = {
        **session_status(session),
        "confirmed": session.confirmed,
        "deadline": None if session.deadline < 0 else session.deadline,
        "suspect_timeout_ms": session.suspect_timeout_ms,
        "handed_through": session.handed_through,
        "unit_of_work_ended_by": session.unit_of_work_ended_by,
        "unit_of_work": work,
        "consumer_list": lists["consumer_list"],
        "deliveries": [_delivery_document(number, one) for number, one in told],
        "deliveries_more": len(session.deliveries) > DELIVERIES_TOLD,
    }
    return document, behind


def _listed(session: Session, first: int) -> Iterator[Document]:
    """Consumers, then what the unit of work holds, from one on."""
    for consumer in islice(session.consumers.values(), first, None):
        yield {"consumer_list": _consumer_document(consumer)}
    if session.has_unit_of_work:
        yield from _held(session, max(0, first - len(session.consumers)))


def _consumer_document(consumer: Consumer) -> Document:
    return {
        "consumer": consumer.number,
        "destination": consumer.queue.destination,
        "selector": "" if consumer.selector is None else consumer.selector.text,
        "open": consumer.open,
        "credit": consumer.credit,
        "in_flight": consumer.in_flight,
        "paused": _pauses(consumer) if consumer.open else [],
    }


def _pauses(consumer: Consumer) -> list[str]:
    """Why a consumer gets nothing, whatever there is; empty: nothing keeps it from it."""
    session, queue = consumer.session, consumer.queue
    reasons = {
        "no-credit": not consumer.credit,
        "suspected": session.suspected,
        "unit-of-work-ended": session.unit_of_work_ended_by != "",
        "in-doubt": consumer.doubt != 0,
        "unacknowledged-max": is_paused(consumer),
        "gets-disabled": queue.gets_disabled,
        "fifo-mode": not is_turn_of(consumer),
    }
    return [reason for reason, holds in reasons.items() if holds]


def is_turn_of(consumer: Consumer) -> bool:
    """Whether the FIFO mode of its queue lets a consumer get something now (DB-22)."""
    queue = consumer.queue
    if not is_serialized(queue):
        return True
    if queue.unacknowledged or queue.uncommitted_gets:
        return False
    back = first_received(queue)
    return back is None or may_take(consumer, back)


def _delivery_document(number: int, message: Message) -> Document:
    assert message.consumer is not None, "a delivery in flight has a consumer"
    return {
        "delivery": number,
        "consumer": message.consumer.number,
        "destination": message.queue.destination,
        "sequence": message.sequence,
        "message_id": message.message_id.hex(),
        "backout_count": message.backout_count,
    }
