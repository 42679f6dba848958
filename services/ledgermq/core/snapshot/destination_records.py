"""Queues, topics and subscriptions in a checkpoint, and back; their messages stand in blocks."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from ledgermq.core.destinations.bindings import add_binding
from ledgermq.core.destinations.by_name import add_destination, find_destination
from ledgermq.core.destinations.settings_in_force import configure, configure_all
from ledgermq.core.destinations.subscriptions import add_subscription, new_subscription
from ledgermq.core.order.affinity import set_affinity
from ledgermq.core.order.displacing import keep_newest
from ledgermq.core.order.single_active import active_consumer
from ledgermq.core.snapshot.fields import Fields, Record
from ledgermq.core.state.known_ids import Deduplication, KnownId
from ledgermq.core.state.manager import QueueManager
from ledgermq.core.state.message_states import DISPLACED, GONE_BY, PUBLISHED
from ledgermq.core.state.records import Queue, Subscription, Topic
from ledgermq.core.state.resume_mark import ResumeMark
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


def destination_entries(state: QueueManager) -> Record:
    topics = state.topics.values()
    return {
        "queues": [_queue_entry(queue) for queue in state.queues.values()],
        "topics": [_topic_entry(topic) for topic in topics],
        "subscriptions": [_subscription_entry(one) for one in state.subscriptions.values()],
        # How much a session may hold of a subscription, by the topics that limit it (SES-07).
        "topic_unacknowledged_max": {
            one.name: one.unacknowledged_max for one in topics if one.unacknowledged_max
        },
        "sources": [
            {"destination": one.destination, "name": name, "partition": partition, "taken": taken}
            for one in state.destinations
            for (name, partition), taken in one.sources.items()
        ],
        "resume_marks": [
            _resume_mark_entry(destination, mark)
            for destination, mark in (
                ("", state.resume_mark),
                *((one.destination, one.resume_mark) for one in state.destinations),
            )
            if mark is not None
        ],
        "redelivery": None if state.redelivery is DEFAULTS else redelivery_of(state.redelivery),
        "not_inheriting": [
            one.destination for one in state.destinations if not one.inherits_redelivery
        ],
        "single_active": [
            one.destination for one in state.destinations if one.single_active_consumer
        ],
        "active_consumers": [
            {"store": created, "session": one.session.handle, "consumer": one.number}
            for created, store in sorted(state.stores.items())
            if (one := active_consumer(store)) is not None
        ],
        "displacements": _displacement_entries(state),
        "moving_unrouted": [one.destination for one in topics if one.moves_unrouted],
        "bindings": binding_records(state),
        "deduplication": [
            {
                "destination": one.destination,
                "window_ms": one.deduplication.window_ms,
                "ids_max": one.deduplication.ids_max,
                "ids": [
                    {"deduplication_id": name, **known._asdict()}
                    for name, known in one.deduplication.ids.items()
                ],
            }
            for one in state.destinations
            if one.deduplication is not None
        ],
    }


def _displacement_entries(state: QueueManager) -> list[Record]:
    places = (*state.destinations, *state.subscriptions.values())
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


def binding_records(state: QueueManager) -> list[Record]:
    return [
        BINDING.of(one) | {"selector": text_of(one.selector)} for one in state.bindings.values()
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


def _queue_entry(queue: Queue) -> Record:
    affinity = queue.affinity
    bonds = {} if affinity is None else affinity.bonds
    return {
        **QUEUE.of(queue),
        **_settings_and_owner(queue),
        **_gone_entry(queue),
        **_order_entry(queue),
        "group_affinity": affinity is not None,
        "bonds": [
            {"bucket": bucket, "session": one.session.handle, "consumer": one.number}
            for bucket, one in sorted(bonds.items())
        ],
    }


def _topic_entry(topic: Topic) -> Record:
    entry = TOPIC.of(topic) | _settings_and_owner(topic) | _gone_entry(topic)
    # A topic removes none.
    del entry["removed_by_administration"]
    return entry


def _gone_entry(store: Queue) -> Record:
    # What was displaced is told beside.
    return {name: store.gone[cause] for name, cause in GONE_BY.items() if cause != DISPLACED}


def _restore_gone(store: Queue, entry: Record) -> None:
    store.gone = {cause: entry.get(name, 0) for name, cause in GONE_BY.items()}


def _settings_and_owner(found: Queue) -> Record:
    owner = b"" if found.owner is None else found.owner.identity
    return {"settings": settings_record(found.own_settings), "owner": owner}


def _order_entry(store: Queue) -> Record:
    parked = {} if store.group_order is None else store.group_order.parked
    return {
        "received": list(store.received or ()),
        "parked": [{"key": key, "sequence": sequence} for key, sequence in parked.items()],
    }


def _subscription_entry(subscription: Subscription) -> Record:
    return {
        **SUBSCRIPTION.of(subscription),
        **_gone_entry(subscription),
        **_order_entry(subscription),
        **subscription.key._asdict(),
        "topic": subscription.topic.name,
        "selector": text_of(subscription.selector),
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
