"""Browsing: pages of a queue's available messages, each made with bounded work (H28, SES-40).

In physical order a cursor is the place of the message seen last. In logical order it is the place
of the first item entered last, and beside it stands which item of that group comes next: so a page
goes on in a group whose first item is gone (GRP-15).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ledgermq.core.delivery.delivered_messages import delivered_message
from ledgermq.core.order.group_positions import available_item, position_after, unit_of
from ledgermq.core.order.selecting import is_permitted, is_wanted, matches
from ledgermq.core.state.records import Message, Queue, bytes_of
from ledgermq.protocol.get_options import PLAIN, GroupPosition, Options
from ledgermq.protocol.limits import (
    BROWSE_EXAMINED_MAX,
    DELIVERED_CONTENT_BYTES_MAX,
    DELIVERED_MESSAGES_MAX,
    PRIORITY_MAX,
)
from ledgermq.protocol.outcomes import DeliveredMessage
from ledgermq.selector import Selector


class Cursor(NamedTuple):
    """From where a page goes on: behind a place in delivery order, or inside a group."""

    after_priority: int = PRIORITY_MAX
    after_sequence: int = -1
    position: GroupPosition | None = None


class Page(NamedTuple):
    """Messages, whether there may be more, and the cursor from which to go on.

    `is_large`: it is one logical message in segments with more content than other pages have.
    """

    messages: list[DeliveredMessage]
    more: bool
    cursor: Cursor
    is_large: bool = False


def browse(
    queue: Queue,
    cursor: Cursor,
    limit: int,
    selector: Selector | None = None,
    options: Options = PLAIN,
) -> Page:
    """A page of available messages after a cursor in delivery or logical order.

    At most 1,000 messages and 1 MiB of content (one message at least), of those that match; a page
    looks at no more than 20,000 sequence numbers, so it may be empty though there is more.
    """
    page: list[DeliveredMessage] = []
    page_bytes = 0
    limit = max(1, min(limit, DELIVERED_MESSAGES_MAX))
    for unit, behind in _units(queue, cursor, selector, options):
        if unit is None:
            return Page(page, True, behind, _is_large(page, page_bytes))
        unit_bytes = bytes_of(unit)
        full = page_bytes + unit_bytes > DELIVERED_CONTENT_BYTES_MAX
        if page and (len(page) >= limit or full):
            return Page(page, True, cursor, _is_large(page, page_bytes))
        page.extend(delivered_message(one) for one in unit)
        page_bytes += unit_bytes
        cursor = behind
    return Page(page, False, cursor, _is_large(page, page_bytes))


def _is_large(page: list[DeliveredMessage], page_bytes: int) -> bool:
    return len(page) > 1 and page_bytes > DELIVERED_CONTENT_BYTES_MAX


Step = tuple[Sequence[Message] | None, Cursor]


def _units(
    queue: Queue, cursor: Cursor, selector: Selector | None, options: Options
) -> Iterator[Step]:
    """What is shown at a time, with the cursor behind it; None where enough was looked at."""
    examined = 0
    if options.logical_order and cursor.position is not None:
        cursor, steps = _rest_of_group(queue, cursor, options)
        yield from steps
        if cursor.position is not None:
            return
    for priority, sequence in _places(queue, cursor):
        if examined >= BROWSE_EXAMINED_MAX:
            yield None, Cursor(priority, sequence - 1)
            return
        examined += 1
        message = queue.messages.get(sequence)
        if message is None or not _is_shown(message, priority, selector, options):
            continue
        unit = unit_of(options, message)
        here = Cursor(priority, sequence)
        if options.logical_order:
            here = here._replace(position=position_after(unit[-1]))
        yield unit, here
        if here.position is not None:
            here, steps = _rest_of_group(queue, here, options)
            yield from steps
            examined += len(steps)
            if here.position is not None:
                return


def _places(queue: Queue, cursor: Cursor) -> Iterator[tuple[int, int]]:
    for priority in range(min(cursor.after_priority, PRIORITY_MAX), -1, -1):
        if queue.available.has_priority(priority) or _may_be_passed_over(queue):
            start = cursor.after_sequence + 1 if priority == cursor.after_priority else 0
            for sequence in range(max(start, queue.min_sequence), queue.next_sequence):
                yield priority, sequence


def _may_be_passed_over(queue: Queue) -> bool:
    """Whether what is available may stand in no order of delivery."""
    return bool(queue.reserved) or queue.affinity is not None or queue.group_order is not None


def _rest_of_group(queue: Queue, cursor: Cursor, options: Options) -> tuple[Cursor, list[Step]]:
    steps: list[Step] = []
    position = cursor.position
    while position is not None and len(steps) <= DELIVERED_MESSAGES_MAX:
        item = available_item(queue, position, options)
        if item is None:
            break
        unit = unit_of(options, item)
        position = position_after(unit[-1])
        cursor = cursor._replace(position=position)
        steps.append((unit, cursor))
    return cursor, steps


def _is_shown(message: Message, priority: int, selector: Selector | None, options: Options) -> bool:
    """Whether a message is available (SES-67), of that priority, and wanted."""
    if message.priority != priority or not message.is_available:
        return False
    if not (is_wanted(options, message) and is_permitted(options, message)):
        return False
    return selector is None or matches(selector, message)
