"""Snapshots: the state as the plain records of a checkpoint, and back (PROTOCOL.md §10, D5).

A Root holds everything but the numbered messages; those stand in blocks of 1,024 sequence numbers,
so that the cost of a checkpoint follows what changed. What is in flight is told by the Root alone:
delivering touches no block.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from ledgermq.core.moves import restore_states
from ledgermq.core.order.orders import fill_orders, restore_group_order
from ledgermq.core.sessions.consumers import join_queue
from ledgermq.core.snapshot.destination_records import (
    entry_of,
    restore_active_and_bonded,
    restore_destinations,
    restore_owners,
    restore_publications,
    store_name,
    take_beside,
    take_stores,
)
from ledgermq.core.snapshot.fields import Fields, Make, Record
from ledgermq.core.snapshot.message_records import (
    add_plain,
    is_plain,
    message_from,
    stored_message,
)
from ledgermq.core.snapshot.session_records import (
    CONNECTION,
    blocked_entries,
    consumer_priority_entries,
    open_id_entries,
    restore_blocked,
    restore_connection,
    restore_consumer_priorities,
    restore_open_ids,
    restore_session,
    restore_units_of_work,
    take_session,
    unit_of_work_entries,
)
from ledgermq.core.snapshot.storage_records import (
    journal_entry,
    restore_journal,
    storage_entry,
    storage_from,
)
from ledgermq.core.state.manager import QueueManager, new_state
from ledgermq.core.state.records import Message
from ledgermq.core.state.taken import Taken
from ledgermq.protocol.limits import BLOCK_MESSAGES
from ledgermq.protocol.plain_messages import PlainMessages

MANAGER: Final = Fields(
    "position",
    "time",
    "automatic_creation",
    "wait_order",
    "messages_max",
    "bytes_max",
    "time_reference",
    "unit_of_work_time_limit_ms",
    "unit_of_work_idle_limit_ms",
    version="active_version",
)


class TakenBlock(NamedTuple):
    """A block as it was at one moment: its plain messages are still to be recorded."""

    queue: str
    created_position: int
    block: int
    messages: list[Message | Record]


class TakenRoot(NamedTuple):
    """A Root as it was at one moment: `stores` by the names of their lists, `rest` makes the rest.

    Of what is in `stores`, `entry_of` makes the entries.
    """

    stores: dict[str, list[Taken]]
    rest: Make


def root_of(state: QueueManager) -> Record:
    """The Root of a state; replies stay outcome objects for the codec to write."""
    taken = take_root(state, anew=True)
    return taken.rest() | {
        name: [entry_of(name, one) for one in found] for name, found in taken.stores.items()
    }


def take_root(state: QueueManager, *, anew: bool = False) -> TakenRoot:
    """Takes the Root of a state, to be made of that when the state goes on.

    There may be many queues: those that did not change are taken as they were, unless all are to
    be taken `anew`. Taking one costs a tenth of what its record and its bytes do.
    """
    active = state.active_version
    beside = take_beside(state)
    connections = [CONNECTION.taken(one) for one in state.connections.values()]
    sessions = [take_session(one) for one in state.sessions.values()]
    rest = {
        **MANAGER.of(state),
        "maximum_lifetime_ms": state.lifetimes.maximum_ms,
        "consumer_priorities": consumer_priority_entries(state),
        "units_of_work": unit_of_work_entries(state),
        "storage": storage_entry(state.storage),
        "blocked_puts": blocked_entries(state),
        "journal": journal_entry(state.journal),
        "open_ids": open_id_entries(state),
        "offered_version": state.offered_version if state.offered_version > active else 0,
    }
    return TakenRoot(
        take_stores(state, anew=anew),
        lambda: {
            **beside(),
            "connections": [CONNECTION.record(one) for one in connections],
            "sessions": [make() for make in sessions],
            **rest,
        },
    )


def take_touched_blocks(state: QueueManager) -> list[tuple[int, int]]:
    """Blocks changed since the last call, and forgets that they were; queues by their creation."""
    touched: list[tuple[int, int]] = []
    for created, queue in state.stores.items():
        if queue.touched_blocks:
            touched += [(created, block) for block in queue.touched_blocks]
            queue.touched_blocks.clear()
    return touched


def touch_all_blocks(state: QueueManager) -> None:
    """Has every block taken the next time, as if all of it had changed."""
    for queue in state.stores.values():
        queue.touched_blocks |= {number // BLOCK_MESSAGES: None for number in queue.messages}


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
    if len(known) < last - first:
        found = [one for sequence, one in known.items() if first <= sequence < last]
    else:
        found = [known[sequence] for sequence in range(first, last) if sequence in known]
    if not found:
        return None
    messages = [one if is_plain(one) else stored_message(one) for one in found]
    return TakenBlock(store_name(queue), queue.created_position, block, messages)


def blocks(state: QueueManager) -> Iterator[Record]:
    """All blocks with messages, in manifest order: queues by creation, blocks by number."""
    for created, queue in sorted(state.stores.items()):
        numbers = {sequence // BLOCK_MESSAGES: None for sequence in queue.messages}
        for block in sorted(numbers):
            found = block_of(state, created, block)
            assert found is not None, "the block has a message"
            yield found


def restore(root: Record, message_blocks: Iterable[Record]) -> QueueManager:
    """The state that a Root and its blocks tell; inverse of `root_of` and `blocks`.

    Messages of a block that are plain and follow one another may be one PlainMessages.
    """
    state = new_state()
    MANAGER.restore(state, root)
    state.offered_version = max(root["version"], root["offered_version"])
    state.storage = storage_from(root["storage"])
    restore_journal(state.journal, root["journal"])
    restore_destinations(state, root)
    for block in message_blocks:
        queue = state.stores[block["created_position"]]
        for stored in block["messages"]:
            if isinstance(stored, PlainMessages):
                add_plain(queue, stored, state.storage)
                continue
            queue.messages[stored["sequence"]] = message_from(queue, stored, state.storage)
            if stored["uncounted_backout_count"] >= 0:
                queue.doubts[stored["sequence"]] = stored["uncounted_backout_count"]
    for entry in root["connections"]:
        restore_connection(state, entry)
    restore_owners(state, root)
    for entry in root["sessions"]:
        restore_session(state, entry)
    restore_units_of_work(state, root)
    for queue in state.stores.values():
        restore_states(state, queue)
        restore_group_order(queue)
    state.lifetimes.set_maximum(root["maximum_lifetime_ms"], state.stores.values())
    for session in state.sessions.values():
        for consumer in session.consumers.values():
            if consumer.open:
                join_queue(consumer, fills=False)
    for queue in state.stores.values():
        fill_orders(queue)
    restore_consumer_priorities(state, root)
    restore_active_and_bonded(state, root)
    for topic in state.topics.values():
        restore_publications(topic)
    state.held_messages = sum(one.held_messages for one in state.destinations)
    state.held_bytes = sum(one.held_bytes for one in state.destinations)
    state.storage.find_free()
    restore_blocked(state, root)
    restore_open_ids(state, root)
    for session in state.sessions.values():
        if session.deadline >= 0:
            state.deadlines.add((session.deadline, session.handle))
    return state
