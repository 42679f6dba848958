"""Get options: which messages a consumer gets, and in which order (PROTOCOL.md §13)."""

from __future__ import annotations

from typing import Final, NamedTuple

from ledgermq.core.limits import GROUP_ID_BYTES, GROUP_SEQUENCE_MAX, OFFSET_MAX
from ledgermq.core.message import IN_GROUP, MEMBER, SEGMENT, GroupedMessage, Message
from ledgermq.core.operations import GetOptions

__all__ = ["PLAIN", "Options", "Place", "check", "matches_fields"]

# Group id, group sequence and offset of what comes next.
Place = tuple[bytes, int, int]


class Options(NamedTuple):
    """The options of a Get, in the order of the schema `ledgermq.type.GetOptions`."""

    logical_order: bool = False
    all_messages_available: bool = False
    all_segments_available: bool = False
    complete_message: bool = False
    message_id: bytes = b""
    correlation_id: str | None = None
    group_id: bytes = b""
    group_sequence: int = 0
    offset: int = -1
    sequence: int = -1

    def record(self) -> GetOptions:
        """As the log and checkpoints write them."""
        return self._asdict()  # type: ignore[return-value]

    def wants(self, message: Message) -> bool:
        """Whether a message may come at all, by what never changes of it; groups are looked at
        from their first items, complete messages from their first segments.
        """
        if self.logical_order and (message.group_sequence != 1 or message.offset):
            return False
        if self.complete_message and message.offset:
            return False
        return matches_fields(self, message)

    def permit(self, message: Message) -> bool:
        """Whether what is there of a group allows that a wanted message comes now."""
        if not isinstance(message, GroupedMessage):
            return True
        group = message.group
        flags = message.flags
        if self.logical_order and not flags & MEMBER:
            return False
        if self.all_messages_available and flags & IN_GROUP:
            return bool(flags & MEMBER) and group.is_available
        if flags & SEGMENT and self.needs_segments:
            return bool(flags & MEMBER) and group.unit_of(message) is not None
        return True

    @property
    def needs_segments(self) -> bool:
        """Whether segments come only if all of their logical message is available."""
        return self.all_messages_available or self.all_segments_available or self.complete_message


PLAIN: Final = Options()


def matches_fields(options: Options, message: Message) -> bool:
    """Whether a message has the values that the match options name."""
    return (
        (not options.message_id or options.message_id == message.message_id)
        and (not options.group_sequence or options.group_sequence == message.group_sequence)
        and (options.offset < 0 or options.offset == message.offset)
        and (options.sequence < 0 or options.sequence == message.sequence)
        and (not options.group_id or _group_id(message) == options.group_id)
        and (options.correlation_id is None or _correlation_id(message) == options.correlation_id)
    )


def _group_id(message: Message) -> bytes:
    return b"" if message.group is None else message.group.group_id


def _correlation_id(message: Message) -> str | None:
    return None if message.header is None else message.header["correlation_id"]


def check(options: Options) -> str | None:
    """What is out of range in options, in words; None: nothing."""
    if options.group_id and len(options.group_id) != GROUP_ID_BYTES:
        return f"a group id has {GROUP_ID_BYTES} bytes, not {len(options.group_id)}"
    if not 0 <= options.group_sequence <= GROUP_SEQUENCE_MAX:
        return f"group sequence {options.group_sequence} is not within 1 to {GROUP_SEQUENCE_MAX}"
    if not -1 <= options.offset <= OFFSET_MAX:
        return f"offset {options.offset} is not within 0 to {OFFSET_MAX}"
    return None
