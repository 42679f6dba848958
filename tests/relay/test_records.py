"""Records as messages, without Kafka: what cannot be read of one is told, and goes aside."""

from __future__ import annotations

import json

import pytest
from confluent_kafka import Producer

from ledgermq.client.messages.message import raw_message
from ledgermq.relay.records import (
    BODIES,
    HEADERS,
    OFFSET,
    PARTITION,
    TOPIC,
    RecordInvalidError,
    headers_of,
    properties_of,
)
from ledgermq.relay.topic_goal import record_of
from ledgermq.testing import MemoryBroker


class Unnamed:
    """A record with a header whose name is no UTF-8, as librdkafka's binding gives it out."""

    def headers(self):
        """Fails as the binding does."""
        raise SystemError("returned a result with an exception set")

    def set_headers(self, headers):
        """What it gives out from then on does not matter here."""

    def topic(self):
        """Where it is."""
        return "orders"

    def partition(self):
        """Where it is there."""
        return 2

    def offset(self):
        """Its position."""
        return 7


def test_a_header_whose_name_is_no_text_makes_a_record_invalid():
    """It says where the record is; nothing of it is passed over in silence."""
    with pytest.raises(RecordInvalidError, match="orders-2@7"):
        headers_of(Unnamed())


@pytest.mark.parametrize("name", ["LedgerMQ_Replay", "LedgerMQ_KafkaTopic", "JMSXGroupID"])
def test_a_header_does_not_become_a_property_that_only_others_set(name):
    """Anybody may write one; with the other headers it stands in one property."""
    record = Unnamed()
    record.headers = lambda: [("region", b"EU"), (name, b"x")]
    record.key, record.timestamp = lambda: None, lambda: (0, 0)
    properties = properties_of(record)
    assert json.loads(properties[HEADERS]) == [["region", "RVU="], [name, "eA=="]]
    assert properties.keys() == {HEADERS, TOPIC, PARTITION, OFFSET}


@pytest.mark.parametrize("told", [(0, 0), (1, -1)])
def test_a_record_without_a_timestamp_has_none_as_a_message(told):
    """Kafka says -1 for one whose writer gave none: as a time that is in 1969."""
    record = Unnamed()
    record.headers = record.key = lambda: None
    record.timestamp = lambda: told
    assert properties_of(record).keys() == {TOPIC, PARTITION, OFFSET}


def _sent(properties):
    """A message as it is delivered."""
    with MemoryBroker().connect() as connection, connection.session() as session:
        session.producer("queue:q").send(b"body", properties=properties)
        return raw_message(session.consumer("queue:q").receive(timeout=5))


@pytest.mark.parametrize(
    "told",
    [
        '[["\\ud800", null]]',
        "[" * 60_000,
        '{"a": 1}',
        '[["a", "no base64"]]',
        '["ab"]',
        "[[[], 7]]",
        7,
    ],
)
def test_what_only_calls_itself_headers_of_a_record_is_one_property(told):
    """Anybody may send it: a name that is no UTF-8 ended the process, nesting the bridge."""
    (key, value, headers) = record_of(_sent({HEADERS: told, "n": 1}), "source/0/0")
    assert (key, value) == (None, b"body")
    assert headers[:2] == [(HEADERS, str(told).encode()), ("n", b"1")]
    Producer({"bootstrap.servers": "127.0.0.1:1", "log_level": 0}).produce(
        "nowhere", value, key, headers=headers
    )


@pytest.mark.parametrize("value", [b"1e999", b'{"a": -1e999}', b"[1.5, 2E+400]"])
def test_a_number_that_would_become_infinite_is_no_message(value):
    """JSON has numbers that no float is; none passes as another one."""
    with pytest.raises(ValueError, match="too large a number"):
        BODIES["json"](value)
    assert BODIES["json"](b'{"a": 1e300}') == {"a": 1e300}
