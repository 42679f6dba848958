"""Messages get their numbers: in a queue, or in a topic that hands copies on (SEQ-01, SEQ-17).

So does what left another destination and goes on here, as a new message (INF-12, INF-19).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ledgermq.core.destinations.by_name import find_destination
from ledgermq.core.destinations.copying import copy_for, copy_to
from ledgermq.core.destinations.times import redelivery_limit
from ledgermq.core.entry import Entry
from ledgermq.core.moves import join_groups, move
from ledgermq.core.order.selecting import asked_value, matches, value_in
from ledgermq.core.state.held_header import NOTHING_SAID
from ledgermq.core.state.message_states import (
    AVAILABLE,
    DROPPED,
    EXPIRED,
    GONE,
    MOVED,
    NEW,
    PUBLISHED,
    UNBORN,
)
from ledgermq.core.state.records import (
    CREATED_POSITION,
    Connection,
    Message,
    Queue,
    Session,
    Subscription,
    Times,
    Topic,
)
from ledgermq.core.state.topics import Publication
from ledgermq.protocol.limits import BLOCK_MESSAGES
from ledgermq.protocol.outcomes import Origin

# Why something was moved: reasons that the fold itself gives, and one that an application does.
REDELIVERY_LIMIT: Final = "redelivery-limit"
REJECTED: Final = "rejected"
UNROUTED: Final = "unrouted"
BOUND: Final = "bound"
MOVED_BY_HAND: Final = "moved"
COPIED: Final = "copied"
RETRIED: Final = "retried"
# Those that are no failure: somebody asked for it, and what was unborn stays so.
ASKED_FOR: Final = (BOUND, MOVED_BY_HAND, COPIED, RETRIED)


def enqueue(
    entry: Entry,
    target: Queue,
    messages: list[Message],
    before: int,
    session: Session | None = None,
) -> int:
    """Numbers messages, new ones or open puts of a session; returns the first number (SEQ-05).

    They are available now, or unborn; those who wait for them may be served.
    """
    first, time = target.next_sequence, entry.state.time
    for sequence, message in enumerate(messages, first):
        message.sequence = sequence
        message.enqueued_at = time
    target.next_sequence = first + len(messages)
    if isinstance(target, Topic):
        _publish(entry, target, messages, before, session)
    else:
        _arrive(entry, target, messages, before, session)
    return first


def _arrive(
    entry: Entry, store: Queue, messages: list[Message], before: int, session: Session | None
) -> None:
    state, created, held = entry.state, store.created_position, store.messages
    state.lifetimes.note(store, state.time)
    born: list[Message] = []
    unborn: list[Message] = []
    for message in messages:
        held[message.sequence] = message
        times = message.times
        if times is not None:
            if times.expires_at >= 0:
                state.expiries.add((times.expires_at, created, message.sequence, message))
            if times.deliver_at > state.time:
                unborn.append(message)
                continue
        born.append(message)
    move(entry, store, born, before, AVAILABLE, session=session)
    if unborn:
        move(entry, store, unborn, before, UNBORN, session=session)
    if store.group_order is not None:
        store.group_order.add(messages)
    join_groups(store, messages)
    first, last = messages[0].sequence, messages[-1].sequence
    blocks = range(first // BLOCK_MESSAGES, last // BLOCK_MESSAGES + 1)
    store.touched_blocks.update(dict.fromkeys(blocks))
    entry.touch(store)


def _publish(
    entry: Entry, topic: Topic, messages: list[Message], before: int, session: Session | None
) -> None:
    """Hands copies of messages to the subscriptions that there are now (SEQ-17, SES-70).

    So it does to destinations that the topic is bound to, if a session puts them.
    """
    sender = None if session is None else session.connection
    is_bound = session is not None and bool(topic.bindings)
    copies: dict[int, list[Message]] = {}
    bound: dict[str, list[Message]] = {}
    published: list[Message] = []
    dropped: list[Message] = []
    moved: list[Message] = []
    unrouted: list[Message] = []
    for message in messages:
        publication = Publication(message.enqueued_at)
        # In the order in which they were made.
        for subscription in sorted(topic.by_value.candidates(message), key=CREATED_POSITION):
            if _wants(subscription, message, sender):
                created = subscription.created_position
                copies.setdefault(created, []).append(copy_for(message, subscription))
                publication.holders += 1
        destinations = _bound_to(topic, message) if is_bound else ()
        for destination in destinations:
            bound.setdefault(destination, []).append(message)
        if publication.holders:
            topic.publications[message.sequence] = publication
            published.append(message)
        elif destinations:
            moved.append(message)
        elif topic.moves_unrouted and _may_be_moved(topic, message):
            moved.append(message)
            unrouted.append(message)
        else:
            dropped.append(message)
    move(entry, topic, published, before, PUBLISHED, session=session)
    move(entry, topic, dropped, before, GONE, cause=DROPPED, session=session)
    move(entry, topic, moved, before, GONE, cause=MOVED, session=session)
    for created, here in copies.items():
        subscription = topic.subscriptions[created]
        subscription.next_sequence = here[-1].sequence + 1
        subscription.added += len(here)
        _arrive(entry, subscription, here, NEW, None)
    for destination, those in bound.items():
        transfer(entry, those, destination, BOUND)
    for message in unrouted:
        transfer(entry, (message,), topic.settings.error_destination, UNROUTED)


def _bound_to(topic: Topic, message: Message) -> Iterable[str]:
    """Where bindings hand a message on, each destination once, in the order they were made."""
    return dict.fromkeys(
        one.destination
        for one in sorted(topic.bindings.candidates(message), key=CREATED_POSITION)
        if one.destination != topic.destination
        and (one.selector is None or matches(one.selector, message))
    )


def _may_be_moved(topic: Topic, message: Message) -> bool:
    """Whether there is somewhere to go; what came unrouted goes no further, and not in a circle."""
    came_unrouted = message.origin is not None and message.origin["reason"] == UNROUTED
    return topic.settings.error_destination != "" and not came_unrouted


def _wants(subscription: Subscription, message: Message, sender: Connection | None) -> bool:
    """Whether a published message is for it: noLocal, then the selector (SES-53, SES-71)."""
    if subscription.no_local and sender is not None and _is_local(subscription, sender):
        return False
    return subscription.selector is None or matches(subscription.selector, message)


def _is_local(subscription: Subscription, sender: Connection) -> bool:
    if sender.client_id and sender.client_id == subscription.key.client_id:
        return True
    return any(one.session.connection is sender for one in subscription.consumers.values())


def add_to_topic(subscription: Subscription) -> None:
    topic, created = subscription.topic, subscription.created_position
    topic.subscriptions[created] = subscription
    if not subscription.has_ended:
        topic.by_value.add(created, subscription, asked_value(subscription.selector), value_in)


def hand_no_more(subscription: Subscription) -> None:
    asked = asked_value(subscription.selector)
    subscription.topic.by_value.remove(subscription.created_position, asked)


def transfer(entry: Entry, messages: Iterable[Message], destination: str, reason: str) -> None:
    """Puts messages to a destination that is there, as new ones, numbered now; never refused.

    They keep their identities, the places of their bodies in the log and in the storage and their
    senders' headers, and say where they came from. Whatever names a destination has made sure that
    it is there, and goes before it.

    The messages have left their queue, unless these are copies. One that expired never expires by
    its own time again. Of one that came back too often, or was rejected, the sender's redelivery
    limit is not asked for.
    """
    target = find_destination(entry.state, destination)
    assert target is not None, f"{destination} is named by a setting or was looked for"
    enqueue(entry, target, [_moved(entry, one, target, reason) for one in messages], NEW)


def _moved(entry: Entry, message: Message, target: Queue, reason: str) -> Message:
    moved = copy_to(message, target)
    times = message.times
    expires_at = -1 if times is None or reason == EXPIRED else times.expires_at
    deliver_at = -1
    if times is not None and reason in ASKED_FOR and times.deliver_at > entry.state.time:
        deliver_at = times.deliver_at
    given_up = reason in (REDELIVERY_LIMIT, REJECTED)
    header = NOTHING_SAID if given_up else message.header or NOTHING_SAID
    limit = redelivery_limit(header, target.settings)
    if expires_at >= 0 or deliver_at >= 0 or limit >= 0:
        moved.times = Times(expires_at, deliver_at, limit)
    moved.origin = Origin(
        destination=message.queue.destination,
        sequence=message.sequence,
        reason=reason,
        backout_count=message.backout_count,
        enqueued_at=message.enqueued_at,
    )
    moved.segment = message.segment
    moved.segment.hold(moved.size_bytes)
    return moved
