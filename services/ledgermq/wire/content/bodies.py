"""Stream bodies, typed reading of a row of values, and mappings that cannot be changed."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn, overload

from ledgermq.errors import MessageEOFError, MessageNotWriteableError, UnsupportedValueError
from ledgermq.wire.content.accessors import reads
from ledgermq.wire.content.conversion import Value, read_as, written_as


class ReadOnlyDict(dict[str, Any]):
    """A dict that raises MessageNotWriteableError when somebody tries to change it.

    `dict(it)` and `copy` give one that can be changed.
    """

    __slots__ = ()

    def _refuse(self, *_given: Any, **_named: Any) -> NoReturn:
        raise MessageNotWriteableError(
            "what was received is read-only: take a copy with dict(...), or call clear_body or "
            "clear_properties on the message first"
        )

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[type, tuple[dict[str, Any]]]:
        return dict, (dict(self),)

    def __copy__(self) -> dict[str, Any]:
        return dict(self)

    def __deepcopy__(self, _memo: Any) -> dict[str, Any]:
        return dict(self)


class TypedReading:
    """Reads a row of values one after the other, each as the type asked for.

    A read that fails leaves its place where it was, so that the value can be read as another type.
    Each raises MessageEOFError behind the last value, and MessageFormatError if the value cannot be
    read so.
    """

    __slots__ = ()
    _place: int

    @abstractmethod
    def _readable(self) -> Sequence[Value]:
        """The values, if they may be read now."""

    def _take(self, kind: str) -> Any:
        values, place = self._readable(), self._place
        if place >= len(values):
            raise MessageEOFError(
                f"the stream has ended: it has {len(values)} values, and all were read"
            )
        value = values[place]
        if kind != "object":
            value = read_as(kind, value, f"stream value {place}")
        self._place = place + 1  # type: ignore[misc] # the classes that have it give it a slot
        return value

    read_boolean = reads(_take, "boolean", bool, "Reads")
    read_byte = reads(_take, "byte", int, "Reads")
    read_short = reads(_take, "short", int, "Reads")
    read_char = reads(_take, "char", str, "Reads")
    read_int = reads(_take, "int", int, "Reads")
    read_long = reads(_take, "long", int, "Reads")
    read_float = reads(_take, "float", float, "Reads")
    read_double = reads(_take, "double", float, "Reads")

    def read_string(self) -> str | None:
        """Reads a text; None if the value is a null."""
        return self._take("string")  # type: ignore[no-any-return]

    def read_bytes(self) -> bytes | None:
        """Reads bytes, all of the value; None if it is a null."""
        return self._take("bytes")  # type: ignore[no-any-return]

    def read_object(self) -> Value:
        """Reads a value as it is."""
        return self._take("object")  # type: ignore[no-any-return]


class StreamBody(TypedReading, Sequence[Value]):
    """Body of a stream message: a row of bool, int (64 bits), float, str, bytes and None.

    It is a sequence, and can also be read from front to back with `read_int` and the like; `reset`
    goes back to the front. It never changes.

    Raises:
        MessageFormatError: a value is of another type.
        UnsupportedValueError: what is given is no row of values, such as a text.
    """

    __slots__ = ("_place", "_values")

    def __init__(self, values: Iterable[Value] = ()) -> None:
        # Of a text or of bytes each character would be a value.
        if not isinstance(values, Iterable) or isinstance(values, str | bytes | bytearray):
            raise UnsupportedValueError(
                f"the body of a stream message is {type(values).__name__}, it must be something to "
                "iterate over, such as a list of values"
            )
        self._values = tuple(
            written_as("object", value, f"stream value {place}")
            for place, value in enumerate(values)
        )
        self._place = 0

    def _readable(self) -> Sequence[Value]:
        return self._values

    def reset(self) -> None:
        """Goes back to the front."""
        self._place = 0

    @overload
    def __getitem__(self, place: int) -> Value: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[Value, ...]: ...

    def __getitem__(self, place: int | slice) -> Value | tuple[Value, ...]:
        return self._values[place]

    def __len__(self) -> int:
        return len(self._values)

    def __eq__(self, other: object) -> bool:
        return self._values == other._values if isinstance(other, StreamBody) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._values)

    def __repr__(self) -> str:
        return f"StreamBody({list(self._values)!r})"
