"""Parking: a group follows its message that exceeded its limit (PROTOCOL.md §15, INF-12, INF-16).

Where the order of groups is kept, what is numbered behind such a message goes to the error
destination after it: at once what nobody holds, the rest when it returns or is numbered. All of it
goes at one point of an entry, before anything can be delivered.
"""

from __future__ import annotations

from ledgermq.core.delivery.transfer import transfer
from ledgermq.core.entry import Entry
from ledgermq.core.moves import move, state_of
from ledgermq.core.state.group import LAST_IN_GROUP
from ledgermq.core.state.group_order import GROUP_PARKED
from ledgermq.core.state.message_states import GONE, MOVED
from ledgermq.core.state.records import Queue


def follow_parked(entry: Entry) -> None:
    """Lets what nobody holds of parked groups follow, by creation of its queue and by number."""
    touched = entry.touched_queues
    if not touched:
        return
    queues = [one for one in touched.values() if one.group_order and one.group_order.following]
    for queue in sorted(queues, key=_created_position):
        if queue.created_position in entry.state.stores:
            _follow_in(entry, queue)


def _follow_in(entry: Entry, queue: Queue) -> None:
    order = queue.group_order
    assert order is not None, "something of it is to follow"
    for message in order.take_following():
        if not order.is_parked(message):
            continue
        if message.flags & LAST_IN_GROUP:
            key = message.group_key
            assert key is not None, "its group is parked"
            del order.parked[key]
        move(entry, queue, (message,), state_of(message), GONE, cause=MOVED)
        transfer(entry, message, queue.settings.error_destination, GROUP_PARKED)


def _created_position(queue: Queue) -> int:
    return queue.created_position
