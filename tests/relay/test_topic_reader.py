"""What a reader of a topic of Kafka takes for an answer, without a broker."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError

from ledgermq.errors import BrokerUnavailableError
from ledgermq.relay import topic_reader
from ledgermq.relay.topic_reader import TopicReader
from ledgermq.wire.topics.identity import LogIdentity
from ledgermq.wire.topics.reading import LogDamagedError


@pytest.fixture
def reader(monkeypatch):
    """Makes a reader of topic t whose consumer is the test's."""

    def make(**consumer):
        identity = LogIdentity(cluster_id="c", topic_id="i")
        monkeypatch.setattr(topic_reader, "Consumer", lambda _: SimpleNamespace(**consumer))
        monkeypatch.setattr(topic_reader, "log_identity", lambda *_: identity)
        return TopicReader("localhost:1", "t", 1.0)

    return make


@pytest.mark.parametrize(
    "code", [KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.LEADER_NOT_AVAILABLE]
)
def test_a_topic_that_is_away_has_not_been_read_to_its_end(reader, code):
    """A topic without partitions would be one that a bridge has nothing left to do with."""
    found = SimpleNamespace(error=KafkaError(code), partitions={})
    made = reader(list_topics=lambda *_, **__: SimpleNamespace(topics={"t": found}))
    with pytest.raises(BrokerUnavailableError, match="topic t of Kafka"):
        made.partitions()


def test_a_damaged_record_stops_a_bridge_with_what_to_do(reader):
    """It is not taken as it is, nor passed over; what came before it is taken first."""
    error = KafkaError(KafkaError._BAD_MSG, "MessageSet at offset 7 failed CRC32C check")
    good, bad, behind = (
        SimpleNamespace(error=lambda one=one: one, partition=lambda: 3)
        for one in (None, error, None)
    )
    made = reader(poll=lambda _: good, consume=lambda **_: [good, bad, behind])
    assert made.read(0.0) == {3: [good, good]}
    with pytest.raises(LogDamagedError, match="t-3 holds a record that is damaged: MessageSet at"):
        made.read(0.0)
