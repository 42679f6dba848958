"""Subscriptions: found, made, made anew, ended (PROTOCOL.md section 5 Topics; SES-41 to SES-64)."""

from __future__ import annotations

from typing import Final

from ledgermq.core.destinations.by_name import add_store, remove_store
from ledgermq.core.destinations.numbering import add_to_topic, hand_no_more
from ledgermq.core.entry import Entry
from ledgermq.core.moves import move, purge, state_of
from ledgermq.core.order.displacing import keep_newest
from ledgermq.core.order.fifo import use_fifo_mode
from ledgermq.core.order.orders import use_group_order
from ledgermq.core.quoting import quoted
from ledgermq.core.state.manager import QueueManager
from ledgermq.core.state.message_states import DROPPED, GONE
from ledgermq.core.state.records import Session, Subscription, Topic
from ledgermq.core.state.topics import ENDED, SubscriptionKey
from ledgermq.protocol.limits import is_name
from ledgermq.protocol.operations import OpenConsumer, Unsubscribe
from ledgermq.protocol.reasons import Reason, Refusal
from ledgermq.selector import Selector

# Of how many sessions a refusal says what they hold.
USERS_NAMED_MAX: Final = 5


def subscription_for(
    entry: Entry,
    session: Session,
    topic: Topic,
    operation: OpenConsumer,
    selector: Selector | None,
) -> Subscription | Refusal:
    """The subscription that a consumer of a topic is for; one to be added, if it is new."""
    key = _key(entry, session, topic, operation)
    if isinstance(key, Refusal):
        return key
    wanted = new_subscription(
        topic,
        key,
        entry.position,
        shared=operation.shared,
        selector=selector,
        no_local=operation.no_local,
    )
    standing = entry.state.subscriptions.get(key)
    if standing is None:
        return wanted
    where = f"subscription {quoted(key.name)} of client id {quoted(key.client_id)}"
    if standing.shared != wanted.shared:
        kind = "shared" if standing.shared else "not shared"
        return Refusal(Reason.SUBSCRIPTION_DIFFERS, f"{where} is {kind}: use another name")
    if standing.consumers and not standing.shared:
        return Refusal(
            Reason.SUBSCRIPTION_IN_USE,
            f"{where} has a consumer, and is for one at a time: {_users(entry, standing)}",
        )
    if (
        standing.topic is topic
        and standing.selector == selector
        and standing.no_local == operation.no_local
    ):
        return standing
    if _in_use(standing):
        return Refusal(
            Reason.SUBSCRIPTION_IN_USE,
            f"{where} is there with another topic, selector or noLocal (of topic "
            f"{standing.topic.name}), and is in use: {_users(entry, standing)}; close its "
            "consumers and settle their messages first",
        )
    return wanted


def _key(
    entry: Entry, session: Session, topic: Topic, operation: OpenConsumer
) -> SubscriptionKey | Refusal:
    """The identity of the subscription that is asked for (SES-41, SES-45, SES-46, SES-55)."""
    name, client_id = operation.subscription, session.connection.client_id
    if not operation.durable and not operation.shared:
        if name:
            return Refusal(
                Reason.SUBSCRIPTION_INVALID,
                f"subscription {quoted(name)} is neither durable nor shared: such have no name",
            )
        return SubscriptionKey("consumer", f"{session.handle}/{operation.consumer}", client_id)
    if not is_name(name):
        return Refusal(
            Reason.SUBSCRIPTION_INVALID,
            f"{quoted(name)} is no subscription name: 1 to 128 of A-Z a-z 0-9 . _ / % -",
        )
    if operation.shared and operation.no_local:
        return Refusal(Reason.SUBSCRIPTION_INVALID, "a shared subscription has no noLocal")
    if not operation.durable:
        return SubscriptionKey("shared", name, client_id)
    if not operation.shared and not client_id:
        return Refusal(
            Reason.CLIENT_ID_MISSING,
            f"durable subscription {quoted(name)} needs a client id, or must be shared",
        )
    if topic.owner is not None:
        return Refusal(
            Reason.DESTINATION_INVALID, f"temporary topic {topic.name} has no durable subscriptions"
        )
    return SubscriptionKey("durable", name, client_id)


def _in_use(subscription: Subscription) -> bool:
    return bool(subscription.consumers) or subscription.in_flight > 0


def _users(entry: Entry, subscription: Subscription) -> str:
    found: list[str] = []
    for handle, session in entry.state.sessions.items():
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


def new_subscription(
    topic: Topic,
    key: SubscriptionKey,
    created_position: int,
    *,
    shared: bool,
    selector: Selector | None,
    no_local: bool,
) -> Subscription:
    subscription = Subscription(
        key.name,
        created_position,
        settings=topic.settings,
        unacknowledged_max=topic.unacknowledged_max,
        single_active_consumer=topic.single_active_consumer,
        topic=topic,
        key=key,
        shared=shared,
        selector=selector,
        no_local=no_local,
        durable=key.kind == "durable",
    )
    use_fifo_mode(subscription)
    use_group_order(subscription)
    keep_newest(subscription, topic.available_max, topic.last_value_key)
    return subscription


def add_subscription(state: QueueManager, subscription: Subscription) -> None:
    add_store(state, subscription)
    state.subscriptions[subscription.key] = subscription
    add_to_topic(subscription)


def use_subscription(entry: Entry, subscription: Subscription) -> None:
    """Adds a subscription, unless it is there; one of its identity that is unlike it ends first."""
    standing = entry.state.subscriptions.get(subscription.key)
    if standing is subscription:
        return
    if standing is not None:
        _end_subscription(entry, standing)
    add_subscription(entry.state, subscription)


def _end_subscription(entry: Entry, subscription: Subscription) -> None:
    """Ends a subscription; its messages go with it (SES-43, SES-51, SES-62)."""
    state = entry.state
    purge(entry, subscription)
    if not subscription.has_ended:
        hand_no_more(subscription)
    del subscription.topic.subscriptions[subscription.created_position]
    del state.subscriptions[subscription.key]
    remove_store(state, subscription)


def unsubscribe(entry: Entry, session: Session, operation: Unsubscribe) -> Refusal | None:
    """Deletes a durable subscription that nobody uses (SES-62, SES-63, SES-64)."""
    client_id = session.connection.client_id
    key = SubscriptionKey("durable", operation.subscription, client_id)
    standing = entry.state.subscriptions.get(key)
    if standing is None:
        return Refusal(
            Reason.SUBSCRIPTION_UNKNOWN,
            f"there is no durable subscription {quoted(operation.subscription)} of client id "
            f"{quoted(client_id)}",
        )
    if _in_use(standing):
        return Refusal(
            Reason.SUBSCRIPTION_IN_USE,
            f"subscription {quoted(key.name)} is in use: {_users(entry, standing)}; close "
            "its consumers and settle their messages first",
        )
    _end_subscription(entry, standing)
    return None


def retire(entry: Entry) -> None:
    """Ends subscriptions that nothing keeps: not durable, and no receiver left (SES-43).

    What sessions hold of them can still be settled, so they go with the last of that.
    """
    left, entry.left = entry.left, {}
    for queue in left.values():
        if not isinstance(queue, Subscription) or not queue.retires:
            continue
        if not _in_use(queue):
            _end_subscription(entry, queue)
        elif queue.shared:
            _end_but_for_held(entry, queue)


def _end_but_for_held(entry: Entry, subscription: Subscription) -> None:
    """Ends a shared subscription except for what sessions hold of it; its name is free at once."""
    state = entry.state
    if not subscription.has_ended:
        del state.subscriptions[subscription.key]
        hand_no_more(subscription)
        subscription.taken = None
        subscription.name += f"#{subscription.created_position}"
        subscription.key = SubscriptionKey(ENDED, subscription.name, subscription.key.client_id)
        state.subscriptions[subscription.key] = subscription
    for message in [one for one in subscription.messages.values() if one.consumer is None]:
        move(entry, subscription, (message,), state_of(message), GONE, cause=DROPPED)
