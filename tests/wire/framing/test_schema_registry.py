"""Tests of what writers register in a schema registry, on a real Apicurio."""

import json
import multiprocessing
import threading

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from fastavro.schema import fingerprint, parse_schema, to_parsing_canonical_form

import ledgermq
from ledgermq.wire.framing.schema_registry import (
    SchemaRegistry,
    framing_of,
    registered_forms,
    shown_url,
)
from ledgermq.wire.framing.schemas import by_name, forms_of, names, self_contained

PUT = "ledgermq.operation.Put"


@pytest.fixture(scope="module")
def client(schema_registry) -> SchemaRegistryClient:
    """Confluent's own client of the same registry."""
    return SchemaRegistryClient({"url": schema_registry.url})


@pytest.mark.parametrize("name", names())
def test_the_text_of_a_schema_stands_alone_and_has_its_fingerprint(name):
    """What is registered needs no other file, and is the schema that records are written in."""
    for form in forms_of(name):
        canonical = to_parsing_canonical_form(parse_schema(json.loads(self_contained(form))))
        assert fingerprint(canonical, "CRC-64-AVRO") == form.fingerprint.hex()


def test_registering_gives_each_schema_an_id_that_any_client_resolves(schema_registry, client):
    """Twice the same ids; each resolves to the schema of that fingerprint, under its full name."""
    found = SchemaRegistry(schema_registry.url).register()
    assert SchemaRegistry(schema_registry.url).register().ids == found.ids
    assert set(found.ids) == {form.fingerprint for form in registered_forms()}
    for form in registered_forms():
        text = client.get_schema(found.ids[form.fingerprint]).schema_str
        canonical = to_parsing_canonical_form(parse_schema(json.loads(text)))
        assert fingerprint(canonical, "CRC-64-AVRO") == form.fingerprint.hex()
        # Without fields that may be left out a record is written as before there were any.
        forms = [one for one in registered_forms() if one.full_name == form.full_name]
        assert client.get_versions(form.full_name) == list(range(1, len(forms) + 1))
        assert client.get_compatibility(form.full_name) == "FULL_TRANSITIVE"


def test_a_later_version_is_held_against_all_versions(schema_registry, client):
    """A field without a default is refused by the registry, one with a default is taken."""
    SchemaRegistry(schema_registry.url).register()
    name = "ledgermq.operation.Tick"
    schema = json.loads(self_contained(by_name(name)))
    for more, fits in (({}, False), ({"default": 0}, True)):
        wider = {**schema, "fields": [*schema["fields"], {"name": "x", "type": "int", **more}]}
        text = Schema(json.dumps(wider), "AVRO")
        assert client.test_compatibility_all_versions(name, text) is fits


def test_a_subject_with_foreign_versions_is_refused_by_name(schema_registry, client):
    """Somebody registered another Put: nothing is registered beside it, the text names it."""
    registry = SchemaRegistry(schema_registry.url)
    registry.register()
    client.delete_subject(PUT)
    foreign = {"type": "record", "name": "Put", "namespace": "ledgermq.operation"}
    foreign["fields"] = [{"name": "price", "type": "double"}]
    try:
        client.register_schema(PUT, Schema(json.dumps(foreign), "AVRO"))
        before = client.get_versions(PUT)
        again = SchemaRegistry(schema_registry.url)
        with pytest.raises(ledgermq.SchemaRefusedError, match=PUT) as raised:
            again.register()
        assert raised.value.code == "schema-refused"
        assert client.get_versions(PUT) == before
    finally:
        client.delete_subject(PUT)
    SchemaRegistry(schema_registry.url).register()


def test_statuses_change_nothing(schema_registry, client):
    """Before and after registering: which subjects there are, with id and level."""
    SchemaRegistry(schema_registry.url).register()
    client.delete_subject(PUT)
    found = {one.subject: one for one in SchemaRegistry(schema_registry.url).statuses()}
    assert found[PUT].schema_id is None
    assert PUT not in client.get_subjects()
    assert found["ledgermq.outcome.Chunk"].compatibility == "FULL_TRANSITIVE"
    SchemaRegistry(schema_registry.url).register()
    assert PUT in client.get_subjects()


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://u:secret@h:1/apis?token=secret", "http://h:1/apis"),
        ("https://h", "https://h"),
        ("http://[::1", "(an address that is none)"),
    ],
)
def test_what_is_secret_in_an_address_is_not_shown(url, shown):
    """User, password and query stay out of logs and errors."""
    assert shown_url(url) == shown


@pytest.mark.filterwarnings("ignore:This process")
def test_a_process_that_is_forked_while_a_schema_is_registered_registers_its_own(monkeypatch):
    """It waited for ever for the thread that registered, which is in the parent alone."""
    url, begun, going_on = "http://127.0.0.1:9/forked", threading.Event(), threading.Event()

    def register(_):
        begun.set()
        going_on.wait()

    monkeypatch.setattr(SchemaRegistry, "register", register)
    registering = threading.Thread(target=framing_of, args=(url,), daemon=True)
    registering.start()
    begun.wait()
    monkeypatch.setattr(SchemaRegistry, "register", lambda _: None)
    child = multiprocessing.get_context("fork").Process(target=framing_of, args=(url,))
    child.start()
    child.join(30)
    ended = child.exitcode
    child.kill()
    going_on.set()
    registering.join()
    assert ended == 0
