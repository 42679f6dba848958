"""From documents to statuses and back, by the fields of the status (PROTOCOL.md §9).

A document is JSON: times are in µs, ids in hexadecimal, tuples lists. What a field is in it follows
from its type; where key or value differ, its metadata say how. The fold makes documents of what it
has, without statuses between; the client makes statuses of documents.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from datetime import datetime
from functools import cache, partial
from types import NoneType, UnionType
from typing import Any, Final, TypeVar, get_args, get_origin, get_type_hints

from ledgermq.protocol.instants import datetime_from

Document = dict[str, Any]
Reader = Callable[[Any], Any]
S = TypeVar("S")

# A field that no document has: what the answer says beside it.
BESIDE: Final = {"key": ""}
# A status whose fields are among those of the document around it.
FLAT: Final = {"key": None}
# Further metadata: `key` in the document, a number that stands for `none`, and how to `read` it.


@dataclass(frozen=True, slots=True)
class _Field:
    """How one field of a status is read; without a reader its value is as in the document."""

    name: str
    key: str | None
    read: Reader | None
    optional: bool


def document_of(kind: Any, source: Any, /, **given: Any) -> Document:
    """The document of something, for a status of a kind.

    Values are those given by key, else the attributes of the source with the names of the fields;
    fields with a default are left out unless they are given.
    """
    required, optional = _keys(kind)
    document = {key: given[key] if key in given else getattr(source, key) for key in required}
    for key in optional:
        if key in given:
            document[key] = given[key]
    return document


def status_of(kind: type[S], document: Document, /, **beside: Any) -> S:
    """The status in a document; what a newer worker tells besides is passed over."""
    read: dict[str, Any] = {}
    declared: Any = kind
    for one in _fields(declared):
        if one.key is None:
            value = document
        elif one.key in document:
            value = document[one.key]
        elif one.optional or one.name in beside:
            continue
        else:
            raise KeyError(one.key)
        read[one.name] = value if one.read is None else one.read(value)
    return kind(**read, **beside)


@cache
def _keys(kind: Any) -> tuple[list[str], list[str]]:
    """The keys that a document must have, and those that it may have."""
    keys = [(one.key, one.optional) for one in _fields(kind) if one.key]
    required = [key for key, optional in keys if not optional]
    return required, [key for key, optional in keys if optional]


@cache
def _fields(kind: Any) -> tuple[_Field, ...]:
    hints = get_type_hints(kind)
    return tuple(
        _Field(
            one.name,
            one.metadata.get("key", one.name),
            _reader(hints[one.name], one.metadata),
            one.default is not MISSING,
        )
        for one in fields(kind)
    )


def _reader(hint: Any, metadata: Mapping[str, Any] = {}) -> Reader | None:
    """What reads a value of a type; None: the value in the document is that of the field."""
    options = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    (kind,) = (one for one in options if one is not NoneType)
    read = metadata.get("read") or _reader_of(kind)
    if NoneType not in options:
        return read
    none = metadata.get("none")
    if read is None and none is None:
        return None
    return partial(_read_optional, read, none)


def _reader_of(kind: Any) -> Reader | None:
    if kind is datetime:
        return datetime_from
    if kind is bytes:
        return bytes.fromhex
    if isinstance(kind, type) and is_dataclass(kind):
        return partial(status_of, kind)
    origin = get_origin(kind)
    if origin in (tuple, list):
        return partial(_read_all, origin, _reader(get_args(kind)[0]))
    return None


def _read_optional(read: Reader | None, none: int | None, value: Any) -> Any:
    if value is None or value == none:
        return None
    return value if read is None else read(value)


def _read_all(made: Callable[[Any], Any], read: Reader | None, values: Any) -> Any:
    return made(values if read is None else map(read, values))
