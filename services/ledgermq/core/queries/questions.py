"""Questions to the state: statuses, browse, re-emission; none changes what the fold decides."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from ledgermq.core.delivery.delivered_messages import delivered_message
from ledgermq.core.destinations.by_name import UNKNOWN, find_destination
from ledgermq.core.manual.choice import Chosen, choose
from ledgermq.core.order.group_positions import disagreement
from ledgermq.core.order.selecting import selector_of
from ledgermq.core.queries.browsing import Cursor, browse
from ledgermq.core.queries.destination_status import (
    binding_entries,
    destination_status,
    queue_entries,
    source_entries,
    subscription_entries,
    topic_entries,
)
from ledgermq.core.queries.group_status import group_document, group_statuses
from ledgermq.core.queries.manager_status import manager_status
from ledgermq.core.queries.obstacles import obstacles_document
from ledgermq.core.queries.paging import page_of, place_in
from ledgermq.core.queries.pins import pins_document
from ledgermq.core.queries.resync import resync
from ledgermq.core.queries.storage_status import storage_status
from ledgermq.core.queries.work_status import (
    session_document,
    session_entries,
    transaction_document,
    transaction_entries,
)
from ledgermq.core.quoting import quoted
from ledgermq.core.state.manager import QueueManager
from ledgermq.core.state.records import Queue
from ledgermq.protocol.answers import Answer
from ledgermq.protocol.documents.fields import Document
from ledgermq.protocol.get_options import PLAIN, Options, check
from ledgermq.protocol.limits import (
    DELIVERED_CONTENT_BYTES_MAX,
    DELIVERED_MESSAGES_MAX,
    GROUP_ID_BYTES,
)
from ledgermq.protocol.outcomes import DeliveredMessage
from ledgermq.protocol.reasons import Reason, Refusal


def answer(state: QueueManager, ask: dict[str, Any], name: str, worker: str) -> Answer:
    kind = ask["kind"]
    if kind == "QUEUE_MANAGER":
        return Answer(document=manager_status(state, name, worker))
    if kind in LISTINGS:
        documents, behind = page_of(LISTINGS[kind](state, ask.get("after", "")))
        return Answer(document=documents, next=behind)
    if kind in ("TRANSACTION", "SESSION"):
        return _of_session(state, kind, ask)
    if kind == "RESYNC":
        document, outcomes = resync(state, ask["connection"])
        return Answer(document=document, outcomes=outcomes, is_large=True)
    if kind == "STORAGE":
        return Answer(document=storage_status(state, ask["after_sequence"], ask["limit"]))
    if kind == "PINS":
        return Answer(document=pins_document(state, ask["limit"]))
    if kind == "SELECT_MESSAGES":
        return _chosen(state, ask)
    if kind not in ("TOPIC", "QUEUE", "BROWSE", "GROUPS", "GROUP", "OBSTACLES"):
        detail = f"this worker does not know questions of kind {kind}; it may be too old"
        return Answer(reason=Reason.KIND_UNKNOWN, detail=detail)
    what = "topic" if kind == "TOPIC" else "queue"
    destination = f"{what}:{ask['queue']}"
    found = find_destination(state, destination)
    if found is None:
        detail = f"there is no {what} {quoted(ask['queue'])} on {name}"
        return Answer(reason=UNKNOWN[what], detail=detail)
    if kind in ("TOPIC", "QUEUE"):
        return Answer(document=destination_status(state, destination))
    if kind == "OBSTACLES":
        return Answer(document=obstacles_document(state, found))
    return _of_queue(found, kind, ask)


def _of_queue(queue: Queue, kind: str, ask: dict[str, Any]) -> Answer:
    if kind == "GROUPS":
        return Answer(document=group_statuses(queue, ask["group_id"], ask["limit"]))
    if kind == "GROUP":
        group = queue.groups.get(ask["group_id"])
        if group is None:
            detail = f"queue {queue.name} has no group {ask['group_id'][:GROUP_ID_BYTES].hex()}"
            return Answer(reason=Reason.GROUP_UNKNOWN, detail=detail)
        after = (ask["group_sequence"], ask["offset"])
        return Answer(document=group_document(queue, group, after, ask["limit"]))
    return _page(queue, ask)


def _of_session(state: QueueManager, kind: str, ask: dict[str, Any]) -> Answer:
    handle, after = ask["session"], ask.get("after", "")
    session = state.sessions.get(handle)
    if session is None:
        return Answer(reason=Reason.TARGET_UNKNOWN, detail=f"there is no session {handle}")
    if kind == "SESSION":
        document, behind = session_document(session, after)
        return Answer(document=document, next=behind)
    if not session.has_unit_of_work:
        detail = f"session {handle} has no unit of work that is open"
        return Answer(reason=Reason.TARGET_UNKNOWN, detail=detail)
    document, behind = transaction_document(session, after)
    return Answer(document=document, next=behind)


def _page(queue: Queue, ask: dict[str, Any]) -> Answer:
    selector = selector_of(ask["selector"])
    if isinstance(selector, Refusal):
        return Answer(reason=selector.reason, detail=selector.detail)
    options = PLAIN if ask["options"] is None else Options(**ask["options"])
    wrong = check(options)
    if wrong is not None:
        return Answer(reason=Reason.OPTIONS_INVALID, detail=wrong)
    position = None
    if ask["group_id"]:
        position = (ask["group_id"], ask["group_sequence"], ask["offset"])
        wrong = disagreement(queue, position, options)
        if wrong is not None:
            return Answer(reason=Reason.MATCH_OPTIONS_INVALID, detail=wrong)
    cursor = Cursor(ask["after_priority"], ask["after_sequence"], position)
    page = browse(queue, cursor, ask["limit"], selector, options)
    position = page.cursor.position
    document = {
        "more": page.more,
        "after_priority": page.cursor.after_priority,
        "after_sequence": page.cursor.after_sequence,
        "group_id": "" if position is None else position[0].hex(),
        "group_sequence": 0 if position is None else position[1],
        "offset": 0 if position is None else position[2],
    }
    return Answer(document=document, messages=page.messages, is_large=page.is_large)


def _chosen(state: QueueManager, ask: dict[str, Any]) -> Answer:
    """What an operation by hand would touch (PROTOCOL.md §17)."""
    if ask["selection"] is None:
        return Answer(reason=Reason.SELECTION_INVALID, detail="the question has no selection")
    found = choose(state, ask["selection"], to_origin=ask["to_origin"])
    if isinstance(found, Refusal):
        return Answer(reason=found.reason, detail=found.detail)
    chosen = found[1]
    origins, behind = page_of(_origins(chosen, ask.get("after", "")))
    document = {
        "affected": len(chosen.messages),
        "skipped": chosen.skipped,
        "more": chosen.more,
        "last_sequence": chosen.last_sequence,
        "next_sequence": chosen.next_sequence,
        "origins": origins,
    }
    if ask.get("after"):
        return Answer(document=document, next=behind)
    shown: list[DeliveredMessage] = []
    shown_bytes = 0
    for message in chosen.messages[: max(0, min(ask["limit"], DELIVERED_MESSAGES_MAX))]:
        shown_bytes += message.size_bytes
        if shown and shown_bytes > DELIVERED_CONTENT_BYTES_MAX:
            break
        shown.append(delivered_message(message))
    return Answer(document=document, messages=shown, next=behind)


def _origins(chosen: Chosen, after: str) -> Iterator[tuple[str, Document]]:
    """How many messages came from each destination for each reason, from behind a place on."""
    counts: dict[tuple[str, str], int] = {}
    for message in chosen.messages:
        if message.origin is not None:
            key = (message.origin["destination"], message.origin["reason"])
            counts[key] = counts.get(key, 0) + 1
    behind = place_in(after)
    for number, ((destination, reason), count) in enumerate(sorted(counts.items())):
        if number > behind:
            yield str(number), {"destination": destination, "reason": reason, "count": count}


# Kinds whose answer is a list of all there is of something, behind a place, page by page.
LISTINGS: Final[dict[str, Callable[[QueueManager, str], Iterator[tuple[str, Document]]]]] = {
    "BINDINGS": binding_entries,
    "QUEUES": queue_entries,
    "SESSIONS": session_entries,
    "SOURCES": source_entries,
    "SUBSCRIPTIONS": subscription_entries,
    "TOPICS": topic_entries,
    "TRANSACTIONS": transaction_entries,
}
