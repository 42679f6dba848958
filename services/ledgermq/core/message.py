"""Messages as state: what the fold keeps of a live message; its body stays in the log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from ledgermq.protocol.operations import Header

if TYPE_CHECKING:
    from ledgermq.core.group import Group
    from ledgermq.core.queue import Queue
    from ledgermq.core.state import Consumer
    from ledgermq.core.storage import Segment
    from ledgermq.protocol.outcomes import Origin

__all__ = [
    "AWAY",
    "IN_GROUP",
    "IN_UNIT_OF_WORK",
    "LAST_IN_GROUP",
    "LAST_SEGMENT",
    "MEMBER",
    "SEGMENT",
    "GroupedMessage",
    "Message",
    "SegmentMessage",
    "Times",
    "place_in_order",
]

M = TypeVar("M", bound="Message")

# What a grouped message is; small enough that Python shares the numbers.
IN_GROUP: Final = 1
LAST_IN_GROUP: Final = 2
SEGMENT: Final = 4
LAST_SEGMENT: Final = 8
IN_UNIT_OF_WORK: Final = 16
# Of a numbered one: it is a member of its group; it is one and not available.
MEMBER: Final = 32
AWAY: Final = 64


class Times:
    """When a message expires and when it may be delivered, in µs, and how often; -1: none.

    A numbered message that is in nobody's hands and not to be delivered yet waits until a moment:
    it is unborn, or delayed. What is unborn was never delivered, and waits for its own birth.
    """

    __slots__ = ("deliver_at", "expires_at", "redelivery_limit", "waits_until")

    def __init__(self, expires_at: int, deliver_at: int, redelivery_limit: int = -1) -> None:
        self.expires_at = expires_at
        self.deliver_at = deliver_at
        self.redelivery_limit = redelivery_limit
        self.waits_until = -1

    @property
    def is_unborn(self) -> bool:
        """Whether it waits to be delivered for the first time (INF-01)."""
        return 0 <= self.waits_until == self.deliver_at

    @property
    def is_delayed(self) -> bool:
        """Whether it waits to be delivered again (INF-10)."""
        return 0 <= self.waits_until != self.deliver_at

    @property
    def is_empty(self) -> bool:
        """Whether it says nothing."""
        return self.expires_at < 0 and self.deliver_at < 0 and self.redelivery_limit < 0


class Message:
    """A live message; its body stays in the log at (put_position, put_index), or at `body`."""

    __slots__ = (
        "backout_count",
        "body",
        "consumer",
        "enqueued_at",
        "header",
        "message_id",
        "origin",
        "persistent",
        "priority",
        "put_index",
        "put_position",
        "queue",
        "segment",
        "sequence",
        "size_bytes",
        "times",
    )

    # Where it is stored; every message that was accepted has one.
    segment: Segment
    # Those of a message in no group; kept by class, so that they cost it nothing.
    group: Group | None = None
    group_sequence: int = 1
    flags: int = 0
    offset: int = 0
    length: int = 0

    def __init__(
        self,
        queue: Queue,
        put_position: int,
        put_index: int,
        message_id: bytes,
        priority: int,
        persistent: bool,
        size_bytes: int,
        header: Header | None = None,
    ) -> None:
        self.queue = queue
        self.put_position = put_position
        self.put_index = put_index
        self.message_id = message_id
        self.priority = priority
        self.persistent = persistent
        self.size_bytes = size_bytes
        self.header = header
        self.sequence = -1
        self.enqueued_at = -1
        self.times: Times | None = None
        # Where it was before it was moved here.
        self.origin: Origin | None = None
        self.backout_count = 0
        self.consumer: Consumer | None = None
        # Where it was written again last (H24).
        self.body: tuple[int, int] | None = None

    @property
    def is_here(self) -> bool:
        """Whether a numbered message that is in its queue is available."""
        return self.consumer is None and not self.waits

    @property
    def waits(self) -> bool:
        """Whether it is not to be delivered yet: it is unborn or delayed."""
        return self.times is not None and self.times.waits_until >= 0

    @property
    def is_delayed(self) -> bool:
        """Whether it waits to be delivered again."""
        return self.times is not None and self.times.is_delayed

    def wait_until(self, moment: int) -> None:
        """Lets it wait until a moment in µs; -1: no longer."""
        times = self.times or Times(-1, -1)
        times.waits_until = moment
        self.times = None if moment < 0 and times.is_empty else times

    def copy_for(self, queue: Queue) -> Message:
        """The same message, numbered as this one, in another queue."""
        copy = self._made_as(Message, queue)
        copy.sequence = self.sequence
        copy.enqueued_at = self.enqueued_at
        if self.times is not None:
            times = self.times
            copy.times = Times(times.expires_at, times.deliver_at, times.redelivery_limit)
        copy.origin = self.origin
        copy.segment = self.segment
        return copy

    def move_to(self, queue: Queue, *, keeps_group: bool) -> Message:
        """The same message in another queue; without number, times, origin and segment yet."""
        return self._made_as(type(self) if keeps_group else Message, queue)

    @property
    def body_place(self) -> tuple[int, int]:
        """Where its body is read from: position and index."""
        return self.body or (self.put_position, self.put_index)

    def _made_as(self, kind: type[M], queue: Queue) -> M:
        made = kind(
            queue,
            self.put_position,
            self.put_index,
            self.message_id,
            self.priority,
            self.persistent,
            self.size_bytes,
            self.header,
        )
        made.body = self.body
        return made


class GroupedMessage(Message):
    """A message of a group; `group` is that of its queue, before numbering of its unit of work."""

    __slots__ = ("flags", "group", "group_sequence")

    group: Group

    def move_to(self, queue: Queue, *, keeps_group: bool) -> Message:
        """In another queue; in its group there, unless groups are not kept."""
        if not keeps_group:
            return super().move_to(queue, keeps_group=False)
        moved = self._made_as(type(self), queue)
        moved.group = self.group
        moved.group_sequence = self.group_sequence
        moved.flags = self.flags & (IN_GROUP | LAST_IN_GROUP | SEGMENT | LAST_SEGMENT)
        return moved


class SegmentMessage(GroupedMessage):
    """A segment: its data are `length` long from `offset` on in their logical message."""

    __slots__ = ("length", "offset")

    def move_to(self, queue: Queue, *, keeps_group: bool) -> Message:
        """In another queue; the same part of its logical message there."""
        moved = super().move_to(queue, keeps_group=keeps_group)
        if isinstance(moved, SegmentMessage):
            moved.offset, moved.length = self.offset, self.length
        return moved


def place_in_order(message: Message) -> tuple[int, int]:
    """The place of a numbered message in delivery order: highest priority first, then number."""
    return (-message.priority, message.sequence)
