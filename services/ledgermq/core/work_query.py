"""Units of work and sessions as questions tell them (PROTOCOL.md §9, §18)."""

from __future__ import annotations

from typing import Any, Final

from ledgermq.core.delivery import is_paused, may_take
from ledgermq.core.fifo import first_received, is_serialized
from ledgermq.core.message import Message
from ledgermq.core.state import Consumer, QueueManager, Session

__all__ = [
    "is_turn_of",
    "session_document",
    "session_status",
    "session_statuses",
    "transaction_document",
    "transaction_documents",
]

Document = dict[str, Any]
# Deliveries that the document of one session tells one by one.
DELIVERIES_TOLD: Final = 1_000


def session_statuses(state: QueueManager) -> list[Document]:
    """The open sessions by handle."""
    return [session_status(session) for session in state.sessions.values()]


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


def transaction_documents(state: QueueManager) -> list[Document]:
    """The open units of work by session."""
    return [
        transaction_document(session)
        for session in state.sessions.values()
        if session.has_unit_of_work
    ]


def transaction_document(session: Session) -> Document:
    """What a unit of work holds, by destination; since when in µs."""
    return {
        "session": session.handle,
        "connection": session.connection.identity.hex(),
        "client_id": session.connection.client_id,
        "began_at": session.unit_of_work_began_at,
        "puts": [
            {"destination": destination, **_counted(messages)}
            for destination, messages in session.open_puts.items()
        ],
        "gets": [
            {"destination": destination, **_counted(messages)}
            for destination, messages in _by_destination(session).items()
        ],
    }


def _by_destination(session: Session) -> dict[str, list[Message]]:
    found: dict[str, list[Message]] = {}
    for message in session.deliveries.values():
        found.setdefault(message.queue.destination, []).append(message)
    return found


def _counted(messages: list[Message]) -> Document:
    return {"messages": len(messages), "bytes": sum(one.size_bytes for one in messages)}


def session_document(session: Session) -> Document:
    """One session with its consumers, what it holds, and why it gets nothing."""
    told = list(session.deliveries.items())[:DELIVERIES_TOLD]
    work = transaction_document(session) if session.has_unit_of_work else None
    return {
        **session_status(session),
        "confirmed": session.confirmed,
        "deadline": None if session.deadline < 0 else session.deadline,
        "suspect_timeout_ms": session.suspect_timeout_ms,
        "handed_through": session.handed_through,
        "unit_of_work_ended_by": session.unit_of_work_ended_by,
        "unit_of_work": work,
        "consumer_list": [_consumer_document(one) for one in session.consumers.values()],
        "deliveries": [_delivery_document(number, one) for number, one in told],
        "deliveries_more": len(session.deliveries) > len(told),
    }


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
