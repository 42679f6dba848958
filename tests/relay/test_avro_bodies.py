"""Values in Confluent framing become maps and objects, by a real schema registry."""

from __future__ import annotations

import json
import threading
from datetime import date
from decimal import Decimal

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from ledgermq.cli.main import main
from ledgermq.errors import SchemaRegistryError
from support.brokers.registry_gate import RegistryGate

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

FLAT = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "what", "type": ["null", "string"]},
        {"name": "raw", "type": "bytes"},
        {"name": "rate", "type": "double"},
    ],
}
NESTED = {
    "type": "record",
    "name": "Bill",
    "fields": [
        {"name": "of", "type": FLAT},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {
            "name": "sum",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
        },
        {"name": "tags", "type": {"type": "array", "items": "string"}},
    ],
}
FOREIGN = '{"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}'
ORDER = {"id": 2**63 - 1, "what": None, "raw": b"\x00\xff", "rate": 0.5}
BILL = {"of": ORDER, "day": date(2026, 11, 25), "sum": Decimal("12.50"), "tags": ["a", "b"]}


@pytest.fixture
def written(schema_registry):
    """Makes values as Confluent's serializer does."""
    client = SchemaRegistryClient({"url": schema_registry.url})

    def write(schema, value):
        context = SerializationContext(f"of-{schema['name']}", MessageField.VALUE)
        return AvroSerializer(client, json.dumps(schema))(value, context)

    write.client = client
    return write


def test_records_become_maps_and_objects(ways, written, schema_registry):
    """A flat one a map, others objects with Python's dates and decimals; no value has no body."""
    topic, queue = ways.topic(), ways.name()
    values = [written(FLAT, ORDER), written(NESTED, BILL), None]
    ways.produce(topic, *({"value": one} for one in values))
    runner = ways.runner(
        *("bridge", "--from-topic", topic, "--to", f"queue:{queue}", "--until-end"),
        *("--body", "avro", "--registry", schema_registry.url),
    )
    told, _ = runner.communicate(timeout=60)
    assert runner.returncode == 0, told
    found = ways.messages(queue)
    assert [one.body for one in found] == [ORDER, BILL, None]
    assert [one.kind for one in found] == ["map", "object", "plain"]


def test_what_is_no_avro_goes_aside(ways, written, schema_registry):
    """Cut, too long, without an id, of an unknown or a foreign schema: whole, with a reason."""
    topic, queue, bad = ways.topic(), ways.name(), ways.name("bad")
    good = written(FLAT, ORDER)
    foreign = written.client.register_schema("text", Schema(FOREIGN, "JSON"))
    values = [
        *(good[:-1], good + b"x", b"", b"\0", b"{}", good[:5], good),
        *(b"\0\x7f\xff\xff\xff" + good[5:], b"\0" + foreign.to_bytes(4, "big") + good[5:]),
        b"\0\xff\xff\xff\xff" + good[5:],
    ]
    ways.produce(topic, *({"value": one} for one in values))
    more = {"body": "avro", "schema_registry": schema_registry.url, "bad": f"queue:{bad}"}
    ways.bridge(topic, f"queue:{queue}", **more).run()
    assert [one.body for one in ways.messages(queue)] == [ORDER]
    aside = [one.body for one in ways.messages(bad)]
    assert [one["value"] for one in aside] == [one for one in values if one != good]
    assert all("is no message" in one["reason"] for one in aside)


@pytest.mark.parametrize("status", [503, 429])
def test_a_registry_that_is_away_is_waited_for(ways, written, schema_registry, status):
    """Nothing goes aside meanwhile, and all goes on once it answers; it may be asked too often."""
    topic, queue = ways.topic(), ways.name()
    ways.produce(topic, {"value": written(FLAT, ORDER)})
    with RegistryGate(schema_registry.url) as gate:
        gate.answer = (status, b"{}")
        bad = ways.name("bad")
        more = {"body": "avro", "schema_registry": gate.url, "bad": f"queue:{bad}"}
        bridge = ways.bridge(topic, f"queue:{queue}", **more)
        thread = threading.Thread(target=bridge.run)
        thread.start()
        thread.join(4)
        assert thread.is_alive()
        assert any(f"HTTP status {status}" in one for one in ways.told)
        gate.answer = None
        thread.join(60)
    assert [one.body for one in ways.messages(queue)] == [ORDER]
    assert (bridge.put, bridge.put_bad) == (1, 0)


@pytest.mark.parametrize("answer", [b"<html>", b'{"error_code": 404, "message": "HTTP 404"}', b""])
def test_an_address_without_a_registry_sets_no_record_aside(ways, written, schema_registry, answer):
    """A server that has no such page says nothing of schemas: the bridge ends, and puts nothing."""
    topic, queue, bad = ways.topic(), ways.name(), ways.name("bad")
    ways.produce(topic, {"value": written(FLAT, ORDER)})
    with RegistryGate(schema_registry.url) as gate:
        gate.answer = (404, answer)
        more = {"body": "avro", "schema_registry": gate.url, "bad": f"queue:{bad}"}
        bridge = ways.bridge(topic, f"queue:{queue}", **more)
        with pytest.raises(SchemaRegistryError, match="check the address"):
            bridge.run()
        assert (bridge.put, bridge.put_bad) == (0, 0)
        gate.answer = None
        ways.bridge(topic, f"queue:{queue}", **more).run()
    assert [one.body for one in ways.messages(queue)] == [ORDER]


def test_avro_needs_a_registry(capsys, monkeypatch):
    """It is said before anything is tried."""
    monkeypatch.delenv("LEDGERMQ_SCHEMA_REGISTRY", raising=False)
    command = ["bridge", "--from-topic", "t", "--to", "queue:q", "--body", "avro"]
    assert main(command) == 2
    assert "give --registry" in capsys.readouterr().err
