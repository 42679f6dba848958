"""What is told of groups: complete or not, what is missing, who holds the rest (GRP-46)."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from ledgermq.core.group import Group, Segments
from ledgermq.core.message import (
    LAST_IN_GROUP,
    LAST_SEGMENT,
    MEMBER,
    SEGMENT,
    GroupedMessage,
)
from ledgermq.core.paging import page_of
from ledgermq.core.queue import Queue
from ledgermq.protocol.limits import DELIVERED_MESSAGES_MAX, GROUP_MEMBERS_MAX

__all__ = ["group_document", "group_statuses"]

Document = dict[str, Any]
# Of what is missing in a group, and of what clashes, so much is told.
GAPS_TOLD: Final = 10_000


def group_statuses(queue: Queue, after: bytes, limit: int) -> Document:
    """A page of the groups of a queue by group id, behind one."""
    limit = max(1, min(limit, DELIVERED_MESSAGES_MAX))
    found = heapq.nsmallest(limit + 1, (one for one in queue.groups if one > after))
    shown, behind = page_of((one.hex(), _status(queue, queue.groups[one])) for one in found[:limit])
    return {"more": len(found) > limit or behind != "", "groups": shown}


def group_document(
    queue: Queue,
    group: Group,
    after: tuple[int, int] = (0, 0),
    limit: int = GROUP_MEMBERS_MAX,
) -> Document:
    """One group with a page of its items in logical order, behind a place; those that clash last.

    At most 5,000 members, so that the answer fits one record; the clashing ones, few as they are,
    all stand on the last page.
    """
    limit = max(1, min(limit, GROUP_MEMBERS_MAX))
    behind = [one for one in group.members() if (one.group_sequence, one.offset) > after]
    more = len(behind) > limit
    shown = [*behind[:limit], *([] if more else group.clashing[:GAPS_TOLD])]
    return {**_status(queue, group), "more": more, "members": [_item(one) for one in shown]}


def _status(queue: Queue, group: Group) -> Document:
    items = list(group.items())
    first = min(items, key=lambda one: one.sequence)
    keeper = queue.kept.get(group.group_id)
    holder = None
    if keeper is not None:
        holder = {"session": keeper.session.handle, "consumer": keeper.number}
    return {
        "group_id": group.group_id.hex(),
        "in_group": group.in_group,
        "complete": group.is_complete,
        "available": group.is_available,
        "messages": len(group.slots),
        "items": len(items),
        "last_group_sequence": group.last,
        "missing": list(islice(_missing(group), GAPS_TOLD)),
        "missing_segments": list(islice(_missing_segments(group), GAPS_TOLD)),
        "clashing": [one.sequence for one in group.clashing[:GAPS_TOLD]],
        "held": sum(1 for one in items if one.consumer is not None),
        "holder": holder,
        "first_sequence": first.sequence,
        "first_enqueued_at": first.enqueued_at,
    }


def _missing(group: Group) -> Iterator[list[int]]:
    """Ranges of group sequences that are not here, first and last of each."""
    expected = 1
    for number in sorted(group.slots):
        if number > expected:
            yield [expected, number - 1]
        expected = number + 1


def _missing_segments(group: Group) -> Iterator[Document]:
    for number, slot in sorted(group.slots.items()):
        if not isinstance(slot, Segments) or slot.is_whole:
            continue
        expected = 0
        for item in slot.in_order():
            if item.offset > expected:
                yield {"group_sequence": number, "from": expected, "to": item.offset}
            expected = item.offset + item.length
        if slot.end < 0:
            yield {"group_sequence": number, "from": expected, "to": -1}


def _item(item: GroupedMessage) -> Document:
    consumer = item.consumer
    return {
        "group_sequence": item.group_sequence,
        "offset": item.offset,
        "length": item.length,
        "sequence": item.sequence,
        "priority": item.priority,
        "last_in_group": item.flags & LAST_IN_GROUP != 0,
        "segment": item.flags & SEGMENT != 0,
        "last_segment": item.flags & LAST_SEGMENT != 0,
        "state": _state(item),
        "session": None if consumer is None else consumer.session.handle,
        "consumer": None if consumer is None else consumer.number,
    }


def _state(item: GroupedMessage) -> str:
    if item.consumer is not None:
        return "held"
    if not item.flags & MEMBER:
        return "clashing"
    times = item.times
    if times is None or times.waits_until < 0:
        return "available"
    return "unborn" if times.is_unborn else "delayed"
