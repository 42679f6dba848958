"""Get options: which messages a consumer gets, and in which order (PROTOCOL.md §13)."""

from __future__ import annotations

from typing import Final, NamedTuple

from ledgermq.protocol.limits import (
    GROUP_ID_BYTES,
    GROUP_SEQUENCE_MAX,
    HEADER_BYTES_MAX,
    MESSAGE_ID_BYTES,
    OFFSET_MAX,
)
from ledgermq.protocol.operations import GetOptions

# Group id, group sequence and offset of what comes next.
GroupPosition = tuple[bytes, int, int]


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

    @property
    def needs_segments(self) -> bool:
        """Whether segments come only if all of their logical message is available."""
        return self.all_messages_available or self.all_segments_available or self.complete_message


PLAIN: Final = Options()


def check(options: Options) -> str | None:
    """What is out of range in options, in words; None: nothing."""
    if len(options.message_id) > MESSAGE_ID_BYTES:
        return f"a message id has {MESSAGE_ID_BYTES} bytes, not {len(options.message_id)}"
    if len(options.correlation_id or "") > HEADER_BYTES_MAX:
        return (
            f"the correlation id to match has {len(options.correlation_id or '')} characters, at "
            f"most {HEADER_BYTES_MAX} are kept"
        )
    if options.group_id and len(options.group_id) != GROUP_ID_BYTES:
        return f"a group id has {GROUP_ID_BYTES} bytes, not {len(options.group_id)}"
    if not 0 <= options.group_sequence <= GROUP_SEQUENCE_MAX:
        return f"group sequence {options.group_sequence} is not within 1 to {GROUP_SEQUENCE_MAX}"
    if not -1 <= options.offset <= OFFSET_MAX:
        return f"offset {options.offset} is not within 0 to {OFFSET_MAX}"
    if options.sequence < -1:
        return f"no message has the sequence number {options.sequence}"
    return None
