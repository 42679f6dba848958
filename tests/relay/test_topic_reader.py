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


@pytest.mark.parametrize(
    "code", [KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.LEADER_NOT_AVAILABLE]
)
def test_a_topic_that_is_away_has_not_been_read_to_its_end(monkeypatch, code):
    """A topic without partitions would be one that a bridge has nothing left to do with."""
    found = SimpleNamespace(error=KafkaError(code), partitions={})
    consumer = SimpleNamespace(list_topics=lambda *_, **__: SimpleNamespace(topics={"t": found}))
    monkeypatch.setattr(topic_reader, "Consumer", lambda _: consumer)
    identity = LogIdentity(cluster_id="c", topic_id="i")
    monkeypatch.setattr(topic_reader, "log_identity", lambda *_: identity)
    with pytest.raises(BrokerUnavailableError, match="topic t of Kafka"):
        TopicReader("localhost:1", "t", 1.0).partitions()


def test_a_damaged_record_stops_a_bridge_with_what_to_do(monkeypatch):
    """It is not taken as it is, nor passed over."""
    error = KafkaError(KafkaError._BAD_MSG, "MessageSet at offset 7 failed CRC32C check")
    record = SimpleNamespace(error=lambda: error, partition=lambda: 3)
    consumer = SimpleNamespace(poll=lambda _: record, consume=lambda **_: [])
    monkeypatch.setattr(topic_reader, "Consumer", lambda _: consumer)
    identity = LogIdentity(cluster_id="c", topic_id="i")
    monkeypatch.setattr(topic_reader, "log_identity", lambda *_: identity)
    with pytest.raises(LogDamagedError, match="t-3 holds a record that is damaged: MessageSet at"):
        TopicReader("localhost:1", "t", 1.0).read(0.0)
