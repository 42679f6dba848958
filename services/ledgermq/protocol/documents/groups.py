"""Groups as answers tell them: what is there, what is missing, who holds it (GRP-46)."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from ledgermq.protocol.documents.fields import BESIDE


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupHolder:
    """The consumer that a group is reserved for: handle of its session, number within that."""

    session: int
    consumer: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingSegments:
    """Bytes of one logical message that no segment in the queue covers.

    Attributes:
        group_sequence: Number of the logical message.
        start: Offset of the first byte that is missing.
        end: Offset behind the last one; None: where the message ends is not known.
    """

    group_sequence: int
    start: int = field(metadata={"key": "from"})
    end: int | None = field(metadata={"key": "to", "none": -1})


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMember:
    """One item of a group: a message or segment in the queue.

    Attributes:
        offset: Where a segment begins in its logical message, in bytes; 0 for other messages.
        length: Bytes of a segment.
        sequence: Sequence number in the queue.
        state: `available`, `held` (in flight), `unborn` (not to be delivered yet),
            `delayed` (came back and waits for its redelivery delay), or `clashing`
            with an item that was there before.
        session: Handle of the session that holds it, or None.
        consumer: Number of the consumer within that session, or None.
    """

    group_sequence: int
    offset: int
    length: int
    sequence: int
    priority: int
    last_in_group: bool
    segment: bool
    last_segment: bool
    state: str
    session: int | None
    consumer: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupState:
    """What a queue holds of one group, or of one message in segments, at one log position.

    Consumed items are no longer in the queue: of a group that is half consumed the first messages
    are missing.

    Attributes:
        group_id: 24 bytes.
        position: Log position that this is true at.
        in_group: Whether it is a group; else one message in segments.
        complete: Whether all its messages are in the queue, whole.
        available: Whether, besides, all of them are available (GRP-20).
        messages: Logical messages of which something is there; one that clashes does not count.
        items: Messages and segments, those that clash too.
        last_group_sequence: Number of the group's last message; 0 while that is not there.
        missing: Numbers that are missing below the last one, or below the highest that is there,
            as ranges: first and last number of each.
        missing_segments: What is missing of messages that are there in part.
        clashing: Sequence numbers of the items that contradict those before them; they are got in
            physical order only, until what they clash with has left the queue.
        held: Items in flight.
        holder: Whom the rest is reserved for, because it is in the group in logical order; or None.
        first_sequence: Sequence number of the oldest item.
        first_enqueued_at: When that was numbered.
        members: Its items in logical order, then those that clash; `groups` leaves them out.
        missing_unlisted: How many numbers are missing behind the ranges in `missing`, which has the
            first 10,000; likewise `missing_segments_unlisted` and `clashing_unlisted`.
    """

    group_id: bytes
    position: int = field(metadata=BESIDE)
    in_group: bool
    complete: bool
    available: bool
    messages: int
    items: int
    last_group_sequence: int
    missing: tuple[tuple[int, int], ...]
    missing_segments: tuple[MissingSegments, ...]
    clashing: tuple[int, ...]
    held: int
    holder: GroupHolder | None
    first_sequence: int
    first_enqueued_at: datetime
    members: tuple[GroupMember, ...] = ()
    missing_unlisted: int = 0
    missing_segments_unlisted: int = 0
    clashing_unlisted: int = 0

    @property
    def highest_group_sequence(self) -> int:
        """Number of the last message that is there."""
        listed = sum(last - first + 1 for first, last in self.missing)
        return self.messages + listed + self.missing_unlisted
