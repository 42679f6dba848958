"""How many entries an operation's lists may have, and that they are counted before it is read."""

from __future__ import annotations

import tracemalloc
from io import BytesIO
from random import Random
from typing import Any

import pytest
from fastavro import schemaless_reader

from ledgermq.protocol.limits import LIST_ENTRIES_MAX
from ledgermq.protocol.operations import Acknowledge, Unreadable
from ledgermq.wire.framing import list_entries
from ledgermq.wire.framing.codec import (
    UndecodableError,
    decode_operation,
    decode_record,
    encode_operation,
    encode_record,
)
from ledgermq.wire.framing.list_entries import has_too_many_entries
from support.checks.samples import VARIANTS, sample, schema_of
from support.messages.large_operations import OPERATIONS

FRAMING_BYTES = 10
SAMPLES = [(name, variant) for name in OPERATIONS for variant in VARIANTS]


def acknowledge(count: int) -> bytes:
    """An Acknowledge with as many ranges."""
    ranges = [{"first": 1, "last": 1}] * count
    entry = Acknowledge(session=1, session_sequence=1, answered_through=0, deliveries=ranges)
    return encode_operation(entry)


def entries_in(schema: Any, datum: Any) -> int:
    """The entries of all lists of a datum, those of maps left out."""
    if isinstance(schema, list):
        if isinstance(datum, tuple):
            return entries_in(*datum)
        # Samples name the record where there is a choice; what is null has no entries.
        return sum(entries_in(one, datum) for one in schema if one != "null" and datum is not None)
    if isinstance(schema, str):
        return entries_in(schema_of(schema), datum) if "." in schema else 0
    if schema["type"] == "record":
        return sum(entries_in(one["type"], datum[one["name"]]) for one in schema["fields"])
    if schema["type"] == "array":
        return len(datum) + sum(entries_in(schema["items"], one) for one in datum)
    return 0


@pytest.mark.parametrize(("name", "variant"), SAMPLES)
def test_the_entries_of_all_lists_count_together(name, variant, monkeypatch):
    """Of every kind of operation, at any depth: as many as may be, and one more."""
    datum = sample(name, variant)
    value = encode_record(name, datum)
    expected = entries_in(name, datum)
    monkeypatch.setattr(list_entries, "LIST_ENTRIES_MAX", expected)
    assert not has_too_many_entries(name, value, FRAMING_BYTES)
    monkeypatch.setattr(list_entries, "LIST_ENTRIES_MAX", expected - 1)
    assert has_too_many_entries(name, value, FRAMING_BYTES) == (expected > 0)


@pytest.mark.parametrize("name", OPERATIONS)
def test_what_does_not_decode_is_left_to_the_reader_to_refuse(name, monkeypatch):
    """Cut anywhere, or with any byte changed: counting comes to an end and never raises."""
    monkeypatch.setattr(list_entries, "LIST_ENTRIES_MAX", 100)
    chance, value = Random(7), encode_record(name, sample(name, 2))
    for cut in range(FRAMING_BYTES, len(value)):
        has_too_many_entries(name, value[:cut], FRAMING_BYTES)
    for _ in range(300):
        changed = bytearray(value)
        changed[chance.randrange(FRAMING_BYTES, len(value))] = chance.randrange(256)
        assert decode_operation(bytes(changed)) is not None


def test_an_operation_with_more_ranges_than_may_be_is_record_unreadable():
    """65,536 ranges are read; one more is refused, in one block or in a block for each (§8)."""
    assert isinstance(decode_operation(acknowledge(LIST_ENTRIES_MAX)), Acknowledge)
    one = acknowledge(1)
    begin, entry, end = one[:-4], one[-3:-1], one[-1:]
    assert begin + b"\x02" + entry + end == one, "the count, a range, the end"
    in_blocks = begin + (b"\x02" + entry) * (LIST_ENTRIES_MAX + 1) + end
    for value in (acknowledge(LIST_ENTRIES_MAX + 1), in_blocks):
        found = decode_operation(value)
        assert isinstance(found, Unreadable)
        assert found.reason == "record-unreadable"
        assert found.detail == (
            "the lists of a ledgermq.operation.Acknowledge have more than 65536 entries"
        )


def test_a_question_with_more_numbers_than_may_be_is_not_read():
    """A worker reads questions so; what it trusts, such as checkpoints, may be longer (§9)."""
    ask = sample("ledgermq.question.Ask", 0)
    selection = sample("ledgermq.type.MessageSelection", 0)
    selection["sequences"] = [{"first": 1, "last": 1}] * (LIST_ENTRIES_MAX + 1)
    value = encode_record("ledgermq.question.Ask", ask | {"selection": selection})
    with pytest.raises(UndecodableError, match="more than 65536 entries"):
        decode_record(value, short_lists=True)
    assert decode_record(value)[0] == "ledgermq.question.Ask"


def test_records_with_a_million_ranges_take_no_memory():
    """They are refused before anything is made of them: five took the worker 900 MiB (F11)."""
    values = [acknowledge(1_000_000)] * 5
    tracemalloc.start()
    try:
        found = [decode_operation(value) for value in values]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert all(isinstance(one, Unreadable) for one in found)
    assert peak < 1024 * 1024


def test_a_number_without_end_is_passed_over_as_fast_as_other_bytes():
    """One of 8 MiB took hours, and the worker with it; it is no operation (§8)."""
    value = acknowledge(1)[:-4] + b"\xff" * (8 * 1024 * 1024)
    found = decode_operation(value)
    assert isinstance(found, Unreadable)
    assert found.reason == "record-unreadable"


def test_a_number_of_too_many_bytes_counts_as_the_reader_reads_it():
    """Otherwise an operation with too many entries could pass for one that does not decode."""
    chance = Random(7)
    for _ in range(2000):
        more = bytes(chance.randrange(128, 256) for _ in range(chance.choice((0, 8, 9, 10, 30))))
        number = more + bytes([chance.randrange(128)])
        read = schemaless_reader(BytesIO(number), "long", None)
        assert list_entries._number(list_entries._Datum(number), 0) == (read, len(number))
