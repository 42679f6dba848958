"""A live message in a checkpoint, and back.

Its fields are written out: there are as many of these records as messages, and `Fields` would make
writing them half as slow again.
"""

from __future__ import annotations

from itertools import compress
from operator import itemgetter
from typing import Any, Final

from ledgermq.core.puts.grouping import group_record, set_group, without_group
from ledgermq.core.snapshot.fields import Record
from ledgermq.core.state.group import IN_UNIT_OF_WORK, Group
from ledgermq.core.state.held_header import NOTHING_SAID
from ledgermq.core.state.records import (
    GroupedMessage,
    Message,
    Queue,
    SegmentMessage,
    Subscription,
    Times,
)
from ledgermq.core.state.storage import Storage
from ledgermq.protocol.plain_messages import PlainMessages

_times_of = itemgetter("expires_at", "deliver_at", "redelivery_limit")
_NO_TIMES: Final = Times(-1, -1)


def stored_message(message: Message, *, in_storage: bool = True) -> Record:
    """A message as a record; its header and group as in its Put.

    `in_storage`: it has its segment; what waits for room has none.
    """
    header: Record | None = None
    if isinstance(message, GroupedMessage):
        said = message.header or NOTHING_SAID
        header = {**said._asdict(), "group": group_record(message)}
    elif message.header is not None:
        header = {**message.header._asdict(), "group": None}
    times = message.times or _NO_TIMES
    body_position, body_index = message.body or (-1, -1)
    return {
        "put_position": message.put_position,
        "put_index": message.put_index,
        "sequence": message.sequence,
        "message_id": message.message_id,
        "priority": message.priority,
        "persistent": message.persistent,
        "size_bytes": message.size_bytes,
        "enqueued_at": message.enqueued_at,
        "backout_count": message.backout_count,
        "origin": message.origin,
        "expires_at": times.expires_at,
        "deliver_at": times.deliver_at,
        "redelivery_limit": times.redelivery_limit,
        "header": [] if header is None else [header],
        "uncounted_backout_count": message.queue.doubts.get(message.sequence, -1),
        "in_unit_of_work": message.flags & IN_UNIT_OF_WORK != 0,
        "segment": message.segment.number if in_storage else -1,
        "delayed_until": times.waits_until if times.is_delayed else -1,
        "body_position": body_position,
        "body_index": body_index,
    }


def is_plain(message: Message) -> bool:
    """Whether a record says of the message only what never changes, or is as in a new one.

    Such a message can be recorded later as it is now, whatever becomes of it meanwhile.
    """
    return (
        type(message) is Message
        and message.header is None
        and message.times is None
        and message.origin is None
        and message.body is None
        and not message.backout_count
        and message.sequence not in message.queue.doubts
    )


def message_from(queue: Queue, stored: Record, storage: Storage) -> Message:
    """The message of a record; it is in no group of its queue yet."""
    header: Any = next(iter(stored["header"]), None)
    group: Any = None if header is None else header.get("group")
    kind = Message
    if group is not None:
        kind = SegmentMessage if group["segment"] else GroupedMessage
    message = kind(
        queue,
        stored["put_position"],
        stored["put_index"],
        stored["message_id"],
        stored["priority"],
        stored["persistent"],
        stored["size_bytes"],
        without_group(header),
    )
    if isinstance(message, GroupedMessage):
        message.group = Group(group["group_id"])
        set_group(message, group, message.group, open_put=stored["in_unit_of_work"])
    message.sequence = stored["sequence"]
    message.enqueued_at = stored["enqueued_at"]
    message.backout_count = stored["backout_count"]
    message.origin = stored["origin"]
    if stored["body_position"] >= 0:
        message.body = (stored["body_position"], stored["body_index"])
    if stored["segment"] >= 0:
        message.segment = storage.segments[stored["segment"]]
        if not isinstance(queue, Subscription):
            message.segment.hold(message.size_bytes)
    times = _times_of(stored)
    if max(times) >= 0:
        message.times = Times(*times)
    if stored["delayed_until"] >= 0:
        message.wait_until(stored["delayed_until"])
    return message


def add_plain(queue: Queue, found: PlainMessages, storage: Storage) -> None:
    """Adds plain messages to a queue that is restored."""
    messages, segments = queue.messages, storage.segments
    columns = zip(*found, strict=True)
    for position, index, sequence, message_id, priority, persistent, size, time, number in columns:
        message = Message(queue, position, index, message_id, priority, persistent, size)
        message.sequence = sequence
        message.enqueued_at = time
        message.segment = segments[number]
        messages[sequence] = message
    if not isinstance(queue, Subscription):
        for number in set(found.segments):
            held = list(compress(found.sizes_bytes, map(number.__eq__, found.segments)))
            segments[number].hold(sum(held), len(held))
