"""Messages get their numbers: in a queue, or in a topic that hands copies on (SEQ-01, SEQ-17)."""

from __future__ import annotations

from operator import attrgetter
from typing import Final

from ledgermq.core.entry import Entry
from ledgermq.core.moves import join_groups, move
from ledgermq.core.order.selecting import asked_value, matches, value_in
from ledgermq.core.state.group import IN_GROUP, LAST_IN_GROUP, LAST_SEGMENT, SEGMENT
from ledgermq.core.state.message_states import AVAILABLE, DROPPED, GONE, NEW, PUBLISHED, UNBORN
from ledgermq.core.state.records import (
    Connection,
    GroupedMessage,
    Message,
    Publication,
    Queue,
    SegmentMessage,
    Session,
    Subscription,
    Times,
    Topic,
)
from ledgermq.protocol.limits import BLOCK_MESSAGES

CREATED_POSITION: Final = attrgetter("created_position")


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
    grouped = False
    for message in messages:
        held[message.sequence] = message
        times = message.times
        grouped = grouped or message.group is not None
        if times is not None:
            if times.expires_at >= 0:
                state.expiries.add((times.expires_at, created, message.sequence, message))
            if times.deliver_at > state.time:
                unborn.append(message)
                continue
        born.append(message)
    move(entry, store, born, before, AVAILABLE, session=session)
    move(entry, store, unborn, before, UNBORN, session=session)
    if store.group_order is not None:
        store.group_order.add(messages)
    if grouped:
        join_groups(store, messages)
    first, last = messages[0].sequence, messages[-1].sequence
    blocks = range(first // BLOCK_MESSAGES, last // BLOCK_MESSAGES + 1)
    store.touched_blocks.update(dict.fromkeys(blocks))
    entry.touch(store)


def _publish(
    entry: Entry, topic: Topic, messages: list[Message], before: int, session: Session | None
) -> None:
    """Hands copies of messages to the subscriptions that there are now (SEQ-17, SES-70)."""
    sender = None if session is None else session.connection
    copies: dict[int, list[Message]] = {}
    published: list[Message] = []
    dropped: list[Message] = []
    for message in messages:
        publication = Publication(message.enqueued_at)
        # In the order in which they were made.
        for subscription in sorted(topic.by_value.candidates(message), key=CREATED_POSITION):
            if _wants(subscription, message, sender):
                created = subscription.created_position
                copies.setdefault(created, []).append(_copy_for(message, subscription))
                publication.holders += 1
        if publication.holders:
            topic.publications[message.sequence] = publication
            published.append(message)
        else:
            dropped.append(message)
    move(entry, topic, published, before, PUBLISHED, session=session)
    move(entry, topic, dropped, before, GONE, cause=DROPPED, session=session)
    for created, here in copies.items():
        subscription = topic.subscriptions[created]
        subscription.next_sequence = here[-1].sequence + 1
        subscription.added += len(here)
        _arrive(entry, subscription, here, NEW, None)


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


def _copy_for(message: Message, subscription: Subscription) -> Message:
    copy = _made_as(Message, message, subscription)
    copy.sequence = message.sequence
    copy.enqueued_at = message.enqueued_at
    if message.times is not None:
        times = message.times
        copy.times = Times(times.expires_at, times.deliver_at, times.redelivery_limit)
    copy.origin = message.origin
    copy.segment = message.segment
    return copy


def copy_to(message: Message, target: Queue) -> Message:
    """The same message for another destination; without number, times, origin and segment yet.

    It is in its group there, unless that is a topic.
    """
    if not isinstance(message, GroupedMessage) or isinstance(target, Topic):
        return _made_as(Message, message, target)
    copy = _made_as(type(message), message, target)
    assert isinstance(copy, GroupedMessage), "made as one"
    copy.group = message.group
    copy.group_sequence = message.group_sequence
    copy.flags = message.flags & (IN_GROUP | LAST_IN_GROUP | SEGMENT | LAST_SEGMENT)
    if isinstance(copy, SegmentMessage):
        copy.offset, copy.length = message.offset, message.length
    return copy


def _made_as(kind: type[Message], message: Message, queue: Queue) -> Message:
    made = kind(
        queue,
        message.put_position,
        message.put_index,
        message.message_id,
        message.priority,
        message.persistent,
        message.size_bytes,
        message.header,
    )
    made.body = message.body
    return made
