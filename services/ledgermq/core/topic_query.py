"""Questions about topics and subscriptions (PROTOCOL.md section 9; SEQ-17)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from ledgermq.core.counting import held_bytes_status
from ledgermq.core.paging import place_in
from ledgermq.core.state import Message, Queue, QueueManager
from ledgermq.core.topics import Publication, Subscription, Topic

__all__ = [
    "enqueue_times",
    "subscription_entries",
    "subscription_statuses",
    "topic_entries",
    "topic_status",
    "topic_statuses",
]

Document = dict[str, Any]


def enqueue_times(
    queue: Queue, kept: Mapping[int, Message] | Mapping[int, Publication]
) -> tuple[int | None, int | None]:
    """Enqueue times in µs of the first and last unconsumed message (SEQ-19 without any)."""
    if kept:
        return kept[queue.min_sequence].enqueued_at, kept[queue.max_sequence].enqueued_at
    consumed = queue.last_consumed_enqueued_at
    return (None, None) if consumed < 0 else (consumed, consumed)


def topic_statuses(state: QueueManager) -> list[Document]:
    """The statuses of all topics by name."""
    return [status for _, status in topic_entries(state, "")]


def topic_entries(state: QueueManager, after: str) -> Iterator[tuple[str, Document]]:
    """The statuses of the topics behind a name, by name; with each the place behind it."""
    for name in sorted(one for one in state.topics if one > after):
        yield name, topic_status(state.topics[name])


def topic_status(topic: Topic) -> Document:
    """The status of a topic: a message counts while any subscription still has it (SEQ-17)."""
    first, last = enqueue_times(topic, topic.publications)
    return {
        "name": topic.name,
        "created_position": topic.created_position,
        "description": topic.description,
        "message_bytes_max": topic.message_bytes_max,
        "unacknowledged_max": topic.unacknowledged_max,
        "temporary": topic.owner is not None,
        "settings": asdict(topic.settings),
        "subscriptions": len(topic.subscriptions),
        "receivers": sum(len(one.consumers) for one in topic.subscriptions.values()),
        "message_count": len(topic.publications),
        "sent_and_committed": topic.sent_and_committed,
        "expired": topic.expired,
        "moved": topic.moved,
        "dropped": topic.dropped,
        "min_sequence": topic.min_sequence,
        "max_sequence": topic.max_sequence,
        "next_sequence": topic.next_sequence,
        "first_enqueued_at": first,
        "last_enqueued_at": last,
        "uncommitted_puts": topic.uncommitted_puts,
        **held_bytes_status(topic),
    }


def subscription_statuses(state: QueueManager) -> list[Document]:
    """The statuses of all subscriptions, by topic and creation."""
    return [status for _, status in subscription_entries(state, "")]


def subscription_entries(state: QueueManager, after: str) -> Iterator[tuple[str, Document]]:
    """The statuses of the subscriptions behind a place; with each the place behind it."""
    behind = (after.partition(" ")[2], place_in(after))
    places = {(one.topic.name, one.created_position): one for one in state.subscriptions.values()}
    for place in sorted(one for one in places if one > behind):
        yield f"{place[1]} {place[0]}", _subscription_status(places[place])


def _subscription_status(one: Subscription) -> Document:
    first, last = enqueue_times(one, one.messages)
    return {
        "topic": one.topic.name,
        "created_position": one.created_position,
        "kind": one.key.kind,
        "name": one.key.name,
        "client_id": one.key.client_id,
        "shared": one.shared,
        "selector": "" if one.selector is None else one.selector.text,
        "no_local": one.no_local,
        "receivers": len(one.consumers),
        "message_count": len(one.messages),
        "added": one.added,
        "sent_and_committed": one.sent_and_committed,
        "expired": one.expired,
        "removed_by_administration": one.removed_by_administration,
        "moved": one.moved,
        "dropped": one.dropped,
        "min_sequence": one.min_sequence,
        "max_sequence": one.max_sequence,
        "first_enqueued_at": first,
        "last_enqueued_at": last,
        "current": one.available.count,
        "pending": one.unborn + one.delayed + one.unacknowledged + one.uncommitted_gets,
        "unborn": one.unborn,
        "delayed": one.delayed,
        "unacknowledged": one.unacknowledged,
        "uncommitted_gets": one.uncommitted_gets,
        **held_bytes_status(one),
    }
