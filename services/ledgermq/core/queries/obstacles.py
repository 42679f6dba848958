"""Why messages stay in a queue, and why its consumers get none (PROTOCOL.md §9 Obstacles).

After each entry all is delivered that may be, so whatever is available now has an obstacle. Found
when it is asked for, by a look at every message of the queue, so that no message pays for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from itertools import islice
from typing import Final

from ledgermq.core.delivery.recipients import is_paused
from ledgermq.core.order.fifo import first_received, is_serialized
from ledgermq.core.order.selecting import is_permitted
from ledgermq.core.order.single_active import active_consumer, stands_by
from ledgermq.core.queries.group_status import first_missing
from ledgermq.core.queries.work_status import is_turn_of
from ledgermq.core.quoting import quoted
from ledgermq.core.state.manager import QueueManager
from ledgermq.core.state.message_states import AVAILABLE, DELAYED, UNBORN, UNCOMMITTED
from ledgermq.core.state.records import (
    Consumer,
    GroupedMessage,
    Message,
    Order,
    Queue,
    Session,
    may_be_given,
)
from ledgermq.protocol.documents.fields import Document, document_of
from ledgermq.protocol.documents.obstacles import Obstacle, QueueObstacles
from ledgermq.protocol.get_options import PLAIN

OBSTACLES_MAX: Final = 1_000
Wanted = dict[Order, Message | None]


def obstacles_document(state: QueueManager, queue: Queue) -> Document:
    found = list(islice(_obstacles(state, queue), OBSTACLES_MAX + 1))
    return document_of(
        QueueObstacles,
        None,
        destination=queue.destination,
        message_count=queue.message_count,
        available=queue.counts[AVAILABLE],
        consumers=queue.receivers,
        obstacles=found[:OBSTACLES_MAX],
        more=len(found) > OBSTACLES_MAX,
    )


def _obstacles(state: QueueManager, queue: Queue) -> Iterator[Document]:
    holders = _holders(state, queue)
    of_messages = [*_of_available(queue), *_of_waiting(queue), *_of_held(state, queue, holders)]
    yield from sorted(of_messages, key=lambda one: -one["messages"])
    wanted = cache(partial(_wanted, queue))
    for consumer in queue.consumers.values():
        if consumer.open:
            yield _of_consumer(queue, consumer, holders, wanted)


def _obstacle(cause: str, **given: object) -> Document:
    return document_of(Obstacle, None, cause=cause, **given)


def _held_by(cause: str, messages: int, session: Session, since: int, **more: object) -> Document:
    """An obstacle that a session is; since when in µs, -1 where that is not known."""
    given = {"messages": messages, "session": session.handle, **more}
    return _obstacle(cause, **given, **({"since": since} if since >= 0 else {}))


def _of_available(queue: Queue) -> Iterator[Document]:
    available = queue.counts[AVAILABLE]
    if not available:
        return
    if queue.gets_disabled:
        yield _obstacle("gets-disabled", messages=available)
    if not any(one.open for one in queue.consumers.values()):
        yield _obstacle("no-consumer", messages=available)
    if not queue.reserved and queue.group_order is None:
        return
    reserved: Counter[bytes] = Counter()
    behind: Counter[str] = Counter()
    for message in queue.messages.values():
        if not message.is_available or may_be_given(message):
            continue
        if queue.group_order is not None and queue.group_order.holds_back(message):
            behind[_group_named(message)] += 1
        elif message.group is not None:
            reserved[message.group.group_id] += 1
    for group_id, count in reserved.items():
        holder = queue.reserved[group_id]
        about = {"consumer": holder.number, "group_id": group_id.hex()}
        yield _held_by("group-reserved", count, holder.session, -1, **about)
    for named, count in behind.items():
        yield _obstacle("behind-delayed", messages=count, detail=named)


def _group_named(message: Message) -> str:
    """What its group goes by: the text of JMSXGroupID, or the id in hexadecimal."""
    key = message.group_key
    assert key is not None, "it is of a group"
    is_id = message.group is not None and message.group.group_id == key
    return key.hex() if is_id else quoted(key.decode())


def _of_waiting(queue: Queue) -> Iterator[Document]:
    """What is not due yet, with the moment in µs at which the first is."""
    if not queue.counts[UNBORN] and not queue.counts[DELAYED]:
        return
    waiting = [one.times for one in queue.messages.values() if one.waits and one.times is not None]
    for cause, state in (("unborn", UNBORN), ("delayed", DELAYED)):
        if queue.counts[state]:
            moments = (one.waits_until for one in waiting if one.is_unborn == (state == UNBORN))
            yield _obstacle(cause, messages=queue.counts[state], until=min(moments))


def _of_held(state: QueueManager, queue: Queue, holders: Iterable[Consumer]) -> Iterator[Document]:
    for consumer in holders:
        session, about = consumer.session, {"consumer": consumer.number}
        since = session.unit_of_work_began_at
        yield _held_by("in-flight", consumer.in_flight, session, since, **about)
    if queue.counts[UNCOMMITTED]:
        for session in state.sessions.values():
            count = len(session.open_puts.get(queue.destination, ()))
            if count:
                since = session.unit_of_work_began_at
                yield _held_by("uncommitted-put", count, session, since)
    for put in state.blocked_at.get(queue.destination, {}).values():
        yield _held_by("blocked-put", len(put.messages), put.session, put.since)


def _holders(state: QueueManager, queue: Queue) -> list[Consumer]:
    """Whose deliveries are in flight; a consumer that was closed is no longer one of the queue."""
    consumers = (one for session in state.sessions.values() for one in session.consumers.values())
    return [one for one in consumers if one.queue is queue and one.in_flight]


def _of_consumer(
    queue: Queue, consumer: Consumer, holders: list[Consumer], wanted: Callable[[], Wanted]
) -> Document:
    """The first thing that keeps a consumer from getting a message."""
    session = consumer.session
    about: Document = {}
    if not consumer.credit:
        cause = "no-credit"
    elif session.suspected:
        cause, about = "suspected", {"until": session.deadline}
    elif session.unit_of_work_ended_by:
        cause = "unit-of-work-ended"
    elif consumer.doubt:
        cause = "in-doubt"
    elif is_paused(consumer):
        cause = "unacknowledged-max"
    elif stands_by(consumer):
        cause, about = "stand-by", {"detail": _active_of(queue)}
    elif not is_turn_of(consumer):
        cause, about = "fifo-mode", {"detail": _serialized_behind(queue, holders)}
    else:
        cause, about = _of_what_it_wants(queue, consumer, wanted)
    return _obstacle(
        cause,
        session=session.handle,
        consumer=consumer.number,
        in_flight=consumer.in_flight,
        **about,
    )


def _active_of(queue: Queue) -> str:
    """For whom its other consumers stand by, in words."""
    active = active_consumer(queue)
    if active is None:
        return "what is in flight is to be settled first"
    return f"consumer {active.number} of session {active.session.handle} is active"


def _serialized_behind(queue: Queue, holders: list[Consumer]) -> str:
    """Whose delivery a serialized queue waits for, in words."""
    if not holders:
        back = first_received(queue)
        assert is_serialized(queue), "else every consumer may go on"
        assert back is not None, "nothing is in flight"
        return f"message {back.sequence}, which came back, is to be delivered before any other"
    session = holders[0].session
    what = "the unit of work" if session.transacted else "a delivery"
    return f"{what} of session {session.handle} is to end first"


def _of_what_it_wants(
    queue: Queue, consumer: Consumer, wanted: Callable[[], Wanted]
) -> tuple[str, Document]:
    """Why a consumer that may have messages gets none of those that are there."""
    position, options = consumer.group_position, consumer.options
    if position is not None and options.logical_order:
        group_id, group_sequence, offset = position
        piece = f"message {group_sequence}" + (f" from byte {offset} on" if offset else "")
        return "next-in-group", {"group_id": group_id.hex(), "detail": piece}
    if not queue.counts[AVAILABLE]:
        return "nothing-available", {}
    if consumer.order is not None:
        if consumer.order not in wanted():
            return "nothing-selected", {"detail": _selection_of(consumer)}
        incomplete = wanted()[consumer.order]
        if incomplete is not None:
            return "group-incomplete", _missing_of(incomplete)
    return ("bonded-to-others" if queue.affinity is not None else "nothing-available"), {}


def _selection_of(consumer: Consumer) -> str:
    texts = [] if consumer.selector is None else [f"selector {quoted(consumer.selector.text)}"]
    if consumer.options != PLAIN:
        texts.append("its get options")
    return " with ".join(texts)


def _wanted(queue: Queue) -> Wanted:
    """The orders that want something of what is available, by one look at each message.

    With the first message of a group that an order would give whole, and of which something is
    missing; None: there is none.
    """
    found: Wanted = {}
    for message in queue.messages.values():
        if not message.is_available:
            continue
        for order in queue.orders_by_value.candidates(message):
            if found.get(order) is None and order.wants(message):
                is_whole = not isinstance(message, GroupedMessage)
                is_whole = is_whole or is_permitted(order.options, message)
                found[order] = None if is_whole else message
    return found


def _missing_of(message: Message) -> Document:
    group = message.group
    assert group is not None, "it is of a group"
    piece = first_missing(group) or "all of it is there, but not available"
    return {"group_id": group.group_id.hex(), "detail": f"of group {group.group_id.hex()} {piece}"}
