"""Groups that keep their order: what comes after a delayed message waits for it (PROTOCOL.md §15).

A queue with `keeps_group_order` knows its messages by the key of their group, and of each key which
of them are delayed. What is held back stands in no order of delivery once it came up there; it is
offered again when the delayed message before it is available or gone. So a get looks at nothing
twice, and a redelivery costs a look at the messages of its group. It also knows which groups are
parked behind a message that exceeded its limit; who follows that one goes elsewhere
(`delivery/redelivery.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import Final, Generic, Protocol, TypeVar

from ledgermq.core.state.group import LAST_IN_GROUP
from ledgermq.core.structures.lazy_heap import LazyHeap
from ledgermq.protocol.limits import PARKED_GROUPS_MAX
from ledgermq.protocol.outcomes import Origin

# The reason of what followed a message that exceeded its limit.
GROUP_PARKED: Final = "group-parked"
# Reasons of what ends that its group is parked where it comes: by hand, or so that nothing circles.
ENDS_PARKING: Final = ("moved", "copied", "retried", GROUP_PARKED)

# Priority negated, sequence number.
SortKey = tuple[int, int]


class Member(Protocol):
    """A message, as far as the order of groups looks at it."""

    flags: int
    origin: Origin | None
    sequence: int

    @property
    def group_key(self) -> bytes | None:
        """What its group goes by; None: it is in none."""

    @property
    def is_delayed(self) -> bool:
        """Whether it waits to be delivered again."""

    @property
    def is_held(self) -> bool:
        """Whether a consumer has it."""

    @property
    def sort_key(self) -> SortKey:
        """Its place in order of delivery."""


T = TypeVar("T", bound=Member)


class GroupOrder(Generic[T]):
    """The messages of one queue by group, and the delayed ones of each group by their place."""

    __slots__ = ("_groups", "delayed", "following", "parked")

    def __init__(self) -> None:
        self._groups: dict[bytes, dict[int, T]] = {}
        self.delayed: dict[bytes, LazyHeap[SortKey]] = {}
        # Numbers behind which groups are parked, by key, in the order in which they were parked.
        self.parked: dict[bytes, int] = {}
        # Parked groups of which something may be here that is to follow.
        self.following: dict[bytes, None] = {}

    def add(self, messages: Iterable[T]) -> None:
        for message in messages:
            key = message.group_key
            if key is not None:
                self._groups.setdefault(key, {})[message.sequence] = message
                if key in self.parked:
                    self._come_to_parked(key, message)

    def _come_to_parked(self, key: bytes, message: T) -> None:
        if message.origin is not None and message.origin["reason"] in ENDS_PARKING:
            del self.parked[key]
        else:
            self.following[key] = None

    def park(self, message: T) -> None:
        key = message.group_key
        if key is None:
            return
        if message.flags & LAST_IN_GROUP:
            self.parked.pop(key, None)
            return
        if key not in self.parked and len(self.parked) >= PARKED_GROUPS_MAX:
            del self.parked[next(iter(self.parked))]
        self.parked[key] = min(self.parked.get(key, message.sequence), message.sequence)
        self.following[key] = None

    def is_parked(self, message: T) -> bool:
        """Whether a message is numbered behind one that its group is parked for."""
        key = message.group_key if self.parked else None
        behind = None if key is None else self.parked.get(key)
        return behind is not None and message.sequence > behind

    def came_back(self, message: T) -> None:
        """Notes that nobody holds a message any longer: it may have to follow."""
        if self.parked and self.is_parked(message):
            key = message.group_key
            assert key is not None, "its group is parked"
            self.following[key] = None

    def take_following(self) -> list[T]:
        """What is to follow, by number; it is asked for no second time."""
        keys, self.following = self.following, {}
        found = [one for key in keys for one in self._groups.get(key, {}).values()]
        found = [one for one in found if not one.is_held and self.is_parked(one)]
        return sorted(found, key=attrgetter("sequence"))

    def remove(self, message: T) -> None:
        """Lets a message go that leaves the queue; it is not delayed."""
        key = message.group_key
        if key is not None:
            group = self._groups[key]
            del group[message.sequence]
            if not group:
                del self._groups[key]

    def holds_back(self, message: T) -> bool:
        if not self.delayed:
            return False
        key = message.group_key
        delayed = None if key is None else self.delayed.get(key)
        first = None if delayed is None else delayed.first()
        return first is not None and first < message.sort_key

    def hold(self, message: T) -> None:
        key = message.group_key
        if key is not None:
            delayed = self.delayed.get(key)
            if delayed is None:
                group = self._groups[key]
                delayed = self.delayed[key] = LazyHeap(lambda one: _is_delayed(group, one))
            delayed.add(message.sort_key)
            self.came_back(message)

    def free(self, message: T) -> list[T]:
        """What waited for a message that is delayed no longer, and for no other one."""
        key = message.group_key
        delayed = None if key is None else self.delayed.get(key)
        if key is None or delayed is None:
            return []
        before, first = message.sort_key, delayed.first()
        if first is not None and first < before:
            return []
        behind = [one for one in self._groups[key].values() if one.sort_key > before]
        if first is not None:
            return [one for one in behind if one.sort_key < first]
        del self.delayed[key]
        return behind


def _is_delayed(group: Mapping[int, Member], key: SortKey) -> bool:
    message = group.get(key[1])
    return message is not None and message.is_delayed
