"""Record headers: CloudEvents attributes, and the address of a refusal (PROTOCOL.md §2, H29)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgermq.wire.framing.headers import (
    Address,
    address_of,
    chunk_headers,
    operation_headers,
    with_identity,
)

CONNECTION = bytes(range(16))
HEXADECIMAL = CONNECTION.hex().encode()
NOWHERE = Address(None, 0, -1, 0)


def test_operation_headers_are_cloud_events_with_an_address():
    """Operations carry content type, CloudEvents attributes and where a refusal would go."""
    shared = operation_headers("QM1", CONNECTION, 3, 1234, "ledgermq.operation.Put")
    headers = with_identity(shared, 1234, 7)
    assert dict(headers) == {
        "content-type": b"avro/binary",
        "ce_specversion": b"1.0",
        "ce_type": b"ledgermq.operation.Put",
        "ce_source": b"/ledgermq/QM1/" + HEXADECIMAL,
        "ce_id": b"1234:7",
        "ledgermq-connection": HEXADECIMAL,
        "ledgermq-lane": b"3",
        "ledgermq-session": b"1234",
        "ledgermq-sequence": b"7",
    }
    assert len(headers) == len(dict(headers))
    assert address_of(headers) == Address(CONNECTION, 3, 1234, 7)


def test_shared_headers_stay_as_they_are():
    """Making an operation's headers does not change what its session shares."""
    shared = operation_headers("QM1", CONNECTION, 0, 0, "ledgermq.operation.Put")
    before = list(shared)
    with_identity(shared, 0, 1)
    assert shared == before


def test_chunk_headers_name_the_connection_and_the_first_outcome():
    """Readers skip others' records by the connection in the header."""
    headers = dict(chunk_headers("QM1", CONNECTION, 99, 2, "ledgermq.outcome.Chunk"))
    assert headers["ledgermq-connection"] == HEXADECIMAL
    assert headers["ce_id"] == b"99:2"
    assert headers["ce_type"] == b"ledgermq.outcome.Chunk"
    assert headers["ce_source"] == b"/ledgermq/QM1/" + HEXADECIMAL


def test_chunk_without_a_connection_has_an_empty_one():
    """Refusals that nobody can be found for go to lane 0 with an empty key."""
    headers = dict(chunk_headers("QM1", None, 99, 0, "ledgermq.outcome.Chunk"))
    assert headers["ledgermq-connection"] == b""


@pytest.mark.parametrize("headers", [None, [], [("ledgermq-lane", None)], [("other", b"1")]])
def test_missing_headers_are_no_address(headers):
    """What is absent has its default."""
    assert address_of(headers) == NOWHERE


@pytest.mark.parametrize(
    "value", [b"", b"zz", HEXADECIMAL[:-2], HEXADECIMAL + b"00", b"\xff\xfe", b"\xc3\xa4" * 16]
)
def test_malformed_connection_is_absent(value):
    """A connection that is not 32 hexadecimal digits is none."""
    assert address_of([("ledgermq-connection", value)]) == NOWHERE


@pytest.mark.parametrize("value", [b"", b"-1", b"1.5", b"abc", b"9" * 19, b"\xff", b" 1"])
def test_malformed_numbers_are_absent(value):
    """A number that is none, or beyond 64 bits, has its default."""
    names = ("ledgermq-lane", "ledgermq-session", "ledgermq-sequence")
    assert address_of([(name, value) for name in names]) == NOWHERE


@given(st.lists(st.tuples(st.text(), st.none() | st.binary())))
def test_no_headers_make_address_of_raise(headers):
    """Headers are anybody's bytes."""
    names = ("ledgermq-connection", "ledgermq-lane", "ledgermq-session", "ledgermq-sequence")
    address_of(headers)
    address_of([(name, value) for name in names for _, value in headers])
