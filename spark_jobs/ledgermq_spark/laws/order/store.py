"""What a store has at a moment, and who gets what next: PROTOCOL.md §5 Delivery, §13, §15, §18."""

from __future__ import annotations

import heapq
import zlib
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter
from typing import Any, Final, NamedTuple

from ledgermq.protocol.get_options import PLAIN, GroupPosition, Options
from ledgermq.selector import Selector
from ledgermq_spark.laws.order.store_groups import Group
from ledgermq_spark.laws.order.store_records import (
    AVAILABLE,
    DELAYED,
    IN_FLIGHT,
    Consumer,
    Message,
)

CONCURRENT: Final = "CONCURRENT"
PROTECTED: Final = "PROTECTED"
SERIALIZED: Final = "SERIALIZED"
BUCKETS: Final = 1024
NUMBER: Final = attrgetter("sequence")
Want = tuple[Selector | None, Options]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Those of a queue, or of the topic of a subscription, that have to do with order."""

    gets_disabled: bool = False
    unacknowledged_max: int = 0
    group_affinity: bool = False
    fifo_mode: str = CONCURRENT
    keeps_group_order: bool = False
    single_active_consumer: bool = False
    available_max: int = 0
    last_value_key: str = ""
    error_destination: str = ""


class Order:
    """What is available of what a consumer wants, that which comes first in front."""

    def __init__(self, rank_of: Callable[[Message], Any] = attrgetter("rank")) -> None:
        self._rank_of = rank_of
        self._heap: list[tuple[Any, Message]] = []
        self._inside: set[Message] = set()

    def add(self, message: Message) -> None:
        """A message is available; what is so no longer is dropped when it comes in front."""
        if message not in self._inside:
            self._inside.add(message)
            heapq.heappush(self._heap, (self._rank_of(message), message))

    def first(self) -> Message | None:
        """The message that comes first."""
        while self._heap:
            message = self._heap[0][1]
            if message.state == AVAILABLE:
                return message
            self._drop_first()
        return None

    def take_plain(self, most: int) -> list[Message]:
        """Takes out messages that come first, until one is of a group or in doubt."""
        taken: list[Message] = []
        while len(taken) < most:
            message = self.first()
            if message is None or message.is_in_doubt or not message.is_plain:
                break
            taken.append(message)
            self._drop_first()
        return taken

    def take(self) -> Message | None:
        """Takes out the message that comes first."""
        message = self.first()
        if message is not None:
            self._drop_first()
        return message

    def _drop_first(self) -> None:
        self._inside.discard(heapq.heappop(self._heap)[1])


class Due(NamedTuple):
    """What is to be given to a consumer next: for one credit, or for one each (`is_run`)."""

    consumer: Consumer
    messages: list[Message]
    is_run: bool = False


class Store:
    """The live messages of a queue or subscription, and its open consumers."""

    def __init__(self) -> None:
        self.settings = Settings()
        self.messages: dict[int, Message] = {}
        self.consumers: dict[tuple[int, int], Consumer] = {}
        self._orders: dict[Want, Order] = {}
        # How much is available, and in the order of numbers, while only so much is kept (§23).
        self.available = 0
        self._by_number = Order(NUMBER)
        # What is available of each value of the key, by rising number where nothing came back.
        self._by_value: dict[str, dict[int, Message]] = {}
        self._crowded: set[str] = set()
        self._groups: dict[bytes, Group] = {}
        # Groups that are reserved for a consumer, buckets of keys that are bonded to one.
        self.reserved: dict[bytes, Consumer] = {}
        self.bonds: dict[int, Consumer] = {}
        # Who was given a message last, where only one is to be.
        self._active: Consumer | None = None
        self._delayed: dict[bytes, dict[int, Message]] = {}
        self._received: dict[int, Message] = {}
        self._held_by_session: dict[int, int] = {}
        self._in_flight = self.waits = self.receipts = 0

    # What becomes of messages.

    def add(self, message: Message) -> None:
        """A message is numbered."""
        self.messages[message.sequence] = message
        if message.received:
            self._received[message.sequence] = message
        if message.group is not None:
            self._groups.setdefault(message.group.group_id, Group()).add(message)

    def move(self, message: Message, state: str) -> None:
        """A message goes into another state, but for flight."""
        self._leave(message)
        message.state = state
        if state == AVAILABLE:
            self.available += 1
            self._keep(message)
            self._offer(message)
        elif state == DELAYED and message.key is not None:
            self._delayed.setdefault(message.key, {})[message.sequence] = message

    def _offer(self, message: Message) -> None:
        for want, order in self._orders.items():
            if _wants(want, message):
                order.add(message)

    def group(self, group_id: bytes) -> Group:
        """What is numbered of a group."""
        return self._groups.get(group_id) or Group()

    def disagrees(self, consumer: Consumer, options: Options) -> bool:
        """Whether a Get asks for another item than the one logical order brings next (§13)."""
        position = consumer.position
        if position is None or not options.logical_order:
            return False
        asked = (options.group_id or position[0], options.group_sequence or position[1])
        if (*asked, position[2] if options.offset < 0 else options.offset) != position:
            return True
        item = self.group(position[0]).item_at(position, options)
        return item is not None and not item.has_values(options)

    def remove(self, message: Message, *, consumed: bool) -> None:
        """A message is gone."""
        holder = message.holder
        self._leave(message)
        if consumed and holder is not None:
            if holder.options.logical_order:
                holder.settle_place()
            else:
                holder.settled_position = message.position_after()
        message.state = "gone"
        del self.messages[message.sequence]
        self._received.pop(message.sequence, None)
        group = message.group
        if group is not None and self._groups[group.group_id].remove(message):
            del self._groups[group.group_id]

    def _leave(self, message: Message) -> None:
        holder = message.holder
        if message.state == AVAILABLE:
            self._keep_no_more(message)
        elif message.state in IN_FLIGHT and holder is not None:
            del holder.held[message.delivery]
            if holder.doubt == message.delivery:
                holder.doubt = 0
            self._held_by_session[holder.session] -= 1
            self._in_flight -= 1
            message.holder, message.delivery = None, 0
        elif message.state == DELAYED and message.key is not None:
            waiting = self._delayed[message.key]
            del waiting[message.sequence]
            if not waiting:
                del self._delayed[message.key]

    def give(self, due: Due, deliveries: Sequence[int]) -> None:
        """A consumer is given as much of what is due to it as there are deliveries."""
        consumer, count = due.consumer, len(deliveries)
        messages = due.messages[:count]
        if self.settings.group_affinity:
            bucket = _bucket(messages[0])
            if bucket is not None:
                self.bonds.setdefault(bucket, consumer)
        if self.settings.single_active_consumer:
            self._active = consumer
        credits_taken = count if due.is_run else 1
        consumer.credit -= credits_taken
        receives, held = self.settings.fifo_mode != CONCURRENT, consumer.held
        for message, delivery in zip(messages, deliveries, strict=True):
            if receives:
                self._receive(message)
            if message.state == AVAILABLE:
                self._keep_no_more(message)
            message.state, message.holder, message.delivery = IN_FLIGHT[0], consumer, delivery
            held[delivery] = message
            if message.is_in_doubt:
                consumer.doubt = deliveries[-1]
        self.waits += credits_taken
        consumer.waiting_since = self.waits
        self._in_flight += count
        mine = self._held_by_session
        mine[consumer.session] = mine.get(consumer.session, 0) + count
        self.go_to(consumer, messages[-1].position_after())
        self.leave(due.messages[count:])

    def leave(self, messages: Iterable[Message]) -> None:
        """Messages that were due stay as they are."""
        for message in messages:
            self._offer(message)

    def _receive(self, message: Message) -> None:
        if not message.received:
            self.receipts += 1
            message.received = self.receipts
            self._received[message.sequence] = message

    # What becomes of consumers.

    def take_back(self, consumer: Consumer, sequences: Iterable[int]) -> None:
        """A consumer as it was known before, with the messages that it holds."""
        if consumer.is_open:
            self.open(consumer)
        for message in (self.messages[one] for one in sequences):
            message.holder = consumer
            consumer.held[message.delivery] = message
            self._in_flight += 1
            held = self._held_by_session
            held[consumer.session] = held.get(consumer.session, 0) + 1

    def open(self, consumer: Consumer) -> None:
        """A consumer without credit."""
        self.consumers[(consumer.session, consumer.number)] = consumer
        self._want(consumer)

    def close(self, consumer: Consumer) -> None:
        """A consumer takes nothing more: what was for it alone is for all."""
        consumer.is_open = False
        self._end_reservation(consumer)
        self.bonds = {bucket: one for bucket, one in self.bonds.items() if one is not consumer}
        del self.consumers[(consumer.session, consumer.number)]
        self._tidy_orders()

    def get(self, consumer: Consumer, credit: int, options: Options | None) -> None:
        """More credit, or none; what all of it is for."""
        if options is not None and options != consumer.options:
            consumer.options = options
            self._want(consumer)
            self._tidy_orders()
            self.go_to(consumer, consumer.position)
        if consumer.credit == 0 and credit:
            self.waits += 1
            consumer.waiting_since = self.waits
        consumer.credit = consumer.credit + credit if credit else 0

    def go_to(self, consumer: Consumer, position: GroupPosition | None) -> None:
        """A consumer comes to a group position; its group is reserved if it is for no other."""
        consumer.position = position
        group_id = None
        if position is not None and consumer.options.logical_order and consumer.is_open:
            group_id = position[0]
        if group_id is not None and self.reserved.get(group_id) is consumer:
            return
        self._end_reservation(consumer)
        if group_id is not None:
            self.reserved.setdefault(group_id, consumer)

    def _end_reservation(self, consumer: Consumer) -> None:
        if self.reserved:
            mine = [group_id for group_id, one in self.reserved.items() if one is consumer]
            for group_id in mine:
                del self.reserved[group_id]

    def _want(self, consumer: Consumer) -> None:
        want = (consumer.selector, consumer.options)
        if want not in self._orders:
            order = self._orders[want] = Order()
            for message in self.messages.values():
                if message.state == AVAILABLE and _wants(want, message):
                    order.add(message)

    def _tidy_orders(self) -> None:
        wanted = {(one.selector, one.options) for one in self.consumers.values()}
        for want in [one for one in self._orders if one not in wanted]:
            del self._orders[want]

    def set(self, settings: Settings) -> None:
        """Settings change."""
        before, self.settings = self.settings.fifo_mode, settings
        self._keep_newest()
        if not self.settings.group_affinity:
            self.bonds = {}
        if not self.settings.single_active_consumer:
            self._active = None
        elif self.bonds:
            active = self.active
            self.bonds = {bucket: one for bucket, one in self.bonds.items() if one is active}
        if self.settings.fifo_mode == CONCURRENT:
            for message in self._received.values():
                message.received = 0
            self._received = {}
        elif before == CONCURRENT:
            flying = [one for one in self.messages.values() if one.state in IN_FLIGHT]
            for message in sorted(flying, key=lambda one: one.rank):
                self._receive(message)

    # What is kept where only the newest is.

    def _keep_newest(self) -> None:
        self.available, self._by_number, self._by_value = 0, Order(NUMBER), {}
        self._crowded = set()
        for message in self.messages.values():
            if message.state == AVAILABLE:
                self.available += 1
                self._keep(message)

    def _keep(self, message: Message) -> None:
        if self.settings.available_max:
            self._by_number.add(message)
        value = message.value(self.settings.last_value_key)
        if value is not None:
            same = self._by_value.setdefault(value, {})
            same[message.sequence] = message
            if len(same) > 1:
                self._crowded.add(value)

    def _keep_no_more(self, message: Message) -> None:
        self.available -= 1
        value = message.value(self.settings.last_value_key)
        if value is not None:
            same = self._by_value[value]
            del same[message.sequence]
            if len(same) == 1:
                self._crowded.discard(value)
            elif not same:
                del self._by_value[value]

    def has_newer(self, message: Message, key: str) -> bool:
        """Whether a newer message with the same value of a key is available."""
        value = message.value(key)
        here: Iterable[Message] = self.messages.values()
        if key == self.settings.last_value_key:
            here = self._by_value.get(value or "", {}).values()
        return value is not None and any(
            one.sequence > message.sequence and one.state == AVAILABLE and one.value(key) == value
            for one in here
        )

    @property
    def crowded(self) -> list[Message]:
        """What is available beside a newer message with the same value."""
        found = (sorted(self._by_value[one].values(), key=NUMBER) for one in self._crowded)
        return sorted(chain.from_iterable(one[:-1] for one in found), key=NUMBER)

    @property
    def oldest(self) -> int:
        """The lowest number of what is available; -1: nothing is."""
        if self.settings.available_max:
            message = self._by_number.first()
            return -1 if message is None else message.sequence
        here = (one.sequence for one in self.messages.values() if one.state == AVAILABLE)
        return min(here, default=-1)

    # Who gets what next.

    @property
    def active(self) -> Consumer | None:
        """Who alone is given messages: who was given one last, while it is open (§18)."""
        return self._active if self._active is not None and self._active.is_open else None

    def activate(self, session: int, number: int) -> None:
        """An open consumer is known to be active."""
        self._active = self.consumers[session, number]

    def next(self, most: int) -> Due | None:
        """Who is to be given something next, and what; None: nobody anything.

        While one consumer alone waits, that are messages one after the other, `most` of them. They
        are to be given (`give`) or left (`leave`).
        """
        if self.settings.gets_disabled:
            return None
        each = self.consumers.values()
        waiting = [one for one in each if self.is_waiting(one) and not self.stands_by(one)]
        if len(waiting) == 1 and self.settings.fifo_mode != SERIALIZED:
            run = self._run(waiting[0], most)
            if run:
                return Due(waiting[0], run, is_run=True)
        heads = self._heads(waiting)
        first = min((head for _, head in heads), key=lambda one: one.rank, default=None)
        if first is None:
            return None
        takers = [one for one, head in heads if head is first]
        taker = min(takers, key=lambda one: (-one.priority, len(one.held), one.waiting_since))
        return Due(taker, self.unit(taker.options, first))

    def _run(self, consumer: Consumer, most: int) -> list[Message]:
        """What comes to a consumer one by one, since nothing could keep it from that."""
        if consumer.options != PLAIN:
            return []
        room = self.settings.unacknowledged_max
        if room:
            most = min(most, room - self._held_by_session.get(consumer.session, 0))
        order = self._orders[(consumer.selector, PLAIN)]
        return order.take_plain(min(most, consumer.credit))

    def is_waiting(self, consumer: Consumer) -> bool:
        """Whether a consumer would take something, and its session may have more."""
        most = self.settings.unacknowledged_max
        room = not most or self._held_by_session.get(consumer.session, 0) < most
        return consumer.is_waiting and room

    def stands_by(self, consumer: Consumer) -> bool:
        """Whether another consumer is active, or others hold what is to be settled first (§18)."""
        if not self.settings.single_active_consumer:
            return False
        active = self.active
        return self._in_flight > 0 if active is None else active is not consumer

    def _heads(self, waiting: list[Consumer]) -> list[tuple[Consumer, Message]]:
        """What each consumer would be given next."""
        if self.settings.fifo_mode == SERIALIZED:
            if self._in_flight:
                return []
            back = min(self._received.values(), key=lambda one: one.rank, default=None)
            if back is not None:
                return [(one, back) for one in waiting if self.may_take(one, back)]
        found = [(one, self._head(one)) for one in waiting]
        return [(one, head) for one, head in found if head is not None]

    def _head(self, consumer: Consumer) -> Message | None:
        if consumer.options.logical_order and consumer.position is not None:
            return self._item_for(consumer)
        order = self._orders[(consumer.selector, consumer.options)]
        head = order.first()
        if head is None or self._is_permitted(consumer, head):
            return head
        passed = []
        head = order.take()
        while head is not None and not self._is_permitted(consumer, head):
            passed.append(head)
            head = order.take()
        for message in (*passed, *([] if head is None else [head])):
            order.add(message)
        return head

    def may_take(self, consumer: Consumer, message: Message) -> bool:
        """Whether a consumer may be given a message, be there others before it."""
        if message.state != AVAILABLE:
            return False
        if consumer.options.logical_order and consumer.position is not None:
            return self._item_for(consumer) is message
        return consumer.wants(message) and self._is_permitted(consumer, message)

    def _item_for(self, consumer: Consumer) -> Message | None:
        """What is at the group position of a consumer in logical order."""
        position = consumer.position
        assert position is not None, "it has one"
        group = self._groups.get(position[0])
        if group is None or self.reserved.get(position[0], consumer) is not consumer:
            return None
        return group.item_at(position, consumer.options)

    def _is_permitted(self, consumer: Consumer, message: Message) -> bool:
        """Whether nothing but its place keeps an available message from who wants it."""
        if self.is_held_back(message):
            return False
        if self.settings.group_affinity:
            bucket = _bucket(message)
            if bucket is not None and self.bonds.get(bucket, consumer) is not consumer:
                return False
        if message.group is None:
            return True
        if self.reserved.get(message.group.group_id, consumer) is not consumer:
            return False
        return self._do_options_permit(consumer.options, message)

    def _do_options_permit(self, options: Options, message: Message) -> bool:
        """Whether as much of its group is available as options ask for."""
        assert message.group is not None
        group = self._groups[message.group.group_id]
        if options.logical_order and not group.is_member(message):
            return False
        needs_group = options.all_messages_available and message.group.in_group
        if needs_group and not (group.is_member(message) and group.is_available()):
            return False
        asks = options.needs_segments and message.is_segment
        return not asks or group.is_unit_available(message)

    def why_not(self, consumer: Consumer | None, message: Message | None) -> str:
        """Why a consumer may not be given a message, in words; empty: it may."""
        if message is None or message.state != AVAILABLE:
            return "it is not available"
        if consumer is None:
            return "the consumer is not open"
        if self.settings.gets_disabled:
            return "gets are disabled"
        if consumer.credit <= 0:
            return "the consumer has no credit"
        if not self.is_waiting(consumer):
            return "the consumer is suspected, at its limit or has a message in doubt"
        if self.stands_by(consumer):
            return "another consumer is active, or others hold messages"
        if self.is_held_back(message) and not self.may_take(consumer, message):
            return "a delayed message of its group comes first"
        if self.settings.fifo_mode == SERIALIZED and self._in_flight:
            return "another message is in flight"
        if not self.may_take(consumer, message):
            return "the consumer does not select it, or its group or options do not permit it"
        return ""

    def is_held_back(self, message: Message) -> bool:
        """Whether a delayed message of its group comes before it, and that matters."""
        if message.key is None or not self.settings.keeps_group_order:
            return False
        waiting = self._delayed.get(message.key, {}).values()
        return any(one.rank < message.rank for one in waiting)

    def unit(self, options: Options, message: Message) -> list[Message]:
        """What comes at once: a message, or all segments of one that is got complete."""
        group = message.group
        if group is None or not (options.complete_message and message.is_segment):
            return [message]
        return [message] if message.start else self._groups[group.group_id].parts(message)

    def out_of_turn(
        self, settled: list[Message], left: Container[int]
    ) -> tuple[Message, Message] | None:
        """One that is settled before another one that must be settled first (§18), and that one.

        `left` are the numbers of those that had left before.
        """
        if self.settings.fifo_mode != PROTECTED:
            return None
        mine = {one.sequence for one in settled}
        first: Message | None = None
        for message in sorted(self._received.values(), key=lambda one: one.rank):
            if message.sequence in left:
                continue
            if message.sequence not in mine:
                if first is None or message.received < first.received:
                    first = message
            elif first is not None and first.received < message.received:
                return message, first
        return None


def _wants(want: Want, message: Message) -> bool:
    selector, options = want
    if want == (None, PLAIN):
        return True
    return Consumer(session=0, number=0, selector=selector, options=options).wants(message)


def _bucket(message: Message) -> int | None:
    """The bucket of its key, as group affinity has it."""
    return None if message.key is None else zlib.crc32(message.key) % BUCKETS
