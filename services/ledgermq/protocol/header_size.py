"""How much room the header takes that every state and delivery keeps of a message.

The size of a header is counted, not encoded, so that every writer and reader of the log comes to
the same number (PROTOCOL.md §3).
"""

from __future__ import annotations

from ledgermq.protocol.operations import Header
from ledgermq.protocol.outcomes import DeliveredHeader

NUMBER_BYTES = 8


def header_bytes(header: Header | DeliveredHeader | None) -> int:
    """Bytes of a header: UTF-8 of every text and name, 8 for each number or truth value."""
    if header is None:
        return 0
    size = _text_bytes(header["correlation_id"]) + _text_bytes(header["type"])
    for name, value in header["properties"].items():
        size += len(name.encode())
        size += len(value.encode()) if isinstance(value, str) else NUMBER_BYTES
    return size


def _text_bytes(text: str | None) -> int:
    return 0 if text is None else len(text.encode())
