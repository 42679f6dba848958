"""`ledgermq schema` on a real registry: list, register, and a log that tools cannot decode."""

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

from ledgermq.protocol.operations import Tick
from ledgermq.wire.framing.codec import encode_operation
from ledgermq.wire.framing.confluent import ConfluentFraming
from ledgermq.wire.framing.schema_registry import registered_forms
from ledgermq.wire.topics.appending import append_record
from ledgermq.wire.topics.reading import PartitionReader
from support.brokers.registry_gate import RegistryGate

TICK = "ledgermq.operation.Tick"


@pytest.fixture
def client(schema_registry, monkeypatch):
    """Confluent's client of the registry; commands find it by the environment."""
    monkeypatch.setenv("LEDGERMQ_SCHEMA_REGISTRY", schema_registry.url)
    return SchemaRegistryClient({"url": schema_registry.url})


def test_a_schema_is_listed_registered_and_checked(cli, client):
    """Registered once; a subject without its level, or without its schema, fails the check."""
    assert cli("schema", "register").code == 0
    client.delete_subject(TICK)
    rows = {row["subject"]: row for row in cli("schema", "list", "--json").document}
    assert set(rows) == {form.full_name for form in registered_forms()}
    assert rows[TICK]["id"] is None
    answer = cli("schema", "check", "--records", 0)
    assert (answer.code, f"{TICK} is not registered" in answer.out) == (4, True)
    assert cli("schema", "register", "--json").document["added"] == 1
    assert cli("schema", "register", "--json").document["added"] == 0
    assert cli("schema", "check", "--records", 0).out.startswith("all is well")
    client.set_compatibility(TICK, "NONE")
    answer = cli("schema", "check", "--records", 0, "--json")
    (problem,) = answer.document["problems"]
    assert (answer.code, "its compatibility is NONE" in problem) == (4, True)
    # Whoever comes after this finds it as if it had never been there: its versions begin anew.
    client.delete_subject(TICK)
    client.delete_subject(TICK, permanent=True)


def test_ids_on_the_log_that_stand_for_something_else_are_found(cli, worker, topic_prefix, client):
    """A record whose id is no schema's, or another's: tools cannot decode it, and check says so."""
    assert cli("schema", "register").code == 0
    foreign = client.register_schema("foreign", Schema('"string"', "AVRO"))
    topic, value = f"{topic_prefix}.operations", encode_operation(Tick(worker="w"))
    for number in (2**31 - 1, foreign):
        framing = ConfluentFraming({value[2:10]: number})
        append_record(worker, topic, 1, "QM2", value, timeout_seconds=30, framing=framing)
    answer = cli("schema", "check")
    assert answer.code == 4
    other, unknown = answer.out.splitlines()
    assert f"of {TICK}: of their id {2**31 - 1} the registry has no schema" in unknown
    assert f"id {foreign} the registry has another schema" in other
    assert f"{topic}-1@" in other


def test_what_is_wrong_with_the_registry_is_said(cli, schema_registry, monkeypatch):
    """None given, none there, a client command with one that is down; no password is shown."""
    monkeypatch.delenv("LEDGERMQ_SCHEMA_REGISTRY", raising=False)
    assert cli("schema", "list").code == 2
    with RegistryGate(schema_registry.url) as gate:
        gate.shut()
        url = gate.url.replace("//", "//someone:hunter2@")
        answer = cli("schema", "list", "--registry", url)
        assert (answer.code, "does not answer" in answer.err) == (3, True)
        monkeypatch.setenv("LEDGERMQ_SCHEMA_REGISTRY", url)
        assert cli("queue", "list").code == 3
        assert "hunter2" not in answer.err


@pytest.mark.parametrize("body", [b"no such page", b"{}", b'{"error_code": 404}'])
@pytest.mark.parametrize("command", ["list", "check", "register"])
def test_a_server_that_is_no_registry_is_told_from_one_that_has_no_schemas(
    cli, schema_registry, command, body
):
    """A mistyped path answers 404 to all; *not registered* would send people the wrong way."""
    with RegistryGate(schema_registry.url) as gate:
        gate.answer = (404, body)
        answer = cli("schema", command, "--registry", gate.url)
    assert (answer.code, answer.out) == (3, "")
    assert "does not speak the API of Confluent's registry" in answer.err


def test_what_commands_write_is_framed_too(cli, worker, topic_prefix, connection, client):
    """With the registry in the environment a command is a writer like others."""
    connection.admin.create_queue("framed")
    position = cli("put", "queue:framed", "text", "--json").document["position"]
    with PartitionReader(worker, 30, as_written=True) as reader:
        assert reader.record_at(f"{topic_prefix}.operations", 0, position).value()[:1] == b"\0"
    with connection.session() as session, session.consumer("queue:framed") as consumer:
        assert consumer.receive(20).body == "text"
