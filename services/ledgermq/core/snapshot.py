"""Snapshots: the state as the plain records of a checkpoint, and back (PROTOCOL.md §10, D5).

A Root holds everything but the numbered messages; those stand in blocks of 1,024 sequence numbers,
so that the cost of a checkpoint follows what changed. What is in flight is told by the Root alone:
delivering touches no block.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from ledgermq.core import connections
from ledgermq.core.blocked_snapshot import (
    blocked_entries,
    commit_entry,
    commit_from,
    restore_blocked,
)
from ledgermq.core.destinations import find_destination, keep
from ledgermq.core.grouping import join_open_groups
from ledgermq.core.journal import Journal
from ledgermq.core.message import Message
from ledgermq.core.message_snapshot import is_plain, message_from, stored_message
from ledgermq.core.queues import restore_group_order, set_affinity
from ledgermq.core.quotas import bytes_of
from ledgermq.core.state import Consumer, Queue, QueueManager, Session, new_state
from ledgermq.core.storage import Storage
from ledgermq.core.topic_snapshot import (
    owner_of,
    parked_entry,
    restore_owners,
    restore_settings,
    restore_topics,
    store_name,
    subscription_entry,
    topic_entry,
    unacknowledged_limits,
)
from ledgermq.protocol.get_options import PLAIN, Options, Place
from ledgermq.protocol.limits import BLOCK_MESSAGES
from ledgermq.protocol.outcomes import Reply
from ledgermq.protocol.settings import settings_record
from ledgermq.selector import parse_selector

__all__ = [
    "TakenBlock",
    "block_of",
    "blocks",
    "restore",
    "root_of",
    "take_touched_blocks",
    "taken_block",
]

Record = dict[str, Any]


class TakenBlock(NamedTuple):
    """A block as it was at one moment: plain messages are told later, the others were at once."""

    queue: str
    created_position: int
    block: int
    messages: list[Message | Record]


def root_of(state: QueueManager) -> Record:
    """The Root of a state; replies stay outcome objects for the codec to write."""
    active = state.active_version
    return {
        "version": active,
        "position": state.position,
        "time": state.time,
        "automatic_creation": state.automatic_creation,
        "wait_order": state.wait_order,
        "maximum_lifetime_ms": state.lifetimes.maximum_ms,
        "messages_max": state.messages_max,
        "bytes_max": state.bytes_max,
        "queues": [_queue_entry(queue) for queue in state.queues.values()],
        "topics": [topic_entry(topic) for topic in state.topics.values()],
        "subscriptions": [subscription_entry(one) for one in state.subscriptions.values()],
        "connections": [connections.entry(one) for one in state.connections.values()],
        "sessions": [_session_entry(session) for session in state.sessions.values()],
        "storage": state.storage.record(),
        "blocked_puts": blocked_entries(state),
        "journal": state.journal.record(),
        "time_reference": state.time_reference,
        "offered_version": state.offered_version if state.offered_version > active else 0,
        "topic_unacknowledged_max": unacknowledged_limits(state.topics.values()),
    }


def _queue_entry(queue: Queue) -> Record:
    return {
        "name": queue.name,
        "created_position": queue.created_position,
        "description": queue.description,
        "message_bytes_max": queue.message_bytes_max,
        "gets_disabled": queue.gets_disabled,
        "next_sequence": queue.next_sequence,
        "sent_and_committed": queue.sent_and_committed,
        "removed_by_administration": queue.removed_by_administration,
        "last_consumed_enqueued_at": queue.last_consumed_enqueued_at,
        "unacknowledged_max": queue.unacknowledged_max,
        "owner": owner_of(queue),
        "expired": queue.expired,
        "group_affinity": queue.affinity is not None,
        "bonds": _bonds(queue),
        "settings": settings_record(queue.settings),
        "moved": queue.moved,
        "dropped": queue.dropped,
        "messages_high": queue.messages_high,
        "bytes_high": queue.bytes_high,
        "received": list(queue.received or ()),
        "parked": parked_entry(queue),
    }


def _bonds(queue: Queue) -> list[Record]:
    bonds = {} if queue.affinity is None else queue.affinity.bonds
    return [
        {"bucket": bucket, "session": one.session.handle, "consumer": one.number}
        for bucket, one in sorted(bonds.items())
    ]


def _session_entry(session: Session) -> Record:
    return {
        "session": session.handle,
        "connection": session.connection.identity,
        "session_key": session.session_key,
        "acknowledge_mode": session.acknowledge_mode,
        "suspect_timeout_ms": session.suspect_timeout_ms,
        "redelivery_delay_ms": session.redelivery_delay_ms,
        "confirmed": session.confirmed,
        "last_sequence": session.last_sequence,
        "answered_through": session.answered_through,
        "next_delivery": session.next_delivery,
        "handed_through": session.handed_through,
        "handed_doubts": list(session.handed_doubts),
        "consumer_highest": session.consumer_highest,
        "deadline": session.deadline,
        "suspected": session.suspected,
        "consumers": [
            {
                "consumer": one.number,
                "created_position": one.queue.created_position,
                "credit": one.credit,
                "waiting_since": one.waiting_since,
                "open": one.open,
                "selector": "" if one.selector is None else one.selector.text,
                "doubt": one.doubt,
                "options": [] if one.options == PLAIN else [one.options.record()],
                "place": _place_entry(one.place),
                "settled_place": _place_entry(one.settled_place),
                "holds_group": one.kept is not None,
                "redelivery_delay_ms": one.redelivery_delay_ms,
            }
            for one in session.consumers.values()
        ],
        "deliveries": [_delivery_entry(number, one) for number, one in session.deliveries.items()],
        "open_puts": [
            {"destination": destination, "messages": [stored_message(one) for one in messages]}
            for destination, messages in session.open_puts.items()
        ],
        "replies": list(session.replies.values()),
        "waiting_commit": commit_entry(session),
        "unit_of_work_began_at": session.unit_of_work_began_at,
        "unit_of_work_ended_by": session.unit_of_work_ended_by,
    }


def _place_entry(place: Place | None) -> list[Record]:
    if place is None:
        return []
    return [{"group_id": place[0], "group_sequence": place[1], "offset": place[2]}]


def _delivery_entry(number: int, message: Message) -> Record:
    assert message.consumer is not None, "a delivery in flight has a consumer"
    return {
        "delivery": number,
        "consumer": message.consumer.number,
        "sequence": message.sequence,
    }


def take_touched_blocks(state: QueueManager) -> list[tuple[int, int]]:
    """Blocks changed since the last call, and forgets that they were; queues by their creation."""
    touched = [
        (created, block)
        for created, queue in state.stores.items()
        for block in queue.touched_blocks
    ]
    for queue in state.stores.values():
        queue.touched_blocks.clear()
    return touched


def block_of(state: QueueManager, created_position: int, block: int) -> Record | None:
    """One block of a queue, or None if it holds no message (or the queue is gone)."""
    taken = taken_block(state, created_position, block)
    if taken is None:
        return None
    messages = [stored_message(one) if isinstance(one, Message) else one for one in taken.messages]
    return {**taken._asdict(), "messages": messages}


def taken_block(state: QueueManager, created_position: int, block: int) -> TakenBlock | None:
    """What `block_of` gives, at a tenth of the cost; it stays as it is when the state goes on."""
    queue = state.stores.get(created_position)
    if queue is None:
        return None
    first, known = block * BLOCK_MESSAGES, queue.messages
    last = min(first + BLOCK_MESSAGES, queue.next_sequence)
    found = [known[sequence] for sequence in range(first, last) if sequence in known]
    if not found:
        return None
    told = [one if is_plain(one) else stored_message(one) for one in found]
    return TakenBlock(store_name(queue), queue.created_position, block, told)


def blocks(state: QueueManager) -> Iterator[Record]:
    """All blocks with messages, in manifest order: queues by creation, blocks by number."""
    for created, queue in sorted(state.stores.items()):
        numbers = {sequence // BLOCK_MESSAGES: None for sequence in queue.messages}
        for block in sorted(numbers):
            found = block_of(state, created, block)
            assert found is not None, "the block has a message"
            yield found


def restore(root: Record, message_blocks: Iterable[Record]) -> QueueManager:
    """The state that a Root and its blocks tell; inverse of `root_of` and `blocks`."""
    state = new_state()
    state.active_version = root["version"]
    state.offered_version = max(root["version"], root["offered_version"])
    state.position = root["position"]
    state.time = root["time"]
    state.time_reference = root["time_reference"]
    state.automatic_creation = root["automatic_creation"]
    state.wait_order = root["wait_order"]
    state.storage = Storage.restored(root["storage"])
    state.journal = Journal.restored(root["journal"])
    state.messages_max = root["messages_max"]
    state.bytes_max = root["bytes_max"]
    for entry in root["queues"]:
        keep(state, _queue_from(entry))
    restore_topics(state, root)
    restore_settings(state, root)
    for block in message_blocks:
        queue = state.stores[block["created_position"]]
        for stored in block["messages"]:
            queue.messages[stored["sequence"]] = message_from(queue, stored, state.storage)
            if stored["uncounted_backout_count"] >= 0:
                queue.doubts[stored["sequence"]] = stored["uncounted_backout_count"]
    for entry in root["connections"]:
        connections.restore(state, entry)
    restore_owners(state, root)
    for entry in root["sessions"]:
        _restore_session(state, entry)
    for queue in state.stores.values():
        queue.message_bytes = bytes_of(queue.messages.values())
        here = [one for one in queue.messages.values() if one.consumer is None]
        queue.available.extend(queue.wait_for_birth(state, here))
        for message in queue.messages.values():
            times = message.times
            if message.consumer is not None and times is not None and times.expires_at > state.time:
                state.expiries.add(message, times.expires_at)
        queue.group(queue.messages.values())
        restore_group_order(queue)
    state.lifetimes.set_maximum(root["maximum_lifetime_ms"], state.stores.values())
    for session in state.sessions.values():
        for consumer in session.consumers.values():
            if consumer.open:
                consumer.queue.add_consumer(consumer)
    _restore_bonds(state, root)
    for topic in state.topics.values():
        topic.find_publications()
    state.storage.find_free()
    restore_blocked(state, root)
    state.deadlines = sorted(
        (one.deadline, one.handle) for one in state.sessions.values() if one.deadline >= 0
    )
    return state


def _restore_bonds(state: QueueManager, root: Record) -> None:
    for entry in root["queues"]:
        affinity = state.queues[entry["name"]].affinity
        if affinity is not None:
            for bond in entry["bonds"]:
                consumers = state.sessions[bond["session"]].consumers
                affinity.bonds[bond["bucket"]] = consumers[bond["consumer"]]


def _queue_from(entry: Record) -> Queue:
    queue = Queue(entry["name"], entry["created_position"])
    queue.description = entry["description"]
    queue.message_bytes_max = entry["message_bytes_max"]
    queue.gets_disabled = entry["gets_disabled"]
    queue.next_sequence = entry["next_sequence"]
    queue.sent_and_committed = entry["sent_and_committed"]
    queue.removed_by_administration = entry["removed_by_administration"]
    queue.last_consumed_enqueued_at = entry["last_consumed_enqueued_at"]
    queue.unacknowledged_max = entry["unacknowledged_max"]
    queue.expired = entry["expired"]
    set_affinity(queue, entry["group_affinity"])
    queue.moved = entry["moved"]
    queue.dropped = entry["dropped"]
    queue.messages_high = entry["messages_high"]
    queue.bytes_high = entry["bytes_high"]
    return queue


def _restore_session(state: QueueManager, entry: Record) -> None:
    connection = state.connections[entry["connection"]]
    session = Session(
        entry["session"],
        connection,
        entry["session_key"],
        entry["acknowledge_mode"],
        entry["suspect_timeout_ms"],
        entry["redelivery_delay_ms"],
    )
    session.confirmed = entry["confirmed"]
    session.last_sequence = entry["last_sequence"]
    session.answered_through = entry["answered_through"]
    session.next_delivery = entry["next_delivery"]
    session.handed_through = entry["handed_through"]
    session.handed_doubts = dict.fromkeys(entry["handed_doubts"])
    session.consumer_highest = entry["consumer_highest"]
    session.deadline = entry["deadline"]
    session.suspected = entry["suspected"]
    session.unit_of_work_began_at = entry["unit_of_work_began_at"]
    session.unit_of_work_ended_by = entry["unit_of_work_ended_by"]
    replies: list[Reply] = entry["replies"]
    session.replies = {reply.session_sequence: reply for reply in replies}
    for one in entry["consumers"]:
        _restore_consumer(state, session, one)
    for one in entry["deliveries"]:
        consumer = session.consumers[one["consumer"]]
        message = session.deliveries[one["delivery"]] = consumer.queue.messages[one["sequence"]]
        message.consumer = consumer
        consumer.in_flight += 1
        if session.transacted:
            consumer.queue.uncommitted_gets += 1
            consumer.queue.uncommitted_gets_bytes += message.size_bytes
        else:
            consumer.queue.unacknowledged += 1
            consumer.queue.unacknowledged_bytes += message.size_bytes
    for one in entry["open_puts"]:
        destination = one["destination"]
        queue = find_destination(state, destination)
        assert queue is not None, "open puts are to what is there"
        open_puts = [message_from(queue, put, state.storage) for put in one["messages"]]
        size_bytes = bytes_of(open_puts)
        session.open_bytes += size_bytes
        session.open_puts[destination] = open_puts
        join_open_groups(session, destination, open_puts)
        queue.uncommitted_puts += len(open_puts)
        queue.uncommitted_puts_bytes += size_bytes
    session.waiting_commit = commit_from(session, entry["waiting_commit"])
    state.sessions[session.handle] = session
    connection.sessions[session.handle] = session


def _restore_consumer(state: QueueManager, session: Session, entry: Record) -> None:
    queue = state.stores[entry["created_position"]]
    selector = parse_selector(entry["selector"])
    delay_ms = entry["redelivery_delay_ms"]
    consumer = Consumer(session, entry["consumer"], queue, selector, delay_ms)
    consumer.credit = entry["credit"]
    consumer.waiting_since = entry["waiting_since"]
    consumer.open = entry["open"]
    consumer.doubt = entry["doubt"]
    for options in entry["options"]:
        consumer.options = Options(**options)
    consumer.place = _place_from(entry["place"])
    consumer.settled_place = _place_from(entry["settled_place"])
    if entry["holds_group"] and consumer.place is not None:
        consumer.kept = consumer.place[0]
        queue.kept[consumer.kept] = consumer
    session.consumers[consumer.number] = consumer
    if consumer.credit:
        queue.ready[consumer.key] = consumer


def _place_from(found: list[Record]) -> Place | None:
    for one in found:
        return (one["group_id"], one["group_sequence"], one["offset"])
    return None
