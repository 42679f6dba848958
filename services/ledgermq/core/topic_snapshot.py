"""Topics, subscriptions and temporary destinations in a checkpoint, and back."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import Any

from ledgermq.core.destinations import configure, find_destination, keep
from ledgermq.core.state import Queue, QueueManager
from ledgermq.core.subscribing import keep_subscription
from ledgermq.core.topics import Subscription, SubscriptionKey, Topic
from ledgermq.protocol.settings import DEFAULTS, changed, settings_record
from ledgermq.selector import parse_selector

__all__ = [
    "owner_of",
    "parked_entry",
    "restore_owners",
    "restore_settings",
    "restore_topics",
    "store_name",
    "subscription_entry",
    "topic_entry",
    "unacknowledged_limits",
]

Record = dict[str, Any]


def owner_of(found: Queue) -> bytes:
    """The connection that a temporary destination lives with; empty if it is not temporary."""
    return b"" if found.owner is None else found.owner.identity


def parked_entry(queue: Queue) -> list[Record]:
    """The parked groups of a queue or subscription, in the order in which they were parked."""
    parked = {} if queue.group_order is None else queue.group_order.parked
    return [{"key": key, "sequence": sequence} for key, sequence in parked.items()]


def store_name(queue: Queue) -> str:
    """What a block says that it belongs to."""
    return queue.destination if isinstance(queue, Subscription) else queue.name


def topic_entry(topic: Topic) -> Record:
    """A topic as a record; who has its messages, its subscriptions tell."""
    return {
        "name": topic.name,
        "created_position": topic.created_position,
        "description": topic.description,
        "message_bytes_max": topic.message_bytes_max,
        "next_sequence": topic.next_sequence,
        "sent_and_committed": topic.sent_and_committed,
        "dropped": topic.dropped,
        "last_consumed_enqueued_at": topic.last_consumed_enqueued_at,
        "owner": owner_of(topic),
        "expired": topic.expired,
        "settings": settings_record(topic.settings),
        "messages_high": topic.messages_high,
        "bytes_high": topic.bytes_high,
        "moved": topic.moved,
    }


def unacknowledged_limits(topics: Iterable[Topic]) -> dict[str, int]:
    """How much a session may hold of a subscription, by the topics that limit it (SES-07)."""
    return {one.name: one.unacknowledged_max for one in topics if one.unacknowledged_max}


def subscription_entry(subscription: Subscription) -> Record:
    """A subscription as a record; its messages stand in blocks."""
    key = subscription.key
    return {
        "created_position": subscription.created_position,
        "topic": subscription.topic.name,
        "kind": key.kind,
        "name": key.name,
        "client_id": key.client_id,
        "shared": subscription.shared,
        "selector": "" if subscription.selector is None else subscription.selector.text,
        "no_local": subscription.no_local,
        "next_sequence": subscription.next_sequence,
        "added": subscription.added,
        "sent_and_committed": subscription.sent_and_committed,
        "expired": subscription.expired,
        "last_consumed_enqueued_at": subscription.last_consumed_enqueued_at,
        "moved": subscription.moved,
        "dropped": subscription.dropped,
        "messages_high": subscription.messages_high,
        "bytes_high": subscription.bytes_high,
        "removed_by_administration": subscription.removed_by_administration,
        "received": list(subscription.received or ()),
        "parked": parked_entry(subscription),
    }


def restore_topics(state: QueueManager, root: Record) -> None:
    """Topics and subscriptions, without their messages."""
    for entry in root["topics"]:
        topic = Topic(entry["name"], entry["created_position"])
        topic.description = entry["description"]
        topic.message_bytes_max = entry["message_bytes_max"]
        topic.unacknowledged_max = root["topic_unacknowledged_max"].get(topic.name, 0)
        topic.next_sequence = entry["next_sequence"]
        topic.sent_and_committed = entry["sent_and_committed"]
        topic.dropped = entry["dropped"]
        topic.messages_high = entry["messages_high"]
        topic.bytes_high = entry["bytes_high"]
        topic.expired = entry["expired"]
        topic.moved = entry["moved"]
        topic.last_consumed_enqueued_at = entry["last_consumed_enqueued_at"]
        keep(state, topic)
    for entry in root["subscriptions"]:
        keep_subscription(state, _subscription_from(state, entry))


def _subscription_from(state: QueueManager, entry: Record) -> Subscription:
    subscription = Subscription(
        state.topics[entry["topic"]],
        SubscriptionKey(entry["kind"], entry["name"], entry["client_id"]),
        entry["created_position"],
        shared=entry["shared"],
        selector=parse_selector(entry["selector"]),
        no_local=entry["no_local"],
    )
    subscription.next_sequence = entry["next_sequence"]
    subscription.added = entry["added"]
    subscription.expired = entry["expired"]
    subscription.moved = entry["moved"]
    subscription.dropped = entry["dropped"]
    subscription.messages_high = entry["messages_high"]
    subscription.bytes_high = entry["bytes_high"]
    subscription.removed_by_administration = entry["removed_by_administration"]
    subscription.sent_and_committed = entry["sent_and_committed"]
    subscription.last_consumed_enqueued_at = entry["last_consumed_enqueued_at"]
    return subscription


def restore_settings(state: QueueManager, root: Record) -> None:
    """Settings of queues and topics; those of topics are their subscriptions' too.

    And what was received where a FIFO mode asks to remember it, and which groups are parked.
    """
    found: list[tuple[Queue, Record]] = [
        *((state.queues[entry["name"]], entry) for entry in root["queues"]),
        *((state.topics[entry["name"]], entry) for entry in root["topics"]),
    ]
    for queue, entry in found:
        configure(state, queue, changed(DEFAULTS, entry["settings"]))
    for entry in (*root["queues"], *root["subscriptions"]):
        store = state.stores[entry["created_position"]]
        if store.received is not None:
            store.received = OrderedDict.fromkeys(entry["received"])
        if store.group_order is not None:
            store.group_order.parked = {one["key"]: one["sequence"] for one in entry["parked"]}


def restore_owners(state: QueueManager, root: Record) -> None:
    """Gives temporary destinations back to their connections."""
    for kind, entries in (("queue:", root["queues"]), ("topic:", root["topics"])):
        for entry in entries:
            if entry["owner"]:
                found = find_destination(state, kind + entry["name"])
                assert found is not None, "it was restored before"
                found.owner = state.connections[entry["owner"]]
                found.owner.owned[found.destination] = found
