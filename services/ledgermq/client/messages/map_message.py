"""Map messages: names and values, read and written as the types of Jakarta Messaging."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar, Unpack

from ledgermq.client.messages.typed_message import TypedMessage
from ledgermq.client.options import HeaderOptions
from ledgermq.errors import MessageFormatError, NameTooLongError, UnsupportedValueError
from ledgermq.errors.shown import shown
from ledgermq.wire.content.bodies import ReadOnlyDict
from ledgermq.wire.content.content import NAME_CHARACTERS_MAX
from ledgermq.wire.content.conversion import Value, read_as, written_as

M = TypeVar("M", bound="MapMessage")
_NOTHING: Final[Mapping[str, Value]] = {}


class MapMessage(TypedMessage):
    """A message whose body is names and values, none if none are given.

    A name that is not there is read as a null. Reading raises MessageFormatError if the value
    cannot be read so; writing raises it if the value is not of the type or the name is none, and
    MessageNotWriteableError if the message was received and `clear_body` not called.
    """

    __slots__ = ("_entries",)

    def __init__(
        self, entries: Mapping[str, Value] = _NOTHING, **header: Unpack[HeaderOptions]
    ) -> None:
        super().__init__(**header)
        if not isinstance(entries, Mapping):
            raise UnsupportedValueError(
                f"the body of a map message is {type(entries).__name__}, it must be a dict"
            )
        self._entries: dict[str, Value] = {}
        for name, value in entries.items():
            self.set_object(name, value)

    @property
    def entries(self) -> Mapping[str, Value]:
        """The names and values as they are now; changing this changes no message."""
        return ReadOnlyDict(self._entries)

    @property
    def unloaded_body(self) -> Mapping[str, Value]:
        """The names and values."""
        return dict(self._entries)

    def clear_body(self) -> None:
        """Leaves no names."""
        self._entries = {}
        self._writeable = True

    def map_names(self) -> list[str]:
        """The names."""
        return list(self._entries)

    def item_exists(self, name: str) -> bool:
        """Whether the name is there."""
        return name in self._entries

    def _get_entry(self, kind: str, name: str) -> Any:
        return read_as(kind, self._entries.get(name), f"map entry {shown(name)}")

    def _set_entry(self, kind: str, name: str, value: Any) -> None:
        self._check_writeable()
        if not isinstance(name, str) or not 0 < len(name) <= NAME_CHARACTERS_MAX:
            kind_of_error = (
                NameTooLongError if isinstance(name, str) and name else MessageFormatError
            )
            raise kind_of_error(
                f"map entry {shown(name)}: a name is text of 1 to {NAME_CHARACTERS_MAX} characters"
            )
        self._entries[name] = written_as(kind, value, f"map entry {shown(name)}")

    def get_boolean(self, name: str) -> bool:
        """An entry as a truth value."""
        return self._get_entry("boolean", name)  # type: ignore[no-any-return]

    def get_byte(self, name: str) -> int:
        """An entry as a whole number of 8 bits."""
        return self._get_entry("byte", name)  # type: ignore[no-any-return]

    def get_short(self, name: str) -> int:
        """An entry as a whole number of 16 bits."""
        return self._get_entry("short", name)  # type: ignore[no-any-return]

    def get_char(self, name: str) -> str:
        """An entry as one character."""
        return self._get_entry("char", name)  # type: ignore[no-any-return]

    def get_int(self, name: str) -> int:
        """An entry as a whole number of 32 bits."""
        return self._get_entry("int", name)  # type: ignore[no-any-return]

    def get_long(self, name: str) -> int:
        """An entry as a whole number of 64 bits."""
        return self._get_entry("long", name)  # type: ignore[no-any-return]

    def get_float(self, name: str) -> float:
        """An entry as a floating-point number of 32 bits."""
        return self._get_entry("float", name)  # type: ignore[no-any-return]

    def get_double(self, name: str) -> float:
        """An entry as a floating-point number of 64 bits."""
        return self._get_entry("double", name)  # type: ignore[no-any-return]

    def get_string(self, name: str) -> str | None:
        """An entry as a text; None if it is a null or not there."""
        return self._get_entry("string", name)  # type: ignore[no-any-return]

    def get_bytes(self, name: str) -> bytes | None:
        """An entry as bytes; None if it is a null or not there."""
        return self._get_entry("bytes", name)  # type: ignore[no-any-return]

    def get_object(self, name: str) -> Value:
        """An entry as it is; None if it is a null or not there."""
        return self._entries.get(name)

    def set_boolean(self, name: str, value: bool) -> None:
        """Sets an entry to a truth value."""
        self._set_entry("boolean", name, value)

    def set_byte(self, name: str, value: int) -> None:
        """Sets an entry to a whole number of 8 bits."""
        self._set_entry("byte", name, value)

    def set_short(self, name: str, value: int) -> None:
        """Sets an entry to a whole number of 16 bits."""
        self._set_entry("short", name, value)

    def set_char(self, name: str, value: str) -> None:
        """Sets an entry to one character."""
        self._set_entry("char", name, value)

    def set_int(self, name: str, value: int) -> None:
        """Sets an entry to a whole number of 32 bits."""
        self._set_entry("int", name, value)

    def set_long(self, name: str, value: int) -> None:
        """Sets an entry to a whole number of 64 bits."""
        self._set_entry("long", name, value)

    def set_float(self, name: str, value: float) -> None:
        """Sets an entry to the nearest floating-point number of 32 bits."""
        self._set_entry("float", name, value)

    def set_double(self, name: str, value: float) -> None:
        """Sets an entry to a floating-point number of 64 bits."""
        self._set_entry("double", name, value)

    def set_string(self, name: str, value: str | None) -> None:
        """Sets an entry to a text."""
        self._set_entry("string", name, value)

    def set_bytes(self, name: str, value: bytes | None) -> None:
        """Sets an entry to bytes."""
        self._set_entry("bytes", name, value)

    def set_object(self, name: str, value: Value) -> None:
        """Sets an entry to a bool, int (64 bits), float, str, bytes or None."""
        self._set_entry("object", name, value)
