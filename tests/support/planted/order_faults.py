"""Faults to be planted in the fold: groups, FIFO modes, the order of groups."""

from __future__ import annotations

from typing import Any

from ledgermq.core import moves
from ledgermq.core.delivery import delivering as delivery
from ledgermq.core.delivery import recipients, settling
from ledgermq.core.destinations import changes, settings_in_force, subscriptions
from ledgermq.core.order import (
    displacing,
    fifo,
    group_positions,
    orders,
    single_active,
    waiting_consumers,
)
from ledgermq.core.puts import putting
from ledgermq.core.sessions import consumers, sessions
from ledgermq.core.state.group import Group
from ledgermq.core.state.group_order import GroupOrder
from ledgermq.core.state.message_states import AVAILABLE, DISPLACED, GONE
from ledgermq.core.structures.newest import Newest
from support.generators.displacement_generators import displacement_histories
from support.generators.fifo_generators import (
    consumer_priority_histories,
    fifo_histories,
    single_active_histories,
)
from support.generators.group_generators import group_histories
from support.generators.group_order_generators import group_order_histories
from support.planted.planted_faults import (
    Family,
    Fault,
    always,
    does_nothing,
    drawn,
    never,
    played_in,
)


def _no_warning(original: Any) -> Any:
    return lambda *arguments: ""


def _one_segment(original: Any) -> Any:
    return lambda options, head: [head]


def _last(original: Any) -> Any:
    return lambda queue: max(
        (queue.messages[one] for one in queue.received or ()),
        key=lambda one: (-one.priority, one.sequence),
        default=None,
    )


def _anybody(original: Any) -> Any:
    return lambda consumer, message: message.is_available


def _notes_nothing(original: Any) -> Any:
    def go_to(store, messages, consumer):
        received, store.received = store.received, None
        original(store, messages, consumer)
        store.received = received

    return go_to


def _forgets(original: Any) -> Any:
    def take_out(entry, store, messages):
        received, store.received = store.received, None
        original(entry, store, messages)
        store.received = received

    return take_out


def _touches_nothing(original: Any) -> Any:
    def take_out(entry, store, messages):
        touched = dict(entry.touched_queues)
        original(entry, store, messages)
        entry.touched_queues.clear()
        entry.touched_queues.update(touched)

    return take_out


def _everybody(original: Any) -> Any:
    return lambda queue: queue.ready.values()


def _for_ever(original: Any) -> Any:
    return lambda queue: queue.active


def _at_once(original: Any) -> Any:
    return lambda queue: original(queue) or queue.ready.values()


def _only_on(original: Any) -> Any:
    def set_single_active_consumer(queue, on):
        queue.single_active_consumer = on

    return set_single_active_consumer


def _no_priority(original: Any) -> Any:
    return lambda consumer: (0, *original(consumer)[1:])


def _upside_down(original: Any) -> Any:
    def waiting_key(consumer):
        priority, *others = original(consumer)
        return (-priority, *others)

    return waiting_key


def _only_the_highest(original: Any) -> Any:
    def ready_consumers(queue):
        highest = max((one.consumer_priority for one in queue.consumers.values()), default=0)
        return [one for one in original(queue) if one.consumer_priority == highest]

    return ready_consumers


def _bonds_stay(original: Any) -> Any:
    def set_single_active_consumer(queue, on):
        affinity, queue.affinity = queue.affinity, None
        original(queue, on)
        queue.affinity = affinity

    return set_single_active_consumer


def _newest_go(original: Any) -> Any:
    def displace(entry, queue):
        surplus = queue.counts[AVAILABLE] - queue.available_max
        if not queue.available_max or surplus <= 0:
            return False
        here = [one for one in queue.messages.values() if one.is_available]
        moves.move(entry, queue, here[-surplus:], AVAILABLE, GONE, cause=DISPLACED)
        return True

    return displace


def _without_word(original: Any) -> Any:
    def displace(entry, queue):
        original(entry, queue)
        return False

    return displace


def _one_more(original: Any) -> Any:
    return lambda queue, most, key: original(queue, most and most + 1, key)


def _any_newer(original: Any) -> Any:
    """Of the same value is whatever has one."""
    return lambda message, name: original(message, name) and "one"


def _none_waited(original: Any) -> Any:
    return lambda *arguments: []


GROUPS = Family(
    "groups",
    (
        Fault("a group does not note what is got of it", Group, "went", does_nothing, seed=1),
        Fault("a group does not note what comes back to it", Group, "came", does_nothing, seed=1),
        Fault("items of a group never clash", Group, "clash", does_nothing),
        Fault("a group may mix priorities", Group, "other_priority", does_nothing),
        Fault("options of a Get permit any item of a group", orders, "is_permitted", always),
        Fault("options of a Get want any message", orders, "is_wanted", always),
        Fault(
            "a group that became whole is not offered",
            moves,
            "_offer_what_became_whole",
            does_nothing,
            1,
        ),
        Fault("groups are bonded to nobody", delivery, "bond", does_nothing, seed=11),
        Fault("bonds outlive their consumer", consumers, "drop_bonds", does_nothing, seed=56),
        Fault("who got of a group is not inside it", delivery, "follow", does_nothing),
        Fault("complete messages come in segments", recipients, "unit_of", _one_segment, seed=1),
        Fault("a return leaves the place in the group", settling, "follow", does_nothing),
        Fault("what is settled in order is forgotten", settling, "settle_position", does_nothing),
        Fault("groups are kept for nobody", group_positions, "reserve_group", does_nothing),
        Fault(
            "groups are kept for ever",
            group_positions,
            "end_reservation",
            does_nothing,
            others=(consumers,),
        ),
        Fault("puts into groups are not checked", putting, "check_groups", _no_warning),
        Fault(
            "match options may contradict logical order", consumers, "disagreement", does_nothing, 3
        ),
        Fault("a closed consumer stays at its queue", consumers, "leave_queue", does_nothing, 1),
    ),
    drawn(group_histories()),
)
FIFO = Family(
    "fifo",
    (
        Fault("acknowledge settles out of order", settling, "check_order", does_nothing, 1),
        Fault("commit settles out of order", sessions, "check_order", does_nothing, seed=1),
        Fault("what was received is not noted", moves, "_go_to", _notes_nothing),
        Fault("no queue is serialized", recipients, "is_serialized", never),
        Fault("nothing was received first", recipients, "first_received", does_nothing),
        Fault("of what was received the last is first", recipients, "first_received", _last, 7),
        Fault("anybody may take what came back", recipients, "may_take", _anybody),
        Fault(
            "another FIFO mode changes nothing", settings_in_force, "use_fifo_mode", does_nothing
        ),
        Fault(
            "deliveries of one queue are in any order", fifo, "_check_queue", does_nothing, seed=1
        ),
        Fault("what is gone stays received", moves, "_take_out", _forgets),
        Fault("what is gone lets nobody go on", moves, "_take_out", _touches_nothing),
    ),
    drawn(fifo_histories()),
)
SINGLE_ACTIVE = Family(
    "single active",
    (
        Fault("nobody stands by", recipients, "ready_consumers", _everybody),
        Fault("nobody is active", single_active, "active_consumer", does_nothing),
        Fault("who was active stays so", single_active, "active_consumer", _for_ever),
        Fault(
            "the next one does not wait",
            recipients,
            "ready_consumers",
            _at_once,
        ),
        Fault("turned off, one is active", changes, "set_single_active_consumer", _only_on, 1),
    ),
    drawn(single_active_histories()),
)
# A script shows it: random histories seldom deliver what it is about.
SINGLE_ACTIVE_SCRIPTS = Family(
    "single active in scripts",
    (
        Fault(
            "turned on, groups stay with others",
            changes,
            "set_single_active_consumer",
            _bonds_stay,
        ),
    ),
    played_in("single_active"),
)
DISPLACEMENT = Family(
    "displacement",
    (
        Fault("nothing is displaced", delivery, "displace", never),
        Fault("the newest are displaced", delivery, "displace", _newest_go),
        Fault("one more is kept", changes, "keep_newest", _one_more),
        Fault("values are not told apart", displacing, "value_in", _any_newer),
        Fault("no value has a newer message", Newest, "_note", does_nothing),
    ),
    drawn(displacement_histories()),
)
DISPLACEMENT_SCRIPTS = Family(
    "displacement in scripts",
    (
        Fault("nobody hears that there is room", delivery, "displace", _without_word),
        Fault("new subscriptions keep all", subscriptions, "keep_newest", does_nothing),
    ),
    played_in("displacement"),
)
CONSUMER_PRIORITY = Family(
    "consumer priority",
    (
        Fault(
            "priorities do not count where all may take all",
            waiting_consumers,
            "waiting_key",
            _no_priority,
        ),
        Fault(
            "priorities do not count where some select", recipients, "waiting_key", _no_priority, 1
        ),
        Fault(
            "consumers of a high priority come last", waiting_consumers, "waiting_key", _upside_down
        ),
        Fault(
            "lower priorities wait although nobody else asks",
            recipients,
            "ready_consumers",
            _only_the_highest,
        ),
    ),
    drawn(consumer_priority_histories()),
)
GROUP_ORDER = Family(
    "group order",
    (
        Fault("nothing is held back behind a delayed message", GroupOrder, "holds_back", never),
        Fault("delayed messages of a group are not noted", GroupOrder, "hold", does_nothing),
        Fault("what was held back stays so", GroupOrder, "free", _none_waited, seed=1),
        Fault("groups are never parked", GroupOrder, "park", does_nothing),
        Fault(
            "what comes to a parked group does not follow",
            GroupOrder,
            "_come_to_parked",
            does_nothing,
        ),
    ),
    drawn(group_order_histories()),
)
# Scripts show them: random histories seldom come to the first (INF-12).
GROUP_ORDER_SCRIPTS = Family(
    "group order in scripts",
    (
        Fault(
            "what comes back to a parked group stays there", GroupOrder, "came_back", does_nothing
        ),
        Fault(
            "what was passed over is never offered again",
            moves,
            "offer_again",
            does_nothing,
            others=(orders,),
        ),
    ),
    played_in("group_order"),
)
