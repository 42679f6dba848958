"""A queue with groups as the operations and claims leave it: PROTOCOL.md §13 without the fold.

What there is of each group, whom groups are kept for and bonded to, where consumers are in groups,
and so what each of them is given next.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from zlib import crc32

from ledgermq_spark.derivation.get_options import PLAIN, Options
from ledgermq_spark.derivation.held_back import HeldBack
from ledgermq_spark.derivation.items import Group, Item, Place, place_of
from ledgermq_spark.derivation.matching import Selected, matches
from ledgermq_spark.derivation.placing import Placed
from ledgermq_spark.derivation.step import MessageKey, Step

BUCKETS = 1024
Message = MessageKey
Key = tuple[int, int]


@dataclass(slots=True, eq=False)
class GroupConsumer:
    """A consumer while it is open; `settled` is its place after what it consumed last."""

    key: Key
    selector: str = ""
    options: Options = PLAIN
    place: Place | None = None
    settled: Place | None = None
    keeps: str = ""


@dataclass(slots=True)
class _Order:
    """Messages that a selector and options want; `aside` what came up and may not be given yet."""

    heap: list[tuple[tuple[int, int], Message]] = field(default_factory=list)
    aside: dict[str, list[tuple[tuple[int, int], Message]]] = field(default_factory=dict)


OrderKey = tuple[str, Options, Key | None]


class GroupQueue:
    """The messages of one queue, their groups, and its consumers while they are open."""

    def __init__(self, held: HeldBack | None = None) -> None:
        self._held_back = held or HeldBack()
        self._items: dict[Message, Item] = {}
        self._told: set[Message] = set()
        self._selected: dict[Message, Selected] = {}
        self._groups: dict[str, Group] = {}
        self._open: dict[int, dict[str, Group]] = {}
        self._held: dict[Message, int] = {}
        self._holds: dict[int, int] = {}
        self._limit = 0
        self._consumers: dict[Key, GroupConsumer] = {}
        self._kept: dict[str, GroupConsumer] = {}
        self._bonds: dict[int, GroupConsumer] | None = None
        self._orders: dict[OrderKey, _Order] = {}
        self._effects: dict[str, Callable[[Step], None]] = {
            "limit": self._set_limit,
            "unit": self._end_unit,
            "joined": self._number,
            "numbered": self._come,
            "returned": self._come,
            "delayed": lambda step: self._let_go(step.message),
            "gone": self._gone,
            "back": self._back,
            "closed": self._closed,
            "affinity": self._affinity,
        }

    def _set_limit(self, step: Step) -> None:
        self._limit = step.sequence

    def _consumer(self, step: Step) -> GroupConsumer:
        key = (step.session, step.consumer)
        consumer = self._consumers.get(key)
        if consumer is None:
            consumer = self._consumers[key] = GroupConsumer(key)
        return consumer

    def _end_unit(self, step: Step) -> None:
        self._open.pop(step.session, None)

    def _join(self, step: Step) -> Item:
        """A message gets its number; whether it is available, the step `numbered` says."""
        message = step.message
        item = self._items[message] = Item(
            place=step_place(step),
            message_id=step.message_id or b"",
            header=json.loads(step.header) if step.header else {},
            in_unit=step.unit >= 0,
        )
        self._selected[message] = Selected(
            step.message_id, step.priority, step.persistent, step.enqueued_at, step.header
        )
        if item.group_id:
            self._groups.setdefault(item.group_id, Group()).add(item)
            self._changed(item.group_id)
        return item

    def _number(self, step: Step) -> None:
        self._join(step)

    def _come(self, step: Step) -> None:
        """A message is available: for the first time, or again."""
        message = step.message
        self._let_go(message)
        item = self._items.get(message)
        if item is None:
            if step.what != "numbered":
                return
            item = self._join(step)
        self._told.discard(message)
        self._set_here(item, True)
        for (selector, options, _), order in self._orders.items():
            if self._wants(selector, options, message, item):
                heapq.heappush(order.heap, (item.place, message))

    def _let_go(self, message: Message) -> None:
        holder = self._held.pop(message, None)
        if holder is not None:
            self._holds[holder] -= 1

    def _set_here(self, item: Item, here: bool) -> None:
        group = self._groups.get(item.group_id)
        if group is None:
            item.here = here
        else:
            group.set_here(item, here)
            self._changed(item.group_id)

    def _gone(self, step: Step) -> None:
        message = step.message
        self._let_go(message)
        item = self._items.pop(message, None)
        self._selected.pop(message, None)
        if item is None:
            return
        consumer = self._consumers.get((step.session, step.consumer))
        consumed = step.selector in ("acknowledged", "committed")
        if consumed and consumer is not None and (consumer.settled or item.group_id):
            consumer.settled = place_of(item)
        group = self._groups.get(item.group_id)
        if group is not None:
            group.remove(item)
            if not group.messages:
                del self._groups[item.group_id]
            self._changed(item.group_id)

    def _back(self, step: Step) -> None:
        """All that a session held is back: its consumers are where what they consumed left them."""
        for key in sorted(self._consumers):
            consumer = self._consumers[key]
            if key[0] == step.session and (consumer.place or consumer.settled):
                self._follow(consumer, consumer.settled)

    def _closed(self, step: Step) -> None:
        consumer = self._consumers.pop((step.session, step.consumer), None)
        if consumer is None:
            return
        self._stop_keeping(consumer)
        if self._bonds is not None:
            for bucket in [at for at, one in self._bonds.items() if one is consumer]:
                del self._bonds[bucket]
                self._changed(str(bucket))
            for key in [one for one in self._orders if one[2] == consumer.key]:
                del self._orders[key]

    def _affinity(self, step: Step) -> None:
        on = bool(step.sequence)
        if on != (self._bonds is not None):
            self._bonds = {} if on else None
            self._orders = {}

    def _follow(self, consumer: GroupConsumer, place: Place | None) -> None:
        consumer.place = place
        if consumer.keeps or place is not None:
            self._keep(consumer)

    def _keep(self, consumer: GroupConsumer) -> None:
        """Keeps the group that a consumer in logical order is in, if it is kept for no other."""
        place = consumer.place
        wanted = place[0] if place is not None and consumer.options.logical_order else ""
        if consumer.keeps == wanted:
            return
        self._stop_keeping(consumer)
        if wanted and wanted not in self._kept:
            self._kept[wanted] = consumer
            consumer.keeps = wanted

    def _stop_keeping(self, consumer: GroupConsumer) -> None:
        if consumer.keeps:
            del self._kept[consumer.keeps]
            self._changed(consumer.keeps)
            consumer.keeps = ""

    def changed(self, name: str) -> None:
        """What waited for a delayed message of its group may be given now."""
        self._changed(name)

    def _changed(self, name: str) -> None:
        """What was put aside because of a group, or of a bucket, may be given now."""
        for order in self._orders.values():
            for entry in order.aside.pop(name, ()):
                heapq.heappush(order.heap, entry)

    def _wants(self, selector: str, options: Options, message: Message, item: Item) -> bool:
        """Whether a message may come at all, by what never changes of it."""
        if options.logical_order and (item.number != 1 or item.offset):
            return False
        if options.complete_message and item.offset:
            return False
        if options != PLAIN and not self._placed(item).has(options):
            return False
        return not selector or matches(selector, self._selected[message])

    def _placed(self, item: Item) -> Placed:
        correlation = item.header.get("c")
        return Placed(
            item.message_id.hex(), correlation, item.group_id, item.number, item.offset, *item.place
        )

    def _waits(self, options: Options, consumer: GroupConsumer | None, item: Item) -> str | None:
        """What keeps an available message from being given, as a group or bucket; None: nothing."""
        if consumer is not None and self._bonded(item) not in (None, consumer):
            return str(bucket_of(item))
        name = item.group_id
        if not name:
            return None
        if name in self._kept or (options.logical_order and not item.member):
            return name
        group = self._groups[name]
        if options.all_messages_available and "g" in item.flags:
            return None if item.member and group.available else name
        if item.segment and options.whole_messages:
            return None if item.member and group.whole_message(item) else name
        return None

    def _bonded(self, item: Item) -> GroupConsumer | None:
        """The consumer that an item's bucket is bonded to."""
        bucket = bucket_of(item)
        if self._bonds is None or bucket is None:
            return None
        return self._bonds.get(bucket)

    def _at(self, place: Place, options: Options) -> Item | None:
        """The item at a place in a group, if it is available as far as options ask for that."""
        group = self._groups.get(place[0])
        item = None if group is None else group.at(*place[1:])
        if group is None or item is None or not item.here:
            return None
        if options.whole_messages and not place[2] and group.whole_message(item) is None:
            return None
        return item

    def _head(self, consumer: GroupConsumer) -> Item | None:
        """What a consumer is given next."""
        options, place = consumer.options, consumer.place
        if options.logical_order and place is not None:
            keeper = self._kept.get(place[0])
            return self._at(place, options) if keeper in (None, consumer) else None
        message = self._first(consumer)
        return None if message is None else self._items[message]

    def _first(self, consumer: GroupConsumer) -> Message | None:
        options, selector = consumer.options, consumer.selector
        key = (selector, options, None if self._bonds is None else consumer.key)
        order = self._orders.get(key)
        if order is None:
            order = self._orders[key] = _Order()
            order.heap = [
                (item.place, message)
                for message, item in self._items.items()
                if item.here and self._wants(selector, options, message, item)
            ]
            heapq.heapify(order.heap)
        while order.heap:
            message = order.heap[0][1]
            item = self._items.get(message)
            if item is not None and item.here and message not in self._told:
                waits = self._waits(options, consumer, item)
                waits = waits or self._held_back.waits_for(message)
                if waits is None:
                    return message
                order.aside.setdefault(waits, []).append(order.heap[0])
            heapq.heappop(order.heap)
        return None


def step_place(step: Step) -> tuple[int, int]:
    """Where the message of a step stands in delivery order."""
    return (-step.priority, step.sequence)


def bucket_of(item: Item) -> int | None:
    """The bucket of a message's group: JMSXGroupID if that is text, else the group id."""
    named = item.header.get("p", {}).get("JMSXGroupID")
    if isinstance(named, str):
        return crc32(named.encode()) % BUCKETS
    return crc32(bytes.fromhex(item.group_id)) % BUCKETS if item.group_id else None
