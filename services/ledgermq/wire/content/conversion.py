"""The typed values of bodies and properties: which there are, and how one type is read as another.

A message holds booleans, whole numbers of 64 bits, floating-point numbers of 64 bits, texts, bytes
and nulls. The narrower types of Java (byte, short, char, int, float) are checked when a value is
written and again when it is read; in between they are not kept. From this follow the rules:

* every conversion that the table of Jakarta Messaging marks works;
* of those it does not mark, the ones that would narrow a number work if the number stays the same
  (300 is read as a short, 70000 is not), and a text of one character is a char; the others raise;
* a text that is no number of the type asked for raises too, as does a null that is read as a number
  or char; a null that is read as a boolean is false, and so is every text but "true".

Nothing that is read is rounded, save a text that is read as a float. What is written of a class of
its own, such as a member of an enumeration of texts or numbers, is its plain value.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from types import NoneType
from typing import Any, Final, TypeAlias

from ledgermq.errors import MessageFormatError, UnsupportedValueError
from ledgermq.errors.shown import shown, type_name

Value: TypeAlias = bool | int | float | str | bytes | None

BITS: Final = {"byte": 8, "short": 16, "int": 32, "long": 64}
WHOLE: Final = re.compile(r"[+-]?[0-9]+")
REAL: Final = re.compile(r"[+-]?(NaN|Infinity|([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[fFdD]?)")
# No number of 64 bits is longer, and Python is slow to read much longer ones.
DIGITS_MAX: Final = 1000
# `str` of a member of an enumeration is its name: the type's own method gives the text that it is.
PLAIN: Final[tuple[tuple[type | tuple[type, ...], Callable[[Any], Any]], ...]] = (
    (str, str.__str__),
    (int, int.__int__),
    (float, float.__float__),
    ((bytes, bytearray, memoryview), bytes),
)


class _Unfit(Exception):  # noqa: N818 - never leaves this module
    """The value cannot be read or written so; the text says why, if more than its type is wrong."""


def read_as(kind: str, value: Value, what: str) -> Any:
    """A value of a message, read as a type of Jakarta Messaging.

    Raises:
        MessageFormatError: it cannot be read so; `what` names it in the text.
    """
    return _converted(READERS, kind, value, f"{what} cannot be read as {kind}", MessageFormatError)


def plain(value: Any) -> Any:
    """The text, number or bytes that a value of a class of its own is; any other as it is."""
    if type(value) is not bool:
        for kind, taken in PLAIN:
            if isinstance(value, kind):
                return taken(value)
    return value


def written_as(kind: str, value: Any, what: str) -> Any:
    """What a message holds of a value that is written as a type of Jakarta Messaging.

    Raises:
        UnsupportedValueError: it is no value of the type; `what` names it in the text.
    """
    said = f"{what} cannot be written as {kind}"
    return _converted(WRITERS, kind, plain(value), said, UnsupportedValueError)


def _converted(
    table: dict[str, Callable[[Any], Any]],
    kind: str,
    value: Any,
    what: str,
    raised: type[MessageFormatError],
) -> Any:
    try:
        return table[kind](value)
    except _Unfit as unfit:
        number = f" {shown(value)}" if type(value) in (bool, int, float) else ""
        told = f": {unfit}" if unfit.args else ""
        held = "null" if value is None else type_name(type(value))
        raise raised(f"{what}: it is {held}{number}{told}") from None


def _within(value: int, bits: int) -> int:
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise _Unfit(f"too large for {bits} bits")
    return value


def _single(value: float) -> float:
    """The nearest number of 32 bits."""
    try:
        return float(struct.unpack(">f", struct.pack(">f", value))[0])
    except OverflowError:
        raise _Unfit("too large for 32 bits") from None


def _only(*kinds: type) -> Callable[[Any], Any]:
    """What takes values of these types as they are."""

    def taken(value: Any) -> Any:
        if type(value) in kinds:
            return value
        raise _Unfit

    return taken


# -- reading ---------------------------------------------------------------------------------------


def _boolean(value: Value) -> bool:
    if type(value) is bool:
        return value
    if value is None or type(value) is str:
        return value is not None and value.lower() == "true"
    raise _Unfit


def _whole(bits: int) -> Callable[[Value], int]:
    def read(value: Value) -> int:
        if type(value) is int:
            return _within(value, bits)
        if type(value) is str:
            if len(value) > DIGITS_MAX or not WHOLE.fullmatch(value):
                raise _Unfit("the text is no whole number")
            return _within(int(value), bits)
        raise _Unfit

    return read


def _double(value: Value) -> float:
    if type(value) is float:
        return value
    if type(value) is str:
        number = value.strip()
        if len(number) > DIGITS_MAX or not REAL.fullmatch(number):
            raise _Unfit("the text is no number")
        return float(number.rstrip("fFdD") if number[-1] in "fFdD" else number)
    raise _Unfit


def _float(value: Value) -> float:
    found = _double(value)
    single = _single(found)
    if single != found and not math.isnan(found) and type(value) is float:
        raise _Unfit("32 bits do not hold it exactly")
    return single


def _char(value: Value) -> str:
    if type(value) is str and len(value) == 1 and value <= "\uffff":
        return value
    raise _Unfit


def _string(value: Value) -> str | None:
    kind = type(value)
    if value is None or kind is str:
        return value  # type: ignore[return-value]
    if kind is bool:
        return "true" if value else "false"
    if kind is int:
        return str(value)
    if isinstance(value, float):
        if math.isfinite(value):
            return repr(value)
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    raise _Unfit


READERS: Final[dict[str, Callable[[Value], Any]]] = {
    "boolean": _boolean,
    **{name: _whole(bits) for name, bits in BITS.items()},
    "char": _char,
    "float": _float,
    "double": _double,
    "string": _string,
    "bytes": _only(bytes, NoneType),
}


# -- writing ---------------------------------------------------------------------------------------


def _write_whole(bits: int) -> Callable[[Any], int]:
    def write(value: Any) -> int:
        if type(value) is int:
            return _within(value, bits)
        raise _Unfit

    return write


def _write_double(value: Any) -> float:
    if type(value) in (int, float):
        try:
            return float(value)
        except OverflowError:
            raise _Unfit("too large for 64 bits") from None
    raise _Unfit


def _write_object(value: Any) -> Value:
    kind = type(value)
    if value is None or kind in (bool, float, str, bytes):
        return value  # type: ignore[no-any-return]
    if kind is int:
        return _within(value, 64)
    raise _Unfit("it must be bool, int, float, str, bytes or None")


WRITERS: Final[dict[str, Callable[[Any], Any]]] = {
    "boolean": _only(bool),
    **{name: _write_whole(bits) for name, bits in BITS.items()},
    "char": _char,
    "float": lambda value: _single(_write_double(value)),
    "double": _write_double,
    "string": _only(str, NoneType),
    "bytes": _only(bytes, NoneType),
    "object": _write_object,
}
