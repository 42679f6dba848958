"""How many entries the lists of an operation have, counted before the operation is read.

An entry of two bytes takes a hundred times as much once it is read, so an operation with very many
is refused unread (PROTOCOL.md section 8). Counting passes over the bytes and keeps nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final, NamedTuple

from ledgermq.protocol.limits import LIST_ENTRIES_MAX
from ledgermq.wire.framing.schemas import by_name

# Passes over a datum of one schema: from the offset of its first byte to that behind its last.
Pass = Callable[["_Datum", int], int]
DOUBLE_BYTES: Final = 8
LONG_BITS: Final = 64
LONG_MASK: Final = 2**LONG_BITS - 1


class _TooManyError(Exception):
    """The lists have more entries than an operation may have."""


class _Datum:
    """The bytes of an operation, and how many entries of its lists were passed."""

    __slots__ = ("entries", "value")

    def __init__(self, value: bytes) -> None:
        self.value = value
        self.entries = 0


class _Counted(NamedTuple):
    """How a datum is passed over, and how few bytes it may have; of its smallest list entry too."""

    skip: Pass
    bytes_min: int
    entry_bytes_min: int


def has_too_many_entries(full_name: str, value: bytes, offset: int) -> bool:
    """Whether the lists of a record have more entries together than an operation may have.

    What is no such record, from the offset on, is left to its reader to refuse.
    """
    counted = _of_record(full_name)
    if len(value) - offset <= LIST_ENTRIES_MAX * counted.entry_bytes_min:
        return False
    try:
        counted.skip(_Datum(value), offset)
    except _TooManyError:
        return True
    except (IndexError, OverflowError):
        return False
    return False


@cache
def _of_record(full_name: str) -> _Counted:
    return _counted(by_name(full_name).schema, {})


NO_ENTRY: Final = 2**31


def _counted(schema: Any, named: dict[str, _Counted]) -> _Counted:
    if isinstance(schema, list):
        return _union([_counted(branch, named) for branch in schema])
    if isinstance(schema, str):
        return named[schema] if schema in named else _primitive(schema)
    kind = schema["type"]
    if kind == "record":
        found = _record([_counted(field["type"], named) for field in schema["fields"]])
    elif kind == "array":
        found = _array(_counted(schema["items"], named))
    elif kind == "map":
        found = _map(_counted(schema["values"], named))
    elif kind == "fixed":
        found = _fixed(schema["size"])
    else:
        found = _primitive(kind)
    if "name" in schema:
        named[schema["name"]] = found
    return found


def _number(datum: _Datum, offset: int) -> tuple[int, int]:
    """A number of variable length, and the offset behind it.

    Of one that is longer than any number is, the reader's arithmetic: 64 bits, which the shift goes
    around. Kept whole, each byte would take longer than the one before.
    """
    value = datum.value
    byte = value[offset]
    offset += 1
    found, shift = byte & 0x7F, 7
    while byte & 0x80:
        byte = value[offset]
        offset += 1
        found |= (byte & 0x7F) << shift & LONG_MASK
        shift = (shift + 7) % LONG_BITS
    return (found >> 1) ^ -(found & 1), offset


def _skip_number(datum: _Datum, offset: int) -> int:
    value = datum.value
    while value[offset] & 0x80:
        offset += 1
    return offset + 1


def _skip_bytes(datum: _Datum, offset: int) -> int:
    length, offset = _number(datum, offset)
    if length < 0:
        raise IndexError("no length is negative")
    return offset + length


def _primitive(kind: str) -> _Counted:
    if kind in ("string", "bytes"):
        return _Counted(_skip_bytes, 1, NO_ENTRY)
    if kind in ("int", "long", "enum"):
        return _Counted(_skip_number, 1, NO_ENTRY)
    return _fixed({"null": 0, "boolean": 1, "double": DOUBLE_BYTES}[kind])


def _fixed(size: int) -> _Counted:
    return _Counted(lambda _datum, offset: offset + size, size, NO_ENTRY)


def _record(fields: list[_Counted]) -> _Counted:
    skips = tuple(field.skip for field in fields)

    def skip(datum: _Datum, offset: int) -> int:
        for one in skips:
            offset = one(datum, offset)
        return offset

    entry_bytes_min = min([field.entry_bytes_min for field in fields], default=NO_ENTRY)
    return _Counted(skip, sum(field.bytes_min for field in fields), entry_bytes_min)


def _union(branches: list[_Counted]) -> _Counted:
    skips = tuple(branch.skip for branch in branches)

    def skip(datum: _Datum, offset: int) -> int:
        branch, offset = _number(datum, offset)
        if branch < 0:
            raise IndexError("no branch has a negative number")
        return skips[branch](datum, offset)

    bytes_min = 1 + min(branch.bytes_min for branch in branches)
    return _Counted(skip, bytes_min, min(branch.entry_bytes_min for branch in branches))


def _blocks(skip_entry: Pass, *, counts: bool) -> Pass:
    """Passes over the blocks of a list or map."""

    def skip(datum: _Datum, offset: int) -> int:
        while True:
            count, offset = _number(datum, offset)
            if not count:
                return offset
            if count < 0:
                # Its size in bytes comes behind the number of its entries.
                count = -count
                offset = _skip_number(datum, offset)
            if counts:
                datum.entries += count
                if datum.entries > LIST_ENTRIES_MAX:
                    raise _TooManyError
            for _ in range(count):
                offset = skip_entry(datum, offset)

    return skip


def _array(items: _Counted) -> _Counted:
    smallest = min(items.bytes_min, items.entry_bytes_min)
    return _Counted(_blocks(items.skip, counts=True), 1, smallest)


def _map(values: _Counted) -> _Counted:
    def skip_entry(datum: _Datum, offset: int) -> int:
        return values.skip(datum, _skip_bytes(datum, offset))

    return _Counted(_blocks(skip_entry, counts=False), 1, values.entry_bytes_min)
