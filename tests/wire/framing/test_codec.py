"""The codec: what it reads and writes, and that nothing unreadable makes it or the fold raise."""

from __future__ import annotations

import pytest

from ledgermq.core.apply import apply
from ledgermq.protocol import administration, operations, outcomes
from ledgermq.protocol.operations import Operation, SessionOperation, Unreadable
from ledgermq.protocol.outcomes import Outcome, Reply
from ledgermq.wire.framing.codec import (
    UndecodableError,
    decode_chunk,
    decode_operation,
    decode_record,
    encode_chunk,
    encode_operation,
    encode_record,
    full_name_of,
    kinds_in,
)
from ledgermq.wire.framing.schemas import ASK, by_name, names
from support.checks import checks
from support.checks.samples import VARIANTS, record_names, sample
from support.scripts.play import START_US, play_lines

OPERATIONS = [name for name in record_names() if name.startswith("ledgermq.operation.")]
OUTCOMES = [
    name
    for name in record_names()
    if name.startswith("ledgermq.outcome.")
    and issubclass(getattr(outcomes, name.rpartition(".")[2], int), Outcome)
]
LONG_BYTES = 1_000
SAMPLES = [(name, variant) for name in record_names() for variant in VARIANTS]


def operation(name: str, variant: int, **fields) -> Operation:
    """A sample operation."""
    datum = with_headers_inside(sample(name, variant))
    name = name.rpartition(".")[2]
    kind = getattr(operations, name, None) or getattr(administration, name)
    return kind(**datum | {key: value for key, value in fields.items() if key in datum})


def with_headers_inside(datum: dict) -> dict:
    """A sample as programs have it: headers are not beside the messages but in them."""
    headers = datum.pop("headers", [])
    for message, header in zip(datum.get("messages", []), headers, strict=False):
        message["header"] = header
    return datum


def outcome(name: str, variant: int) -> Outcome:
    """A sample outcome."""
    datum = with_headers_inside(sample(name, variant))
    return getattr(outcomes, name.rpartition(".")[2])(**datum)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("name", OPERATIONS)
def test_operation_is_read_as_it_was_written(name, variant):
    """Every kind of operation survives, field by field."""
    written = operation(name, variant)
    assert decode_operation(encode_operation(written)) == written
    assert full_name_of(written) == name


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("name", OUTCOMES)
def test_outcome_is_read_as_it_was_written(name, variant):
    """Every kind of outcome survives, alone and beside others in a chunk."""
    written = outcome(name, variant)
    assert decode_chunk(encode_chunk(7, 3, [written])).outcomes == [written]
    assert full_name_of(written) == name
    chunk = decode_chunk(encode_chunk(7, 3, [written, written]))
    assert (chunk.previous_position, chunk.previous_index) == (7, 3)
    assert chunk.outcomes == [written, written]


def test_every_operation_and_outcome_has_a_schema_and_every_schema_its_record():
    """Records of the vocabulary and schemas of the protocol are the same set."""
    abstract = {Operation, SessionOperation, Unreadable, Outcome, Reply}
    abstract.add(administration.HandlingOperation)
    asked = ((Operation, OPERATIONS, operations, administration), (Outcome, OUTCOMES, outcomes))
    for base, known, *modules in asked:
        kinds = [one for module in modules for one in kinds_in(module, base)]
        found = {one.__name__ for one in kinds if one not in abstract}
        assert found == {name.rpartition(".")[2] for name in known}


def test_unknown_record_name_is_the_programmers_error():
    """A name that the protocol lacks raises KeyError at once."""
    with pytest.raises(KeyError):
        encode_record("ledgermq.operation.Unknown", {})
    with pytest.raises(KeyError):
        by_name("Put")


def test_no_value_is_record_empty():
    """A tombstone or an empty value: record-empty."""
    for value in (None, b""):
        found = decode_operation(value)
        assert isinstance(found, Unreadable)
        assert (found.reason, found.detail) == ("record-empty", "the record has no value")


@pytest.mark.parametrize(
    "value",
    [
        b"\xc3",
        b"\xc3\x01",
        b"\xc3\x01" + bytes(7),
        b"\xc3\x01" + bytes(8),
        b"\x00" * 20,
        b"\xc3\x02" + encode_record("ledgermq.operation.Tick", {"worker": ""})[2:],
        encode_record("ledgermq.question.Heartbeat", sample("ledgermq.question.Heartbeat", 1)),
        encode_record("ledgermq.outcome.Accepted", sample("ledgermq.outcome.Accepted", 1)),
    ],
)
def test_what_is_no_operation_is_schema_unknown(value):
    """No marker, an unknown fingerprint, or a record that is no operation: schema-unknown."""
    found = decode_operation(value)
    assert isinstance(found, Unreadable)
    assert found.reason == "schema-unknown"


# Of a question since the last kinds of questions were added, one after the other.
FORMS_OF_QUESTIONS = {
    "PINS": "761f9da34475fcdf",
    "OBSTACLES": "4f19c27adab6a999",
    "SOURCES": "b804b406b440d8db",
    "BINDINGS": "a854ed9aa97ffe55",
}


@pytest.mark.parametrize(("kind", "fingerprint"), FORMS_OF_QUESTIONS.items())
def test_a_question_of_an_older_client_is_read(kind, fingerprint):
    """Each kind that was added gave all questions another fingerprint, of which workers knew one.

    What the older schema lacks is no question in it.
    """
    later = {"PINS": "OBSTACLES", "OBSTACLES": "SOURCES", "SOURCES": "BINDINGS"}
    for asked in ("QUEUE", kind, *([later[kind]] if kind in later else [])):
        datum = sample(ASK, 1) | {"kind": asked}
        value = encode_record(ASK, datum)
        older = value[:2] + bytes.fromhex(fingerprint) + value[10:]
        if asked == later.get(kind):
            with pytest.raises(UndecodableError):
                decode_record(older)
        else:
            assert decode_record(older) == (ASK, datum)


def test_unknown_fingerprint_is_named():
    """The text says which schema is missing and what to do."""
    found = decode_operation(b"\xc3\x01" + bytes(range(8)))
    assert isinstance(found, Unreadable)
    assert "0001020304050607" in found.detail
    assert "upgrade the workers" in found.detail


def test_operation_of_a_later_version_is_version_inactive():
    """Before its Upgrade a version's operation is refused: version-inactive (H3)."""
    value = encode_operation(operations.Tick(worker="w"))
    found = decode_operation(value, active_version=0)
    assert isinstance(found, Unreadable)
    assert found.reason == "version-inactive"
    assert decode_operation(value, active_version=2) == operations.Tick(worker="w")


@pytest.mark.parametrize("name", OPERATIONS)
def test_truncated_or_prolonged_operation_is_record_unreadable(name):
    """Cut anywhere behind its framing, or followed by bytes: record-unreadable."""
    for variant in VARIANTS:
        value = encode_operation(operation(name, variant))
        cut = [value[:end] for end in range(10, len(value))]
        for bad in (*cut, value + b"\0", value + value):
            found = decode_operation(bad)
            assert isinstance(found, Unreadable), f"{name} from {len(bad)} of {len(value)} bytes"
            assert found.reason == "record-unreadable"
            assert name in found.detail


def ready_state() -> checks.Frozen:
    """A state in which each operation finds something to act on."""
    lines = (
        "open TRANSACTED",
        "B: open CLIENT",
        "B: put q A B C -> enqueued 0..2",
        "consumer 1 q",
        "get 2 -> accepted; delivered A@0 B@1",
        "put text X",
    )
    return checks.freeze(play_lines(*lines).state)


@pytest.mark.parametrize("name", OPERATIONS)
def test_flipped_bits_never_make_codec_or_fold_raise(name):
    """Whatever one wrong bit makes of an operation, it is refused or applied, and the state can be
    written as a checkpoint.
    """
    frozen = ready_state()
    proper = {"session": 0, "session_sequence": 4, "consumer": 1, "destination": "queue:q"}
    proper |= {"queue": "q", "puts": 1, "suspect_timeout_ms": 5_000, "lane": 0}
    applied_before, sound = set(), set()
    for variant in VARIANTS[1:]:
        value = encode_operation(operation(name, variant, **proper))
        # Every third: two or three bits of each byte, and each bit of some bytes.
        for bit in range(0, len(value) * 8, 3):
            wrong = bytearray(value)
            wrong[bit // 8] ^= 1 << (bit % 8)
            found = decode_operation(bytes(wrong))
            # Many wrong bits come to one refusal: the fold knows nothing but what was read.
            if repr(found) in applied_before:
                continue
            applied_before.add(repr(found))
            state = checks.thaw(frozen)
            applied = apply(state, found, state.position + 1, START_US)
            checks.through_the_wire(applied)
            refrozen = checks.freeze(state)
            if refrozen not in sound:
                assert checks.freeze(checks.thaw(refrozen)) == refrozen
                sound.add(refrozen)


@pytest.mark.parametrize(("name", "variant"), SAMPLES)
def test_truncated_record_raises_nothing_but_undecodable(name, variant):
    """Readers of all other records need to know one error only."""
    value = encode_record(name, sample(name, variant))
    assert decode_record(value) == (name, sample(name, variant))
    for end in range(len(value)):
        with pytest.raises(UndecodableError):
            decode_record(value[:end])
    with pytest.raises(UndecodableError, match="too many"):
        decode_record(value + b"\0")


@pytest.mark.parametrize(("name", "variant"), SAMPLES)
def test_flipped_bits_of_a_record_raise_nothing_but_undecodable(name, variant):
    """A damaged record is some other record or an UndecodableError."""
    value = encode_record(name, sample(name, variant))
    # Of a long one every seventh: some bit of each byte, and each bit of some bytes.
    for bit in range(0, len(value) * 8, 7 if len(value) > LONG_BYTES else 1):
        wrong = bytearray(value)
        wrong[bit // 8] ^= 1 << (bit % 8)
        try:
            read, _ = decode_record(bytes(wrong))
        except UndecodableError:
            continue
        assert read in names()


def test_no_value_is_undecodable():
    """An empty record raises UndecodableError."""
    for value in (None, b"", b"\xc3\x01"):
        with pytest.raises(UndecodableError):
            decode_record(value)


def test_chunk_is_told_from_other_records():
    """A record that is no Chunk raises UndecodableError with both names."""
    tick = encode_operation(operations.Tick(worker="w"))
    with pytest.raises(UndecodableError, match=r"outcome\.Chunk, found ledgermq\.operation\.Tick"):
        decode_chunk(tick)


def test_empty_chunk_is_a_chunk():
    """A chunk may hold no outcome."""
    assert decode_chunk(encode_chunk(-1, -2, [])).outcomes == []


def test_the_text_of_an_unreadable_record_does_not_say_what_the_library_says():
    """It stands in an outcome, so that it may depend on nothing but the entry: a library's words
    change with its version, and quote addresses of memory (§7, D5).
    """
    for name in OPERATIONS:
        value = encode_operation(operation(name, 2))
        for cut in range(12, len(value)):
            found = decode_operation(value[:cut])
            assert isinstance(found, Unreadable)
            assert found.detail == f"{name} does not decode"
