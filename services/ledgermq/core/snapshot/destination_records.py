"""Queues, topics and subscriptions in a checkpoint, and back; their messages stand in blocks."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from ledgermq.core.destinations.bindings import add_binding
from ledgermq.core.destinations.by_name import add_destination, find_destination
from ledgermq.core.destinations.settings_in_force import configure, configure_all
from ledgermq.core.destinations.subscriptions import add_subscription, new_subscription
from ledgermq.core.order.affinity import set_affinity
from ledgermq.core.order.displacing import keep_newest
from ledgermq.core.order.single_active import active_consumer
from ledgermq.core.snapshot.fields import Fields, Make, Record
from ledgermq.core.state.known_ids import Deduplication, KnownId
from ledgermq.core.state.manager import QueueManager
from ledgermq.core.state.message_states import DISPLACED, GONE_BY, PUBLISHED
from ledgermq.core.state.records import Queue, Subscription, Topic
from ledgermq.core.state.resume_mark import ResumeMark
from ledgermq.core.state.taken import Taken
from ledgermq.core.state.topics import Publication, SubscriptionKey
from ledgermq.protocol.settings import DEFAULTS, changed, redelivery_of, settings_record
from ledgermq.selector import parse_selector, text_of

COUNTED: Final = (
    "name",
    "created_position",
    "next_sequence",
    "last_consumed_enqueued_at",
    "messages_high",
    "bytes_high",
)
TOPIC: Final = Fields(*COUNTED, "description", "message_bytes_max")
QUEUE: Final = Fields(
    *COUNTED,
    "description",
    "message_bytes_max",
    "gets_disabled",
    "unacknowledged_max",
)
SUBSCRIPTION: Final = Fields(*COUNTED, "shared", "no_local", "added")
BINDING: Final = Fields("topics", "destination", "created_position")


def take_stores(state: QueueManager, *, anew: bool) -> dict[str, list[Taken]]:
    """Takes queues, topics and subscriptions, by the names of their lists; see `entry_of`.

    What was taken before and did not change is taken as it was then, unless all is taken `anew`.
    """
    places: dict[str, Mapping[Any, Queue]] = {
        "queues": state.queues,
        "topics": state.topics,
        "subscriptions": state.subscriptions,
    }
    take = _take if anew else _taken
    return {kind: [take(one) for one in found.values()] for kind, found in places.items()}


def take_beside(state: QueueManager) -> Make:
    """Takes what stands beside the entries of queues, topics and subscriptions."""
    # Few of very many have more than stands in their entries.
    destinations = [
        one
        for one in state.destinations
        if one.sources
        or one.deduplication is not None
        or one.resume_mark is not None
        or not one.inherits_redelivery
        or one.single_active_consumer
        or one.newest is not None
        or one.gone[DISPLACED]
    ]
    topics, subscriptions = state.topics.values(), state.subscriptions.values()
    sources = [(one.destination, one.sources.copy()) for one in destinations if one.sources]
    known_ids = [
        (one.destination, found.window_ms, found.ids_max, list(found.ids.items()))
        for one in destinations
        if (found := one.deduplication) is not None
    ]
    bindings = [(BINDING.taken(one), one.selector) for one in state.bindings.values()]
    rest = {
        # How much a session may hold of a subscription, by the topics that limit it (SES-07).
        "topic_unacknowledged_max": {
            one.name: one.unacknowledged_max for one in topics if one.unacknowledged_max
        },
        "resume_marks": [
            _resume_mark_entry(destination, mark)
            for destination, mark in (
                ("", state.resume_mark),
                *((one.destination, one.resume_mark) for one in destinations if one.resume_mark),
            )
            if mark is not None
        ],
        "redelivery": None if state.redelivery is DEFAULTS else redelivery_of(state.redelivery),
        "not_inheriting": [one.destination for one in destinations if not one.inherits_redelivery],
        "single_active": [one.destination for one in destinations if one.single_active_consumer],
        "active_consumers": [
            {"store": created, "session": one.session.handle, "consumer": one.number}
            for created in sorted(key for key, store in state.stores.items() if store.active)
            if (one := active_consumer(state.stores[created])) is not None
        ],
        "displacements": _displacement_entries([*destinations, *subscriptions]),
        "moving_unrouted": [one.destination for one in topics if one.moves_unrouted],
    }
    return lambda: {
        "sources": [
            {"destination": destination, "name": name, "partition": partition, "taken": taken}
            for destination, found in sources
            for (name, partition), taken in found.items()
        ],
        "bindings": [BINDING.record(one) | {"selector": text_of(by)} for one, by in bindings],
        "deduplication": [
            {
                "destination": destination,
                "window_ms": window_ms,
                "ids_max": ids_max,
                "ids": [{"deduplication_id": name, **one._asdict()} for name, one in ids],
            }
            for destination, window_ms, ids_max, ids in known_ids
        ],
        **rest,
    }


def _displacement_entries(places: Iterable[Queue]) -> list[Record]:
    return [
        {
            "destination": one.destination,
            "subscription": one.created_position if isinstance(one, Subscription) else -1,
            "available_max": one.available_max,
            "last_value_key": one.last_value_key,
            "displaced": one.gone[DISPLACED],
        }
        for one in places
        if one.newest is not None or one.gone[DISPLACED]
    ]


def _resume_mark_entry(destination: str, mark: ResumeMark) -> Record:
    return {
        "destination": destination,
        "messages_resume": mark.messages,
        "bytes_resume": mark.bytes,
        "holds_up": mark.holds_up,
    }


def _restore_resume_marks(state: QueueManager, root: Record) -> None:
    for entry in root["resume_marks"]:
        mark = ResumeMark(entry["messages_resume"], entry["bytes_resume"], entry["holds_up"])
        found = find_destination(state, entry["destination"])
        if found is None:
            state.resume_mark = mark
        else:
            found.resume_mark = mark


def entry_of(kind: str, taken: Taken) -> Record:
    """The entry of what was taken, for the list of a kind."""
    return _ENTRIES[kind](taken)


def _taken(store: Queue) -> Taken:
    """As it was taken before, or now, to be kept until it changes."""
    # Bonds, and what was received or is parked, change without a mark.
    if not (store.affinity is None and store.group_order is None and store.received is None):
        return _take(store)
    if store.taken is None:
        store.taken = _take(store)
    return store.taken


def _take(store: Queue) -> Taken:
    bonds, subscribed, order = None, None, store.group_order
    if isinstance(store, Subscription):
        fields = SUBSCRIPTION
        subscribed = (store.topic.name, store.key, store.selector)
    else:
        fields = TOPIC if isinstance(store, Topic) else QUEUE
        if store.affinity is not None:
            bonds = [
                {"bucket": bucket, "session": one.session.handle, "consumer": one.number}
                for bucket, one in sorted(store.affinity.bonds.items())
            ]
    return Taken(
        fields.taken(store),
        store.own_settings,
        b"" if store.owner is None else store.owner.identity,
        tuple(store.gone.values()),
        tuple(store.received) if store.received else (),
        order.parked.copy() if order is not None else None,
        bonds,
        subscribed,
    )


def _queue_entry(taken: Taken) -> Record:
    return {
        **QUEUE.record(taken.fields),
        **_settings_and_owner(taken),
        **_gone_entry(taken),
        **_order_entry(taken),
        "group_affinity": taken.bonds is not None,
        "bonds": taken.bonds or [],
    }


def _topic_entry(taken: Taken) -> Record:
    entry = TOPIC.record(taken.fields) | _settings_and_owner(taken) | _gone_entry(taken)
    # A topic removes none.
    del entry["removed_by_administration"]
    return entry


def _gone_entry(taken: Taken) -> Record:
    # What was displaced is told beside.
    gone = zip(GONE_BY.items(), taken.gone, strict=True)
    return {name: count for (name, cause), count in gone if cause != DISPLACED}


def _restore_gone(store: Queue, entry: Record) -> None:
    store.gone = {cause: entry.get(name, 0) for name, cause in GONE_BY.items()}


def _settings_and_owner(taken: Taken) -> Record:
    return {"settings": settings_record(taken.settings), "owner": taken.owner}


def _order_entry(taken: Taken) -> Record:
    parked = taken.parked.items() if taken.parked else ()
    return {
        "received": list(taken.received),
        "parked": [{"key": key, "sequence": sequence} for key, sequence in parked],
    }


def _subscription_entry(taken: Taken) -> Record:
    assert taken.subscribed is not None, "taken of a subscription"
    topic, key, selector = taken.subscribed
    return {
        **SUBSCRIPTION.record(taken.fields),
        **_gone_entry(taken),
        **_order_entry(taken),
        **key._asdict(),
        "topic": topic,
        "selector": text_of(selector),
    }


_ENTRIES: Final[dict[str, Callable[[Taken], Record]]] = {
    "queues": _queue_entry,
    "topics": _topic_entry,
    "subscriptions": _subscription_entry,
}


def store_name(queue: Queue) -> str:
    return queue.destination if isinstance(queue, Subscription) else queue.name


def restore_destinations(state: QueueManager, root: Record) -> None:
    """Queues, topics and subscriptions of a Root, without their messages.

    Settings come last: those of topics are their subscriptions' too, and may name any destination.
    """
    # Before topics, which look for their own: all of them against all would take minutes.
    _restore_bindings(state, root)
    configured: list[tuple[Queue, Record]] = []
    for kind, fields, entries in ((Queue, QUEUE, root["queues"]), (Topic, TOPIC, root["topics"])):
        for entry in entries:
            found = kind(entry["name"], entry["created_position"])
            fields.restore(found, entry)
            _restore_gone(found, entry)
            set_affinity(found, entry.get("group_affinity", False))
            add_destination(state, found)
            configured.append((found, entry))
    for topic in state.topics.values():
        topic.unacknowledged_max = root["topic_unacknowledged_max"].get(topic.name, 0)
    for name in root["single_active"]:
        _standing(state, name).single_active_consumer = True
    for name in root["moving_unrouted"]:
        state.topics[name.removeprefix("topic:")].moves_unrouted = True
    for entry in root["sources"]:
        taker = _standing(state, entry["destination"])
        taker.sources[entry["name"], entry["partition"]] = entry["taken"]
    _restore_resume_marks(state, root)
    for entry in root["deduplication"]:
        remembered = Deduplication(entry["window_ms"], entry["ids_max"])
        _standing(state, entry["destination"]).deduplication = remembered
        for one in entry["ids"]:
            known = KnownId(one["since"], one["first_sequence"])
            remembered.ids[one["deduplication_id"]] = known
    for entry in root["subscriptions"]:
        add_subscription(state, _subscription_from(state, entry))
    _restore_displacements(state, root)
    for name in root["not_inheriting"]:
        _standing(state, name).inherits_redelivery = False
    configure_all(state, changed(DEFAULTS, root["redelivery"]))
    for found, entry in configured:
        configure(state, found, changed(DEFAULTS, entry["settings"]))
    for entry in (*root["queues"], *root["subscriptions"]):
        store = state.stores[entry["created_position"]]
        if store.received is not None:
            store.received = OrderedDict.fromkeys(entry["received"])
        if store.group_order is not None:
            store.group_order.parked = {one["key"]: one["sequence"] for one in entry["parked"]}


def _standing(state: QueueManager, destination: str) -> Queue:
    """What a Root names beside the queues and topics themselves."""
    found = find_destination(state, destination)
    assert found is not None, f"{destination} is there"
    return found


def _restore_displacements(state: QueueManager, root: Record) -> None:
    for entry in root["displacements"]:
        store = state.stores.get(entry["subscription"]) or _standing(state, entry["destination"])
        keep_newest(store, entry["available_max"], entry["last_value_key"])
        store.gone[DISPLACED] = entry["displaced"]


def _restore_bindings(state: QueueManager, root: Record) -> None:
    for entry in root["bindings"]:
        selector = parse_selector(entry["selector"])
        created = entry["created_position"]
        add_binding(state, entry["topics"], entry["destination"], selector, created)


def _subscription_from(state: QueueManager, entry: Record) -> Subscription:
    subscription = new_subscription(
        state.topics[entry["topic"]],
        SubscriptionKey(entry["kind"], entry["name"], entry["client_id"]),
        entry["created_position"],
        shared=entry["shared"],
        selector=parse_selector(entry["selector"]),
        no_local=entry["no_local"],
    )
    SUBSCRIPTION.restore(subscription, entry)
    _restore_gone(subscription, entry)
    return subscription


def restore_owners(state: QueueManager, root: Record) -> None:
    for kind, entries in (("queue:", root["queues"]), ("topic:", root["topics"])):
        for entry in entries:
            if entry["owner"]:
                found = _standing(state, kind + entry["name"])
                found.owner = state.connections[entry["owner"]]
                found.owner.owned[found.destination] = found


def restore_active_and_bonded(state: QueueManager, root: Record) -> None:
    """Which consumers queues deliver to; those are there already."""
    for entry in root["active_consumers"]:
        consumers = state.sessions[entry["session"]].consumers
        state.stores[entry["store"]].active = consumers[entry["consumer"]]
    for entry in root["queues"]:
        affinity = state.queues[entry["name"]].affinity
        if affinity is not None:
            for bond in entry["bonds"]:
                consumers = state.sessions[bond["session"]].consumers
                affinity.bonds[bond["bucket"]] = consumers[bond["consumer"]]


def restore_publications(topic: Topic) -> None:
    found: dict[int, Publication] = {}
    for subscription in topic.subscriptions.values():
        for message in subscription.messages.values():
            publication = found.get(message.sequence)
            if publication is None:
                publication = found[message.sequence] = Publication(message.enqueued_at)
                topic.counts[PUBLISHED] += 1
                topic.sizes[PUBLISHED] += message.size_bytes
                message.segment.hold(message.size_bytes)
            publication.holders += 1
    topic.publications = dict(sorted(found.items()))
