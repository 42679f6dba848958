"""What fits into one record of the log, checked before anything is numbered or written.

A record is bounded as a whole (PROTOCOL.md §1): its value, and beside it what Kafka and the headers
take. So contents and headers that each keep their limit may be too large together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ledgermq.errors import MessageTooLargeError
from ledgermq.errors.shown import shown
from ledgermq.protocol.header_size import header_bytes
from ledgermq.protocol.operations import PutMessage
from ledgermq.wire.topics.log_topics import OPERATION_BYTES_MAX

# Kafka's framing, the key and the headers of a record, with names as long as they may be.
VALUE_BYTES_MAX: Final = OPERATION_BYTES_MAX - 2048
# What a Put says beside its messages, and of each message beside what its sender gave.
PUT_BESIDE_BYTES: Final = 320
MESSAGE_BESIDE_BYTES: Final = 160
PROPERTY_BESIDE_BYTES: Final = 7
# Some numbers of a record end here, the others later.
INT_MAX: Final = 2**31 - 1
MESSAGE_BYTES_MAX: Final = VALUE_BYTES_MAX - PUT_BESIDE_BYTES


def encoded_bytes(message: PutMessage) -> int:
    """How many bytes a message takes in a Put, at most."""
    size = len(message["content"]) + MESSAGE_BESIDE_BYTES
    header = message.get("header")
    if header is None:
        return size
    return size + header_bytes(header) + PROPERTY_BESIDE_BYTES * len(header["properties"])


def too_large(name: str, fields: Mapping[str, Any], value: bytes) -> MessageTooLargeError:
    """The error for a record of more than VALUE_BYTES_MAX; it names what makes it so large."""
    size, argument = max((_size(one), key) for key, one in _leaves(fields))
    return MessageTooLargeError(
        f"{argument} of {name} has {size:,}, which makes {len(value):,} bytes of it; a record of "
        f"the log takes {VALUE_BYTES_MAX:,}; nothing was written"
    )


def _leaves(fields: Mapping[str, Any]) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for key, value in fields.items():
        found += _leaves(value) if isinstance(value, Mapping) else [(key, value)]
        if isinstance(value, list | tuple):
            found += [leaf for one in value if isinstance(one, Mapping) for leaf in _leaves(one)]
    return found


def _size(value: Any) -> int:
    return len(value) if isinstance(value, str | bytes | list | tuple) else 0


def not_encodable(name: str, fields: Mapping[str, Any]) -> str:
    """Which value a record cannot hold, in words: a number too great for it, or what is no text."""
    numbers = [(value, key) for key, value in _leaves(fields) if type(value) is int]
    greatest, whose = max(numbers, key=lambda one: abs(one[0]), default=(0, ""))
    if abs(greatest) > INT_MAX:
        return f"{whose} is {shown(greatest)}, more than a record of the log can hold"
    for key, value in _leaves(fields):
        if isinstance(value, str) and not _is_text(value):
            return f"{key} is {shown(value)}, which is no text that can be written"
    return f"a value of {name} is none that a record of the log can hold"


def _is_text(value: str) -> bool:
    """Whether it has no lone surrogates, as in names of files whose encoding is not known."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
