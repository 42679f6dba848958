"""Unions and enums count their branches and symbols from the front, as Avro says, and only so."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import pytest
from fastavro import schemaless_writer

from ledgermq.protocol.operations import Unreadable
from ledgermq.wire.framing.codec import UndecodableError, decode_operation, decode_record
from ledgermq.wire.framing.schemas import by_name, names
from support.checks.samples import SCALARS, VARIANTS, record_names, sample, schema_of

# A part of a datum: its bytes, and of an index among how many it is.
Part = tuple[bytes, int]


def written(kind: str, value: Any) -> bytes:
    """A scalar in Avro."""
    buffer = BytesIO()
    schemaless_writer(buffer, kind, value)
    return buffer.getvalue()


def parts_of(schema: Any, variant: int) -> list[Part]:
    """A sample, part by part."""
    if isinstance(schema, list):
        index = (0, len(schema) // 2, len(schema) - 1)[variant]
        return [(written("long", index), len(schema)), *parts_of(schema[index], variant)]
    if isinstance(schema, str):
        if schema in SCALARS:
            return [(written(schema, sample(schema, variant)), 0)]
        return parts_of(schema_of(schema), variant)
    kind = schema["type"]
    if kind == "record":
        return [part for one in schema["fields"] for part in parts_of(one["type"], variant)]
    if kind == "enum":
        count = len(schema["symbols"])
        return [(written("int", (0, 1, count - 1)[variant]), count)]
    if kind in ("array", "map"):
        found: list[Part] = [(written("long", variant), 0)] if variant else []
        for one in VARIANTS[1 : variant + 1]:
            found += [(written("string", f"key{one}"), 0)] if kind == "map" else []
            found += parts_of(schema["items" if kind == "array" else "values"], one)
        return [*found, (b"\0", 0)]
    if kind == "fixed":
        return [(sample(schema, variant), 0)]
    return parts_of(kind, variant)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("name", record_names())
def test_an_index_is_none_of_those_that_there_are_or_counts_from_the_front(name, variant):
    """Each index of each schema, counted from the end or behind it: `record-unreadable` (§8)."""
    parts = parts_of(name, variant)
    framing = b"\xc3\x01" + by_name(name).fingerprint
    assert decode_record(framing + b"".join(one for one, _ in parts)) == (
        name,
        sample(name, variant),
    )
    for at, (_, count) in enumerate(parts):
        for index in (*range(-count, 0), -(2**63), count) if count else ():
            changed = [one for one, _ in parts]
            changed[at] = written("long", index)
            value = framing + b"".join(changed)
            with pytest.raises(UndecodableError, match="does not decode"):
                decode_record(value)
            if name.startswith("ledgermq.operation."):
                found = decode_operation(value)
                assert isinstance(found, Unreadable)
                assert found.reason == "record-unreadable"
                assert found.detail == f"{name} does not decode"


@pytest.mark.parametrize("name", [one for one in names() if one not in record_names()])
def test_what_stands_only_within_records_is_no_record(name):
    """The fingerprint of an enum in front of bytes that would be one of its symbols (§8)."""
    for value in (b"", b"\0", b"\1", b"\2\0"):
        framed = b"\xc3\x01" + by_name(name).fingerprint + value
        with pytest.raises(UndecodableError, match=f"{name} is a type within records"):
            decode_record(framed)
        found = decode_operation(framed)
        assert isinstance(found, Unreadable)
        assert found.reason == "schema-unknown"
