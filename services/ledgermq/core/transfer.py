"""Transfer: a message that left its queue goes on elsewhere, as a new one (INF-12, INF-19).

It keeps its identity, its body's place in the log and in the storage and its sender's header, gets
a number at the new place, and says where it came from. A transfer is never refused: whatever names
a destination for it has made sure that it is there, and goes first.
"""

from __future__ import annotations

from typing import Final

from ledgermq.core.destinations import find_destination
from ledgermq.core.message import Message, Times
from ledgermq.core.outcomes import Origin
from ledgermq.core.topics import Topic
from ledgermq.core.turn import Turn

__all__ = ["EXPIRED", "transfer"]

# Reasons that the fold itself gives.
EXPIRED: Final = "expired"


def transfer(turn: Turn, message: Message, destination: str, reason: str) -> Message:
    """Puts a message that has left its queue to a destination that is there; returns the new one.

    It is numbered now. One that expired never expires by its own time again.
    """
    target = find_destination(turn.state, destination)
    assert target is not None, f"{destination} is named by a setting, so it is there"
    moved = message.move_to(target, keeps_group=not isinstance(target, Topic))
    if message.times is not None and message.times.expires_at >= 0 and reason != EXPIRED:
        moved.times = Times(message.times.expires_at, -1)
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
