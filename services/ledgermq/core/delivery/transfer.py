"""Transfer: a message that left its queue goes on elsewhere, as a new one (INF-12, INF-19).

It keeps its identity, its body's place in the log and in the storage and its sender's header, gets
a number at the new place, and says where it came from. A transfer is never refused: whatever names
a destination for it has made sure that it is there, and goes first.
"""

from __future__ import annotations

from typing import Final

from ledgermq.core.destinations.by_name import find_destination
from ledgermq.core.destinations.numbering import copy_to, enqueue
from ledgermq.core.entry import Entry
from ledgermq.core.puts.times import redelivery_limit
from ledgermq.core.state.message_states import EXPIRED, NEW
from ledgermq.core.state.records import Message, Times
from ledgermq.protocol.outcomes import Origin

# A reason that the fold itself gives, and one that an application does.
REDELIVERY_LIMIT: Final = "redelivery-limit"
REJECTED: Final = "rejected"
# Those of an administrator: what was unborn stays so.
MOVED_BY_HAND: Final = "moved"
COPIED: Final = "copied"
RETRIED: Final = "retried"
BY_HAND: Final = (MOVED_BY_HAND, COPIED, RETRIED)


def transfer(entry: Entry, message: Message, destination: str, reason: str) -> None:
    """Puts a message to a destination that is there, as a new one, numbered now.

    The message has left its queue, unless this is a copy. One that expired never expires by its
    own time again. Of one that came back too often, or was rejected, the sender's redelivery limit
    is not asked for.
    """
    target = find_destination(entry.state, destination)
    assert target is not None, f"{destination} is named by a setting or was looked for"
    moved = copy_to(message, target)
    times = message.times
    expires_at = -1 if times is None or reason == EXPIRED else times.expires_at
    deliver_at = -1
    if times is not None and reason in BY_HAND and times.deliver_at > entry.state.time:
        deliver_at = times.deliver_at
    header = None if reason in (REDELIVERY_LIMIT, REJECTED) else message.header
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
    enqueue(entry, target, [moved], NEW)
