"""Bytes beside counts, high-water marks, and what waits for a quota (PROTOCOL.md §9, §16)."""

from __future__ import annotations

from typing import Any

from ledgermq.core.queue import Queue
from ledgermq.core.state import QueueManager
from ledgermq.core.topics import Subscription, Topic

__all__ = ["blocked_status", "current_bytes", "held_bytes_status"]

Document = dict[str, Any]


def current_bytes(queue: Queue) -> int:
    """Sizes of the available messages of a queue or subscription."""
    held = queue.unacknowledged_bytes + queue.uncommitted_gets_bytes
    return queue.message_bytes - queue.unborn_bytes - queue.delayed_bytes - held


def held_bytes_status(queue: Queue) -> Document:
    """What a status says of bytes, by state; as many names as there are counts."""
    told: Document = {"message_bytes": queue.message_bytes}
    if not isinstance(queue, Topic):
        current = current_bytes(queue)
        told |= {
            "current_bytes": current,
            "pending_bytes": queue.held_bytes - current,
            "unborn_bytes": queue.unborn_bytes,
            "delayed_bytes": queue.delayed_bytes,
            "unacknowledged_bytes": queue.unacknowledged_bytes,
            "uncommitted_gets_bytes": queue.uncommitted_gets_bytes,
        }
    if not isinstance(queue, Subscription):
        told["uncommitted_puts_bytes"] = queue.uncommitted_puts_bytes
    return told | {"messages_high": queue.messages_high, "bytes_high": queue.bytes_high}


def blocked_status(state: QueueManager, destination: str) -> Document:
    """The blocked puts to a destination; in no other figure of it (INF-05)."""
    waiting = list(state.blocked_at.get(destination, {}).values())
    return {
        "puts": len(waiting),
        "messages": sum(len(one.messages) for one in waiting),
        "bytes": sum(one.size_bytes for one in waiting),
        "since": waiting[0].since if waiting else None,
    }
