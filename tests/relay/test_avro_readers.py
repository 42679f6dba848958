"""No value makes the reader of Avro hang, take all memory or end the process."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest

from ledgermq.relay.avro_bodies import AvroBodies
from ledgermq.wire.content.objects import ObjectBody
from support.brokers.registry_gate import RegistryGate

# 2**62 items, as Avro writes the number.
MANY = b"\x80" * 8 + b"\x80\x01"
EMPTY = {"type": "record", "name": "a.Empty", "fields": []}
LINK = {"name": "next", "type": ["null", "Chain"]}
CHAIN = {"type": "record", "name": "a.Chain", "fields": [LINK]}
TREE = {
    "type": "record",
    "name": "Tree",
    "fields": [
        {"name": "is_red", "type": "boolean"},
        {"name": "under", "type": {"type": "array", "items": "Tree"}},
    ],
}


def _record(name, **fields):
    return {
        "type": "record",
        "name": name,
        "fields": [{"name": name, "type": kind} for name, kind in fields.items()],
    }


def _array(items):
    return {"type": "array", "items": items}


@pytest.fixture
def read():
    """A value by a schema, as a bridge reads it; the registry has this schema only."""

    def ask(schema, value, **more):
        body = _read(schema, value, more)
        return body.load() if isinstance(body, ObjectBody) else body

    def _read(schema, value, more):
        with RegistryGate("http://127.0.0.1") as gate:
            gate.answer = (200, json.dumps({"schema": json.dumps(schema), **more}).encode())
            return AvroBodies(gate.url)(b"\0\0\0\0\x01" + value)

    return ask


@pytest.mark.parametrize(
    "items",
    [
        "null",
        {"type": "null"},
        EMPTY,
        {"type": "fixed", "name": "None", "size": 0},
        _record("Outer", one=EMPTY, two="a.Empty", three="null"),
    ],
)
@pytest.mark.parametrize("place", [_array, lambda one: _record("R", f=["null", _array(one)])])
def test_an_array_of_what_takes_no_bytes_is_refused(read, items, place):
    """A value of ten bytes would make 2**62 items of it."""
    with pytest.raises(ValueError, match="items of an array take no bytes"):
        read(place(items), MANY + b"\0")


def test_a_schema_of_another_kind_is_none_of_avro(read):
    """Some of JSON's are both, and what they are of would be read as something else."""
    schema, value = {"type": "string"}, b'"abcdefghijklmnop"'
    assert read(schema, value, schemaType="AVRO") == 'abcdefghijklmnop"'
    with pytest.raises(ValueError, match="has no Avro schema 1"):
        read(schema, value, schemaType="JSON")


def _doubled(depth):
    """A record without bytes, with two of the one below it in it."""
    one = EMPTY
    for at in range(depth):
        one = _record(f"R{at}", one=one, two=one["name"])
    return one


def test_records_in_which_more_and_more_takes_no_bytes_are_refused(read):
    """A schema of a kilobyte would make 2**30 of them of nothing; some there may be."""
    assert read(_doubled(3), b"")["one"]["two"] == {"one": {}, "two": {}}
    with pytest.raises(ValueError, match="holds more than 1,000 that take no bytes"):
        read(_doubled(14), b"")
    with pytest.raises(ValueError, match="holds more than 1,000 that take no bytes"):
        read(_record("R", n="int", f=_doubled(14)), b"\x02")


def test_a_record_with_two_fields_of_a_name_is_refused(read):
    """The second would take the place of the first."""
    twice = _record("R", one="int")
    twice["fields"] *= 2
    with pytest.raises(ValueError, match="R has two fields of a name"):
        read(twice, b"\x02\x04")


@pytest.mark.parametrize(
    "items", ["boolean", ["null"], _array("int"), {"type": "map", "values": "null"}]
)
def test_an_array_of_what_takes_bytes_ends_with_its_value(read, items):
    """A count is believed as far as there are bytes."""
    with pytest.raises(ValueError, match="does not decode"):
        read(_array(items), MANY + b"\0")
    assert read(_array(items), b"\x02\0\0")


@pytest.mark.parametrize("schema", [CHAIN, TREE, _record("Endless", one="Endless")])
@pytest.mark.parametrize("value", [b"", b"\x02" * 10_000, b"\x02" * 1_000_000, b"\xff" * 1_000_000])
def test_what_is_nested_as_deep_as_it_likes_is_refused(read, schema, value):
    """It is the value that says how deep; no reader in C can be asked."""
    with pytest.raises(ValueError, match=r"too deep|does not decode"):
        read(schema, value)


def test_a_type_that_holds_itself_is_read_as_deep_as_an_object_goes(read):
    """A hundred levels, as of any object."""
    depth, at = 0, read(CHAIN, b"\x02" * 98 + b"\0")
    while at["next"] is not None:
        depth, at = depth + 1, at["next"]
    assert depth == 98
    tree = read(TREE, b"\x01\x04\x00\x00\x01\x00\x00")
    leaves = [{"is_red": False, "under": []}, {"is_red": True, "under": []}]
    assert tree == {"is_red": True, "under": leaves}


def test_a_cut_value_of_a_type_that_holds_itself_is_refused(read):
    """The reader in Python has an error of its own for it."""
    with pytest.raises(ValueError, match="does not decode by schema 1"):
        read(TREE, b"")


@pytest.mark.parametrize(
    "schema",
    [
        ["null", "string"],
        _record("Both", one=["null", "string"]),
        {"type": "enum", "name": "Kind", "symbols": ["A", "B"]},
        _record("Both", one={"type": "enum", "name": "Kind", "symbols": ["A", "B"]}),
        CHAIN,
    ],
)
@pytest.mark.parametrize("index", [b"\x01", b"\x03", b"\x04"])
def test_a_branch_or_symbol_that_the_schema_lacks_is_refused(read, schema, index):
    """One counted from the end, too: -1, -2 and 2 of two."""
    assert read(schema, b"\0") in (None, "A", {"one": None}, {"one": "A"}, {"next": None})
    with pytest.raises(ValueError, match="does not decode by schema 1"):
        read(schema, index + b"\x02a\0")


def test_what_is_read_by_named_types_again_is_what_was_written(read):
    """A record in a union, an enum that is used twice."""
    kind = {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}
    schema = ["null", _record("Pair", one=kind, two=["null", "Kind"])]
    assert read(schema, b"\x02\x02\x02\0") == {"one": "B", "two": "A"}


@pytest.mark.parametrize("used", ["Item", _array("Item"), {"type": "map", "values": "Item"}])
def test_a_type_that_is_named_twice_does_not_hold_itself(read, used):
    """What is used again beside itself is read as any other."""
    item = _record("Item", id="int")
    schema = _record("Both", one=item, two=used)
    assert read(schema, b"\x02" + (b"\x04" if used == "Item" else b"\0"))["one"] == {"id": 1}


DIGITS = (123456789).to_bytes(8, "big")
MONEY = {"logicalType": "decimal", "precision": 4, "scale": 2}


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "bytes", **MONEY}, b"\x10" + DIGITS),
        ({"type": "fixed", "name": "sum", "size": 8, **MONEY}, DIGITS),
    ],
    ids=["bytes", "fixed"],
)
def test_a_decimal_with_more_digits_than_its_schema_names_is_not_rounded(read, schema, value):
    """In a record of its own type, too, which fastavro's other reader reads."""
    assert read(schema, value) == Decimal("1234567.89")
    assert read(_record("a.Bill", sum=schema), value) == {"sum": Decimal("1234567.89")}
    link = {"name": "next", "type": ["null", "a.Bill"]}
    bill = {"type": "record", "name": "a.Bill", "fields": [{"name": "sum", "type": schema}, link]}
    assert read(bill, value + b"\0") == {"sum": Decimal("1234567.89"), "next": None}


def test_a_decimal_that_is_as_long_as_no_number_is_refused_at_once(read):
    """What makes a number of it takes minutes for a megabyte."""
    with pytest.raises(ValueError, match="a decimal has 1,000,000 bytes, more than 4,096"):
        read({"type": "bytes", **MONEY}, b"\x80\x89\x7a" + b"\x7f" * 1_000_000)
