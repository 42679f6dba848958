"""Stream messages: a row of values that is written from front to back, and read so after that."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Unpack

from ledgermq.client.messages.typed_message import WrittenThenRead
from ledgermq.client.options import HeaderOptions
from ledgermq.wire.content.accessors import writes
from ledgermq.wire.content.bodies import StreamBody, TypedReading
from ledgermq.wire.content.conversion import Value, written_as


class StreamMessage(WrittenThenRead, TypedReading):
    """A message whose body is a row of values.

    It is made to be written; `reset` makes it readable from the front, `clear_body` empties it and
    makes it writeable again. One that was received is readable. Writing raises MessageFormatError
    if the value is not of the type, and MessageNotWriteableError after `reset`; reading raises
    MessageNotReadableError before it.
    """

    __slots__ = ("_values",)

    def __init__(self, values: Iterable[Value] = (), **header: Unpack[HeaderOptions]) -> None:
        super().__init__(**header)
        self._values: list[Value] = list(StreamBody(values))

    @property
    def unloaded_body(self) -> StreamBody:
        """The values."""
        return StreamBody(self._values)

    def clear_body(self) -> None:
        """Leaves no values, and makes it writeable."""
        self._values = []
        self._place = 0
        self._writeable = True

    def _readable(self) -> Sequence[Value]:
        self._check_readable()
        return self._values

    def _write(self, kind: str, value: Any) -> None:
        self._check_writeable()
        self._values.append(written_as(kind, value, f"stream value {len(self._values)}"))

    write_boolean = writes(_write, "boolean", bool)
    write_byte = writes(_write, "byte", int)
    write_short = writes(_write, "short", int)
    write_char = writes(_write, "char", str)
    write_int = writes(_write, "int", int)
    write_long = writes(_write, "long", int)
    write_float = writes(_write, "float", float)
    write_double = writes(_write, "double", float)

    def write_string(self, value: str | None) -> None:
        """Writes a text."""
        self._write("string", value)

    def write_bytes(self, value: bytes | None) -> None:
        """Writes bytes."""
        self._write("bytes", value)

    def write_object(self, value: Value) -> None:
        """Writes a bool, int (64 bits), float, str, bytes or None."""
        self._write("object", value)
