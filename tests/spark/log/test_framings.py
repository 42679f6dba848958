"""Tests that Spark reads both framings: rebuild, chain and audit agree on a mixed log (§2)."""

import itertools
from dataclasses import replace

import pytest

from ledgermq.embedded import EmbeddedBroker
from ledgermq.processor.log.chain import read_chain
from ledgermq.wire.framing.confluent import SCHEMA_HEADER, ConfluentFraming
from ledgermq.wire.framing.schema_registry import registered_forms
from ledgermq.wire.framing.schemas import by_name
from ledgermq_spark.jobs.run import run_audit
from ledgermq_spark.log.positions import partition_ranges
from ledgermq_spark.log.read_log import read_raw
from ledgermq_spark.rebuild.rebuild import rebuild_at
from support.brokers.reproduce import reproduce
from support.checks.history import read_partition

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.slow]

FRAMING = ConfluentFraming({form.fingerprint: at for at, form in enumerate(registered_forms(), 1)})
TICK = by_name("ledgermq.operation.Tick").fingerprint.hex().encode()


def every_second(topics):
    """The change that puts every second record of operations and outcomes in the other framing."""
    turn = itertools.count()

    def change(record):
        fits = record.topic != topics.registry and record.value[2:10] in FRAMING.ids
        if not fits or next(turn) % 2:
            return record
        value, headers = FRAMING.framed(record.value, list(record.headers))
        return replace(record, value=value, headers=tuple(headers))

    return change


@pytest.fixture
def mixed(place, tmp_path):
    """The broker with the copy of a life, of which half is framed for tools."""
    worker = place.worker("w")
    with place.connect() as connection:
        connection.admin.create_queue("a", redelivery_limit=1)
        with connection.session(transacted=True) as session:
            producer, consumer = session.producer("queue:a"), session.consumer("queue:a")
            for number in range(20):
                producer.send(f"message {number}", properties={"n": number})
                if number % 4 == 3:
                    session.commit()
            for number in range(10):
                assert consumer.receive(20) is not None
                (session.rollback if number % 3 == 2 else session.commit)()
    worker.stop()
    directory = tmp_path / "copy"
    reproduce(place.bootstrap, directory, place.topics, every_second(place.topics))
    with EmbeddedBroker(directory, brief=True) as copy:
        yield copy.bootstrap


def test_a_log_in_mixed_framings_has_the_digests_of_the_same_log_in_one(spark, place, mixed):
    """State and chain are those of the original, by rebuild and record by record."""
    where = {"topic_prefix": place.topics.prefix, "spark": spark}
    told = rebuild_at(place.bootstrap, "QM1", **where)
    (log,) = partition_ranges(mixed, place.topics.operations, [0])
    headers = read_raw(spark, mixed, [log], headers=True).select("headers").collect()
    names = [{one["key"] for one in row["headers"]} for row in headers]
    assert 0 < sum(SCHEMA_HEADER in one for one in names) < len(names)
    found = rebuild_at(mixed, "QM1", **where)
    assert (found.digest, found.chain) == (told.digest, told.chain)
    assert found.operations == told.operations == log.end
    assert read_chain(replace(place.ledger, bootstrap=mixed), found.position).digest == told.chain


@pytest.mark.long
def test_a_log_in_mixed_framings_is_audited_as_any_other(spark, place, mixed):
    """Operations and outcomes of both framings: the audit agrees, and finds no anomaly."""
    report = run_audit(mixed, "QM1", topic_prefix=place.topics.prefix, spark=spark)
    assert report.anomalies == []
    assert report.verdict == "agrees"


def test_spark_takes_the_headers_that_the_worker_takes(spark, place):
    """Garbage; missing, malformed, repeated headers: value for value as librdkafka reads them."""
    given = [
        (b"\0\0\0\0\1\2w", []),
        (b"\0\0\0\0\1\2w", [(SCHEMA_HEADER, TICK)]),
        (b"\0\xff\xff\xff\xff\2w", [("x", b"y"), (SCHEMA_HEADER, TICK), ("z", None)]),
        (b"\0\0\0\0\1", [(SCHEMA_HEADER, TICK)]),
        (b"\0\0\0\0", [(SCHEMA_HEADER, TICK)]),
        (b"\0\0\0\0\1\2w", [(SCHEMA_HEADER, TICK.upper())]),
        (b"\0\0\0\0\1\2w", [(SCHEMA_HEADER, TICK + b"\n")]),
        (b"\0\0\0\0\1\2w", [(SCHEMA_HEADER, TICK[:-1] + b"\n")]),
        (b"\0\0\0\0\1\2w", [(SCHEMA_HEADER, TICK[:-1] + b"\xff")]),
        (b"\0\0\0\0\1\2w", [(SCHEMA_HEADER, None)]),
        (b"\0\0\0\0\1\2w", [(SCHEMA_HEADER, b"0"), (SCHEMA_HEADER, TICK), (SCHEMA_HEADER, None)]),
        (b"\0\0\0\0\1\2w", [(SCHEMA_HEADER, TICK), (SCHEMA_HEADER, b"0")]),
        (b"\0\0\0\0\1\2w", [("a\ufffd", b""), (SCHEMA_HEADER, TICK)]),
        (b"\1\0\0\0\1\2w", [(SCHEMA_HEADER, TICK)]),
        (b"", [(SCHEMA_HEADER, TICK)]),
        (None, [(SCHEMA_HEADER, TICK)]),
    ]
    client = place.client()
    for value, headers in given:
        client.write_raw(value, headers=headers)
    client.flush()
    (log,) = partition_ranges(place.bootstrap, place.topics.operations, [0])
    rows = read_raw(spark, place.bootstrap, [log]).orderBy("offset").collect()
    found = [None if row["value"] is None else bytes(row["value"]) for row in rows]
    read = read_partition(place.bootstrap, place.topics.operations, 0)
    assert found == [one.value() for one in read]
    framed = [at for at, value in enumerate(found) if (value or b"")[:2] == b"\xc3\1"]
    assert framed == [1, 2, 3, 10]
    assert found[2] == b"\xc3\1" + bytes.fromhex(TICK.decode()) + b"\2w"
