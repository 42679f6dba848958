"""A live message in a checkpoint, and back."""

from __future__ import annotations

from typing import Any

from ledgermq.core.group import Group
from ledgermq.core.grouping import NO_HEADER, group_record, set_group, without_group
from ledgermq.core.message import (
    IN_UNIT_OF_WORK,
    GroupedMessage,
    Message,
    SegmentMessage,
    Times,
)
from ledgermq.core.queue import Queue
from ledgermq.core.storage import Storage

__all__ = ["is_plain", "message_from", "stored_message"]

Record = dict[str, Any]


def stored_message(message: Message, *, in_storage: bool = True) -> Record:
    """A message as a record; its header and group as in its Put.

    `in_storage`: it has its segment; what waits for room has none.
    """
    header: Record | None = None if message.header is None else {**message.header}
    if message.group is not None:
        header = {**(NO_HEADER if header is None else header), "group": group_record(message)}
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
        "header": [] if header is None else [header],
        "expires_at": -1 if message.times is None else message.times.expires_at,
        "deliver_at": -1 if message.times is None else message.times.deliver_at,
        "uncounted_backout_count": message.queue.doubts.get(message.sequence, -1),
        "in_unit_of_work": message.flags & IN_UNIT_OF_WORK != 0,
        "origin": message.origin,
        "segment": message.segment.number if in_storage else -1,
        "redelivery_limit": -1 if message.times is None else message.times.redelivery_limit,
        "delayed_until": _delayed_until(message),
        "body_position": -1 if message.body is None else message.body[0],
        "body_index": -1 if message.body is None else message.body[1],
    }


def _delayed_until(message: Message) -> int:
    times = message.times
    return times.waits_until if times is not None and times.is_delayed else -1


def is_plain(message: Message) -> bool:
    """Whether all that a record tells of a message never changes, but what is as in a new one.

    Such a message can be told later as it is now, whatever becomes of it meanwhile.
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
        header = without_group(header)
    message = kind(
        queue,
        stored["put_position"],
        stored["put_index"],
        stored["message_id"],
        stored["priority"],
        stored["persistent"],
        stored["size_bytes"],
        header,
    )
    if isinstance(message, GroupedMessage):
        of_itself = Group(group["group_id"])
        set_group(message, group, of_itself, open_put=stored["in_unit_of_work"])
    message.sequence = stored["sequence"]
    message.enqueued_at = stored["enqueued_at"]
    message.backout_count = stored["backout_count"]
    message.origin = stored["origin"]
    if stored["body_position"] >= 0:
        message.body = (stored["body_position"], stored["body_index"])
    if stored["segment"] >= 0:
        message.segment = storage.segments[stored["segment"]]
        if queue.stores:
            message.segment.hold(message.size_bytes)
    times = Times(stored["expires_at"], stored["deliver_at"], stored["redelivery_limit"])
    if not times.is_empty:
        message.times = times
    if stored["delayed_until"] >= 0:
        message.wait_until(stored["delayed_until"])
    return message
