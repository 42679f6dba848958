"""Object bodies: a Python object as JSON, or, if both sides ask for it, as a pickle.

JSON holds None, bool, int (of any size), float, str, list and dict as itself. What it lacks is
written as `{"$type": NAME, "value": ...}`: bytes, tuple, datetime, date, time, timedelta, Decimal,
UUID, whole numbers beyond 64 bits, infinities and NaN, and a dict that itself has a key `$type`.
Reading makes nothing but objects of these types, so it is safe whoever has sent them. Exactly these
types are taken, not their subclasses, because a subclass would not come back.

A pickle holds nearly everything, but whoever reads it runs code that its sender has chosen.
"""

from __future__ import annotations

import base64
import json
import math
import pickle
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final, Literal
from uuid import UUID

from ledgermq.errors import MessageFormatError, MessageUndecodableError, UnsupportedValueError

TYPE: Final = "$type"
DEPTH_MAX: Final = 100
LONG_MIN: Final = -(2**63)
LONG_MAX: Final = 2**63 - 1
_UNREADABLE: Final = (ValueError, TypeError, AttributeError, ArithmeticError, RecursionError)
SUPPORTED: Final = (
    "None, bool, int, float, str, bytes, list, tuple, dict with str keys, datetime, date, time, "
    "timedelta, Decimal or UUID"
)


class ObjectBody:
    """Body of an object message: an object as it was when the body was made.

    Attributes:
        encoding: "json", which only holds types that are safe to load, or "pickle", which a
            receiver reads only if it was connected with `allow_pickle=True`.
        data: The encoded object.

    Raises:
        UnsupportedValueError: the object cannot be encoded; the text names the place within it.
    """

    __slots__ = ("data", "encoding")

    def __init__(self, value: Any, *, encoding: Literal["json", "pickle"] = "json") -> None:
        if encoding not in ("json", "pickle"):
            raise MessageFormatError(f'encoding is {encoding!r}, must be "json" or "pickle"')
        self.encoding: str = encoding
        self.data = _json_from(value) if encoding == "json" else _pickle_from(value)

    @classmethod
    def encoded(cls, encoding: str, data: bytes) -> ObjectBody:
        """A body of an object that is encoded already."""
        made = cls.__new__(cls)
        made.encoding = encoding
        made.data = data
        return made

    def load(self, *, allow_pickle: bool = False) -> Any:
        """The object, made anew with each call.

        Raises:
            MessageUndecodableError: it cannot be decoded.
            MessageFormatError: it is a pickle and those are not allowed.
        """
        if self.encoding == "json":
            return _from_json(self.data)
        if self.encoding != "pickle":
            raise MessageUndecodableError(
                f"the object is encoded as {self.encoding!r}, which this version does not know; "
                "the sender may be newer"
            )
        if not allow_pickle:
            raise MessageFormatError(
                "the object is a pickle, and reading one runs code that its sender has chosen; if "
                "you trust every sender of this queue, connect with allow_pickle=True. The message "
                "is still there: it can be acknowledged or go back like any other"
            )
        try:
            return pickle.loads(self.data)
        except Exception as error:
            raise MessageUndecodableError(f"the pickle cannot be loaded: {error!r}") from error

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ObjectBody):
            return NotImplemented
        return (self.encoding, self.data) == (other.encoding, other.data)

    def __hash__(self) -> int:
        return hash((self.encoding, self.data))

    def __repr__(self) -> str:
        return f"ObjectBody({self.encoding}, {len(self.data):,} bytes)"


def _pickle_from(value: Any) -> bytes:
    try:
        return pickle.dumps(value)
    except Exception as error:
        raise UnsupportedValueError(f"the object cannot be pickled: {error!r}") from error


# -- writing ---------------------------------------------------------------------------------------


def _json_from(value: Any) -> bytes:
    plain = _plain(value, "", 0)
    return json.dumps(plain, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def _plain(value: Any, place: str, depth: int) -> Any:
    """A value as JSON has it; `place` is where it is within the object, as `.orders[3]`."""
    kind = type(value)
    if value is None or kind is bool:
        return value
    if kind is str:
        return _text(value, place)
    if kind is int:
        return value if LONG_MIN <= value <= LONG_MAX else _tagged("int", hex(value))
    if kind is float:
        return value if math.isfinite(value) else _tagged("float", repr(value))
    if kind in (list, tuple, dict):
        if depth == DEPTH_MAX:
            raise UnsupportedValueError(
                f"the object is nested deeper than {DEPTH_MAX} levels, or holds itself"
            )
        return _plain_container(value, place, depth + 1)
    writer = _WRITERS.get(kind)
    if writer is None:
        raise UnsupportedValueError(
            f"{_where(place)} is of type {kind.__name__}, which an object message does not carry: "
            f'it must be {SUPPORTED}; or ask for ObjectBody(..., encoding="pickle")'
        )
    return _tagged(*writer(value))


def _plain_container(value: Any, place: str, depth: int) -> Any:
    if type(value) is dict:
        members = {
            _key(key, place): _plain(one, f"{place}.{key}", depth) for key, one in value.items()
        }
        return _tagged("dict", members) if TYPE in members else members
    items = [_plain(one, f"{place}[{at}]", depth) for at, one in enumerate(value)]
    return items if type(value) is list else _tagged("tuple", items)


def _key(key: Any, place: str) -> str:
    if type(key) is str:
        return _text(key, place)
    raise UnsupportedValueError(
        f"{_where(place)} is a dict with a key of type {type(key).__name__}: keys must be str"
    )


def _text(value: str, place: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise UnsupportedValueError(
            f"{_where(place)} has a text that is no Unicode: {error}"
        ) from error
    return value


def _where(place: str) -> str:
    return f"{place.removeprefix('.')} in the object" if place else "the object"


def _tagged(name: str, value: Any) -> dict[str, Any]:
    return {TYPE: name, "value": value}


def _iso(value: datetime | time) -> str:
    """A time as ISO 8601, which has offsets of whole seconds."""
    offset = value.utcoffset()
    if offset is not None and offset.microseconds:
        raise UnsupportedValueError(
            f"{value!r} in the object: its offset from UTC has microseconds"
        )
    return value.isoformat()


_WRITERS: Final[dict[type, Callable[[Any], tuple[str, Any]]]] = {
    bytes: lambda value: ("bytes", base64.b64encode(value).decode()),
    datetime: lambda value: ("datetime", _iso(value)),
    date: lambda value: ("date", value.isoformat()),
    time: lambda value: ("time", _iso(value)),
    timedelta: lambda value: ("timedelta", [value.days, value.seconds, value.microseconds]),
    Decimal: lambda value: ("decimal", str(value)),
    UUID: lambda value: ("uuid", str(value)),
}


# -- reading ---------------------------------------------------------------------------------------


def _from_json(data: bytes) -> Any:
    try:
        return _value(json.loads(data.decode(), parse_constant=no_constant))
    except _UNREADABLE as error:
        raise MessageUndecodableError(f"the object cannot be decoded: {error!r}") from error


def no_constant(text: str) -> Any:
    """Refuses what Python alone takes for JSON: numbers that are none or infinite.

    Raises:
        ValueError: Always.
    """
    raise ValueError(f"{text} is no JSON")


def strict_json(text: str | bytes) -> Any:
    """What JSON says, if all of it is kept.

    Raises:
        ValueError: It is no JSON; or a number in it would become infinite, or of two values under
            one name the first be lost.
        RecursionError: It is nested too deeply.
    """
    return json.loads(
        text, object_pairs_hook=_object, parse_constant=no_constant, parse_float=_finite
    )


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text[:40]} is too large a number")
    return number


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name stands twice in an object")
    return found


def _value(plain: Any) -> Any:
    if type(plain) is list:
        return [_value(one) for one in plain]
    if type(plain) is not dict:
        return plain
    if TYPE not in plain:
        return {key: _value(one) for key, one in plain.items()}
    if set(plain) != {TYPE, "value"} or plain[TYPE] not in _READERS:
        raise ValueError(f"{plain[TYPE]!r} is no type that this version knows")
    return _READERS[plain[TYPE]](plain["value"])


def _list(value: Any) -> list[Any]:
    if type(value) is not list:
        raise TypeError("a list was expected")
    return value


def _members(value: Any) -> dict[str, Any]:
    return {key: _value(one) for key, one in value.items()}


_READERS: Final[dict[str, Callable[[Any], Any]]] = {
    "bytes": lambda value: base64.b64decode(value, validate=True),
    "date": date.fromisoformat,
    "datetime": datetime.fromisoformat,
    "decimal": lambda value: Decimal(str(value)),
    "dict": lambda value: _members(dict(value)),
    "float": float,
    "int": lambda value: int(value, 16),
    "time": time.fromisoformat,
    "timedelta": lambda value: timedelta(*_list(value)),
    "tuple": lambda value: tuple(_value(one) for one in _list(value)),
    "uuid": UUID,
}
