"""Invariants of topics, subscriptions and temporary destinations (SEQ-17, INF-19, SES-39)."""

from __future__ import annotations

from ledgermq.core.state.manager import QueueManager
from ledgermq.core.state.message_states import (
    UNACKNOWLEDGED,
    UNCOMMITTED_GET,
)
from ledgermq.core.state.records import Subscription, Topic


def check_topics(state: QueueManager) -> None:
    """Raises AssertionError unless topics, subscriptions and temporary destinations agree."""
    for name, topic in state.topics.items():
        assert name == topic.name, f"topic {topic.name} stands under {name}"
        _check_topic(topic)
        for subscription in topic.subscriptions.values():
            assert state.subscriptions[subscription.key] is subscription, f"topic {name}: stray"
    for key, subscription in state.subscriptions.items():
        _check_subscription(state, subscription)
        assert key == subscription.key, f"{key} stands under another key"
    assert len(state.stores) == len(state.queues) + len(state.subscriptions), "stores"
    made = {one.created_position for one in state.topics.values()}
    assert len(made) == len(state.topics), "two topics were made at one position"
    _check_connections(state)


def _check_topic(topic: Topic) -> None:
    where = f"topic {topic.name}"
    kept = len(topic.publications)
    accounted = sum(topic.gone.values()) + kept
    assert topic.next_sequence == accounted, f"{where}: SEQ-14 {topic.next_sequence} {accounted}"
    assert list(topic.publications) == sorted(topic.publications), f"{where}: order"
    held: dict[int, int] = {}
    for subscription in topic.subscriptions.values():
        for sequence in subscription.messages:
            held[sequence] = held.get(sequence, 0) + 1
    counted = {number: one.holders for number, one in topic.publications.items()}
    assert held == counted, f"{where}: who has which message"


def _check_subscription(state: QueueManager, one: Subscription) -> None:
    where = f"subscription {one.key}"
    assert state.topics[one.topic.name] is one.topic, f"{where}: topic"
    assert one.topic.subscriptions[one.created_position] is one, f"{where}: not the topic's"
    assert state.stores[one.created_position] is one, f"{where}: no store"
    assert one.added == sum(one.gone.values()) + len(one.messages), f"{where}: INF-19"
    assert one.shared or len(one.consumers) <= 1, f"{where}: SES-49"
    held = one.counts[UNACKNOWLEDGED] + one.counts[UNCOMMITTED_GET]
    assert one.durable or one.consumers or held, f"{where}: nothing keeps it (SES-43)"
    assert one.unacknowledged_max == one.topic.unacknowledged_max, f"{where}: its topic's limit"
    lingers = one.shared and not one.durable and not one.consumers
    assert one.has_ended == lingers, f"{where}: ended with its last consumer (SES-43)"
    assert not one.has_ended or len(one.messages) == held, f"{where}: what nobody holds is gone"


def _check_connections(state: QueueManager) -> None:
    owned = 0
    for connection in state.connections.values():
        for destination, found in connection.owned.items():
            assert found.owner is connection, f"{destination}: owner"
            assert found.destination == destination, f"{destination}: name"
            owned += 1
    temporary = [one for one in state.destinations if one.owner]
    assert len(temporary) == owned, "temporary destinations without their connection (SES-39)"
    for client_id, connection in state.client_ids.items():
        assert connection.client_id == client_id, f"client id {client_id}"
        assert state.connections[connection.identity] is connection, f"client id {client_id}"
