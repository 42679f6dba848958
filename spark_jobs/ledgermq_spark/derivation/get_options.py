"""The options of a Get as its operation tells them (PROTOCOL.md §13), and what they ask of one."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

MESSAGE_ID_DIGITS, GROUP_ID_DIGITS = 32, 48
CORRELATION_ID_MAX = 64 * 1024
GROUP_SEQUENCE_MAX = 999_999_999
OFFSET_MAX = 2**53


class Options(NamedTuple):
    """What a consumer asks for; ids in hexadecimal, empty or -1 where nothing is to match."""

    logical_order: bool = False
    all_messages_available: bool = False
    all_segments_available: bool = False
    complete_message: bool = False
    message_id: str = ""
    correlation_id: str | None = None
    group_id: str = ""
    group_sequence: int = 0
    offset: int = -1
    sequence: int = -1

    @property
    def whole_messages(self) -> bool:
        """Whether segments come only if all of their logical message is available."""
        return self.all_messages_available or self.all_segments_available or self.complete_message

    @property
    def in_range(self) -> bool:
        """Whether ids to match are none that no message can have, and numbers are within limits."""
        return (
            len(self.message_id) <= MESSAGE_ID_DIGITS
            and len(self.correlation_id or "") <= CORRELATION_ID_MAX
            and len(self.group_id) in (0, GROUP_ID_DIGITS)
            and 0 <= self.group_sequence <= GROUP_SEQUENCE_MAX
            and -1 <= self.offset <= OFFSET_MAX
        )


PLAIN = Options()


def options_of(text: str) -> Options:
    """The options in the JSON text of `headers`; an empty text: none."""
    if not text:
        return PLAIN
    told: dict[str, Any] = json.loads(text)
    return Options(**told)
