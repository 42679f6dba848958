"""Tests that this process reads the records of a log as Spark reads them, or has Spark do it."""

from concurrent.futures import CancelledError, Future
from functools import partial
from threading import Event

import pyarrow as pa
import pytest

from ledgermq.wire.framing.confluent import SCHEMA_HEADER
from ledgermq.wire.framing.schemas import by_name
from ledgermq.wire.topics.reading import LogDamagedError, LogUnreadableError, PartitionReader
from ledgermq_spark.log import read_log
from ledgermq_spark.log.positions import (
    LogUnreachableError,
    PartitionRange,
    PositionOutOfRangeError,
    partition_ranges,
)
from ledgermq_spark.log.read_log import RAW_COLUMNS, read_here, read_raw, write_read
from ledgermq_spark.log.session import LazySession, thread_beside
from ledgermq_spark.log.store import ParquetRows
from support.brokers import topic_surgery as surgery
from support.brokers.foreign_batches import write_unnamed_header

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.slow]

TICK = by_name("ledgermq.operation.Tick").fingerprint.hex().encode()
NAMES = [name for name, _ in RAW_COLUMNS]
GIVEN = [
    (b"QM1", b"\xc3\1" + bytes.fromhex(TICK.decode()) + b"\2w", []),
    (b"QM1", b"\0\0\0\0\1\2w", [(SCHEMA_HEADER, TICK)]),
    (b"QM1", b"\0\0\0\0\1\2w", [("a\ufffd", b""), (SCHEMA_HEADER, TICK)]),
    (None, None, [("x", None), ("x", b""), ("\u00e4", b"\xff")]),
    (b"", b"", []),
]


def written(place, given):
    """Write records, one of them with a time of its own; return where they stand."""
    for number, (key, value, headers) in enumerate(given):
        if number == 3:
            surgery.alter_topic(
                place, place.topics.operations, **{"message.timestamp.type": "CreateTime"}
            )
        surgery.write(place, place.topics.operations, key, value, headers=headers)
    return partition_ranges(place.bootstrap, place.topics.operations, [0])


def rows_here(bootstrap, ranges, parts=NAMES):
    """What this process reads of them."""
    batches = read_here(bootstrap, ranges, parts)
    return [row for batch in batches for row in batch.to_pylist()]


def test_records_are_those_that_spark_reads(spark, place):
    """Keys, values, times and headers, with nothing in them or none at all, in both framings."""
    ranges = written(place, GIVEN)
    frame = read_raw(spark, place.bootstrap, ranges, headers=True).select(*NAMES)
    expected = frame.toArrow().sort_by("offset").to_pylist()
    found = rows_here(place.bootstrap, ranges)
    assert found == expected
    assert {row["timestamp_type"] for row in found} == {0, 1}
    assert len(found) == len(GIVEN)


def test_a_record_that_only_java_reads_whole_is_read_by_spark(spark, place, tmp_path):
    """Of a header's name that is no UTF-8 the client of workers would leave out all others."""
    surgery.write(place, place.topics.operations, "QM1", b"1", headers=[("a", b"b")])
    write_unnamed_header(place.bootstrap, place.topics.operations, b"2", headers=[("a", b"b")])
    ranges = partition_ranges(place.bootstrap, place.topics.operations, [0])
    lazy = LazySession(lambda: spark)
    parts = ("offset", "headers")
    columns = [one for one in RAW_COLUMNS if one[0] in parts]
    made = tmp_path / "made"
    assert write_read(lazy, place.bootstrap, ranges, parts, iter, columns, made) == 2
    assert lazy.begun is spark
    rows = ParquetRows(paths=[str(made)]).frame(spark).orderBy("offset").collect()
    names = [[one["key"] for one in row["headers"]] for row in rows]
    assert [len(one) for one in names] == [1, 2]
    assert [one[0] for one in names] == ["a", "a"]
    assert "\ufffd" in names[1][1]


def test_a_log_is_read_in_batches_in_its_order(place, monkeypatch):
    """Of so many records, and so many bytes, as tasks are given."""
    monkeypatch.setattr(read_log, "ARROW_BATCH_RECORDS_MAX", 3)
    monkeypatch.setattr(read_log, "ARROW_BATCH_BYTES_MAX", 10)
    client = place.client()
    for value in [b"1", b"2", b"3", b"4", b"x" * 20, b"6", b"7"]:
        client.write_raw(value)
    client.flush()
    ranges = partition_ranges(place.bootstrap, place.topics.operations, [0])
    batches = list(read_here(place.bootstrap, ranges, ("offset",)))
    told = [batch.column(0).to_pylist() for batch in batches]
    assert told == [[0, 1, 2], [3, 4], [5, 6]]
    assert all(isinstance(one, pa.RecordBatch) for one in batches)


def test_a_log_that_is_cut_while_it_is_read_is_no_shorter_log(place):
    """At its beginning, by a trim; at its end, where a broker lost it."""
    (log,) = written(place, GIVEN)
    where = f"{log.topic}-0 was cut while this read it, .* position"
    longer = PartitionRange(topic=log.topic, partition=0, start=0, end=log.end + 2)
    with pytest.raises(PositionOutOfRangeError, match=f"{where} {log.end + 1} was there"):
        rows_here(place.bootstrap, [longer])
    surgery.delete_records(place, log.topic, 0, 2)
    with pytest.raises(PositionOutOfRangeError, match=f"{where} 0 was there"):
        rows_here(place.bootstrap, [log])


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (LogDamagedError("log-0", "checksum"), LogDamagedError),
        (LogUnreadableError("log-0 did not answer for 60 s"), LogUnreachableError),
    ],
)
def test_what_the_client_says_of_a_log_is_told_as_jobs_tell_it(place, monkeypatch, found, told):
    """A damaged record is not mended by calling again, a broker that is away may come back."""
    (log,) = written(place, GIVEN[:2])

    def failing(*_given):
        yield from ()
        raise found

    monkeypatch.setattr(PartitionReader, "records", failing)
    with pytest.raises(told, match="log-0"):
        rows_here(place.bootstrap, [log])


def test_ctrl_c_has_a_thread_read_no_further(place, monkeypatch):
    """It would wait until all of a log is read and folded."""
    monkeypatch.setattr(read_log, "ARROW_BATCH_RECORDS_MAX", 1)
    (log,) = written(place, GIVEN[:3])
    spark, reads = LazySession(pytest.fail), Event()
    real = PartitionReader.records

    def records(*given):
        for number, record in enumerate(real(*given)):
            if number == 1:
                reads.set()
                # Fails below after that time: all is read then.
                spark.given_up.wait(10.0)
            yield record

    monkeypatch.setattr(PartitionReader, "records", records)
    begun: list[Future[object]] = []

    def interrupted():
        with thread_beside(spark) as pool:
            read = partial(read_here, place.bootstrap, [log], NAMES, spark)
            begun.append(pool.submit(lambda: list(read())))
            assert reads.wait(10.0)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert isinstance(begun[0].exception(), CancelledError)
