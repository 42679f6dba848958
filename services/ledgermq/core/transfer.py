"""Transfer: a message that left its queue goes on elsewhere, as a new one (INF-12, INF-19).

It keeps its identity, its body's place in the log and in the storage and its sender's header, gets
a number at the new place, and says where it came from. A transfer is never refused: whatever names
a destination for it has made sure that it is there, and goes first.
"""

from __future__ import annotations

from typing import Final

from ledgermq.core.destinations import find_destination
from ledgermq.core.message import Message, Times
from ledgermq.core.topics import Topic
from ledgermq.core.turn import Turn
from ledgermq.protocol.operations import Header
from ledgermq.protocol.outcomes import Origin
from ledgermq.protocol.settings import Settings

__all__ = [
    "COPIED",
    "EXPIRED",
    "MOVED",
    "REDELIVERY_LIMIT",
    "RETRIED",
    "redelivery_limit",
    "transfer",
]

# Reasons that the fold itself gives.
EXPIRED: Final = "expired"
REDELIVERY_LIMIT: Final = "redelivery-limit"
# Those of an administrator: what was unborn stays so.
MOVED: Final = "moved"
COPIED: Final = "copied"
RETRIED: Final = "retried"
BY_HAND: Final = (MOVED, COPIED, RETRIED)


def redelivery_limit(header: Header | None, settings: Settings) -> int:
    """How often a message that comes in is redelivered at most; -1: no limit (INF-16)."""
    if settings.redelivery_limit >= 0 or header is None:
        return settings.redelivery_limit
    return header.get("redelivery_limit", -1)


def transfer(turn: Turn, message: Message, destination: str, reason: str) -> Message:
    """Puts a message to a destination that is there; returns the new one, numbered now.

    The message has left its queue, unless this is a copy. One that expired never expires by its
    own time again, and its sender's redelivery limit is not asked for where one was exceeded.
    """
    target = find_destination(turn.state, destination)
    assert target is not None, f"{destination} is named by a setting or was looked for"
    moved = message.move_to(target, keeps_group=not isinstance(target, Topic))
    times = message.times
    expires_at = -1 if times is None or reason == EXPIRED else times.expires_at
    deliver_at = -1
    if times is not None and reason in BY_HAND and times.deliver_at > turn.state.time:
        deliver_at = times.deliver_at
    header = None if reason == REDELIVERY_LIMIT else message.header
    limit = redelivery_limit(header, target.settings)
    if expires_at >= 0 or deliver_at >= 0 or limit >= 0:
        moved.times = Times(expires_at, deliver_at, limit)
    moved.origin = Origin(
        destination=message.queue.destination,
        sequence=message.sequence,
        reason=reason,
        backout_count=message.backout_count,
        enqueued_at=message.enqueued_at,
    )
    moved.segment = message.segment
    moved.segment.hold(moved.size_bytes)
    target.enqueue(turn.state, [moved], None)
    for served in target.served():
        turn.touch(served)
    return moved
