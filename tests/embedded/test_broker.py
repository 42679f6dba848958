"""Tests of the embedded broker with a real Kafka: it keeps data, and dies with its owner."""

import errno
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from ledgermq.embedded import (
    BrokerStartError,
    DirectoryInUseError,
    EmbeddedBroker,
    PortTakenError,
)
from ledgermq.embedded import directory as directory_module
from ledgermq.embedded.settings import AFTER_CRASH

pytestmark = pytest.mark.kafka

GIVE_UP_SECONDS = 60

OWNER = """
import sys, time
from ledgermq.embedded import EmbeddedBroker
broker = EmbeddedBroker(sys.argv[1]).start()
print(broker.pid, flush=True)
time.sleep(3600)
"""


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    """A broker that the test may kill."""
    with EmbeddedBroker(tmp_path / "broker") as started:
        yield started


def create_topic(bootstrap: str, *, config: dict[str, str] | None = None) -> str:
    """Create a topic of one partition and return its name."""
    name = f"test-{uuid.uuid4().hex}"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(name, 1, 1, config=config or {})])[name].result(30)
    return name


def produce(bootstrap: str, topic: str, values: list[bytes]) -> None:
    """Write values and wait until each is confirmed."""
    errors = []
    producer = Producer({"bootstrap.servers": bootstrap, "message.max.bytes": 9 * 1024 * 1024})
    for value in values:
        producer.produce(
            topic, value, on_delivery=lambda error, _: errors.append(error) if error else None
        )
    assert producer.flush(30) == 0
    assert errors == []


def consume(bootstrap: str, topic: str, count: int) -> list[bytes]:
    """Read that many values from the topic's beginning, or fewer if they do not come."""
    settings = {"bootstrap.servers": bootstrap, "group.id": uuid.uuid4().hex}
    consumer = Consumer({**settings, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    values: list[bytes] = []
    deadline = time.monotonic() + GIVE_UP_SECONDS
    while len(values) < count and time.monotonic() < deadline:
        message = consumer.poll(1)
        if message is not None and message.error() is None:
            values.append(message.value())
    consumer.close()
    return values


def process_ends(pid: int) -> bool:
    """Wait until a process that is not our child is gone; False if it stays."""
    deadline = time.monotonic() + GIVE_UP_SECONDS
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
            state = Path(f"/proc/{pid}/stat").read_text(encoding="latin-1").rpartition(")")[2]
        except (ProcessLookupError, FileNotFoundError):
            return True
        # A container's first process may not collect its orphans.
        if state.split()[0] == "Z":
            return True
        time.sleep(0.05)
    return False


def test_data_identity_and_port_survive_a_crash_and_a_stop(own_broker):
    """What was confirmed before SIGKILL is there after it, at the same address."""
    address = own_broker.bootstrap
    identity = own_broker.files.load()
    topic = create_topic(address)
    values = [b"value %d" % number for number in range(100)]
    produce(address, topic, values[:50])
    crashed_pid = own_broker.pid

    own_broker.kill()
    assert not own_broker.running
    assert own_broker.pid is None
    assert process_ends(crashed_pid)
    own_broker.start()
    assert own_broker.pid != crashed_pid
    assert AFTER_CRASH in own_broker.files.properties.read_text()
    produce(address, topic, values[50:])

    own_broker.stop()
    own_broker.start()
    assert AFTER_CRASH not in own_broker.files.properties.read_text()
    assert own_broker.bootstrap == address
    assert own_broker.files.load() == identity
    assert consume(address, topic, 100) == values


def test_a_directory_in_use_is_refused_and_its_broker_unharmed(own_broker, monkeypatch):
    """A second broker in the directory is told who is there."""
    monkeypatch.setattr(directory_module, "LOCK_WAIT_SECONDS", 0.0)
    with pytest.raises(DirectoryInUseError, match=f"port {own_broker.port}"):
        EmbeddedBroker(own_broker.directory).start()
    assert create_topic(own_broker.bootstrap)


def test_a_killed_guard_takes_the_broker_along(own_broker):
    """No broker is left behind even when what watches it is killed."""
    pid = own_broker.pid
    guard_pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(guard_pid, signal.SIGKILL)
    assert process_ends(pid)
    own_broker.start()
    assert own_broker.running


def test_a_broker_dies_with_a_killed_owner_and_the_next_owner_takes_over(tmp_path):
    """An owner that gets SIGKILL leaves no broker, and no lock, behind."""
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    try:
        pid = int(owner.stdout.readline())
    finally:
        owner.kill()
        owner.wait()
        owner.stdout.close()
    with EmbeddedBroker(tmp_path) as successor:
        assert process_ends(pid)
        assert successor.pid != pid


def test_a_broker_outlives_the_thread_that_started_it(tmp_path):
    """Only the owning process counts: worker threads come and go."""
    broker = EmbeddedBroker(tmp_path)
    thread = threading.Thread(target=broker.start)
    thread.start()
    thread.join()
    try:
        assert create_topic(broker.bootstrap)
        assert broker.running
    finally:
        broker.stop()


def test_a_taken_port_is_refused(tmp_path):
    """A port that was asked for is never silently replaced."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(PortTakenError, match=f"Port {port} "):
            EmbeddedBroker(tmp_path, port=port).start()


@pytest.mark.parametrize("port", [-1, 65_536, "9092", None, True])
def test_what_is_no_port_is_refused_at_once(tmp_path, port):
    """Nothing is touched, and the text says what a port is."""
    with pytest.raises(BrokerStartError, match="is no port: give a number from 0 to 65535"):
        EmbeddedBroker(tmp_path / "broker", port=port)
    assert not (tmp_path / "broker").exists()


def test_a_broker_that_ends_while_starting_shows_its_log(tmp_path):
    """The text of the error has the reason, as Java gave it."""
    broker = EmbeddedBroker(tmp_path, heap="1k")
    with pytest.raises(BrokerStartError, match="Too small maximum heap"):
        broker.start()
    assert not broker.running


def test_why_a_broker_ended_is_not_hidden_by_how_it_shut_down(tmp_path):
    """Dozens of lines follow on the error, and they were all that was shown."""
    broker = EmbeddedBroker(tmp_path)
    shutting_down = ["2026 INFO kafka - shutting down"] * 100
    reason = ["2026 ERROR kafka.log - Error while loading log dir", "java.io.IOException: denied"]
    broker.files.log.write_text("\n".join([*shutting_down, *reason, *shutting_down]))
    told = str(broker._failure("it ended while starting"))
    assert told.endswith("; it says:\n" + "\n".join(reason))


def test_a_full_disk_is_told_with_what_to_do(tmp_path, monkeypatch):
    """Where the system refuses, a number of its error helps nobody."""

    def full(*_given):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(directory_module.BrokerDirectory, "save", full)
    with pytest.raises(BrokerStartError, match=r": No space left on device\. .*there is room"):
        EmbeddedBroker(tmp_path).start()


def test_a_preparation_that_was_cut_short_is_done_again(tmp_path):
    """A crash between identity and first start leaves a directory that works."""
    half_done = tmp_path / "data"
    half_done.mkdir()
    (half_done / "bootstrap.checkpoint").write_bytes(b"torn")
    with EmbeddedBroker(tmp_path) as broker:
        assert create_topic(broker.bootstrap)


def test_the_address_is_unknown_before_the_first_start(tmp_path):
    """A port that nobody listens on is not given out."""
    with pytest.raises(BrokerStartError, match="never started"):
        _ = EmbeddedBroker(tmp_path).bootstrap


def test_topics_are_not_created_by_accident(broker):
    """A mistyped topic name is an error."""
    name = f"test-{uuid.uuid4().hex}"
    # A client waits this long for a topic that may just have been created elsewhere.
    patience = {"topic.metadata.propagation.max.ms": 1000, "message.timeout.ms": 2000}
    producer = Producer({"bootstrap.servers": broker.bootstrap, **patience})
    errors = []
    producer.produce(name, b"value", on_delivery=lambda error, _: errors.append(error))
    producer.flush(30)
    assert [error is not None for error in errors] == [True]
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    assert name not in admin.list_topics(timeout=30).topics


def test_an_operation_of_the_largest_size_passes(broker):
    """Eight MiB and what Kafka puts around them go in and come out."""
    topic = create_topic(broker.bootstrap, config={"max.message.bytes": str(9 * 1024 * 1024)})
    value = b"x" * (8 * 1024 * 1024)
    produce(broker.bootstrap, topic, [value])
    assert consume(broker.bootstrap, topic, 1) == [value]
