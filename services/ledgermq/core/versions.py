"""Protocol versions: offered by workers, made active by Upgrade (PROTOCOL.md §8; H3).

Of positions that an operator declared skipped those alone count that every worker stops at: holes,
and entries by which a version comes that nobody may know (`may_be_skipped`).
"""

from __future__ import annotations

from typing import Final

from ledgermq.core.entry import Entry
from ledgermq.core.ranges import check_actor
from ledgermq.core.state.manager import QueueManager
from ledgermq.core.state.records import Session
from ledgermq.protocol.administration import PositionsSkipped, VersionOffered
from ledgermq.protocol.limits import VERSION_MAX
from ledgermq.protocol.operations import Operation, Unreadable, Upgrade
from ledgermq.protocol.reasons import Reason, Refusal

# What stands in place of an entry at a position that was declared skipped.
SKIPPED: Final = Unreadable(
    reason=Reason.POSITION_SKIPPED, detail="the position was declared skipped (`ledgermq log skip`)"
)


def upgrade(entry: Entry, session: Session, operation: Upgrade) -> Refusal | None:
    """Sets the version that later entries are read by; a fold without it stops there (H3)."""
    active, offered = entry.state.active_version, entry.state.offered_version
    if operation.version <= active:
        return Refusal(
            Reason.VERSION_INVALID,
            f"version {operation.version} is not above the active one, {active}",
        )
    if operation.version > offered:
        return Refusal(
            Reason.VERSION_INVALID,
            f"version {operation.version} was never offered by a worker, the highest that was is "
            f"{offered}; start a worker of a LedgerMQ that knows it",
        )
    entry.state.active_version = operation.version
    return None


def offer_version(state: QueueManager, operation: VersionOffered) -> Refusal | None:
    if not 1 <= operation.version <= VERSION_MAX:
        return Refusal(
            Reason.VERSION_INVALID,
            f"version {operation.version} is none, must be 1 to {VERSION_MAX}",
        )
    state.offered_version = max(state.offered_version, operation.version)
    return None


def check_skip(operation: PositionsSkipped, position: int) -> Refusal | None:
    if operation.counts_at(position):
        return None
    return check_actor(operation.actor, operation.reason) or Refusal(
        Reason.SELECTION_INVALID,
        f"{operation.first} to {operation.last} are no positions below {position}",
    )


def may_be_skipped(state: QueueManager, operation: Operation) -> bool:
    """Whether skipping the next entry counts: it must bring a version that may not be known."""
    if isinstance(operation, Upgrade):
        return state.active_version < operation.version <= VERSION_MAX
    if isinstance(operation, VersionOffered):
        return state.offered_version < operation.version <= VERSION_MAX
    return False


def time_of_hole(state: QueueManager) -> int:
    """The time at which a hole is folded: where the agreed clock is, so that none passes."""
    return state.time if state.time_reference < 0 else state.time_reference
