"""The states that a message can be in, and the moves between them that there are."""

from __future__ import annotations

from typing import Final

# Those that are counted, in the order of the counters.
UNCOMMITTED: Final = 0
UNBORN: Final = 1
AVAILABLE: Final = 2
DELAYED: Final = 3
UNACKNOWLEDGED: Final = 4
UNCOMMITTED_GET: Final = 5
# Of a topic: some subscription has it.
PUBLISHED: Final = 6
# Before and after.
NEW: Final = 7
GONE: Final = 8

NAMES: Final = (
    "uncommitted put",
    "unborn",
    "available",
    "delayed",
    "unacknowledged",
    "uncommitted get",
    "published",
    "new",
    "gone",
)

# Why a message is gone.
CONSUMED: Final = "consumed"
EXPIRED: Final = "expired"
# Newer ones took its place (§23).
DISPLACED: Final = "displaced"
# It goes on elsewhere, as a new message.
MOVED: Final = "moved"
# It had nowhere to go, or nobody wants it.
DROPPED: Final = "dropped"
# An administrator took it out.
REMOVED: Final = "removed"
# Its queue or subscription went.
PURGED: Final = "purged"
ROLLED_BACK: Final = "rolled back"

# What statuses and checkpoints count of what is gone, by their names of it.
GONE_BY: Final = {
    "sent_and_committed": CONSUMED,
    "expired": EXPIRED,
    "displaced": DISPLACED,
    "removed_by_administration": REMOVED,
    "moved": MOVED,
    "dropped": DROPPED,
}

# Where a message can go from each state; `moves.move` alone takes it there.
MOVES: Final[dict[int, tuple[int, ...]]] = {
    NEW: (UNCOMMITTED, UNBORN, AVAILABLE, PUBLISHED, GONE),
    UNCOMMITTED: (UNBORN, AVAILABLE, PUBLISHED, GONE),
    UNBORN: (AVAILABLE, GONE),
    AVAILABLE: (UNACKNOWLEDGED, UNCOMMITTED_GET, GONE),
    UNACKNOWLEDGED: (AVAILABLE, DELAYED, GONE),
    UNCOMMITTED_GET: (AVAILABLE, DELAYED, GONE),
    DELAYED: (AVAILABLE, GONE),
    PUBLISHED: (GONE,),
}
# Why a message is gone that was in a state.
CAUSES: Final[dict[int, tuple[str, ...]]] = {
    NEW: (MOVED, DROPPED),
    UNCOMMITTED: (MOVED, DROPPED, PURGED, ROLLED_BACK),
    UNBORN: (EXPIRED, MOVED, DROPPED, REMOVED, PURGED),
    AVAILABLE: (EXPIRED, DISPLACED, MOVED, DROPPED, REMOVED, PURGED),
    UNACKNOWLEDGED: (CONSUMED, EXPIRED, MOVED, DROPPED, REMOVED),
    UNCOMMITTED_GET: (CONSUMED, EXPIRED, MOVED, DROPPED, REMOVED),
    DELAYED: (EXPIRED, MOVED, DROPPED, REMOVED, PURGED),
    PUBLISHED: (CONSUMED, EXPIRED, DISPLACED, MOVED, DROPPED),
}
