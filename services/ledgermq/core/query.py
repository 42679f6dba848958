"""Questions to the state: statuses, browse, re-emission; none changes what the fold decides.

A status counts what PROTOCOL.md §9 names; current + pending = message count + uncommitted puts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from ledgermq.core.browsing import Cursor, browse
from ledgermq.core.choosing import Chosen, choose
from ledgermq.core.counting import blocked_status, held_bytes_status
from ledgermq.core.delivery import delivered_message
from ledgermq.core.group_query import group_document, group_statuses
from ledgermq.core.journal import journal_status
from ledgermq.core.paging import page_of, place_in
from ledgermq.core.pins import pins_document
from ledgermq.core.places import disagreement
from ledgermq.core.quotas import held_by_all
from ledgermq.core.quoting import quoted
from ledgermq.core.resync import resync
from ledgermq.core.state import Queue, QueueManager
from ledgermq.core.storage_query import storage_status
from ledgermq.core.topic_query import (
    enqueue_times,
    subscription_entries,
    topic_entries,
    topic_status,
)
from ledgermq.core.work_query import (
    session_document,
    session_entries,
    session_statuses,
    transaction_document,
    transaction_entries,
)
from ledgermq.protocol.get_options import PLAIN, Options, check
from ledgermq.protocol.limits import (
    DELIVERED_CONTENT_BYTES_MAX,
    DELIVERED_MESSAGES_MAX,
    GROUP_ID_BYTES,
)
from ledgermq.protocol.outcomes import Delivered, DeliveredMessage, Outcome
from ledgermq.protocol.reasons import (
    GROUP_UNKNOWN,
    MATCH_OPTIONS_INVALID,
    OPTIONS_INVALID,
    QUEUE_UNKNOWN,
    SELECTION_INVALID,
    SELECTOR_INVALID,
    TARGET_UNKNOWN,
    TOPIC_UNKNOWN,
    Refusal,
)
from ledgermq.selector import SelectorError, parse_selector

__all__ = [
    "Told",
    "manager_status",
    "queue_status",
    "queue_statuses",
    "resync",
    "session_statuses",
    "tell",
]

KIND_UNKNOWN: Final = "kind-unknown"
Document = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a question is answered with; contents of messages are for the caller to fill in.

    `reason` and `detail` are those of a refusal, else empty. `next` says from where to ask on, if
    this is not all. `is_large`: contents may be more than one record takes.
    """

    document: Any = None
    messages: list[DeliveredMessage] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    reason: str = ""
    detail: str = ""
    next: str = ""
    is_large: bool = False

    @property
    def unfilled(self) -> list[list[DeliveredMessage]]:
        """All messages of the answer, whose contents the caller fills in."""
        delivered = [one.messages for one in self.outcomes if isinstance(one, Delivered)]
        return [self.messages, *delivered]


def tell(state: QueueManager, ask: dict[str, Any], name: str, worker: str) -> Told:
    """The answer to a question about the state, as PROTOCOL.md §9 names its kinds."""
    kind = ask["kind"]
    if kind == "QUEUE_MANAGER":
        return Told(document=manager_status(state, name, worker))
    if kind in LISTINGS:
        documents, behind = page_of(LISTINGS[kind](state, ask.get("after", "")))
        return Told(document=documents, next=behind)
    if kind in ("TRANSACTION", "SESSION"):
        return _tell_session(state, kind, ask)
    if kind == "RESYNC":
        document, outcomes = resync(state, ask["connection"])
        return Told(document=document, outcomes=outcomes, is_large=True)
    if kind == "STORAGE":
        return Told(document=storage_status(state, ask["after_sequence"], ask["limit"]))
    if kind == "PINS":
        return Told(document=pins_document(state, ask["limit"]))
    if kind == "SELECT_MESSAGES":
        return _tell_chosen(state, ask)
    if kind == "TOPIC":
        return _tell_topic(state, ask["queue"], name)
    if kind not in ("QUEUE", "BROWSE", "GROUPS", "GROUP"):
        detail = f"this worker does not know questions of kind {kind}; it may be too old"
        return Told(reason=KIND_UNKNOWN, detail=detail)
    if ask["queue"] not in state.queues:
        detail = f"there is no queue {quoted(ask['queue'])} on {name}"
        return Told(reason=QUEUE_UNKNOWN, detail=detail)
    return _tell_queue(state, kind, ask)


def _tell_topic(state: QueueManager, topic_name: str, name: str) -> Told:
    topic = state.topics.get(topic_name)
    if topic is None:
        detail = f"there is no topic {quoted(topic_name)} on {name}"
        return Told(reason=TOPIC_UNKNOWN, detail=detail)
    blocked = blocked_status(state, topic.destination)
    return Told(document=topic_status(topic) | {"blocked": blocked})


def _tell_queue(state: QueueManager, kind: str, ask: dict[str, Any]) -> Told:
    """What is asked of a queue that is there."""
    if kind == "QUEUE":
        return Told(document=queue_status(state, ask["queue"]))
    queue = state.queues[ask["queue"]]
    if kind == "GROUPS":
        return Told(document=group_statuses(queue, ask["group_id"], ask["limit"]))
    if kind == "GROUP":
        group = queue.groups.get(ask["group_id"])
        if group is None:
            detail = f"queue {queue.name} has no group {ask['group_id'][:GROUP_ID_BYTES].hex()}"
            return Told(reason=GROUP_UNKNOWN, detail=detail)
        after = (ask["group_sequence"], ask["offset"])
        return Told(document=group_document(queue, group, after, ask["limit"]))
    return _tell_page(queue, ask)


def _tell_session(state: QueueManager, kind: str, ask: dict[str, Any]) -> Told:
    handle, after = ask["session"], ask.get("after", "")
    session = state.sessions.get(handle)
    if session is None:
        return Told(reason=TARGET_UNKNOWN, detail=f"there is no session {handle}")
    if kind == "SESSION":
        document, behind = session_document(session, after)
        return Told(document=document, next=behind)
    if not session.has_unit_of_work:
        detail = f"session {handle} has no unit of work that is open"
        return Told(reason=TARGET_UNKNOWN, detail=detail)
    document, behind = transaction_document(session, after)
    return Told(document=document, next=behind)


def _tell_page(queue: Queue, ask: dict[str, Any]) -> Told:
    try:
        selector = parse_selector(ask["selector"])
    except SelectorError as error:
        return Told(reason=SELECTOR_INVALID, detail=f"the selector is not valid: {error}")
    options = PLAIN if ask["options"] is None else Options(**ask["options"])
    wrong = check(options)
    if wrong is not None:
        return Told(reason=OPTIONS_INVALID, detail=wrong)
    place = None
    if ask["group_id"]:
        place = (ask["group_id"], ask["group_sequence"], ask["offset"])
        wrong = disagreement(queue, place, options) if options.logical_order else None
        if wrong is not None:
            return Told(reason=MATCH_OPTIONS_INVALID, detail=wrong)
    cursor = Cursor(ask["after_priority"], ask["after_sequence"], place)
    page = browse(queue, cursor, ask["limit"], selector, options)
    place = page.cursor.place
    document = {
        "more": page.more,
        "after_priority": page.cursor.after_priority,
        "after_sequence": page.cursor.after_sequence,
        "group_id": "" if place is None else place[0].hex(),
        "group_sequence": 0 if place is None else place[1],
        "offset": 0 if place is None else place[2],
    }
    return Told(document=document, messages=page.messages, is_large=page.is_large)


def _tell_chosen(state: QueueManager, ask: dict[str, Any]) -> Told:
    """What an operation by hand would touch (PROTOCOL.md §17)."""
    if ask["selection"] is None:
        return Told(reason=SELECTION_INVALID, detail="the question has no selection")
    found = choose(state, ask["selection"], to_origin=ask["to_origin"])
    if isinstance(found, Refusal):
        return Told(reason=found.reason, detail=found.detail)
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
        return Told(document=document, next=behind)
    shown: list[DeliveredMessage] = []
    shown_bytes = 0
    for message in chosen.messages[: max(0, min(ask["limit"], DELIVERED_MESSAGES_MAX))]:
        shown_bytes += message.size_bytes
        if shown and shown_bytes > DELIVERED_CONTENT_BYTES_MAX:
            break
        shown.append(delivered_message(message))
    return Told(document=document, messages=shown, next=behind)


def _origins(chosen: Chosen, after: str) -> Iterator[tuple[str, Document]]:
    """How many came from where and why, by destination and reason; behind a place."""
    counts: dict[tuple[str, str], int] = {}
    for message in chosen.messages:
        if message.origin is not None:
            key = (message.origin["destination"], message.origin["reason"])
            counts[key] = counts.get(key, 0) + 1
    for number, ((destination, reason), count) in enumerate(sorted(counts.items())):
        if number > place_in(after):
            yield str(number), {"destination": destination, "reason": reason, "count": count}


def queue_status(state: QueueManager, name: str) -> Document | None:
    """The status of one queue, or None if there is no such queue (SEQ-06..13, SEQ-19)."""
    queue = state.queues.get(name)
    if queue is None:
        return None
    return _status(queue) | {"blocked": blocked_status(state, queue.destination)}


def queue_statuses(state: QueueManager) -> list[Document]:
    """The statuses of all queues by name."""
    return [status for _, status in _queue_entries(state, "")]


def _queue_entries(state: QueueManager, after: str) -> Iterator[tuple[str, Document]]:
    for name in sorted(one for one in state.queues if one > after):
        yield name, _status(state.queues[name])


def _status(queue: Queue) -> Document:
    first, last = enqueue_times(queue, queue.messages)
    pending = queue.uncommitted_puts + queue.unacknowledged + queue.uncommitted_gets
    pending += queue.unborn + queue.delayed
    return {
        "name": queue.name,
        "created_position": queue.created_position,
        "description": queue.description,
        "message_bytes_max": queue.message_bytes_max,
        "unacknowledged_max": queue.unacknowledged_max,
        "group_affinity": queue.affinity is not None,
        "groups": len(queue.groups),
        "temporary": queue.owner is not None,
        "gets_disabled": queue.gets_disabled,
        "settings": asdict(queue.settings),
        "receivers": len(queue.consumers),
        "message_count": len(queue.messages),
        "sent_and_committed": queue.sent_and_committed,
        "expired": queue.expired,
        "removed_by_administration": queue.removed_by_administration,
        "moved": queue.moved,
        "dropped": queue.dropped,
        "min_sequence": queue.min_sequence,
        "max_sequence": queue.max_sequence,
        "next_sequence": queue.next_sequence,
        "first_enqueued_at": first,
        "last_enqueued_at": last,
        "current": queue.available.count,
        "pending": pending,
        "unborn": queue.unborn,
        "delayed": queue.delayed,
        "uncommitted_puts": queue.uncommitted_puts,
        "unacknowledged": queue.unacknowledged,
        "uncommitted_gets": queue.uncommitted_gets,
        **held_bytes_status(queue),
    }


# Kinds whose answer is a list of all there is of something, behind a place, page by page.
LISTINGS: Final[dict[str, Callable[[QueueManager, str], Iterator[tuple[str, Document]]]]] = {
    "QUEUES": _queue_entries,
    "SESSIONS": session_entries,
    "SUBSCRIPTIONS": subscription_entries,
    "TOPICS": topic_entries,
    "TRANSACTIONS": transaction_entries,
}


def manager_status(state: QueueManager, name: str, worker: str) -> Document:
    """What the queue manager holds as a whole."""
    held, held_bytes = held_by_all(state)
    return {
        "name": name,
        "position": state.position,
        "time": state.time,
        "time_reference": None if state.time_reference < 0 else state.time_reference,
        "version": state.active_version,
        "automatic_creation": state.automatic_creation,
        "maximum_lifetime_ms": state.lifetimes.maximum_ms,
        "messages_max": state.messages_max,
        "bytes_max": state.bytes_max,
        "messages": held,
        "bytes": held_bytes,
        **journal_status(state),
        "queues": len(state.queues),
        "topics": len(state.topics),
        "subscriptions": len(state.subscriptions),
        "connections": len(state.connections),
        "sessions": len(state.sessions),
        "worker": worker,
        "digest": None,
    }
