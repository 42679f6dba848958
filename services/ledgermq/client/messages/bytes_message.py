"""Bytes messages: bytes that are written and read as the data streams of Java do it.

Numbers are big-endian, a truth value is one byte, a char one UTF-16 unit, and a text of `write_utf`
is its UTF-8 behind a length of two bytes (Java writes U+0000 and what is above U+FFFF otherwise).
"""

from __future__ import annotations

import struct
from typing import Any, Final, SupportsIndex, Unpack

from ledgermq.client.arguments import wrong_type
from ledgermq.client.messages.typed_message import WrittenThenRead
from ledgermq.client.options import HeaderOptions
from ledgermq.errors import (
    MessageEOFError,
    MessageFormatError,
    MessageUndecodableError,
    UnsupportedValueError,
)
from ledgermq.errors.shown import shown
from ledgermq.wire.content.accessors import reads, writes
from ledgermq.wire.content.conversion import plain, written_as

UTF_BYTES_MAX: Final = 65535
FORMS: Final = {
    "byte": ">b",
    "unsigned byte": ">B",
    "short": ">h",
    "unsigned short": ">H",
    "int": ">i",
    "long": ">q",
    "float": ">f",
    "double": ">d",
}


class BytesMessage(WrittenThenRead):
    """A message whose body is bytes.

    It is made to be written; `reset` makes it readable from the front, `clear_body` empties it and
    makes it writeable again. One that was received is readable. Writing raises MessageFormatError
    if the value is not of the type, and MessageNotWriteableError after `reset`; reading raises
    MessageNotReadableError before it, and MessageEOFError, without moving on, if fewer bytes are
    left than it needs.
    """

    __slots__ = ("_data",)

    def __init__(self, data: Any = b"", **header: Unpack[HeaderOptions]) -> None:
        super().__init__(**header)
        if not isinstance(data, (bytes, bytearray, memoryview)):
            found = data.__class__.__name__
            raise UnsupportedValueError(f"the body of a bytes message is {found}, it must be bytes")
        self._data = bytearray(data)

    @property
    def unloaded_body(self) -> bytes:
        """The bytes."""
        return bytes(self._data)

    @property
    def body_length(self) -> int:
        """How many bytes there are, read or not.

        Raises:
            MessageNotReadableError: it is being written.
        """
        self._check_readable()
        return len(self._data)

    def clear_body(self) -> None:
        """Leaves no bytes, and makes it writeable."""
        self._data = bytearray()
        self._place = 0
        self._writeable = True

    def _take(self, size: int, ahead: int = 0) -> bytes:
        """The next bytes behind `ahead` others; what is not there moves nothing."""
        self._check_readable()
        start = self._place + ahead
        end = start + size
        if end > len(self._data):
            raise MessageEOFError(
                f"the message has {len(self._data)} bytes, {len(self._data) - self._place} of them "
                f"not yet read; {ahead + size} are needed"
            )
        found = bytes(self._data[start:end])
        self._place = end
        return found

    def _read(self, kind: str) -> Any:
        form = FORMS[kind]
        return struct.unpack(form, self._take(struct.calcsize(form)))[0]

    def read_boolean(self) -> bool:
        """Reads a truth value: one byte, false if it is 0."""
        return self._take(1) != b"\0"

    read_byte = reads(_read, "byte", int, "Reads")
    read_unsigned_byte = reads(_read, "unsigned byte", int, "Reads")
    read_short = reads(_read, "short", int, "Reads")
    read_unsigned_short = reads(_read, "unsigned short", int, "Reads")
    read_int = reads(_read, "int", int, "Reads")
    read_long = reads(_read, "long", int, "Reads")
    read_float = reads(_read, "float", float, "Reads")
    read_double = reads(_read, "double", float, "Reads")

    def read_char(self) -> str:
        """Reads one UTF-16 unit."""
        return chr(self.read_unsigned_short())

    def read_utf(self) -> str:
        """Reads a text that `write_utf` wrote.

        Raises:
            MessageUndecodableError: the bytes are no UTF-8; nothing was read.
        """
        place = self._place
        (size,) = struct.unpack(">H", self._take(2))
        self._place = place
        found = self._take(size, ahead=2)
        try:
            return found.decode()
        except UnicodeDecodeError as error:
            self._place = place
            raise MessageUndecodableError(
                f"the text at byte {place} is no UTF-8: {error}"
            ) from error

    def read_bytes(self, size: int | None = None) -> bytes:
        """Reads up to `size` bytes, else all that are left; none at the end."""
        self._check_readable()
        left = len(self._data) - self._place
        if size is None:
            return self._take(left)
        if isinstance(size, bool) or not isinstance(size, SupportsIndex):
            raise wrong_type("size", size, "a whole number or None")
        if size < 0:
            raise MessageFormatError(f"{size} bytes were to be read, it must be 0 or more")
        return self._take(min(size, left))

    def _write(self, kind: str, value: int | float) -> None:
        self._check_writeable()
        form = FORMS[kind]
        value = plain(value)
        kinds = (int, float) if kind in ("float", "double") else (int,)
        if type(value) not in kinds:
            named = " or ".join(one.__name__ for one in kinds)
            raise UnsupportedValueError(
                f"{shown(value)} is {type(value).__name__}, it must be {named}"
            )
        try:
            self._data += struct.pack(form, value)
        except (struct.error, OverflowError) as error:
            bits = struct.calcsize(form) * 8
            raise UnsupportedValueError(f"{shown(value)} does not fit into {bits} bits") from error

    def write_boolean(self, value: bool) -> None:
        """Writes a truth value as one byte."""
        self._check_writeable()
        self._data.append(written_as("boolean", value, "the value"))

    write_byte = writes(_write, "byte", int)
    write_short = writes(_write, "short", int)
    write_unsigned_short = writes(_write, "unsigned short", int)
    write_int = writes(_write, "int", int)
    write_long = writes(_write, "long", int)
    write_float = writes(_write, "float", float)
    write_double = writes(_write, "double", float)

    def write_char(self, value: str) -> None:
        """Writes one character that is one UTF-16 unit."""
        self._check_writeable()
        self._data += struct.pack(">H", ord(written_as("char", value, "the value")))

    def write_utf(self, value: str) -> None:
        """Writes a text as UTF-8 of at most 65,535 bytes behind its length."""
        self._check_writeable()
        if not isinstance(value, str):
            raise UnsupportedValueError(f"the text is {type(value).__name__}, it must be str")
        try:
            encoded = value.encode()
        except UnicodeEncodeError as error:
            raise UnsupportedValueError(f"the text is no Unicode: {error}") from error
        if len(encoded) > UTF_BYTES_MAX:
            raise UnsupportedValueError(
                f"the text has {len(encoded):,} bytes, write_utf takes {UTF_BYTES_MAX:,}"
            )
        self._data += struct.pack(">H", len(encoded)) + encoded

    def write_bytes(self, value: bytes | bytearray | memoryview) -> None:
        """Writes bytes as they are."""
        self._check_writeable()
        if not isinstance(value, (bytes, bytearray, memoryview)):
            raise UnsupportedValueError(f"the value is {type(value).__name__}, it must be bytes")
        self._data += value

    def write_object(self, value: bool | int | float | str | bytes) -> None:
        """Writes a bool, an int (as a long), a float (as a double), a str (as UTF) or bytes."""
        self._check_writeable()
        if isinstance(value, bool):
            self.write_boolean(value)
        elif isinstance(value, int):
            self.write_long(value)
        elif isinstance(value, float):
            self.write_double(value)
        elif isinstance(value, str):
            self.write_utf(value)
        else:
            self.write_bytes(value)
