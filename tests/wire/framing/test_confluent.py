"""Tests of Confluent framing: it means what single-object framing means (PROTOCOL.md §2)."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgermq.protocol.operations import Tick, Unreadable
from ledgermq.wire.framing.codec import decode_operation, encode_operation
from ledgermq.wire.framing.confluent import (
    SCHEMA_HEADER,
    ConfluentFraming,
    framed,
    headers_of,
    single_object,
    value_of,
)
from ledgermq.wire.framing.schema_registry import registered_forms
from support.checkout import ROOT

IDS = {form.fingerprint: number for number, form in enumerate(registered_forms(), 300)}
FRAMING = ConfluentFraming(IDS)
TICK = encode_operation(Tick(worker="w"))
FINGERPRINT = TICK[2:10].hex().encode()
IN_CONFLUENT = b"\0\0\0\1\2" + TICK[10:]
LOGS = sorted((ROOT / "tests" / "golden" / "logs").glob("*.jsonl"))


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.stem)
def test_a_golden_log_in_confluent_framing_is_read_as_it_was(path):
    """Each entry comes back byte for byte, so that outcomes, digest and chain are the same."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    values = [bytes.fromhex(row["value"]) for row in rows if row.get("value")]
    readable = [one for one in values if not isinstance(decode_operation(one), Unreadable)]
    assert readable
    for value in readable:
        written, headers = FRAMING.framed(value, [("ce_id", b"1:1")])
        assert written[:1] == b"\0"
        assert int.from_bytes(written[1:5], "big") == IDS[value[2:10]]
        assert len(written) == len(value) - 5
        assert headers[0] == ("ce_id", b"1:1")
        assert single_object(written, headers) == value


def test_without_a_registry_nothing_changes():
    """No id, no header."""
    assert framed(None, TICK, [("ce_id", b"1")]) == (TICK, [("ce_id", b"1")])


def test_the_id_decides_nothing():
    """The header says what a record is; an id of another schema, or of none, is passed over."""
    for number in (0, 1, 2**31, 2**32 - 1):
        value = b"\0" + number.to_bytes(4, "big") + TICK[10:]
        assert single_object(value, [(SCHEMA_HEADER, FINGERPRINT)]) == TICK


@pytest.mark.parametrize(
    "headers",
    [
        None,
        [],
        [("ledgermq-Schema", FINGERPRINT)],
        [(SCHEMA_HEADER, None)],
        [(SCHEMA_HEADER, b"")],
        [(SCHEMA_HEADER, FINGERPRINT.upper())],
        [(SCHEMA_HEADER, FINGERPRINT + b"\n")],
        [(SCHEMA_HEADER, FINGERPRINT[:-1])],
        [(SCHEMA_HEADER, FINGERPRINT[:-1] + b"\n")],
        [(SCHEMA_HEADER, FINGERPRINT[:-1] + b"\xff")],
        [(SCHEMA_HEADER, FINGERPRINT), (SCHEMA_HEADER, b"0")],
        [("a\ufffd", b""), (SCHEMA_HEADER, FINGERPRINT)],
    ],
)
def test_a_record_that_no_header_explains_stays_as_it_is(headers):
    """Then it is schema-unknown for every reader, now and later, whatever a registry knows."""
    assert single_object(IN_CONFLUENT, headers) == IN_CONFLUENT
    assert decode_operation(IN_CONFLUENT).reason == "schema-unknown"


def test_of_several_headers_the_last_one_with_a_value_counts():
    """As Kafka's own `lastHeader` finds it."""
    several = [(SCHEMA_HEADER, b"0"), (SCHEMA_HEADER, FINGERPRINT), (SCHEMA_HEADER, None)]
    assert single_object(IN_CONFLUENT, several) == TICK


@given(st.binary(max_size=12) | st.binary(max_size=8).map(b"\0".__add__))
def test_any_value_has_one_meaning(value):
    """Nothing raises; what is not in Confluent framing is not touched by a header."""
    found = single_object(value, [(SCHEMA_HEADER, FINGERPRINT)])
    if value[:1] == b"\0" and len(value) >= 5:
        assert found == TICK[:10] + value[5:]
    else:
        assert found == value


def test_a_fingerprint_that_is_no_operation_is_refused():
    """As in single-object framing, and with the same words."""
    header = [(SCHEMA_HEADER, b"00" * 8)]
    assert decode_operation(single_object(IN_CONFLUENT, header)) == decode_operation(
        b"\xc3\x01" + bytes(8) + TICK[10:]
    )


def test_headers_that_cannot_be_read_are_none():
    """A name that is no UTF-8 makes librdkafka's binding fail; the record stays what it is."""

    class Torn:
        """A message as confluent-kafka hands it over then."""

        kept = None

        def value(self):
            return IN_CONFLUENT

        def headers(self):
            if self.kept is None:
                raise SystemError("returned a result with an exception set")
            return self.kept

        def set_headers(self, headers):
            self.kept = headers

    torn = Torn()
    assert [headers_of(torn), value_of(torn), headers_of(torn)] == [[], IN_CONFLUENT, []]
