"""What is told of groups: complete or not, what is missing, who holds the rest (GRP-46)."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from itertools import islice
from typing import Final

from ledgermq.core.moves import state_of
from ledgermq.core.queries.paging import page_of
from ledgermq.core.state.group import LAST_IN_GROUP, LAST_SEGMENT, MEMBER, SEGMENT, Group, Segments
from ledgermq.core.state.message_states import NAMES
from ledgermq.core.state.records import GroupedMessage, Queue
from ledgermq.protocol.documents.fields import Document, document_of
from ledgermq.protocol.documents.groups import GroupHolder, GroupMember, GroupState, MissingSegments
from ledgermq.protocol.limits import DELIVERED_MESSAGES_MAX, GROUP_MEMBERS_MAX

# Of what is missing in a group, and of what clashes, so much is told.
GAPS_MAX: Final = 10_000


def group_statuses(queue: Queue, after: bytes, limit: int) -> Document:
    limit = max(1, min(limit, DELIVERED_MESSAGES_MAX))
    found = heapq.nsmallest(limit + 1, (one for one in queue.groups if one > after))
    shown, behind = page_of(
        (one.hex(), group_status(queue, queue.groups[one])) for one in found[:limit]
    )
    return {"more": len(found) > limit or behind != "", "groups": shown}


def group_document(
    queue: Queue,
    group: Group[GroupedMessage],
    after: tuple[int, int] = (0, 0),
    limit: int = GROUP_MEMBERS_MAX,
) -> Document:
    """One group with a page of its items in logical order, behind a place; those that clash last.

    At most 5,000 members, so that the answer fits one record; the clashing ones, few as they are,
    all stand on the last page.
    """
    limit = max(1, min(limit, GROUP_MEMBERS_MAX))
    behind = list(islice(group.members(after), limit + 1))
    more = len(behind) > limit
    shown = [*behind[:limit], *([] if more else group.clashing[:GAPS_MAX])]
    return {**group_status(queue, group), "more": more, "members": [_item(one) for one in shown]}


def group_status(queue: Queue, group: Group[GroupedMessage]) -> Document:
    """One group without its items; of one that is whole and available none of them is looked at."""
    missing, missing_segments = [*_missing(group)], [*_missing_segments(group)]
    unlisted = {
        "missing_unlisted": sum(last - first + 1 for first, last in missing[GAPS_MAX:]),
        "missing_segments_unlisted": len(missing_segments[GAPS_MAX:]),
        "clashing_unlisted": len(group.clashing[GAPS_MAX:]),
    }
    first = group.first
    held = [*group.clashing, *(group.members() if group.away else ())]
    keeper = queue.reserved.get(group.group_id)
    holder = None
    if keeper is not None:
        holder = document_of(
            GroupHolder, keeper, session=keeper.session.handle, consumer=keeper.number
        )
    return document_of(
        GroupState,
        group,
        group_id=group.group_id.hex(),
        complete=group.is_complete,
        available=group.is_available,
        messages=len(group.slots),
        items=group.count + len(group.clashing),
        last_group_sequence=group.last,
        missing=missing[:GAPS_MAX],
        missing_segments=missing_segments[:GAPS_MAX],
        clashing=[one.sequence for one in group.clashing[:GAPS_MAX]],
        held=sum(1 for one in held if one.consumer is not None),
        holder=holder,
        first_sequence=first.sequence,
        first_enqueued_at=first.enqueued_at,
        **{name: count for name, count in unlisted.items() if count},
    )


def _missing(group: Group[GroupedMessage]) -> Iterator[list[int]]:
    """Ranges of group sequences that are not here, first and last of each."""
    numbers = sorted(group.slots)
    if numbers and numbers[-1] == len(numbers):
        return
    expected = 1
    for number in numbers:
        if number > expected:
            yield [expected, number - 1]
        expected = number + 1


def first_missing(group: Group[GroupedMessage]) -> str:
    """What is missing first of a group, in words; empty: nothing is."""
    for first, _ in _missing(group):
        return f"message {first} is missing"
    for gap in _missing_segments(group):
        return f"bytes of message {gap['group_sequence']} are missing from {gap['from']} on"
    if group.in_group and not group.last:
        return f"what comes after message {max(group.slots, default=0)} is missing"
    return ""


def _missing_segments(group: Group[GroupedMessage]) -> Iterator[Document]:
    if group.whole == len(group.slots):
        return
    for number, slot in sorted(group.slots.items()):
        if not isinstance(slot, Segments) or slot.is_whole:
            continue
        expected = 0
        for item in slot.in_order():
            if item.offset > expected:
                yield _gap(number, expected, item.offset)
            expected = item.offset + item.length
        if slot.end < 0:
            yield _gap(number, expected, -1)


def _gap(group_sequence: int, start: int, end: int) -> Document:
    shown = {"group_sequence": group_sequence, "from": start, "to": end}
    return document_of(MissingSegments, None, **shown)


def _item(item: GroupedMessage) -> Document:
    consumer = item.consumer
    return document_of(
        GroupMember,
        item,
        last_in_group=item.flags & LAST_IN_GROUP != 0,
        segment=item.flags & SEGMENT != 0,
        last_segment=item.flags & LAST_SEGMENT != 0,
        state=_state(item),
        session=None if consumer is None else consumer.session.handle,
        consumer=None if consumer is None else consumer.number,
    )


def _state(item: GroupedMessage) -> str:
    if item.consumer is not None:
        return "held"
    if not item.flags & MEMBER:
        return "clashing"
    return NAMES[state_of(item)]
