"""Parking: a group follows its message that exceeded its limit (PROTOCOL.md §15, INF-12, INF-16).

Where the order of groups is kept, what is numbered behind such a message goes to the error
destination after it: at once what nobody holds, the rest when it returns or is numbered. All of it
goes at one point of an entry, before anything can be delivered.
"""

from __future__ import annotations

from ledgermq.core.group_order import GROUP_PARKED, group_key
from ledgermq.core.message import LAST_IN_GROUP, Message
from ledgermq.core.state import Queue
from ledgermq.core.transfer import transfer
from ledgermq.core.turn import Turn

__all__ = ["follow", "park"]


def park(message: Message) -> None:
    """Parks the group of a message that leaves for the error destination, if order is kept."""
    if message.queue.group_order is not None:
        message.queue.group_order.park(message)


def follow(turn: Turn) -> None:
    """Lets what nobody holds of parked groups follow, by creation of its queue and by number."""
    touched = turn.touched_queues
    if not touched:
        return
    queues = [one for one in touched.values() if one.group_order and one.group_order.following]
    for queue in sorted(queues, key=_created_position):
        if queue.created_position in turn.state.stores:
            _follow_in(turn, queue)


def _follow_in(turn: Turn, queue: Queue) -> None:
    order = queue.group_order
    assert order is not None, "something of it is to follow"
    for message in order.take_following():
        if not order.is_parked(message):
            continue
        if message.flags & LAST_IN_GROUP:
            key = group_key(message)
            assert key is not None, "its group is parked"
            del order.parked[key]
        turn.withdraw(message)
        queue.move_away(message)
        transfer(turn, message, queue.settings.error_destination, GROUP_PARKED)


def _created_position(queue: Queue) -> int:
    return queue.created_position
