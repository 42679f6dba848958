"""Destinations by name: found, made on first use, added, removed (SEQ-10, SEQ-11)."""

from __future__ import annotations

from typing import Final

from ledgermq.core.destinations.settings_in_force import configure, settings_in_force
from ledgermq.core.entry import Entry
from ledgermq.core.moves import purge
from ledgermq.core.order.selecting import asked_value, value_in
from ledgermq.core.quoting import quoted
from ledgermq.core.state.manager import QueueManager
from ledgermq.core.state.records import Queue, Topic
from ledgermq.core.state.topics import Binding
from ledgermq.protocol.limits import TEMPORARY, is_name
from ledgermq.protocol.reasons import Reason, Refusal
from ledgermq.protocol.settings import DEFAULTS
from ledgermq.protocol.topic_patterns import stems_of, takes_in

QUEUE_PREFIX = "queue:"
TOPIC_PREFIX = "topic:"

UNKNOWN: Final = {"queue": Reason.QUEUE_UNKNOWN, "topic": Reason.TOPIC_UNKNOWN}


def find_destination(state: QueueManager, destination: str) -> Queue | None:
    if destination.startswith(QUEUE_PREFIX):
        return state.queues.get(destination[len(QUEUE_PREFIX) :])
    if destination.startswith(TOPIC_PREFIX):
        return state.topics.get(destination[len(TOPIC_PREFIX) :])
    return None


def use_destination(state: QueueManager, destination: str, position: int) -> Queue | Refusal:
    """The queue or topic of a destination; one to be added, where one may be made on first use.

    `position` is that of the operation that uses it, and the created position of what is made.
    """
    found = find_destination(state, destination) or _check_kind(destination)
    if found is not None:
        return found
    kind, _, name = destination.partition(":")
    if not is_name(name):
        detail = f"destination {quoted(destination)} has no valid {kind} name"
        return Refusal(Reason.DESTINATION_INVALID, detail)
    if name.startswith(TEMPORARY):
        return Refusal(
            Reason.DESTINATION_UNKNOWN,
            f"temporary {kind} {name} is not there: it was deleted, or its connection has ended",
        )
    if not state.automatic_creation:
        return Refusal(
            UNKNOWN[kind],
            f"{kind} {name} does not exist and automatic creation is off; create it",
        )
    return new_destination(state, destination, position)


def find_given(state: QueueManager, destination: str) -> Queue | Refusal:
    """The queue or topic that an operation by hand names; refused if it is not there."""
    found = find_destination(state, destination) or _check_kind(destination)
    if found is not None:
        return found
    kind, _, name = destination.partition(":")
    return Refusal(UNKNOWN[kind], f"{kind} {quoted(name)} does not exist")


def _check_kind(destination: str) -> Refusal | None:
    if destination.startswith((QUEUE_PREFIX, TOPIC_PREFIX)):
        return None
    return Refusal(
        Reason.DESTINATION_INVALID,
        f"destination {quoted(destination)} is not queue:NAME or topic:NAME",
    )


def new_destination(state: QueueManager, destination: str, position: int) -> Queue:
    kind, _, name = destination.partition(":")
    made = Queue(name, position) if kind == "queue" else Topic(name, position)
    made.settings = settings_in_force(state, made)
    return made


def add_destination(state: QueueManager, found: Queue) -> None:
    """Adds a queue or topic, unless it is there."""
    known = state.topics if isinstance(found, Topic) else state.queues
    standing = known.get(found.name)
    if standing is found:
        return
    assert standing is None, f"there is a {found.name}"
    if isinstance(found, Topic):
        state.topics[found.name] = found
        join_bindings(state, found)
    else:
        add_store(state, found)
        state.queues[found.name] = found
    state.stir(found.destination, each=True)


def join_bindings(state: QueueManager, topic: Topic) -> None:
    """Gives a new topic the bindings that take in its name."""
    for stem in dict.fromkeys(stems_of(topic.name)):
        for binding in state.bindings_by_stem.get(stem, {}).values():
            if is_of(binding, topic):
                join_binding(binding, topic)


def is_of(binding: Binding, topic: Topic) -> bool:
    """Whether a binding takes in the name of a topic."""
    if binding.names is None:
        return binding.topics == topic.name
    return takes_in(binding.names, topic.name)


def join_binding(binding: Binding, topic: Topic) -> None:
    asked = asked_value(binding.selector)
    topic.bindings.add(binding.created_position, binding, asked, value_in)


def add_store(state: QueueManager, store: Queue) -> None:
    created = store.created_position
    assert created not in state.stores, f"{store.destination}: another was made at {created}"
    state.stores[created] = store


def remove_store(state: QueueManager, store: Queue) -> None:
    """Takes out a queue or subscription that is gone, and all that waits for its messages' age."""
    del state.stores[store.created_position]
    state.lifetimes.forget(store)


def remove_destination(entry: Entry, found: Queue) -> None:
    state = entry.state
    configure(state, found, DEFAULTS)
    purge(entry, found)
    if isinstance(found, Topic):
        del state.topics[found.name]
        for subscription in found.subscriptions.values():
            del state.subscriptions[subscription.key]
            remove_store(state, subscription)
    else:
        del state.queues[found.name]
        remove_store(state, found)
    state.stir(found.destination, each=True)
    if found.owner is not None:
        del found.owner.owned[found.destination]


def check_target(state: QueueManager, of: str, name: str, destination: str) -> Refusal | None:
    """Whether messages of something may go to a destination that it names so (INF-16)."""
    if destination == of:
        return Refusal(Reason.SETTING_INVALID, f"{name} of {destination} may not be itself")
    if not destination.startswith((QUEUE_PREFIX, TOPIC_PREFIX)):
        return Refusal(
            Reason.DESTINATION_INVALID,
            f"{name} {quoted(destination)} is not queue:NAME or topic:NAME",
        )
    if destination.partition(":")[2].startswith(TEMPORARY):
        return Refusal(
            Reason.SETTING_INVALID,
            f"{name} {quoted(destination)}: it would end with its connection",
        )
    if find_destination(state, destination) is None:
        return Refusal(
            Reason.DESTINATION_UNKNOWN,
            f"{name} {quoted(destination)} does not exist; create it first",
        )
    return None


def check_new_name(kind: str, name: str) -> Refusal | None:
    if not is_name(name):
        return Refusal(
            Reason.NAME_INVALID,
            f"{quoted(name)} is no {kind} name: 1 to 128 of A-Z a-z 0-9 . _ / % -",
        )
    if name.startswith(TEMPORARY):
        detail = f"{quoted(name)}: names of temporary destinations are not given"
        return Refusal(Reason.NAME_INVALID, detail)
    return None
