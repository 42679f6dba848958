"""Moves: where a message may go from each state, and the one function that takes it there.

`move` alone changes the state of messages: counters, orders of delivery, moments at which they are
due, what groups have available, touched blocks, segments. It takes messages of one queue,
subscription or topic that make the same move, so that a batch costs one call, and reports them to
the listener and the counter of the entry, if there are any. Whether a move is to be made is decided
by who calls it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from ledgermq.core.entry import Entry, Moves
from ledgermq.core.state.group import AWAY, MEMBER, Group
from ledgermq.core.state.manager import QueueManager
from ledgermq.core.state.message_states import (
    AVAILABLE,
    CAUSES,
    DELAYED,
    DROPPED,
    GONE,
    MOVES,
    NAMES,
    NEW,
    PUBLISHED,
    PURGED,
    UNACKNOWLEDGED,
    UNBORN,
    UNCOMMITTED,
    UNCOMMITTED_GET,
)
from ledgermq.core.state.records import (
    Consumer,
    GroupedMessage,
    Message,
    Order,
    Queue,
    Session,
    Subscription,
    Topic,
    bytes_of,
)
from ledgermq.protocol.limits import BLOCK_MESSAGES

# Who gets or had messages, and the numbers of their deliveries, once they are known.
Flight = tuple[Consumer, Sequence[int]]


def state_of(message: Message) -> int:
    if message.consumer is not None:
        return in_flight_of(message.consumer.session)
    times = message.times
    if times is None or times.waits_until < 0:
        return AVAILABLE
    return UNBORN if times.is_unborn else DELAYED


def in_flight_of(session: Session) -> int:
    return UNCOMMITTED_GET if session.transacted else UNACKNOWLEDGED


def move(
    entry: Entry,
    store: Queue,
    messages: Sequence[Message],
    before: int,
    after: int,
    *,
    cause: str = "",
    until: int = -1,
    flight: Flight | None = None,
    session: Session | None = None,
) -> None:
    """Moves messages of a queue, subscription or topic from one state into another.

    `session` puts them; delayed ones wait `until` a moment. What a consumer gets is reported when
    its deliveries have their numbers.
    """
    assert after in MOVES[before], f"{NAMES[before]} to {NAMES[after]} is no move"
    if not messages:
        return
    store.taken = None
    count, size_bytes = len(messages), bytes_of(messages)
    counts, sizes = store.counts, store.sizes
    if not isinstance(store, Subscription):
        change = (after != GONE) - (before != NEW)
        entry.state.held_messages += change * count
        entry.state.held_bytes += change * size_bytes
        if change and entry.state.blocked_puts:
            entry.state.stir(store.destination)
    if entry.listener is not None and not UNACKNOWLEDGED <= after <= UNCOMMITTED_GET:
        report(entry, store, messages, (before, after, cause), until, flight, session)
    if entry.counter is not None:
        entry.counter(store, messages, before, after, cause)
    if before != NEW:
        counts[before] -= count
        sizes[before] -= size_bytes
        if before in (UNBORN, DELAYED):
            _stop_waiting(entry, store, messages, delayed=before == DELAYED)
    if after == GONE:
        assert cause in CAUSES[before], f"{NAMES[before]} is not gone as {cause}"
        _leave(entry, store, messages, before, cause)
    else:
        counts[after] += count
        sizes[after] += size_bytes
        if before == NEW:
            _note_high(store)
        if after == AVAILABLE:
            _become_available(store, messages, is_new=before in (NEW, UNCOMMITTED))
        elif flight is not None and after in (UNACKNOWLEDGED, UNCOMMITTED_GET):
            _go_to(store, messages, flight[0])
        elif after in (UNBORN, DELAYED):
            _wait(entry.state, store, messages, until)
    if before == AVAILABLE:
        store.available.tidy(counts[AVAILABLE])


def _note_high(store: Queue) -> None:
    store.messages_high = max(store.messages_high, sum(store.counts))
    store.bytes_high = max(store.bytes_high, sum(store.sizes))


def report(
    entry: Entry,
    store: Queue,
    messages: Sequence[Message],
    what: tuple[int, int, str],
    until: int = -1,
    flight: Flight | None = None,
    session: Session | None = None,
) -> None:
    assert entry.listener is not None, "there is a listener"
    before, after, cause = what
    consumer, deliveries = flight or (None, ())
    if consumer is not None:
        session = consumer.session
    count, doubts = len(messages), store.doubts
    sequences = [one.sequence for one in messages]
    put_positions = [one.put_position for one in messages]
    put_indexes = [one.put_index for one in messages]
    bodies = [put_positions, put_indexes]
    if any(one.body for one in messages):
        bodies = [list(one) for one in zip(*(one.body_position for one in messages), strict=True)]
    untils = [until] * count
    if after == UNBORN:
        untils = [until if one.times is None else one.times.deliver_at for one in messages]
    entry.listener(
        Moves(
            position=entry.position,
            first_step=entry.next_step,
            store=store.created_position,
            is_topic=isinstance(store, Topic),
            before=NAMES[before],
            after=NAMES[after],
            cause=cause,
            session=-1 if session is None else session.handle,
            consumer=0 if consumer is None else consumer.number,
            sequences=sequences,
            put_positions=put_positions,
            put_indexes=put_indexes,
            deliveries=[*deliveries] if deliveries else [0] * count,
            untils=untils,
            backouts=[one.backout_count for one in messages],
            uncounted=[doubts.get(one, 0) for one in sequences] if doubts else [0] * count,
            segments=[one.segment.number for one in messages],
            body_positions=bodies[0],
            body_indexes=bodies[1],
        )
    )
    entry.next_step += count


def _stop_waiting(
    entry: Entry, store: Queue, messages: Sequence[Message], *, delayed: bool
) -> None:
    for message in messages:
        if delayed:
            # Whether it waits again stands in a checkpoint; births follow from the time.
            store.touched_blocks[message.sequence // BLOCK_MESSAGES] = None
        message.wait_until(-1)
        if delayed and store.group_order is not None:
            entry.touch(store)
            offer_again(store, store.group_order.free(message))


def _wait(state: QueueManager, store: Queue, messages: Sequence[Message], until: int) -> None:
    created = store.created_position
    for message in messages:
        message.consumer = None
        if until < 0:
            assert message.times is not None, "it has a birth"
            moment = message.times.deliver_at
        else:
            moment = until
        message.wait_until(moment)
        state.births.add((moment, created, message.sequence, message))
        if until >= 0 and store.group_order is not None:
            store.group_order.hold(message)


def _go_to(store: Queue, messages: Sequence[Message], consumer: Consumer) -> None:
    received = store.received
    for message in messages:
        message.consumer = consumer
        if message.group is not None:
            assert isinstance(message, GroupedMessage), "it is in a group"
            message.group.went(message)
        if received is not None:
            # What was received before keeps its place.
            received.setdefault(message.sequence)


def _become_available(store: Queue, messages: Sequence[Message], *, is_new: bool) -> None:
    """Puts messages into the orders of delivery: behind all others, or where they were."""
    if store.newest is not None:
        store.newest.add(messages)
    if is_new:
        store.available.extend(messages)
        if store.orders:
            _extend_orders(store, messages)
        return
    for message in messages:
        message.consumer = None
        store.available.offer(message)
        if store.group_order is not None:
            store.group_order.came_back(message)
        if store.orders:
            for order in store.orders_by_value.candidates(message):
                offer_wanted(order, (message,))
        if isinstance(message, GroupedMessage):
            message.group.came(message)
            _offer_what_became_whole(store, message.group, message)


def _extend_orders(store: Queue, messages: Sequence[Message]) -> None:
    """Adds new messages to the orders that want them, each order's at once."""
    wanted: dict[Order, list[Message]] = {}
    for message in messages:
        for order in store.orders_by_value.candidates(message):
            if order.wants(message):
                wanted.setdefault(order, []).append(message)
    for order, those in wanted.items():
        order.extend(those)


def _leave(
    entry: Entry, store: Queue, messages: Sequence[Message], before: int, cause: str
) -> None:
    """Takes messages out for good, and gives up their room where nobody else has them."""
    if cause in store.gone:
        store.gone[cause] += len(messages)
        store.last_consumed_enqueued_at = messages[-1].enqueued_at
    if before == PUBLISHED:
        assert isinstance(store, Topic), "only topics publish"
        for message in messages:
            del store.publications[message.sequence]
    elif before != NEW and before != UNCOMMITTED:
        _take_out(entry, store, messages)
    if isinstance(store, Subscription):
        _leave_topic(entry, store.topic, messages, cause)
    else:
        _free_room(messages)


def _take_out(entry: Entry, store: Queue, messages: Sequence[Message]) -> None:
    """Takes numbered messages out of what a queue or subscription knows of them.

    Others may come for that: those that items of their group clash with, and those that come after
    them (DB-22).
    """
    held, order, blocks = store.messages, store.group_order, store.touched_blocks
    doubts, received = store.doubts, store.received
    for message in messages:
        sequence = message.sequence
        message.consumer = None
        del held[sequence]
        if order is not None:
            order.remove(message)
        if message.group is not None:
            assert isinstance(message, GroupedMessage), "it is in a group"
            _leave_group(entry, store, message.group, message)
        if doubts:
            doubts.pop(sequence, None)
        if received:
            received.pop(sequence, None)
        blocks[sequence // BLOCK_MESSAGES] = None
    if received is not None:
        entry.touch(store)


def _free_room(messages: Sequence[Message]) -> None:
    """Frees the room of messages, with one call for each run of them in one segment."""
    segment, count, size_bytes = messages[0].segment, 0, 0
    for message in messages:
        if message.segment is not segment:
            segment.free(size_bytes, count)
            segment, count, size_bytes = message.segment, 0, 0
        count += 1
        size_bytes += message.size_bytes
    segment.free(size_bytes, count)


def _leave_topic(entry: Entry, topic: Topic, messages: Sequence[Message], cause: str) -> None:
    """A subscription no longer has messages; the last one decides how the topic counts them."""
    over: list[Message] = []
    for message in messages:
        publication = topic.publications[message.sequence]
        publication.holders -= 1
        if not publication.holders:
            over.append(message)
    counted = cause if cause in CAUSES[PUBLISHED] else DROPPED
    move(entry, topic, over, PUBLISHED, GONE, cause=counted)


def _leave_group(
    entry: Entry, store: Queue, group: Group[GroupedMessage], item: GroupedMessage
) -> None:
    clashing = bool(group.clashing)
    group.remove(item)
    if clashing:
        entry.touch(store)
    if not group.slots:
        del store.groups[group.group_id]
    elif clashing:
        # What clashed with it may be a member now.
        for order in store.orders.values():
            offer_wanted(order, [one for one in group.members() if one.is_available])


def join_groups(store: Queue, messages: Iterable[Message]) -> None:
    for message in messages:
        if isinstance(message, GroupedMessage):
            group_id = message.group.group_id
            group = store.groups.get(group_id)
            if group is None:
                group = store.groups[group_id] = Group(group_id)
            message.group = group
            # It may have been a member of the groups of its unit of work.
            message.flags &= ~(MEMBER | AWAY)
            group.add(message)
            _offer_what_became_whole(store, group, message)


def _offer_what_became_whole(
    store: Queue, group: Group[GroupedMessage], item: GroupedMessage
) -> None:
    """Offers again what orders passed over while the item was missing."""
    for order in store.orders.values():
        if order.options.needs_segments:
            whole = group.members() if group.is_available else group.unit_of(item)
            offer_wanted(order, whole or ())


def offer_wanted(order: Order, messages: Iterable[Message]) -> None:
    for message in messages:
        if order.wants(message) and order.may_be_taken(message):
            order.offer(message)


def offer_again(store: Queue, messages: Iterable[Message]) -> None:
    """Offers what was held back, if it is available, to every order that wants it."""
    here = [one for one in messages if one.is_available]
    for message in here:
        store.available.offer(message)
    for order in store.orders.values():
        offer_wanted(order, here)


def purge(entry: Entry, store: Queue) -> None:
    if isinstance(store, Topic):
        for subscription in store.subscriptions.values():
            purge(entry, subscription)
    # In order of their numbers, so that what went last is the last one (SEQ-19).
    for before, messages in groupby(list(store.messages.values()), state_of):
        move(entry, store, list(messages), before, GONE, cause=PURGED)


def restore_states(state: QueueManager, store: Queue) -> None:
    available: list[Message] = []
    for message in store.messages.values():
        times = message.times
        if times is not None:
            if message.consumer is None and times.deliver_at > state.time:
                times.waits_until = times.deliver_at
            entry = (store.created_position, message.sequence, message)
            if times.expires_at > (state.time if message.consumer is not None else -1):
                state.expiries.add((times.expires_at, *entry))
            if times.waits_until >= 0:
                state.births.add((times.waits_until, *entry))
        at = state_of(message)
        if at == AVAILABLE:
            available.append(message)
        else:
            store.counts[at] += 1
            store.sizes[at] += message.size_bytes
    store.counts[AVAILABLE] += len(available)
    store.sizes[AVAILABLE] += sum(one.size_bytes for one in available)
    store.available.extend(available)
    if store.newest is not None:
        store.newest.add(available)
    join_groups(store, store.messages.values())
