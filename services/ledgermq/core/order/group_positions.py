"""Where consumers are in groups, and which groups are reserved for them (PROTOCOL.md §13)."""

from __future__ import annotations

from collections.abc import Sequence

from ledgermq.core.entry import Entry
from ledgermq.core.moves import offer_again
from ledgermq.core.order.selecting import matches_fields
from ledgermq.core.state.group import IN_GROUP, LAST_IN_GROUP, LAST_SEGMENT, SEGMENT
from ledgermq.core.state.records import Consumer, GroupedMessage, Message, Queue
from ledgermq.protocol.get_options import GroupPosition, Options


def position_after(message: Message) -> GroupPosition | None:
    """What comes next after an item; None behind a group, and outside of groups."""
    group, flags = message.group, message.flags
    if group is None:
        return None
    if flags & (SEGMENT | LAST_SEGMENT) == SEGMENT:
        return (group.group_id, message.group_sequence, message.offset + message.length)
    if flags & (IN_GROUP | LAST_IN_GROUP) == IN_GROUP:
        return (group.group_id, message.group_sequence + 1, 0)
    return None


def _position_of(message: Message) -> GroupPosition | None:
    """Where a consumer in logical order was when it was given an item; None: in no group."""
    group, at = message.group, (message.group_sequence, message.offset)
    return None if group is None or at == (1, 0) else (group.group_id, *at)


def settle_position(consumer: Consumer) -> None:
    """Notes where a consumer in logical order goes on when the rest comes back.

    That is where the first of the rest came: between it and what was settled there may be what the
    application rejected, which comes no more.
    """
    if not consumer.in_flight:
        consumer.settled_position = consumer.group_position
    else:
        held = consumer.session.deliveries.values()
        consumer.settled_position = _position_of(
            next(one for one in held if one.consumer is consumer)
        )


def next_item(consumer: Consumer, position: GroupPosition) -> Message | None:
    """What a consumer in logical order gets next at a position; None while that is not there."""
    keeper = consumer.queue.reserved.get(position[0])
    if keeper is not None and keeper is not consumer:
        return None
    return available_item(consumer.queue, position, consumer.options)


def available_item(queue: Queue, position: GroupPosition, options: Options) -> Message | None:
    """The item at a position in a group, if it is available as far as options ask for that."""
    group = queue.groups.get(position[0])
    item = None if group is None else group.item_at(position[1], position[2])
    if group is None or item is None or not item.is_available:
        return None
    if options.needs_segments and not position[2] and group.unit_of(item) is None:
        return None
    return item


def unit_of(options: Options, head: Message) -> Sequence[Message]:
    """What is delivered at once: a message, or all segments of one that is got complete.

    Who is inside a logical message already gets the rest of it segment by segment.
    """
    if not options.complete_message or not isinstance(head, GroupedMessage) or head.offset:
        return [head]
    unit = head.group.unit_of(head)
    assert unit is not None, "what is got complete is whole"
    return unit


def follow(entry: Entry, consumer: Consumer, position: GroupPosition | None) -> None:
    """Moves a consumer to a position, and reserves the group for it or frees it."""
    consumer.group_position = position
    if consumer.reserved_group is not None or position is not None:
        reserve_group(entry, consumer)


def reserve_group(entry: Entry, consumer: Consumer) -> None:
    """Reserves the group that a consumer in logical order is in, if it is free; no other one."""
    queue, position = consumer.queue, consumer.group_position
    wanted = None
    if position is not None and consumer.options.logical_order and consumer.key in queue.consumers:
        wanted = position[0]
    if consumer.reserved_group == wanted:
        return
    end_reservation(entry, consumer)
    if wanted is not None and wanted not in queue.reserved:
        queue.reserved[wanted] = consumer
        consumer.reserved_group = wanted


def end_reservation(entry: Entry, consumer: Consumer) -> None:
    queue, group_id = consumer.queue, consumer.reserved_group
    if group_id is not None:
        del queue.reserved[group_id]
        group = queue.groups.get(group_id)
        if group is not None and (group.away < group.count or group.clashing):
            offer_again(queue, group.items())
        consumer.reserved_group = None
        entry.touch(queue)


def disagreement(queue: Queue, position: GroupPosition | None, options: Options) -> str | None:
    """What match options say against the item that logical order brings next (GRP-44), in words."""
    if position is None or not options.logical_order:
        return None
    named = options._replace(message_id=b"", correlation_id=None, sequence=-1)
    wanted = (named.group_id or position[0], named.group_sequence or position[1])
    offset = position[2] if named.offset < 0 else named.offset
    if (*wanted, offset) != position:
        return (
            f"message {options.group_sequence or position[1]} at offset {offset} of group "
            f"{(options.group_id or position[0]).hex()} is asked for, but logical order brings "
            f"message {position[1]} at offset {position[2]} of group {position[0].hex()}"
        )
    item = available_item(queue, position, options)
    if item is not None and not matches_fields(options, item):
        return "the next item in logical order has another message id or correlation id"
    return None
