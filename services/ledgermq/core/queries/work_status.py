"""Units of work and sessions as questions tell them (PROTOCOL.md §9, §18)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from ledgermq.core.delivery.recipients import is_paused, may_take
from ledgermq.core.order.fifo import first_received, is_serialized
from ledgermq.core.order.single_active import stands_by
from ledgermq.core.queries.paging import page_of, place_in
from ledgermq.core.state.manager import QueueManager
from ledgermq.core.state.records import Consumer, Message, Session, bytes_of
from ledgermq.protocol.documents.fields import Document, document_of
from ledgermq.protocol.documents.sessions import (
    ConsumerState,
    DeliveryState,
    DestinationWork,
    SessionState,
    SessionStatus,
    TransactionStatus,
)
from ledgermq.selector import text_of

# Deliveries that the document of one session tells one by one.
DELIVERIES_MAX: Final = 1_000
# Destinations in one entry of a list of units of work.
DESTINATIONS_MAX: Final = 1_000
WORK: Final = ("puts", "gets")


def session_statuses(state: QueueManager) -> list[Document]:
    return [status for _, status in session_entries(state, "")]


def session_entries(state: QueueManager, after: str) -> Iterator[tuple[str, Document]]:
    """The open sessions behind a handle; with each the place behind it."""
    behind = place_in(after)
    for handle, session in state.sessions.items():
        if handle > behind:
            yield str(handle), session_status(session)


def session_status(session: Session) -> Document:
    consumers = session.consumers.values()
    return document_of(
        SessionStatus,
        session,
        session=session.handle,
        **_connection(session),
        consumers=sum(1 for one in consumers if one.open),
        consumers_paused=sum(1 for one in consumers if is_paused(one)),
        consumers_in_doubt=sum(1 for one in consumers if one.doubt),
        in_flight=len(session.deliveries),
        open_puts=sum(len(messages) for messages in session.open_puts.values()),
        unit_of_work_began_at=session.unit_of_work_began_at if session.has_unit_of_work else None,
        unit_of_work_ended=session.unit_of_work_ended_by != "",
    )


def _connection(session: Session) -> Document:
    connection = session.connection
    return {"connection": connection.identity.hex(), "client_id": connection.client_id}


def transaction_entries(state: QueueManager, after: str) -> Iterator[tuple[str, Document]]:
    """The open units of work behind a place, by session; a large one has several entries."""
    behind, _, part = after.partition(" ")
    from_handle, from_part = place_in(behind), place_in(part)
    for handle, session in state.sessions.items():
        if handle < from_handle or not session.has_unit_of_work:
            continue
        items = list(_held(session, 0))
        for start in range(0, max(len(items), 1), DESTINATIONS_MAX):
            if handle > from_handle or start > from_part:
                shown = items[start : start + DESTINATIONS_MAX]
                yield f"{handle} {start}", _work(session, _by_kind(WORK, shown))


def transaction_document(session: Session, after: str = "") -> tuple[Document, str]:
    """What a unit of work holds, by destination; since when in µs. And the place behind that."""
    shown, behind = page_of(_numbered(_held(session, place_in(after) + 1), after))
    return _work(session, _by_kind(WORK, shown)), behind


def _work(session: Session, held: dict[str, list[Document]]) -> Document:
    return document_of(
        TransactionStatus,
        None,
        session=session.handle,
        **_connection(session),
        began_at=session.unit_of_work_began_at,
        **held,
    )


def _held(session: Session, first: int) -> Iterator[Document]:
    """What a unit of work holds, an item for each destination, puts first; from item `first` on."""
    held = {"puts": session.open_puts, "gets": _by_destination(session)}
    items = ((kind, *one) for kind, found in held.items() for one in found.items())
    for kind, destination, messages in islice(items, first, None):
        yield {kind: _counted(destination, messages)}


def _numbered(items: Iterator[Document], after: str) -> Iterator[tuple[str, Document]]:
    """Items with the place behind each, where the first stands behind `after`."""
    for number, item in enumerate(items, place_in(after) + 1):
        yield str(number), item


def _by_kind(kinds: tuple[str, ...], shown: list[Document]) -> dict[str, list[Document]]:
    return {kind: [one[kind] for one in shown if kind in one] for kind in kinds}


def _by_destination(session: Session) -> dict[str, list[Message]]:
    found: dict[str, list[Message]] = {}
    for message in session.deliveries.values():
        found.setdefault(message.queue.destination, []).append(message)
    return found


def _counted(destination: str, messages: list[Message]) -> Document:
    return document_of(
        DestinationWork,
        None,
        destination=destination,
        messages=len(messages),
        bytes=bytes_of(messages),
    )


def session_document(session: Session, after: str = "") -> tuple[Document, str]:
    """One session with its consumers, what it holds, and why it gets nothing.

    Consumers and what its unit of work holds come page by page; and the place behind this one.
    """
    first = place_in(after) + 1
    shown = [] if first else list(islice(session.deliveries.items(), DELIVERIES_MAX))
    listed, behind = page_of(_numbered(_listed(session, first), after))
    lists = _by_kind(("consumer_list", *WORK), listed)
    work = None
    if session.has_unit_of_work:
        work = _work(session, {kind: lists[kind] for kind in WORK})
    document = session_status(session) | document_of(
        SessionState,
        session,
        deadline=None if session.deadline < 0 else session.deadline,
        unit_of_work=work,
        consumer_list=lists["consumer_list"],
        deliveries=[_delivery_document(number, one) for number, one in shown],
        deliveries_more=len(session.deliveries) > DELIVERIES_MAX,
    )
    return document, behind


def _listed(session: Session, first: int) -> Iterator[Document]:
    """Consumers, then what the unit of work holds; from item `first` on."""
    for consumer in islice(session.consumers.values(), first, None):
        yield {"consumer_list": _consumer_document(consumer)}
    if session.has_unit_of_work:
        yield from _held(session, max(0, first - len(session.consumers)))


def _consumer_document(consumer: Consumer) -> Document:
    return document_of(
        ConsumerState,
        consumer,
        consumer=consumer.number,
        destination=consumer.queue.destination,
        selector=text_of(consumer.selector),
        paused=_pauses(consumer) if consumer.open else [],
    )


def _pauses(consumer: Consumer) -> list[str]:
    """Why a consumer gets nothing, whatever its queue has; empty: nothing holds it up."""
    session, queue = consumer.session, consumer.queue
    reasons = {
        "no-credit": not consumer.credit,
        "suspected": session.suspected,
        "unit-of-work-ended": session.unit_of_work_ended_by != "",
        "in-doubt": consumer.doubt != 0,
        "unacknowledged-max": is_paused(consumer),
        "gets-disabled": queue.gets_disabled,
        "stand-by": stands_by(consumer),
        "fifo-mode": not is_turn_of(consumer),
    }
    return [reason for reason, holds in reasons.items() if holds]


def is_turn_of(consumer: Consumer) -> bool:
    """Whether the FIFO mode of its queue lets a consumer get something now (DB-22)."""
    queue = consumer.queue
    if not is_serialized(queue):
        return True
    if queue.in_flight:
        return False
    back = first_received(queue)
    return back is None or may_take(consumer, back)


def _delivery_document(number: int, message: Message) -> Document:
    assert message.consumer is not None, "a delivery in flight has a consumer"
    return document_of(
        DeliveryState,
        message,
        delivery=number,
        consumer=message.consumer.number,
        destination=message.queue.destination,
        message_id=message.message_id.hex(),
    )
