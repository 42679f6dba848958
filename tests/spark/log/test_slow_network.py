"""A log is read behind a slow network."""

import os

import pytest
from confluent_kafka import Producer

from ledgermq_spark.log.positions import PartitionRange
from ledgermq_spark.log.read_log import read_here, read_raw
from support.brokers import topic_surgery as surgery
from support.brokers.far_broker import broker_behind_a_network
from support.brokers.worker_process import new_place

RECORDS, RECORD_BYTES = 150, 80_000
LARGE_RECORD_BYTES = 5_500_000
BYTES_PER_SECOND = 300_000


@pytest.mark.long
def test_a_log_comes_through_a_slow_network(spark, tmp_path):
    """Each answer was larger than what came through in the time that was waited for one."""
    with broker_behind_a_network(tmp_path) as broker:
        topic = new_place(broker.near, tmp_path).topics.operations
        producer = Producer({"bootstrap.servers": broker.near})
        for _ in range(RECORDS):
            producer.produce(topic, os.urandom(RECORD_BYTES), partition=0)
        assert producer.flush(30) == 0
        wanted = PartitionRange(topic=topic, partition=0, start=0, end=RECORDS)
        with broker.network.slowed_down(BYTES_PER_SECOND):
            assert read_raw(spark, broker.far, [wanted]).count() == RECORDS


@pytest.mark.long
def test_a_large_record_comes_through_a_slow_network_to_this_process(tmp_path):
    """For longer than clients wait for an answer elsewhere."""
    with broker_behind_a_network(tmp_path) as broker:
        place = new_place(broker.near, tmp_path)
        topic = place.topics.operations
        surgery.write(place, topic, "QM1", os.urandom(LARGE_RECORD_BYTES))
        wanted = PartitionRange(topic=topic, partition=0, start=0, end=1)
        with broker.network.slowed_down(BYTES_PER_SECOND):
            (batch,) = read_here(broker.far, [wanted], ("offset", "value"))
    assert len(batch.column(1)[0].as_py()) == LARGE_RECORD_BYTES
