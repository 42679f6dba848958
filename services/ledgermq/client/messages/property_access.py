"""Properties of a message: their names, and reading and writing them with a type.

A name is an identifier of a message selector: an ASCII letter, `_` or `$`, then digits too, at most
255 characters, and no word that selectors reserve. Names that begin with JMS are Jakarta
Messaging's; of those an application sets JMSXGroupID and JMSXGroupSeq.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from ledgermq.errors import (
    MessageNotWriteableError,
    NameTooLongError,
    PropertyNameError,
    UnsupportedValueError,
)
from ledgermq.errors.shown import shown
from ledgermq.protocol.operations import PropertyValue
from ledgermq.wire.content.accessors import reads, sets
from ledgermq.wire.content.bodies import ReadOnlyDict
from ledgermq.wire.content.content import NAME_CHARACTERS_MAX, Body
from ledgermq.wire.content.conversion import read_as, written_as

NAME: Final = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
RESERVED: Final = frozenset(
    ("NULL", "TRUE", "FALSE", "NOT", "AND", "OR", "BETWEEN", "LIKE", "IN", "IS", "ESCAPE")
)
SETTABLE: Final = ("JMSXGroupID", "JMSXGroupSeq")
NAMES_REMEMBERED: Final = 4096


@lru_cache(NAMES_REMEMBERED)
def _fault(name: str) -> str | None:
    """What is wrong with a name."""
    if not NAME.fullmatch(name):
        return (
            "a property's name is an identifier, so that selectors can name it: a letter, _ or $, "
            "then letters, digits, _ or $"
        )
    if name.upper() in RESERVED:
        return "selectors reserve the word"
    if name.startswith("JMS") and name not in SETTABLE:
        return f"names that begin with JMS are reserved, save {' and '.join(SETTABLE)}"
    return None


def check_property_names(properties: Mapping[str, Any]) -> None:
    """Checks the names of properties on their way out.

    Raises:
        NameTooLongError: a name has too many characters.
        PropertyNameError: a name is none that a property can have.
    """
    for name in properties:
        fault = _fault(name) if isinstance(name, str) else "a property's name is a str"
        if fault is not None:
            raise PropertyNameError(f"property {shown(name)}: {fault}")
        if len(name) > NAME_CHARACTERS_MAX:
            raise NameTooLongError(
                f"property {name[:32]!r}…: the name has {len(name)} characters, a name has 1 to "
                f"{NAME_CHARACTERS_MAX}"
            )


class PropertyAccess:
    """The properties of a message, read and written as the types of Jakarta Messaging.

    A property that is not there is read as a null. Reading raises MessageFormatError if the value
    cannot be read so; writing raises it if the value is not of the type or the name is none, and
    MessageNotWriteableError if the message was received and `clear_properties` not called.
    """

    __slots__ = ()
    correlation_id: Any
    reply_to: Any
    type: Any

    @property
    @abstractmethod
    def properties(self) -> Mapping[str, PropertyValue]:
        """Names and values."""

    @property
    @abstractmethod
    def unloaded_body(self) -> Body:
        """The body as it is sent; that of an object message is an ObjectBody."""

    @abstractmethod
    def clear_properties(self) -> None:
        """Leaves the message without properties; they can be written now."""

    def _provided(self) -> Mapping[str, PropertyValue]:
        """Properties that the queue manager sets on receipt."""
        return {}

    def property_exists(self, name: str) -> bool:
        """Whether there is a property of this name."""
        return name in self.properties or name in self._provided()

    def property_names(self) -> list[str]:
        """The names of all properties."""
        return [*self.properties, *self._provided()]

    def get_property(self, name: str) -> PropertyValue | None:
        """A property as it is; None if there is none of this name."""
        found = self.properties.get(name)
        return self._provided().get(name) if found is None else found

    def _get(self, kind: str, name: str) -> Any:
        return read_as(kind, self.get_property(name), f"property {shown(name)}")

    get_boolean_property = reads(_get, "boolean", bool, "A property as")
    get_byte_property = reads(_get, "byte", int, "A property as")
    get_short_property = reads(_get, "short", int, "A property as")
    get_int_property = reads(_get, "int", int, "A property as")
    get_long_property = reads(_get, "long", int, "A property as")
    get_float_property = reads(_get, "float", float, "A property as")
    get_double_property = reads(_get, "double", float, "A property as")

    def get_string_property(self, name: str) -> str | None:
        """A property as a text; None if there is none of this name."""
        return self._get("string", name)  # type: ignore[no-any-return]

    def _set(self, kind: str, name: str, value: Any) -> None:
        properties = self.properties
        if isinstance(properties, ReadOnlyDict) or not isinstance(properties, dict):
            raise MessageNotWriteableError(
                f"property {shown(name)} cannot be set: the properties of what was received are "
                "read-only; call clear_properties first"
            )
        check_property_names({name: value})
        what = f"property {shown(name)}"
        if value is None or isinstance(value, (bytes, bytearray, memoryview)):
            raise UnsupportedValueError(
                f"{what} cannot be {type(value).__name__}: it must be bool, int, float or str"
            )
        properties[name] = written_as(kind, value, what)

    def set_property(self, name: str, value: PropertyValue) -> None:
        """Sets a property to a bool, int (64 bits), float or str."""
        self._set("object", name, value)

    set_boolean_property = sets(_set, "boolean", bool, "Sets a property to")
    set_byte_property = sets(_set, "byte", int, "Sets a property to")
    set_short_property = sets(_set, "short", int, "Sets a property to")
    set_int_property = sets(_set, "int", int, "Sets a property to")
    set_long_property = sets(_set, "long", int, "Sets a property to")
    set_float_property = sets(_set, "float", float, "Sets a property to")
    set_double_property = sets(_set, "double", float, "Sets a property to")

    def set_string_property(self, name: str, value: str) -> None:
        """Sets a property to a text."""
        self._set("string", name, value)
