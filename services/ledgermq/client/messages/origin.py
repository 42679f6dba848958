"""Where a message was before it was moved, and why (PROTOCOL.md §14)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from ledgermq.protocol.documents.fields import status_of
from ledgermq.protocol.outcomes import Origin as OriginRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The place that a message came from, and how it was there.

    Attributes:
        destination: That place, as `queue:NAME` or `topic:NAME`.
        sequence: Its sequence number there.
        reason: Why it went: `expired`, `redelivery-limit`, `rejected` (by its application),
            `unrouted` (no subscription of its topic wanted it), `bound` (a binding of its topic
            handed on a copy), `moved`, `copied`, `retried`, or `group-parked`: it followed one of
            its group that was rejected or went for `redelivery-limit`.
        backout_count: How often it had gone back there.
        enqueued_at: When it got that number, by the log's clock.
    """

    destination: str
    sequence: int
    reason: str
    backout_count: int
    enqueued_at: datetime

    @classmethod
    def from_record(cls, record: OriginRecord) -> Origin:
        """From what a delivery says."""
        return status_of(cls, {**record})
