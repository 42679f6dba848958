"""Invariants: what must hold after every entry, checked on the whole state (INF-19, SEQ-06..14)."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ledgermq.core.delivery.recipients import is_paused
from ledgermq.core.order.affinity import bucket_of
from ledgermq.core.order.group_positions import next_item
from ledgermq.core.order.single_active import active_consumer, stands_by
from ledgermq.core.order.waiting_consumers import is_held_back
from ledgermq.core.queries.work_status import is_turn_of
from ledgermq.core.state.manager import QueueManager
from ledgermq.core.state.message_states import (
    AVAILABLE,
    DELAYED,
    UNACKNOWLEDGED,
    UNBORN,
    UNCOMMITTED,
    UNCOMMITTED_GET,
)
from ledgermq.core.state.records import Consumer, Message, Queue, Session, Subscription
from ledgermq.protocol.limits import PARKED_GROUPS_MAX, REPLIES_MAX
from support.invariants.group_invariants import check_groups, check_places
from support.invariants.quota_invariants import check_quotas
from support.invariants.storage_invariants import check_storage
from support.invariants.topic_invariants import check_topics


def check(state: QueueManager) -> None:
    """Raises AssertionError, with what broke and where, unless every invariant holds."""
    for name, queue in state.queues.items():
        assert name == queue.name, f"queue {queue.name} stands under {name}"
        assert state.stores[queue.created_position] is queue, f"queue {name} is no store"
        accounted = sum(queue.gone.values()) + len(queue.messages)
        assert queue.next_sequence == accounted, f"queue {name}: SEQ-14 {accounted}"
        _check_queue(queue)
    check_topics(state)
    for store in state.stores.values():
        for message in store.messages.values():
            position = message.body_position[0]
            where = f"{store.destination} {message.sequence}: body at {position}"
            assert message.put_position <= position <= state.position, where
    for subscription in state.subscriptions.values():
        _check_queue(subscription)
    for session in state.sessions.values():
        _check_session(state, session)
    for identity, connection in state.connections.items():
        assert identity == connection.identity, "a connection stands under another identity"
        assert connection.sessions, f"connection {identity.hex()} has no session"
        for handle, session in connection.sessions.items():
            assert state.sessions[handle] is session, f"session {handle} is not known"
    _check_in_flight(state)
    check_storage(state)
    check_quotas(state)
    _check_journal(state)
    for queue in (*state.queues.values(), *state.subscriptions.values()):
        selecting_nothing = {key for key, one in queue.consumers.items() if one.order_key is None}
        assert set(queue.unselecting) == selecting_nothing, f"{queue.name}: who selects nothing"


def _check_queue(queue: Queue) -> None:
    most = queue.available_max
    assert not most or queue.counts[AVAILABLE] <= most, f"{queue.name}: §23 {queue.counts}"
    assert queue.newest is None or not queue.newest.take_outdated(), f"{queue.name}: §23, a value"
    where = f"queue {queue.name}"
    numbers = sorted(queue.messages)
    lowest = numbers[0] if numbers else queue.next_sequence
    highest = numbers[-1] if numbers else queue.next_sequence
    assert queue.min_sequence == lowest, f"{where}: min {queue.min_sequence} is not {lowest}"
    assert queue.max_sequence == highest, f"{where}: max {queue.max_sequence} is not {highest}"
    held = queue.counts[UNACKNOWLEDGED] + queue.counts[UNCOMMITTED_GET]
    waiting = queue.counts[AVAILABLE] + queue.counts[UNBORN] + queue.counts[DELAYED]
    assert len(numbers) == waiting + held, f"{where}: current + pending"
    available = [one for one in queue.messages.values() if one.is_available]
    available.sort(key=lambda one: (-one.priority, one.sequence))
    assert len(available) == queue.counts[AVAILABLE], f"{where}: available count"
    if queue.affinity is None:
        free = [one for one in available if queue.available.may_be_taken(one)]
        assert list(queue.available) == free, f"{where}: order of all"
    for number, message in queue.messages.items():
        assert message.sequence == number, f"{where}: message {number} bears {message.sequence}"
        assert message.queue is queue, f"{where}: message {number} belongs to another queue"
    _check_waiting(queue, where)
    for key, consumer in queue.ready.items():
        assert queue.consumers[key] is consumer, f"{where}: waiting consumer {key} is not open"
        assert consumer.credit > 0, f"{where}: waiting consumer {key} has no credit"
    for number, uncounted in queue.doubts.items():
        counted = queue.messages[number].backout_count - uncounted
        assert uncounted >= 0 <= counted, f"{where}: message {number} in doubt"
    _check_orders(queue, available, where)
    _check_received(queue, where)
    active = active_consumer(queue)
    holders = {one.consumer for one in queue.messages.values() if one.consumer is not None}
    assert active is None or holders <= {active}, f"{where}: others than the active one hold"
    check_groups(queue)
    if not queue.gets_disabled:
        for one in queue.ready.values():
            idle = is_paused(one) or not _wanted(one, available)
            idle = idle or not is_turn_of(one) or stands_by(one)
            assert idle, f"{where}: messages and a waiting consumer, but no delivery"


def _check_waiting(queue: Queue, where: str) -> None:
    """What is unborn or delayed is counted so, in nobody's hands, and in no doubt of its state."""
    waiting = [one for one in queue.messages.values() if one.waits]
    unborn = [one for one in waiting if one.times is not None and one.times.is_unborn]
    delayed = [one for one in waiting if one.times is not None and one.times.is_delayed]
    assert queue.counts[UNBORN] == len(unborn), f"{where}: unborn"
    assert queue.counts[DELAYED] == len(delayed), f"{where}: delayed"
    assert all(one.consumer is None for one in waiting), f"{where}: waits and is held"
    assert all(one.backout_count for one in delayed), f"{where}: delayed without a backout"
    assert not any(one.backout_count for one in unborn), f"{where}: unborn with a backout"
    assert (queue.group_order is not None) == queue.settings.keeps_group_order, f"{where}: order"
    if queue.group_order is not None:
        for message in queue.messages.values():
            held = queue.group_order.holds_back(message)
            assert held is _comes_after(message, delayed), f"{where}: {message.sequence} held back"
            stays = message.consumer is None and queue.group_order.is_parked(message)
            assert not stays, f"{where}: {message.sequence} of a parked group stayed"
        assert all(queue.group_order._groups.values()), f"{where}: a group of no message is left"
        assert not queue.group_order.following, f"{where}: groups are yet to follow"
        parked = queue.group_order.parked
        assert len(parked) <= PARKED_GROUPS_MAX, f"{where}: parked groups"
        assert not parked or queue.settings.error_destination, f"{where}: parked without target"


def _comes_after(message: Message, delayed: list[Message]) -> bool:
    """Whether one of the delayed messages is of its group and comes before it."""
    key, place = message.group_key, message.sort_key
    return key is not None and any(one.group_key == key and one.sort_key < place for one in delayed)


def _check_received(queue: Queue, where: str) -> None:
    """What is in flight was received, where that is remembered; what was received is there."""
    remembers = queue.settings.fifo_mode != "CONCURRENT"
    assert (queue.received is not None) == remembers, f"{where}: remembers what was received"
    if queue.received is None:
        return
    assert all(number in queue.messages for number in queue.received), f"{where}: received"
    held = [number for number, one in queue.messages.items() if one.consumer is not None]
    assert all(number in queue.received for number in held), f"{where}: in flight, not received"


def _wanted(consumer: Consumer, available: list[Message]) -> list[Message]:
    """What a consumer could be given now, worked out without any order."""
    queue, order = consumer.queue, consumer.order or consumer.queue.available
    if consumer.options.logical_order and consumer.group_position is not None:
        item = next_item(consumer, consumer.group_position)
        return [] if item is None else [item]
    wanted = (
        available
        if consumer.order is None
        else [one for one in available if consumer.order.wants(one)]
    )
    bonds = {} if queue.affinity is None else queue.affinity.bonds
    return [
        one
        for one in wanted
        if order.may_be_taken(one) and _bonded(bonds, one, consumer) is consumer
    ]


def _bonded(bonds: dict[int, Consumer], message: Message, otherwise: Consumer) -> Consumer:
    bucket = bucket_of(message)
    return otherwise if bucket is None else bonds.get(bucket, otherwise)


def _check_orders(queue: Queue, available: list[Message], where: str) -> None:
    """The orders in use hold what they want, and there are no others."""
    users: dict[Any, set[tuple[int, int]]] = {}
    for consumer in queue.consumers.values():
        users.setdefault(consumer.order_key, set()).add(consumer.key)
    users.pop(None, None)
    in_use = {key: set(one.users) for key, one in queue.orders.items() if one.users}
    assert in_use == users, f"{where}: orders in use"
    filled = {one for one in queue.orders.values() if one.has_entries}
    assert filled <= set(queue.filled_orders) <= set(queue.orders.values()), f"{where}: filled"
    idle = [one for one in queue.orders.values() if not one.users]
    assert all(one.is_of_whole_queue for one in idle), f"{where}: orders that nobody uses"
    for key, order in queue.orders.items():
        wanted = [one for one in available if order.wants(one)]
        standing = [one for one in wanted if order.may_be_taken(one)]
        found = all(order in queue.orders_by_value.candidates(one) for one in wanted)
        assert found, f"{where}: order of {key} is not found by value"
        if queue.affinity is None:
            assert list(order) == standing, f"{where}: order of {key}"


def _check_session(state: QueueManager, session: Session) -> None:
    where = f"session {session.handle}"
    assert state.connections[session.connection.identity] is session.connection, where
    assert session.connection.sessions[session.handle] is session, where
    assert len(session.replies) <= REPLIES_MAX, f"{where}: too many replies kept"
    for sequence in session.replies:
        assert session.answered_through < sequence <= session.last_sequence, f"{where}: reply"
    assert session.transacted or not session.open_puts, f"{where}: open puts"
    assert session.suspected or not session.confirmed or session.deadline < 0, f"{where}: deadline"
    numbers = list(session.deliveries)
    by_queue = Counter(one.queue.created_position for one in session.deliveries.values())
    assert session.in_flight == by_queue, f"{where}: in flight by queue"
    assert numbers == sorted(numbers), f"{where}: deliveries out of order"
    assert all(number < session.next_delivery for number in numbers), f"{where}: next delivery"
    assert session.handed_through < session.next_delivery, f"{where}: handed through"
    doubts = [one.doubt for one in session.consumers.values() if one.doubt]
    for number in doubts:
        message = session.deliveries[number]
        assert message.sequence in message.queue.doubts or message.length, (
            f"{where}: {number} is not in doubt"
        )
    for number in session.handed_doubts:
        assert number in session.deliveries, f"{where}: {number} was handed over and is not there"
    counts = dict.fromkeys(session.consumers, 0)
    for number, message in session.deliveries.items():
        consumer = message.consumer
        assert consumer is not None, f"{where}: delivery {number} without consumer"
        assert consumer.session is session, f"{where}: delivery {number} of another session"
        assert consumer.queue is message.queue, f"{where}: delivery {number} of another queue"
        assert message.queue.messages[message.sequence] is message, f"{where}: {number} is gone"
        counts[consumer.number] += 1
    for number, consumer in session.consumers.items():
        holds = not consumer.doubt or session.deliveries[consumer.doubt].consumer is consumer
        assert holds, f"{where}: consumer {number} in doubt"
        assert consumer.in_flight == counts[number], f"{where}: consumer {number} in flight"
        assert consumer.open or consumer.in_flight, f"{where}: consumer {number} lingers"
        is_open = consumer.queue.consumers.get(consumer.key) is consumer
        assert is_open == consumer.open, f"{where}: consumer {number} as receiver"
        check_places(consumer)
        waits = consumer.queue.ready.get(consumer.key) is consumer
        ready = consumer.credit > 0 and not is_held_back(consumer)
        assert waits == ready, f"{where}: consumer {number} waiting"


def _check_in_flight(state: QueueManager) -> None:
    """The counters of the queues against what the sessions hold."""
    for queue in (*state.destinations, *state.subscriptions.values()):
        name = queue.name
        open_puts = unacknowledged = uncommitted = 0
        for session in state.sessions.values():
            if not isinstance(queue, Subscription):
                open_puts += len(session.open_puts.get(queue.destination, ()))
            held = sum(1 for one in session.deliveries.values() if one.queue is queue)
            if session.transacted:
                uncommitted += held
            else:
                unacknowledged += held
        assert queue.counts[UNCOMMITTED] == open_puts, f"queue {name}: uncommitted puts"
        assert queue.counts[UNACKNOWLEDGED] == unacknowledged, f"queue {name}: unacknowledged"
        assert queue.counts[UNCOMMITTED_GET] == uncommitted, f"queue {name}: uncommitted gets"


def _check_journal(state: QueueManager) -> None:
    """Intervals rise and are apart, only the last may be open, and all of them still matter."""
    journal = state.journal
    last = -1
    for first, end in journal.intervals:
        is_last = (first, end) == journal.intervals[-1]
        assert last < first <= state.position, f"journal: interval from {first} after {last}"
        assert first < end <= state.position or (end == -1 and is_last), f"journal: until {end}"
        assert end == -1 or end > journal.needed_from, f"journal: nothing is left until {end}"
        last = end
    if journal.intervals:
        assert 0 <= journal.needed_from <= journal.kept_from <= state.position, "journal: begins"
    if journal.backup is not None:
        assert journal.backup.through <= journal.backup.position, "journal: backed up ahead"
