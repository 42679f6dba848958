"""Connections, sessions with what they hold, and blocked puts in a checkpoint, and back."""

from __future__ import annotations

from typing import Any, Final

from ledgermq.core.destinations.by_name import find_destination, new_destination
from ledgermq.core.order.waiting_consumers import join_ready
from ledgermq.core.puts.blocked import add_blocked
from ledgermq.core.puts.grouping import join_open_groups
from ledgermq.core.sessions import connections
from ledgermq.core.snapshot.fields import Fields, Make, Record
from ledgermq.core.snapshot.message_records import message_from, stored_message
from ledgermq.core.state.known_ids import OpenId
from ledgermq.core.state.manager import QueueManager
from ledgermq.core.state.message_states import UNCOMMITTED
from ledgermq.core.state.records import BlockedPut, Connection, Consumer, Message, Session, bytes_of
from ledgermq.protocol.get_options import PLAIN, GroupPosition, Options
from ledgermq.protocol.operations import Commit
from ledgermq.protocol.outcomes import Reply
from ledgermq.selector import Selector, parse_selector, text_of

CONNECTION: Final = Fields(
    "lane", "last_position", "last_index", "client_id", "takeover", connection="identity"
)
SESSION: Final = Fields(
    "session_key",
    "acknowledge_mode",
    "suspect_timeout_ms",
    "redelivery_delay_ms",
    "confirmed",
    "last_sequence",
    "answered_through",
    "next_delivery",
    "handed_through",
    "consumer_highest",
    "deadline",
    "suspected",
    "unit_of_work_began_at",
    "unit_of_work_ended_by",
    session="handle",
)
UNIT_OF_WORK: Final = Fields(
    "unit_of_work_time_limit_ms",
    "unit_of_work_idle_limit_ms",
    "unit_of_work_over_at",
    "unit_of_work_idle_at",
    "unit_of_work_timed_out",
    session="handle",
)
CONSUMER: Final = Fields(
    "credit", "waiting_since", "open", "doubt", "redelivery_delay_ms", consumer="number"
)
COMMIT: Final = Fields("session_sequence", "deliveries", "puts")
BLOCKED: Final = Fields(
    "position", "destination", "created_position", "since", "deadline", "logical_order"
)


def restore_connection(state: QueueManager, entry: Record) -> None:
    connection = Connection(entry["connection"], entry["lane"])
    CONNECTION.restore(connection, entry)
    connections.add_connection(state, connection)


def take_session(session: Session) -> Make:
    """Takes a session; what it returns makes the record."""
    fields, connection = SESSION.taken(session), session.connection.identity
    handed_doubts = list(session.handed_doubts)
    consumers = [_take_consumer(one) for one in session.consumers.values()]
    deliveries = [_take_delivery(number, one) for number, one in session.deliveries.items()]
    open_puts = [
        {"destination": destination, "messages": [stored_message(one) for one in messages]}
        for destination, messages in session.open_puts.items()
    ]
    replies, commit = list(session.replies.values()), session.waiting_commit
    return lambda: {
        **SESSION.record(fields),
        "connection": connection,
        "handed_doubts": handed_doubts,
        "consumers": [_consumer_entry(*one) for one in consumers],
        "deliveries": [
            {"delivery": number, "consumer": consumer, "sequence": sequence}
            for number, consumer, sequence in deliveries
        ],
        "open_puts": open_puts,
        "replies": replies,
        "waiting_commit": None if commit is None else COMMIT.of(commit),
    }


def _limited(session: Session) -> bool:
    """Whether a session has, or had, a time limit of units of work."""
    moments = max(session.unit_of_work_over_at, session.unit_of_work_idle_at)
    limits_ms = session.unit_of_work_time_limit_ms + session.unit_of_work_idle_limit_ms
    return moments >= 0 or limits_ms > 0 or session.unit_of_work_timed_out


def unit_of_work_entries(state: QueueManager) -> list[Record]:
    return [UNIT_OF_WORK.of(one) for one in state.sessions.values() if _limited(one)]


def consumer_priority_entries(state: QueueManager) -> list[Record]:
    return [
        {"session": handle, "consumer": number, "consumer_priority": one.consumer_priority}
        for handle, session in sorted(state.sessions.items())
        for number, one in session.consumers.items()
        if one.consumer_priority
    ]


def restore_consumer_priorities(state: QueueManager, root: Record) -> None:
    for entry in root["consumer_priorities"]:
        consumers = state.sessions[entry["session"]].consumers
        consumers[entry["consumer"]].consumer_priority = entry["consumer_priority"]


def restore_units_of_work(state: QueueManager, root: Record) -> None:
    for entry in root["units_of_work"]:
        session = state.sessions[entry["session"]]
        UNIT_OF_WORK.restore(session, entry)
        for due in (session.unit_of_work_over_at, session.unit_of_work_idle_at):
            if due >= 0:
                state.unit_limits.add((due, session.handle))


def _take_consumer(
    consumer: Consumer,
) -> tuple[tuple[Any, ...], int, Selector | None, Options, list[GroupPosition | None], bool]:
    return (
        CONSUMER.taken(consumer),
        consumer.queue.created_position,
        consumer.selector,
        consumer.options,
        [consumer.group_position, consumer.settled_position],
        consumer.reserved_group is not None,
    )


def _consumer_entry(
    fields: tuple[Any, ...],
    created_position: int,
    selector: Selector | None,
    options: Options,
    places: list[GroupPosition | None],
    holds_group: bool,
) -> Record:
    place, settled_place = places
    return {
        **CONSUMER.record(fields),
        "created_position": created_position,
        "selector": text_of(selector),
        "options": [] if options == PLAIN else [options.record()],
        "place": _position_entry(place),
        "settled_place": _position_entry(settled_place),
        "holds_group": holds_group,
    }


def _position_entry(position: GroupPosition | None) -> list[Record]:
    if position is None:
        return []
    return [{"group_id": position[0], "group_sequence": position[1], "offset": position[2]}]


def _take_delivery(number: int, message: Message) -> tuple[int, int, int]:
    assert message.consumer is not None, "a delivery in flight has a consumer"
    return number, message.consumer.number, message.sequence


def restore_session(state: QueueManager, entry: Record) -> None:
    connection = state.connections[entry["connection"]]
    session = Session(
        entry["session"],
        connection,
        entry["session_key"],
        entry["acknowledge_mode"],
        entry["suspect_timeout_ms"],
    )
    SESSION.restore(session, entry)
    session.handed_doubts = dict.fromkeys(entry["handed_doubts"])
    replies: list[Reply] = entry["replies"]
    session.replies = {reply.session_sequence: reply for reply in replies}
    for one in entry["consumers"]:
        _restore_consumer(state, session, one)
    for one in entry["deliveries"]:
        _restore_delivery(session, one)
    for one in entry["open_puts"]:
        _restore_open_puts(state, session, one)
    commit = entry["waiting_commit"]
    if commit is not None:
        session.waiting_commit = Commit(session=session.handle, answered_through=0, **commit)
    state.sessions[session.handle] = session
    connection.sessions[session.handle] = session


def _restore_delivery(session: Session, entry: Record) -> None:
    consumer = session.consumers[entry["consumer"]]
    message = consumer.queue.messages[entry["sequence"]]
    session.deliveries[entry["delivery"]] = message
    message.consumer = consumer
    consumer.hold(1)


def _restore_open_puts(state: QueueManager, session: Session, entry: Record) -> None:
    destination = entry["destination"]
    queue = find_destination(state, destination)
    assert queue is not None, "open puts are to what is there"
    open_puts = [message_from(queue, put, state.storage) for put in entry["messages"]]
    size_bytes = bytes_of(open_puts)
    session.open_bytes += size_bytes
    session.open_puts[destination] = open_puts
    join_open_groups(session, destination, open_puts)
    queue.counts[UNCOMMITTED] += len(open_puts)
    queue.sizes[UNCOMMITTED] += size_bytes


def _restore_consumer(state: QueueManager, session: Session, entry: Record) -> None:
    queue = state.stores[entry["created_position"]]
    consumer = Consumer(session, entry["consumer"], queue, parse_selector(entry["selector"]))
    CONSUMER.restore(consumer, entry)
    for options in entry["options"]:
        consumer.options = Options(**options)
    consumer.group_position = _position_from(entry["place"])
    consumer.settled_position = _position_from(entry["settled_place"])
    if entry["holds_group"] and consumer.group_position is not None:
        consumer.reserved_group = consumer.group_position[0]
        queue.reserved[consumer.reserved_group] = consumer
    session.consumers[consumer.number] = consumer
    join_ready(consumer)


def _position_from(entries: list[Record]) -> GroupPosition | None:
    for one in entries:
        return (one["group_id"], one["group_sequence"], one["offset"])
    return None


def blocked_entries(state: QueueManager) -> list[Record]:
    """The blocked puts as records, by position; bodies stay in the log (PROTOCOL.md §16)."""
    return [
        {
            **BLOCKED.of(one),
            "session": one.session.handle,
            "session_sequence": one.sequence,
            "messages": [stored_message(message, in_storage=False) for message in one.messages],
        }
        for one in state.blocked_puts.values()
    ]


def restore_blocked(state: QueueManager, root: Record) -> None:
    """The blocked puts of a Root; queues, topics and sessions are there already."""
    for entry in root["blocked_puts"]:
        destination = entry["destination"]
        found = find_destination(state, destination)
        queue = new_destination(state, destination, entry["position"]) if found is None else found
        rest = {
            **entry,
            "session": state.sessions[entry["session"]],
            "sequence": entry["session_sequence"],
            "messages": [message_from(queue, one, state.storage) for one in entry["messages"]],
        }
        del rest["session_sequence"]
        add_blocked(state, BlockedPut(**rest))


def open_id_entries(state: QueueManager) -> list[Record]:
    """Deduplication ids of puts that have no numbers yet (PROTOCOL.md §5)."""
    return [
        {"session": session.handle, "session_sequence": sequence, **one._asdict()}
        for session in state.sessions.values()
        for sequence, one in (*_waiting_ids(session), *((0, one) for one in session.open_ids))
    ]


def _waiting_ids(session: Session) -> list[tuple[int, OpenId]]:
    return [
        (put.sequence, OpenId(put.destination, put.deduplication_id, 0))
        for put in session.blocked.values()
        if put.deduplication_id is not None
    ]


def restore_open_ids(state: QueueManager, root: Record) -> None:
    """The open ids of a Root; sessions and blocked puts are there already."""
    for entry in root["open_ids"]:
        session, sequence = state.sessions[entry["session"]], entry["session_sequence"]
        if sequence:
            session.blocked[sequence].deduplication_id = entry["deduplication_id"]
        else:
            fields = {name: entry[name] for name in OpenId._fields}
            session.open_ids.append(OpenId(**fields))
