"""Tests of worker and clients with a real schema registry: both framings, and faults of it (H3)."""

import json
import time
import urllib.error
import urllib.request

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

import ledgermq
from ledgermq.embedded.ports import choose_port
from ledgermq.protocol import operations as op
from ledgermq.protocol.limits import CONTENT_BYTES_MAX
from ledgermq.wire.framing.codec import encode_operation
from ledgermq.wire.framing.confluent import SCHEMA_HEADER
from ledgermq.wire.framing.schema_registry import _FRAMINGS
from support.brokers.registry_gate import RegistryGate
from support.brokers.reproduce import records_of
from support.checks.history import check_history

pytestmark = pytest.mark.slow

QUEUE = "queue:orders"


@pytest.fixture
def gate(schema_registry):
    """The registry behind a gate, not asked yet."""
    with RegistryGate(schema_registry.url) as opened:
        yield opened
    _FRAMINGS.pop(opened.url, None)


def texts(connection, count):
    """Receives so many messages, and acknowledges them."""
    with connection.session() as session, session.consumer(QUEUE) as consumer:
        return [consumer.receive(20).body for _ in range(count)]


def put(connection, *bodies):
    """Sends texts, half of them in a unit of work."""
    with connection.session(transacted=True) as session:
        producer = session.producer(QUEUE)
        for body in bodies:
            producer.send(body, properties={"n": 1})
        session.commit()


def health(port):
    """Status and document of a worker's health page, which opens soon after its log begins."""
    limit = time.monotonic() + 30
    while True:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as answered:
                return answered.status, json.load(answered)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)
        except urllib.error.URLError:
            assert time.monotonic() < limit, "nobody listens"
            time.sleep(0.1)


def decoded_by_tools(client, topic, value):
    """What Confluent's own deserializer makes of a value, by the registry alone: type, record."""
    assert value[0] == 0
    record = AvroDeserializer(client)(value, SerializationContext(topic, MessageField.VALUE))
    schema = json.loads(client.get_schema(int.from_bytes(value[1:5], "big")).schema_str)
    return f"{schema['namespace']}.{schema['name']}", record


def test_clients_of_both_framings_share_a_queue_manager(place, gate, schema_registry):
    """A whole life with a worker that frames for tools: all of it decodes by the registry alone."""
    place.worker("first", SCHEMA_REGISTRY=gate.url)
    with place.connect(schema_registry=gate.url) as one, place.connect(schema_registry="") as other:
        one.admin.create_queue("orders")
        put(one, "a", "b")
        put(other, "c", "d")
        assert texts(other, 2) == ["a", "b"]
        assert texts(one, 2) == ["c", "d"]
        assert one.admin.queue_status("orders").current == 0
        largest = b"x" * CONTENT_BYTES_MAX
        with one.session() as session, session.consumer(QUEUE) as consumer:
            with pytest.raises(ledgermq.MessageTooLargeError):
                session.producer(QUEUE).send(largest)
            session.producer(QUEUE).send(largest[:-100])
            assert consumer.receive(30).body == largest[:-100]
        written = {one.identity: b"\x00", other.identity: b"\xc3"}
        operations = list(records_of(place.bootstrap, place.topics.operations, 0))
        for record in operations:
            sender = dict(record.headers).get("ledgermq-connection", b"").decode()
            if sender in written:
                assert record.value[:1] == written[sender]
    client = SchemaRegistryClient({"url": schema_registry.url})
    kinds = set()
    for topic in (place.topics.operations, place.topics.outcomes, place.topics.questions):
        for partition in range(2 if topic == place.topics.outcomes else 1):
            for record in records_of(place.bootstrap, topic, partition):
                if record.value[:1] == b"\x00":
                    kind, found = decoded_by_tools(client, topic, record.value)
                    kinds.add(kind)
                    if kind == "ledgermq.operation.Put":
                        assert found["destination"] == QUEUE
                    assert dict(record.headers).get("ce_type", kind.encode()) == kind.encode()
    assert {"ledgermq.operation.Put", "ledgermq.outcome.Chunk", "ledgermq.question.Ask"} <= kinds
    fold, _ = check_history(place)
    assert not [one for one in fold.operations if isinstance(one, op.Unreadable)]


def test_a_worker_without_a_registry_reads_both_framings_and_its_own_checkpoint(place, gate):
    """A worker with another setting takes over from a checkpoint, whatever framing stands there."""
    first = place.worker("first", SCHEMA_REGISTRY=gate.url, CHECKPOINT_SECONDS=0.2)
    with place.connect(schema_registry=gate.url) as connection:
        connection.admin.create_queue("orders")
        put(connection, *"abc")
        assert texts(connection, 1) == ["a"]
        limit = time.monotonic() + 60
        while not list(records_of(place.bootstrap, place.topics.checkpoints, 0)):
            assert time.monotonic() < limit
            time.sleep(0.2)
        first.kill()
        place.worker("second", CHECKPOINT_SECONDS=0.2)
        assert texts(connection, 2) == ["b", "c"]
    assert "from a checkpoint" in place.workers[-1].log
    check_history(place)


def test_a_worker_waits_for_its_registry_and_refuses_nothing(place, gate):
    """It says so in log and on /health, folds nothing, and goes on when the registry is back."""
    gate.shut()
    port = choose_port()
    secret = gate.url.replace("http://", "http://someone:hunter2@")
    worker = place.worker("w", ready=False, SCHEMA_REGISTRY=secret, WEB_PORT=port)
    worker.wait_for_log("waiting, and folding nothing", 90)
    status, told = health(port)
    assert (status, told["status"], told["queue_managers"]) == (503, "waiting", {})
    assert "does not answer" in told["reason"]
    client = place.client()
    client.write_raw(encode_operation(op.Tick(worker="x")))
    client.flush()
    for answer in ((200, b"<html>"), (200, b"[]"), (401, b"{}"), (500, b""), (404, b"oh")):
        gate.answer = answer
        if gate._server is None:
            gate.open()
        asked = len(gate.asked)
        limit = time.monotonic() + 60
        while len(gate.asked) <= asked:
            assert time.monotonic() < limit
            assert worker.code is None, worker.log
            time.sleep(0.1)
    assert not list(records_of(place.bootstrap, place.topics.outcomes, 0))
    gate.answer = None
    place.wait_for_worker(90)
    assert health(port)[1]["status"] == "up"
    assert gate.asked[-1][1] == "Basic c29tZW9uZTpodW50ZXIy"
    assert "hunter2" not in worker.log + json.dumps(told)
    check_history(place)


def test_a_worker_that_waits_can_be_stopped(place, gate):
    """SIGTERM ends it at once, with the code of a stop."""
    gate.shut()
    worker = place.worker("w", ready=False, SCHEMA_REGISTRY=gate.url, WEB_PORT=choose_port())
    worker.wait_for_log("waiting, and folding nothing", 90)
    assert worker.stop() == 0


def test_an_address_that_is_none_ends_worker_and_client(place):
    """Waiting would not help: the text says what an address looks like."""
    worker = place.worker("w", ready=False, SCHEMA_REGISTRY="localhost:8081")
    assert worker.wait(90) == 2
    assert "is no address of a schema registry" in worker.log
    for url in ("localhost:8081", "ftp://host/", "http://", "http://[::1", "http://a:1,http://b:1"):
        with pytest.raises(ledgermq.AddressError, match="is no address of a schema"):
            place.connect(schema_registry=url)


def test_a_client_without_its_registry_says_so_and_writes_nothing(place, gate):
    """Down, or something else at its address: the error says which, and shows no password."""
    place.worker("w")
    with_secret = gate.url.replace("http://", "http://someone:hunter2@")
    end = len(list(records_of(place.bootstrap, place.topics.operations, 0)))
    gate.shut()
    with pytest.raises(ledgermq.SchemaRegistryUnavailableError, match="does not answer") as raised:
        place.connect(schema_registry=with_secret)
    assert "hunter2" not in str(raised.value)
    assert raised.value.retryable
    gate.open()
    for answer, text in (
        ((200, b"<html>"), "does not speak the API"),
        ((200, b'{"id": "7"}'), "does not speak the API"),
        ((200, b'{"id": 4294967296}'), "does not speak the API"),
        ((200, b'{"subject": "s", "version": 1, "id": 7}'), "one id to several schemas"),
        ((403, b"{}"), "forbids it"),
        ((503, b"{}"), "HTTP status 503"),
    ):
        gate.answer = answer
        with pytest.raises(ledgermq.SchemaRegistryError, match=text):
            place.connect(schema_registry=with_secret)
    assert len(list(records_of(place.bootstrap, place.topics.operations, 0))) == end


def test_a_registry_that_dies_is_not_missed(place, gate):
    """Worker and clients go on with the ids that they have, new connections of a process too."""
    place.worker("w", SCHEMA_REGISTRY=gate.url)
    with place.connect(schema_registry=gate.url) as connection:
        connection.admin.create_queue("orders")
        gate.shut()
        put(connection, "a", "b")
        with place.connect(schema_registry=gate.url) as other:
            assert texts(other, 2) == ["a", "b"]
    check_history(place)


def test_what_no_header_explains_is_refused_and_stops_nothing(place, gate):
    """Garbage behind 00, ids without a header, a header that lies: refused alike by every fold."""
    tick = encode_operation(op.Tick(worker="w"))
    fingerprint = tick[2:10].hex().encode()
    put_one = encode_operation(op.Alive(session=0, session_sequence=1, answered_through=0))
    given = [
        (b"\0\0\0\0\7" + tick[10:], [], "schema-unknown"),
        (b"\0\0\0\0\7", [(SCHEMA_HEADER, b"ff" * 8)], "schema-unknown"),
        (b"\0\0\0\0\7garbage", [(SCHEMA_HEADER, fingerprint)], "record-unreadable"),
        (b"\0\0\0\0\7", [(SCHEMA_HEADER, fingerprint)], "record-unreadable"),
        (b"\0\0", [(SCHEMA_HEADER, fingerprint)], "schema-unknown"),
        (b"\0" + b"\xff" * 4 + put_one[10:], [(SCHEMA_HEADER, fingerprint)], "record-unreadable"),
        (b"\0" + b"\xff" * 4 + tick[10:], [(SCHEMA_HEADER, fingerprint)], None),
    ]
    place.worker("w", SCHEMA_REGISTRY=gate.url)
    client = place.client()
    positions = []
    for value, headers, _ in given:
        positions.append(client.write_raw(value, headers=headers))
        client.flush()
    with place.connect() as connection:
        connection.admin.create_queue("orders")
        put(connection, "a")
        assert texts(connection, 1) == ["a"]
    fold, _ = check_history(place)
    for (_, _, reason), (position,) in zip(given, positions, strict=True):
        found = fold.operations[position]
        assert getattr(found, "reason", None) == reason, (position, found)
