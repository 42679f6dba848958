"""Cutting a body into segments: bytes anywhere, text between two characters (PROTOCOL.md §13)."""

from __future__ import annotations

import time
from typing import Any, Final

from ledgermq.errors import IllegalStateError, MessageFormatError, MessageTooLargeError
from ledgermq.errors.shown import shown
from ledgermq.wire.content.content import encode_content

# A character of UTF-8 has at most so many bytes; a length is written with at most so many, too.
CHARACTER_BYTES_MAX: Final = 4


def body_bytes(body: Any, destination: str) -> bytes:
    """A body as bytes, text as UTF-8; offsets and lengths of segments count these."""
    if isinstance(body, str):
        try:
            return body.encode()
        except UnicodeEncodeError as error:
            raise MessageFormatError(
                f"message to {destination} was not sent: its body cannot be written: {error}",
                destination=destination,
            ) from error
    if isinstance(body, bytes | bytearray | memoryview):
        return bytes(body)
    raise MessageFormatError(
        f"message to {destination} was not sent: only text and bytes can be cut into segments, "
        f"not {type(body).__name__}; encode the body yourself, as json.dumps(...) does",
        destination=destination,
    )


def fits(body: Any, bytes_max: int) -> bool:
    """Whether a body goes into one message; what can be no segment counts as if it did."""
    if isinstance(body, str):
        return len(body) * CHARACTER_BYTES_MAX <= bytes_max or len(body.encode()) <= bytes_max
    if isinstance(body, bytes | bytearray | memoryview):
        return len(bytes(body)) <= bytes_max
    return True


def pieces_of(body: Any, bytes_max: int, destination: str) -> list[str | bytes]:
    """The body in pieces of at most so many bytes (UTF-8), each of its type; one if it is empty.

    Raises:
        IllegalStateError: the limit is not a whole number above 0.
        MessageFormatError: the body is neither text nor bytes, or one of its characters is larger.
    """
    if type(bytes_max) is not int or bytes_max < 1:
        raise IllegalStateError(
            f"max_segment is {shown(bytes_max)}, must be a whole number of bytes above 0"
        )
    data = body_bytes(body, destination)
    if not isinstance(body, str):
        return [data[at : at + bytes_max] for at in range(0, len(data), bytes_max)] or [b""]
    pieces: list[str | bytes] = []
    start = 0
    while start < len(data):
        end = min(start + bytes_max, len(data))
        while end > start and end < len(data) and data[end] & 0xC0 == 0x80:
            end -= 1
        if end == start:
            raise MessageFormatError(
                f"message to {destination} was not sent: a character of its body has more than "
                f"{bytes_max} bytes of UTF-8; segments of text need {CHARACTER_BYTES_MAX} bytes",
                destination=destination,
            )
        pieces.append(data[start:end].decode())
        start = end
    return pieces or [""]


def segment_bytes_max(content_bytes_max: int, reply_to: str | None, destination: str) -> int:
    """How many bytes of body a content of so many bytes can carry; an error if none."""
    around = len(encode_content(b"", reply_to, time.time_ns() // 1000)) + CHARACTER_BYTES_MAX
    if content_bytes_max <= around:
        raise MessageTooLargeError(
            f"message to {destination} was not sent: it takes messages of {content_bytes_max} "
            "bytes, which leaves no room for a segment",
            destination=destination,
        )
    return content_bytes_max - around
