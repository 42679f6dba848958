"""Topics made and deleted by name."""

from __future__ import annotations

from ledgermq.core.configuring import check_not_named, checked_settings
from ledgermq.core.destinations import check_new_name, check_owner, configure, forget, keep
from ledgermq.core.queues import check_settings
from ledgermq.core.quoting import shown_name
from ledgermq.core.state import Session
from ledgermq.core.topics import Topic
from ledgermq.core.turn import Turn
from ledgermq.protocol.operations import AlterTopic, CreateTopic, DeleteTopic
from ledgermq.protocol.reasons import (
    TOPIC_EXISTS,
    TOPIC_IN_USE,
    TOPIC_NOT_EMPTY,
    TOPIC_UNKNOWN,
    Refusal,
)

__all__ = ["alter_topic", "create_topic", "delete_topic"]


def create_topic(turn: Turn, session: Session, operation: CreateTopic) -> Refusal | None:
    """Creates a topic; its first message gets number 0 (SEQ-10, SEQ-17)."""
    refusal = check_new_name("topic", operation.topic)
    if refusal is not None:
        return refusal
    if operation.topic in turn.state.topics:
        return Refusal(TOPIC_EXISTS, f"topic {operation.topic} exists already")
    refusal = check_settings(
        operation.description, operation.message_bytes_max, operation.unacknowledged_max
    )
    if refusal is not None:
        return refusal
    topic = Topic(operation.topic, turn.position)
    settings = checked_settings(turn.state, topic, operation.settings)
    if isinstance(settings, Refusal):
        return settings
    configure(turn.state, topic, settings)
    topic.description = operation.description
    topic.message_bytes_max = operation.message_bytes_max
    topic.unacknowledged_max = operation.unacknowledged_max
    keep(turn.state, topic)
    return None


def alter_topic(turn: Turn, session: Session, operation: AlterTopic) -> Refusal | None:
    """Changes settings of a topic, which are those of its subscriptions too."""
    topic = turn.state.topics.get(operation.topic)
    if topic is None:
        return Refusal(TOPIC_UNKNOWN, f"topic {shown_name(operation.topic)} does not exist")
    refusal = check_settings(
        operation.description, operation.message_bytes_max, operation.unacknowledged_max
    )
    if refusal is not None:
        return refusal
    settings = checked_settings(turn.state, topic, operation.settings)
    if isinstance(settings, Refusal):
        return settings
    configure(turn.state, topic, settings)
    if operation.description is not None:
        topic.description = operation.description
    if operation.message_bytes_max is not None:
        topic.message_bytes_max = operation.message_bytes_max
    if operation.unacknowledged_max is not None:
        topic.unacknowledged_max = operation.unacknowledged_max
    for subscription in topic.subscriptions.values():
        subscription.unacknowledged_max = topic.unacknowledged_max
        turn.touch(subscription)
    return None


def delete_topic(turn: Turn, session: Session, operation: DeleteTopic) -> Refusal | None:
    """Deletes a topic without consumers or work in flight; durable subscriptions need a purge."""
    topic = turn.state.topics.get(operation.topic)
    if topic is None:
        return Refusal(TOPIC_UNKNOWN, f"topic {shown_name(operation.topic)} does not exist")
    refusal = check_owner(topic, session)
    if refusal is not None:
        return refusal
    consumers, held = _use(topic)
    if consumers or held or topic.uncommitted_puts:
        return Refusal(
            TOPIC_IN_USE,
            f"topic {topic.name} has {consumers} consumers, {topic.uncommitted_puts} "
            f"uncommitted puts and {held} deliveries in flight; end them first",
        )
    refusal = check_not_named(turn.state, topic)
    if refusal is not None:
        return refusal
    if topic.subscriptions and not operation.purge:
        return Refusal(
            TOPIC_NOT_EMPTY,
            f"topic {topic.name} has {len(topic.subscriptions)} durable subscriptions; "
            "purge to remove",
        )
    forget(turn.state, topic)
    return None


def _use(topic: Topic) -> tuple[int, int]:
    """Consumers and deliveries in flight of all subscriptions of a topic."""
    subscriptions = topic.subscriptions.values()
    consumers = sum(len(one.consumers) for one in subscriptions)
    return consumers, sum(one.unacknowledged + one.uncommitted_gets for one in subscriptions)
