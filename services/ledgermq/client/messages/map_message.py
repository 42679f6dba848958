"""Map messages: names and values, read and written as the types of Jakarta Messaging."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar, Unpack

from ledgermq.client.messages.typed_message import TypedMessage
from ledgermq.client.options import HeaderOptions
from ledgermq.errors import MessageFormatError, NameTooLongError, UnsupportedValueError
from ledgermq.errors.shown import shown
from ledgermq.wire.content.accessors import reads, sets
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

    get_boolean = reads(_get_entry, "boolean", bool, "An entry as")
    get_byte = reads(_get_entry, "byte", int, "An entry as")
    get_short = reads(_get_entry, "short", int, "An entry as")
    get_char = reads(_get_entry, "char", str, "An entry as")
    get_int = reads(_get_entry, "int", int, "An entry as")
    get_long = reads(_get_entry, "long", int, "An entry as")
    get_float = reads(_get_entry, "float", float, "An entry as")
    get_double = reads(_get_entry, "double", float, "An entry as")

    def get_string(self, name: str) -> str | None:
        """An entry as a text; None if it is a null or not there."""
        return self._get_entry("string", name)  # type: ignore[no-any-return]

    def get_bytes(self, name: str) -> bytes | None:
        """An entry as bytes; None if it is a null or not there."""
        return self._get_entry("bytes", name)  # type: ignore[no-any-return]

    def get_object(self, name: str) -> Value:
        """An entry as it is; None if it is a null or not there."""
        return self._entries.get(name)

    set_boolean = sets(_set_entry, "boolean", bool, "Sets an entry to")
    set_byte = sets(_set_entry, "byte", int, "Sets an entry to")
    set_short = sets(_set_entry, "short", int, "Sets an entry to")
    set_char = sets(_set_entry, "char", str, "Sets an entry to")
    set_int = sets(_set_entry, "int", int, "Sets an entry to")
    set_long = sets(_set_entry, "long", int, "Sets an entry to")
    set_float = sets(_set_entry, "float", float, "Sets an entry to")
    set_double = sets(_set_entry, "double", float, "Sets an entry to")

    def set_string(self, name: str, value: str | None) -> None:
        """Sets an entry to a text."""
        self._set_entry("string", name, value)

    def set_bytes(self, name: str, value: bytes | None) -> None:
        """Sets an entry to bytes."""
        self._set_entry("bytes", name, value)

    def set_object(self, name: str, value: Value) -> None:
        """Sets an entry to a bool, int (64 bits), float, str, bytes or None."""
        self._set_entry("object", name, value)
