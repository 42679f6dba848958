"""Operations as large as a record of the log may be, each with one field at its largest.

The fields come from the `.avsc` files, so that a new one cannot be forgotten.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any, NamedTuple

from ledgermq.wire.framing.codec import encode_record
from ledgermq.wire.topics.log_topics import OPERATION_BYTES_MAX
from support.checks.samples import record_names, sample, schema_of

OPERATIONS = [name for name in record_names() if name.startswith("ledgermq.operation.")]
# Text that is as long in a refusal, four times as long, and two and a half times as long.
FILLS = ("x", "\x01", "\U0001f600")
# What an entry of the log takes beside its value, and the other fields of the operation.
AROUND_BYTES = 2048
# Of messages, and of any list.
ENTRIES = (10_000, 65_536)


class LargeOperation(NamedTuple):
    """The value of a record, and which field of which operation was made large in it."""

    field: str
    value: bytes


def large_operations(name: str, base: dict[str, Any], fill: str) -> Iterator[LargeOperation]:
    """Operations of one kind, each with another field as large as fits; `base` are other fields."""
    for field, value in largest_fields(name, fill, OPERATION_BYTES_MAX - AROUND_BYTES):
        found = _encoded(name, base | {_top(field): value})
        if found is not None:
            yield LargeOperation(f"{name.rpartition('.')[2]}.{field}", found)


def any_large_operation(name: str, base: dict[str, Any], chance: Random) -> LargeOperation | None:
    """An operation with up to three large fields, of any lengths; None where all are too much."""
    fill, parts = chance.choice(FILLS), chance.randint(1, 3)
    found = list(largest_fields(name, fill, chance.randint(100, OPERATION_BYTES_MAX) // parts))
    if not found:
        return None
    chosen = chance.choices(found, k=parts)
    value = _encoded(name, base | {_top(field): value for field, value in chosen})
    fields = " ".join(field for field, _ in chosen)
    return None if value is None else LargeOperation(f"{name.rpartition('.')[2]}.{fields}", value)


def _top(field: str) -> str:
    return field.partition(".")[0].partition("[")[0]


def _encoded(name: str, fields: dict[str, Any]) -> bytes | None:
    value = encode_record(name, sample(name, 0) | fields)
    return value if len(value) <= OPERATION_BYTES_MAX else None


def largest_fields(name: str, fill: str, size_bytes: int) -> Iterator[tuple[str, Any]]:
    """Each field of a record that can grow: where it grows, and the value of the whole field."""
    for field in schema_of(name)["fields"]:
        for where, value in _largest(field["type"], fill, size_bytes):
            yield field["name"] + where, value


def _largest(schema: Any, fill: str, size_bytes: int) -> Iterator[tuple[str, Any]]:
    if isinstance(schema, list):
        named = sum("." in str(branch) for branch in schema) > 1
        for branch in schema:
            for where, value in _largest(branch, fill, size_bytes):
                yield where, ((branch, value) if named and isinstance(value, dict) else value)
        return
    if isinstance(schema, str) and "." in schema:
        schema = schema_of(schema)
    kind = schema if isinstance(schema, str) else schema["type"]
    if kind == "string":
        yield "", fill * (size_bytes // len(fill.encode()))
    elif kind == "bytes":
        yield "", b"x" * size_bytes
    elif kind == "record":
        for field in schema["fields"]:
            for where, value in _largest(field["type"], fill, size_bytes):
                yield f".{field['name']}{where}", sample(schema, 0) | {field["name"]: value}
    elif kind in ("array", "map"):
        yield from (_lists if kind == "array" else _maps)(schema, fill, size_bytes)


def _lists(schema: Any, fill: str, size_bytes: int) -> Iterator[tuple[str, Any]]:
    for count in ENTRIES if fill == FILLS[0] else ():
        if count * _bytes_min(schema["items"]) <= size_bytes:
            yield f"[{count}]", [sample(schema["items"], 0)] * count
    for where, value in _largest(schema["items"], fill, size_bytes):
        yield f"[]{where}", [value]


def _maps(schema: Any, fill: str, size_bytes: int) -> Iterator[tuple[str, Any]]:
    for count in ENTRIES if fill == FILLS[0] else ():
        if 8 * count <= size_bytes:
            yield f"[{count}]", {f"{n:x}": "" for n in range(count)}
    yield "[name]", {fill * (size_bytes // len(fill.encode())): ""}
    for where, value in _largest(schema["values"], fill, size_bytes):
        yield f"[]{where}", {"name": value}


def _bytes_min(schema: Any) -> int:
    """The least bytes that a datum of a schema takes, near enough to know what fits."""
    if isinstance(schema, str) and "." in schema:
        schema = schema_of(schema)
    if isinstance(schema, (str, list)):
        return 1
    if schema["type"] == "record":
        return sum(_bytes_min(field["type"]) for field in schema["fields"])
    return int(schema.get("size", 1))
