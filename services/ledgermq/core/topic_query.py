"""Questions about topics and subscriptions (PROTOCOL.md section 9; SEQ-17)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from ledgermq.core.counting import held_bytes_status
from ledgermq.core.state import Message, Queue, QueueManager
from ledgermq.core.topics import Publication, Subscription, Topic

__all__ = ["enqueue_times", "subscription_statuses", "topic_status", "topic_statuses"]

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
    return [topic_status(topic) for _, topic in sorted(state.topics.items())]


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
    found = sorted(
        state.subscriptions.values(), key=lambda one: (one.topic.name, one.created_position)
    )
    return [_subscription_status(one) for one in found]


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
