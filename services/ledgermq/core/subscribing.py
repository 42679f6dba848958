"""Subscriptions: found, made, made anew, ended (PROTOCOL.md section 5 Topics; SES-41 to SES-64)."""

from __future__ import annotations

from typing import Final

from ledgermq.core.quoting import quoted
from ledgermq.core.state import QueueManager, Session
from ledgermq.core.topics import Subscription, SubscriptionKey, Topic
from ledgermq.core.turn import Turn
from ledgermq.protocol.limits import is_name
from ledgermq.protocol.operations import OpenConsumer, Unsubscribe
from ledgermq.protocol.reasons import (
    CLIENT_ID_MISSING,
    DESTINATION_INVALID,
    SUBSCRIPTION_DIFFERS,
    SUBSCRIPTION_IN_USE,
    SUBSCRIPTION_INVALID,
    SUBSCRIPTION_UNKNOWN,
    Refusal,
)
from ledgermq.selector import Selector

__all__ = [
    "end_subscription",
    "keep_subscription",
    "retire",
    "subscription_for",
    "unsubscribe",
]

# Of how many sessions a refusal says what they hold.
USERS_NAMED_MAX: Final = 5


def subscription_for(
    turn: Turn,
    session: Session,
    topic: Topic,
    operation: OpenConsumer,
    selector: Selector | None,
) -> Subscription | Refusal:
    """The subscription that a consumer of a topic is for; one not kept yet, if it is new."""
    key = _key(turn, session, topic, operation)
    if isinstance(key, Refusal):
        return key
    wanted = Subscription(
        topic,
        key,
        turn.position,
        shared=operation.shared,
        selector=selector,
        no_local=operation.no_local,
    )
    standing = turn.state.subscriptions.get(key)
    if standing is None:
        return wanted
    where = f"subscription {quoted(key.name)} of client id {quoted(key.client_id)}"
    if standing.shared != wanted.shared:
        kind = "shared" if standing.shared else "not shared"
        return Refusal(SUBSCRIPTION_DIFFERS, f"{where} is {kind}: use another name")
    if standing.consumers and not standing.shared:
        return Refusal(
            SUBSCRIPTION_IN_USE,
            f"{where} has a consumer, and is for one at a time: {_users(turn, standing)}",
        )
    if _alike(standing, wanted):
        return standing
    if _in_use(standing):
        return Refusal(
            SUBSCRIPTION_IN_USE,
            f"{where} is there with another topic, selector or noLocal (of topic "
            f"{standing.topic.name}), and is in use: {_users(turn, standing)}; close its consumers "
            "and settle their messages first",
        )
    return wanted


def _key(
    turn: Turn, session: Session, topic: Topic, operation: OpenConsumer
) -> SubscriptionKey | Refusal:
    """The identity of the subscription that is asked for (SES-41, SES-45, SES-46, SES-55)."""
    name, client_id = operation.subscription, session.connection.client_id
    if not operation.durable and not operation.shared:
        if name:
            return Refusal(
                SUBSCRIPTION_INVALID,
                f"subscription {quoted(name)} is neither durable nor shared: such have no name",
            )
        return SubscriptionKey("consumer", f"{session.handle}/{operation.consumer}", client_id)
    if not is_name(name):
        return Refusal(
            SUBSCRIPTION_INVALID,
            f"{quoted(name)} is no subscription name: 1 to 128 of A-Z a-z 0-9 . _ / % -",
        )
    if operation.shared and operation.no_local:
        return Refusal(SUBSCRIPTION_INVALID, "a shared subscription has no noLocal")
    if not operation.durable:
        return SubscriptionKey("shared", name, client_id)
    if not operation.shared and not client_id:
        return Refusal(
            CLIENT_ID_MISSING,
            f"durable subscription {quoted(name)} needs a client id, or must be shared",
        )
    if topic.owner is not None:
        return Refusal(
            DESTINATION_INVALID, f"temporary topic {topic.name} has no durable subscriptions"
        )
    return SubscriptionKey("durable", name, client_id)


def _alike(standing: Subscription, wanted: Subscription) -> bool:
    return (
        standing.topic is wanted.topic
        and _text(standing.selector) == _text(wanted.selector)
        and standing.no_local == wanted.no_local
    )


def _text(selector: Selector | None) -> str:
    return "" if selector is None else selector.text


def _in_use(subscription: Subscription) -> bool:
    held = subscription.unacknowledged + subscription.uncommitted_gets
    return bool(subscription.consumers) or held > 0


def _users(turn: Turn, subscription: Subscription) -> str:
    """Which sessions have consumers or hold deliveries of a subscription, in words."""
    found: list[str] = []
    for handle, session in turn.state.sessions.items():
        mine = [one for one in session.consumers.values() if one.queue is subscription]
        if mine:
            consumers = sum(one.open for one in mine)
            held = sum(one.in_flight for one in mine)
            client_id = session.connection.client_id
            whose = f" of client id {quoted(client_id)}" if client_id else ""
            found.append(
                f"session {handle}{whose} has {consumers} consumers and holds {held} deliveries"
            )
    more = len(found) - USERS_NAMED_MAX
    return ", ".join(found[:USERS_NAMED_MAX]) + (f" and {more} more" if more > 0 else "")


def keep_subscription(state: QueueManager, subscription: Subscription) -> None:
    """Makes sure that a subscription stands, instead of one of its identity that is unlike it."""
    standing = state.subscriptions.get(subscription.key)
    if standing is subscription:
        return
    if standing is not None:
        end_subscription(state, standing)
    state.subscriptions[subscription.key] = subscription
    state.stores[subscription.created_position] = subscription
    subscription.topic.subscribe(subscription)


def end_subscription(state: QueueManager, subscription: Subscription) -> None:
    """Ends a subscription; its messages go with it (SES-43, SES-51, SES-62)."""
    subscription.drop()
    subscription.topic.unsubscribe(subscription)
    del state.subscriptions[subscription.key]
    del state.stores[subscription.created_position]


def unsubscribe(turn: Turn, session: Session, operation: Unsubscribe) -> Refusal | None:
    """Deletes a durable subscription that nobody uses (SES-62, SES-63, SES-64)."""
    client_id = session.connection.client_id
    key = SubscriptionKey("durable", operation.subscription, client_id)
    standing = turn.state.subscriptions.get(key)
    if standing is None:
        return Refusal(
            SUBSCRIPTION_UNKNOWN,
            f"there is no durable subscription {quoted(operation.subscription)} of client id "
            f"{quoted(client_id)}",
        )
    if _in_use(standing):
        return Refusal(
            SUBSCRIPTION_IN_USE,
            f"subscription {quoted(key.name)} is in use: {_users(turn, standing)}; close "
            "its consumers and settle their messages first",
        )
    end_subscription(turn.state, standing)
    return None


def retire(turn: Turn) -> None:
    """Ends subscriptions that nothing keeps: not durable, and no receiver left (SES-43).

    What sessions hold of them can still be settled, so they go with the last of that.
    """
    left, turn.left = turn.left, {}
    for queue in left.values():
        if not isinstance(queue, Subscription) or not queue.retires:
            continue
        if turn.state.subscriptions.get(queue.key) is not queue:
            continue
        if not _in_use(queue):
            end_subscription(turn.state, queue)
        elif queue.shared:
            _end_but_for_held(turn, queue)


def _end_but_for_held(turn: Turn, subscription: Subscription) -> None:
    """Ends a shared subscription all but what sessions hold of it; its name is free at once."""
    state = turn.state
    if not subscription.has_ended:
        del state.subscriptions[subscription.key]
        subscription.end()
        state.subscriptions[subscription.key] = subscription
    for message in [one for one in subscription.messages.values() if one.consumer is None]:
        turn.withdraw(message)
        subscription.discard(message)
