"""Places: where consumers are in groups, and which groups are kept for them (PROTOCOL.md §13)."""

from __future__ import annotations

from ledgermq.core.message import (
    IN_GROUP,
    LAST_IN_GROUP,
    LAST_SEGMENT,
    SEGMENT,
    Message,
)
from ledgermq.core.queue import Queue
from ledgermq.core.state import Consumer
from ledgermq.core.turn import Turn
from ledgermq.core.wanting import matches_fields
from ledgermq.protocol.get_options import Options, Place

__all__ = [
    "available_item",
    "disagreement",
    "disagrees",
    "follow",
    "keep_group",
    "leave_queue",
    "next_item",
    "place_after",
]


def place_after(message: Message) -> Place | None:
    """What comes next after an item; None behind a group, and outside of groups."""
    group, flags = message.group, message.flags
    if group is None:
        return None
    if flags & (SEGMENT | LAST_SEGMENT) == SEGMENT:
        return (group.group_id, message.group_sequence, message.offset + message.length)
    if flags & (IN_GROUP | LAST_IN_GROUP) == IN_GROUP:
        return (group.group_id, message.group_sequence + 1, 0)
    return None


def next_item(consumer: Consumer, place: Place) -> Message | None:
    """What a consumer in logical order gets next at a place; None while that is not available."""
    keeper = consumer.queue.kept.get(place[0])
    if keeper is not None and keeper is not consumer:
        return None
    return available_item(consumer.queue, place, consumer.options)


def available_item(queue: Queue, place: Place, options: Options) -> Message | None:
    """The item at a place in a group, if it is available as far as options ask for that."""
    group = queue.groups.get(place[0])
    item = None if group is None else group.item_at(place[1], place[2])
    if group is None or item is None or not item.is_here:
        return None
    if options.needs_segments and not place[2] and group.unit_of(item) is None:
        return None
    return item


def follow(turn: Turn, consumer: Consumer, place: Place | None) -> None:
    """Moves a consumer to a place, and keeps the group for it or lets it go."""
    consumer.place = place
    if consumer.kept is not None or place is not None:
        keep_group(turn, consumer)


def keep_group(turn: Turn, consumer: Consumer) -> None:
    """Keeps the group that a consumer in logical order is in, if nobody keeps it; no other one."""
    queue, place = consumer.queue, consumer.place
    wanted = None
    if place is not None and consumer.options.logical_order and consumer.key in queue.consumers:
        wanted = place[0]
    if consumer.kept == wanted:
        return
    stop_keeping(turn, consumer)
    if wanted is not None and wanted not in queue.kept:
        queue.kept[wanted] = consumer
        consumer.kept = wanted


def stop_keeping(turn: Turn, consumer: Consumer) -> None:
    """Lets others have the group that is kept for a consumer."""
    if consumer.kept is not None:
        consumer.queue.release(consumer.kept)
        consumer.kept = None
        turn.touch(consumer.queue)


def leave_queue(turn: Turn, consumer: Consumer) -> None:
    """Ends that a consumer takes from its queue; what was for it alone is for all."""
    queue = consumer.queue
    queue.drop_consumer(consumer)
    stop_keeping(turn, consumer)
    if queue.affinity is not None:
        turn.touch(queue)
    turn.leave(queue)


def disagrees(consumer: Consumer, options: Options) -> str | None:
    """What match options say against the item that logical order brings next (GRP-44), in words."""
    place = consumer.place
    if place is None or not options.logical_order:
        return None
    return disagreement(consumer.queue, place, options)


def disagreement(queue: Queue, place: Place, options: Options) -> str | None:
    """What match options say against the item at a place, in words; None: nothing."""
    named = options._replace(message_id=b"", correlation_id=None, sequence=-1)
    wanted = (named.group_id or place[0], named.group_sequence or place[1])
    offset = place[2] if named.offset < 0 else named.offset
    if (*wanted, offset) != place:
        return (
            f"message {options.group_sequence or place[1]} at offset {offset} of group "
            f"{(options.group_id or place[0]).hex()} is asked for, but logical order brings "
            f"message {place[1]} at offset {place[2]} of group {place[0].hex()}"
        )
    item = available_item(queue, place, options)
    if item is not None and not matches_fields(options, item):
        return "the next item in logical order has another message id or correlation id"
    return None
