"""Groups that keep their order: what comes after a delayed message waits for it (PROTOCOL.md §15).

A queue with `keeps_group_order` knows its messages by the key of their group, and of each key which
of them are delayed. What is held back stands in no order of delivery once it came up there; it is
offered again when the delayed message before it is available or gone. So a get looks at nothing
twice, and a redelivery costs a look at the messages of its group. It also knows which groups are
parked behind a message that exceeded its limit; who follows that one goes elsewhere (`parking.py`).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from ledgermq.core.message import LAST_IN_GROUP, place_in_order
from ledgermq.protocol.limits import PARKED_GROUPS_MAX

if TYPE_CHECKING:
    from ledgermq.core.message import Message
    from ledgermq.core.queue import Queue

__all__ = [
    "ENDS_PARKING",
    "GROUP_PARKED",
    "GroupOrder",
    "begin_group_order",
    "group_key",
    "use_group_order",
]

# The reason of what followed a message that exceeded its limit.
GROUP_PARKED: Final = "group-parked"
# Reasons of what ends that its group is parked where it comes: by hand, or so that nothing circles.
ENDS_PARKING: Final = ("moved", "copied", "retried", GROUP_PARKED)

Place = tuple[int, int]


def group_key(message: Message) -> bytes | None:
    """What a message's group goes by: JMSXGroupID if it is text, else the group id."""
    if message.header is not None:
        named = message.header["properties"].get("JMSXGroupID")
        if isinstance(named, str):
            return named.encode()
    return None if message.group is None else message.group.group_id


def use_group_order(queue: Queue) -> None:
    """Begins or ends to keep the order of groups, as the settings of a queue now ask."""
    if not queue.settings.keeps_group_order:
        order, queue.group_order = queue.group_order, None
        if order is not None:
            queue.offer_again(one for one in queue.messages.values() if order.holds_back(one))
    elif queue.group_order is None:
        begin_group_order(queue)
    if queue.group_order is not None and not queue.settings.error_destination:
        queue.group_order.parked.clear()


def begin_group_order(queue: Queue) -> GroupOrder:
    """Finds what is held back among the messages of a queue; nothing is parked yet."""
    order = queue.group_order = GroupOrder()
    order.add(queue.messages.values())
    for message in queue.messages.values():
        if message.is_delayed:
            order.hold(message)
    return order


class GroupOrder:
    """The messages of one queue by group, and the delayed ones of each group by their place."""

    __slots__ = ("_groups", "delayed", "following", "parked")

    def __init__(self) -> None:
        self._groups: dict[bytes, dict[int, Message]] = {}
        # Heaps; the first of each is delayed, others may not be so any longer.
        self.delayed: dict[bytes, list[Place]] = {}
        # Numbers behind which groups are parked, by key, in the order in which they were parked.
        self.parked: dict[bytes, int] = {}
        # Parked groups of which something may be here that is to follow.
        self.following: dict[bytes, None] = {}

    def add(self, messages: Iterable[Message]) -> None:
        """Takes in messages that were just numbered."""
        for message in messages:
            key = group_key(message)
            if key is not None:
                self._groups.setdefault(key, {})[message.sequence] = message
                if key in self.parked:
                    self._come_to_parked(key, message)

    def _come_to_parked(self, key: bytes, message: Message) -> None:
        if message.origin is not None and message.origin["reason"] in ENDS_PARKING:
            del self.parked[key]
        else:
            self.following[key] = None

    def park(self, message: Message) -> None:
        """Parks the group of a message that goes to the error destination for its limit."""
        key = group_key(message)
        if key is None:
            return
        if message.flags & LAST_IN_GROUP:
            self.parked.pop(key, None)
            return
        if key not in self.parked and len(self.parked) >= PARKED_GROUPS_MAX:
            del self.parked[next(iter(self.parked))]
        self.parked[key] = min(self.parked.get(key, message.sequence), message.sequence)
        self.following[key] = None

    def is_parked(self, message: Message) -> bool:
        """Whether a message is numbered behind one that its group is parked for."""
        key = group_key(message) if self.parked else None
        behind = None if key is None else self.parked.get(key)
        return behind is not None and message.sequence > behind

    def came_back(self, message: Message) -> None:
        """Notes that nobody holds a message any longer: it may have to follow."""
        if self.parked and self.is_parked(message):
            key = group_key(message)
            assert key is not None, "its group is parked"
            self.following[key] = None

    def take_following(self) -> list[Message]:
        """What is to follow, by number; it is asked for no second time."""
        keys, self.following = self.following, {}
        found = [one for key in keys for one in self._groups.get(key, {}).values()]
        found = [one for one in found if one.consumer is None and self.is_parked(one)]
        return sorted(found, key=_number)

    def remove(self, message: Message) -> None:
        """Lets a message go that leaves the queue; it is not delayed."""
        key = group_key(message)
        if key is not None:
            group = self._groups[key]
            del group[message.sequence]
            if not group:
                del self._groups[key]

    def holds_back(self, message: Message) -> bool:
        """Whether a message comes after a delayed one of its group."""
        if not self.delayed:
            return False
        key = group_key(message)
        places = None if key is None else self.delayed.get(key)
        return places is not None and places[0] < place_in_order(message)

    def hold(self, message: Message) -> None:
        """Notes that a message is delayed now."""
        key = group_key(message)
        if key is not None:
            heapq.heappush(self.delayed.setdefault(key, []), place_in_order(message))
            self.came_back(message)

    def free(self, queue: Queue, message: Message) -> None:
        """Offers what waited for a message, if that is delayed no longer."""
        key = group_key(message)
        places = None if key is None else self.delayed.get(key)
        if key is None or places is None:
            return
        group = self._groups[key]
        before = places[0]
        while places and not _is_delayed(group, places[0]):
            heapq.heappop(places)
        if not places:
            del self.delayed[key]
        elif places[0] == before:
            return
        behind = [one for one in group.values() if place_in_order(one) > before]
        if places:
            behind = [one for one in behind if place_in_order(one) < places[0]]
        queue.offer_again(behind)


def _number(message: Message) -> int:
    return message.sequence


def _is_delayed(group: dict[int, Message], place: Place) -> bool:
    message = group.get(place[1])
    return message is not None and message.is_delayed
