"""Browsing: pages of a queue's available messages, each made with bounded work (H28, SES-40)."""

from __future__ import annotations

from typing import NamedTuple

from ledgermq.core.delivery import delivered_message
from ledgermq.core.limits import (
    BROWSE_EXAMINED_MAX,
    DELIVERED_CONTENT_BYTES_MAX,
    DELIVERED_MESSAGES_MAX,
    PRIORITY_MAX,
)
from ledgermq.core.outcomes import DeliveredMessage
from ledgermq.core.queue import Message, Queue
from ledgermq.core.selecting import matches
from ledgermq.core.selector import Selector

__all__ = ["Page", "browse"]


class Page(NamedTuple):
    """Messages, whether there may be more, and the cursor from which to go on."""

    messages: list[DeliveredMessage]
    more: bool
    after_priority: int
    after_sequence: int


def browse(
    queue: Queue,
    after_priority: int,
    after_sequence: int,
    limit: int,
    selector: Selector | None = None,
) -> Page:
    """A page of available messages after a cursor in delivery order.

    At most 1,000 messages and 1 MiB of content (one message at least), of those that match; a page
    looks at no more than 20,000 sequence numbers, so it may be empty though there is more.
    """
    page: list[DeliveredMessage] = []
    page_bytes = examined = 0
    limit = max(1, min(limit, DELIVERED_MESSAGES_MAX))
    last = (after_priority, after_sequence)
    for priority in range(min(after_priority, PRIORITY_MAX), -1, -1):
        if not queue.available.has_priority(priority):
            continue
        start = after_sequence + 1 if priority == after_priority else 0
        for sequence in range(max(start, queue.min_sequence), queue.next_sequence):
            if examined == BROWSE_EXAMINED_MAX:
                return Page(page, True, priority, sequence - 1)
            examined += 1
            message = queue.messages.get(sequence)
            if message is None or not _is_shown(message, priority, selector):
                continue
            page_bytes += message.size_bytes
            if page and (len(page) == limit or page_bytes > DELIVERED_CONTENT_BYTES_MAX):
                return Page(page, True, *last)
            page.append(delivered_message(message))
            last = (priority, sequence)
    return Page(page, False, *last)


def _is_shown(message: Message, priority: int, selector: Selector | None) -> bool:
    """Whether a message is available (SES-67), of that priority, and matches."""
    if message.priority != priority or message.consumer is not None:
        return False
    if message.times is not None and message.times.unborn:
        return False
    return selector is None or matches(selector, message)
