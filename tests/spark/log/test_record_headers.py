"""Tests of what headers and keys say, held against the records that bear them (PROTOCOL.md §2)."""

import pyarrow as pa
import pytest

from ledgermq.protocol import operations as op
from ledgermq.wire.framing.codec import decode_chunk, decode_operation, encode_chunk, full_name_of
from ledgermq.wire.framing.headers import operation_headers, with_identity
from ledgermq_spark.audit.headers import check_operation_headers, check_outcome_records
from ledgermq_spark.laws.engines.engine import Frame
from ledgermq_spark.log.read_log import decode_operations, decode_outcomes
from support.audits.engines import duck_engine
from support.brokers.log_writer import Script, chain_of, chunks
from support.planted.planting import conversation

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
OPEN, PUT = 0, 1
WORKER = "w1"


@pytest.fixture(scope="module")
def script():
    """A conversation, and an entry of the worker."""
    found = Script()
    conversation(found, "q")
    found.add(op.Tick(worker=WORKER))
    return found


def as_written(script):
    """Key, value and headers of each operation, as client and worker write them."""
    opens = {}
    records = []
    for position, entry in enumerate(script.entries):
        operation = decode_operation(entry.value)
        name = full_name_of(operation)
        if isinstance(operation, op.Open):
            opens[position] = operation
            shared = operation_headers("QM1", operation.connection, operation.lane, -1, name)
            headers = with_identity(shared, -1, 0)
        elif isinstance(operation, op.SessionOperation):
            one = opens[operation.session]
            shared = operation_headers("QM1", one.connection, one.lane, operation.session, name)
            headers = with_identity(shared, operation.session, operation.session_sequence)
        else:
            headers = [
                ("content-type", b"avro/binary"),
                ("ce_type", name.encode()),
                ("ce_source", f"/ledgermq/QM1/{WORKER}".encode()),
                ("ce_id", b"0123456789abcdef"),
            ]
        records.append([b"QM1", entry.value, headers])
    return records


def with_header(record, name, value):
    """The record with another value of a header; without it if that is None."""
    key, body, headers = record
    kept = [one for one in headers if one[0] != name]
    return [key, body, kept if value is None else [*kept, (name, value)]]


def column_of_headers(records):
    """Headers as Spark reads them."""
    told = [
        None if one is None else [{"key": name, "value": value} for name, value in one]
        for *_, one in records
    ]
    return pa.array(told, HEADERS)


def findings(script, records):
    """What the headers of these operations are found to deny, as (position, fields)."""
    batch = pa.RecordBatch.from_arrays(
        [
            pa.array(range(len(records)), pa.int64()),
            pa.array([one.time_us // 1000 for one in script.entries], pa.int64()),
            pa.array([1] * len(records), pa.int64()),
            pa.array([key for key, _, _ in records], pa.binary()),
            pa.array([value for _, value, _ in records], pa.binary()),
            column_of_headers(records),
        ],
        names=["offset", "append_time_ms", "timestamp_type", "key", "value", "headers"],
    )
    read = pa.Table.from_batches(list(decode_operations([batch], "QM1")))
    return check_operation_headers(Frame.taken(duck_engine(), "read", read))


def test_headers_that_client_and_worker_write_deny_nothing(script):
    """Connection, lane, session, number, id, source and type are those of the value."""
    assert findings(script, as_written(script)) == []


def test_what_a_writer_leaves_out_denies_nothing(script):
    """Headers decide nothing, so who does not know them may leave out any, or all and the key."""
    bare = [[None, value, None] for _, value, _ in as_written(script)]
    assert findings(script, bare) == []
    records = as_written(script)
    for at, name in enumerate(dict(records[PUT][2])):
        records[at] = with_header(records[at], name, None)
    assert findings(script, records) == []


def test_what_a_foreign_writer_adds_or_writes_in_capitals_denies_nothing(script):
    """Hexadecimal digits have no case, and the protocol does not know every header."""
    records = as_written(script)
    name = dict(records[PUT][2])["ledgermq-connection"].upper()
    records[PUT] = with_header(records[PUT], "ledgermq-connection", name)
    records[PUT] = with_header(records[PUT], "ce_source", b"/ledgermq/QM1/" + name)
    records[PUT] = with_header(records[PUT], "tracestate", b"anything")
    assert findings(script, records) == []


def test_a_record_that_is_no_operation_has_nothing_to_deny(script):
    """It is refused where its headers say; what it was meant to be nobody knows (H29)."""
    records = as_written(script)
    records[PUT] = [b"anybody", records[PUT][1][:-1], records[PUT][2]]
    assert findings(script, records) == []


@pytest.mark.parametrize(
    ("at", "name", "value"),
    [
        (PUT, "ce_id", b"0:2"),
        (PUT, "ce_source", b"/ledgermq/QM2/" + b"00" * 16),
        (PUT, "ce_type", b"ledgermq.operation.Commit"),
        (PUT, "content-type", b"text/plain"),
        (PUT, "ledgermq-connection", b"00" * 16),
        (PUT, "ledgermq-lane", b"3"),
        (PUT, "ledgermq-sequence", b"9"),
        (PUT, "ledgermq-session", b"7"),
        (OPEN, "ledgermq-connection", b"00" * 16),
        (OPEN, "ledgermq-lane", b"one"),
        (-1, "ce_source", b"/ledgermq/QM1/w2"),
        (-1, "ce_type", b"ledgermq.operation.Suspect"),
    ],
)
def test_a_header_that_denies_its_operation_is_named(script, at, name, value):
    """One record, one finding: where it stands, what the value says, what the header says."""
    records = as_written(script)
    records[at] = with_header(records[at], name, value)
    (found,) = findings(script, records)
    position = at % len(records)
    assert (found.kind, found.source, found.position) == ("altered operations", "headers", position)
    assert name in found.field.split(", ")
    assert value.decode() in found.found


def test_a_key_of_another_queue_manager_is_named(script):
    """The records of a partition are those of its queue manager."""
    records = as_written(script)
    records[PUT][0] = b"QM2"
    (found,) = findings(script, records)
    assert (found.position, found.field) == (PUT, "key")
    assert (found.expected, found.found) == ("QM1", "QM2")


def recorded(records):
    """Records of the lanes as they are read: partition, key, value, headers."""
    batch = pa.RecordBatch.from_arrays(
        [
            pa.array([partition for partition, *_ in records], pa.int64()),
            pa.array(range(len(records)), pa.int64()),
            pa.array([key for _, key, *_ in records], pa.binary()),
            pa.array([value for _, _, value, _ in records], pa.binary()),
            column_of_headers(records),
        ],
        names=["partition", "offset", "key", "value", "headers"],
    )
    read = pa.Table.from_batches(list(decode_outcomes([batch], "QM1")))
    return Frame.taken(duck_engine(), "lanes", read)


@pytest.fixture
def lanes(script):
    """The lanes as a worker writes them, three outcomes to a chunk."""
    return chunks(script.outcomes, 0, chain_of(script.entries), size=3)


def test_lanes_as_a_worker_writes_them_deny_nothing(lanes):
    """Each record names its connection and its first outcome, and has the digest chain."""
    assert check_outcome_records(recorded(lanes)) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ce_id", b"1:1"),
        ("ce_source", b"/ledgermq/QM1/" + b"00" * 16),
        ("ce_type", b"ledgermq.question.Answer"),
        ("content-type", b"application/json"),
        ("ledgermq-connection", b"00" * 16),
        ("ledgermq-connection", None),
    ],
)
def test_a_header_that_denies_its_outcomes_is_named(lanes, name, value):
    """Who is to read it would not, or would take it for another one."""
    partition, key, body, headers = lanes[1]
    lanes[1] = (partition, *with_header([key, body, headers], name, value))
    (found,) = check_outcome_records(recorded(lanes))
    last = decode_chunk(body).outcomes[-1].position
    assert (found.kind, found.source, found.field) == ("altered outcome", "headers", name)
    assert found.position == last
    assert found.found == ("nothing" if value is None else value.decode())
    assert "record 1 of outcomes partition" in found.summary


def test_any_other_header_may_be_left_out_on_the_lanes(lanes):
    """Nobody passes over a record because of them."""
    partition, key, body, headers = lanes[1]
    only = [one for one in headers if one[0] == "ledgermq-connection"]
    lanes[1] = (partition, key, body, only)
    assert check_outcome_records(recorded(lanes)) == []


def test_a_chunk_whose_chain_was_left_out_is_named(lanes):
    """Its worker owes it (PROTOCOL.md §10): without it the records below have an anchor less."""
    partition, key, body, headers = lanes[1]
    chunk = decode_chunk(body)
    previous = (chunk.previous_position, chunk.previous_index)
    lanes[1] = (partition, key, encode_chunk(*previous, chunk.outcomes), headers)
    (found,) = check_outcome_records(recorded(lanes))
    assert (found.kind, found.source, found.field) == ("altered outcome", "chain", "chain")
    assert found.position == chunk.outcomes[-1].position
