"""A message as another one: for a subscription of its topic, or for another destination."""

from __future__ import annotations

from ledgermq.core.state.group import IN_GROUP, LAST_IN_GROUP, LAST_SEGMENT, SEGMENT
from ledgermq.core.state.records import (
    GroupedMessage,
    Message,
    Queue,
    SegmentMessage,
    Subscription,
    Times,
    Topic,
)


def copy_for(message: Message, subscription: Subscription) -> Message:
    """A topic's message for one of its subscriptions, under the topic's number."""
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
