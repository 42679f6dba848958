"""The cluster of three nodes that docs/deployment.md sets up, tried on loopback with its file."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

import ledgermq
from ledgermq.cli.printing.exits import OK, UNREACHABLE
from ledgermq.embedded import broker_jars
from ledgermq.embedded.java import find_java
from ledgermq.embedded.ports import choose_port
from support.checkout import ROOT

PROPERTIES = ROOT / "infra" / "systemd" / "kafka.properties"
NODES = (1, 2, 3)
PATIENCE_SECONDS = 300
MESSAGES = 400
KILL_AT = 100


class Node:
    """One node, with the file as it is, but for its machine's name, ports and directory."""

    def __init__(self, number: int, ports: dict[int, tuple[int, int]], directory: Path) -> None:
        self._directory = directory / f"node-{number}"
        self._directory.mkdir(parents=True)
        text = PROPERTIES.read_text(encoding="utf-8")
        text = text.replace("node.id=1\n", f"node.id={number}\n")
        client, controller = ports[number]
        for name in ("listeners", "advertised.listeners"):
            own = re.sub(r"kafka-1\S+?:9092", f"127.0.0.1:{client}", self._line(text, name))
            own = re.sub(r"kafka-1\S+?:9093", f"127.0.0.1:{controller}", own)
            text = text.replace(self._line(text, name), own)
        for other, (_, theirs) in ports.items():
            text = text.replace(f"kafka-{other}.example.net:9093", f"127.0.0.1:{theirs}")
        text = text.replace("/var/lib/ledgermq-kafka/data", str(self._directory / "data"))
        assert "example.net" not in text
        self._file = self._directory / "kafka.properties"
        self._file.write_text(text)
        self.process: subprocess.Popen[bytes] | None = None

    @staticmethod
    def _line(text: str, name: str) -> str:
        return next(line for line in text.splitlines() if line.startswith(f"{name}="))

    def _java(self, *arguments: str) -> list[str]:
        jars = os.pathsep.join(map(str, broker_jars()))
        options = ["-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        return [str(find_java()), *options, "-cp", jars, *arguments]

    def format(self, cluster: str) -> None:
        """Prepare its storage, as the page says."""
        arguments = ("format", "--cluster-id", cluster, "--config", str(self._file))
        command = self._java("kafka.tools.StorageTool", *arguments)
        subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE_SECONDS)

    def start(self) -> None:
        """Start it; it says what it says into a file."""
        with (self._directory / "log").open("ab") as log:
            self.process = subprocess.Popen(
                self._java("kafka.Kafka", str(self._file)), stdout=log, stderr=log
            )

    def kill(self) -> None:
        """End it at once."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()


def ledgermq_command(*arguments: object) -> list[str]:
    """The command line in a process of its own."""
    return [sys.executable, "-m", "ledgermq", *map(str, arguments)]


def said(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    command = ledgermq_command(*arguments)
    return subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
    )


def wait_for(look, what: str) -> None:
    """Wait until a look is satisfied."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not look():
        assert time.monotonic() < deadline, what
        time.sleep(0.5)


class Cluster:
    """Three nodes and two workers."""

    def __init__(self, directory: Path) -> None:
        ports = {number: (choose_port(), choose_port()) for number in NODES}
        self.nodes = {number: Node(number, ports, directory) for number in NODES}
        self.bootstrap = ",".join(f"127.0.0.1:{ports[number][0]}" for number in NODES)
        self._directory = directory
        self._workers: list[subprocess.Popen[bytes]] = []

    def start_worker(self, name: str) -> subprocess.Popen[bytes]:
        """A worker with the settings of the page."""
        kept = {key: text for key, text in os.environ.items() if not key.startswith("LEDGERMQ_")}
        kept |= {"LEDGERMQ_NAME": name, "LEDGERMQ_BROKERS_MIN": "3", "LEDGERMQ_WEB_PORT": "-1"}
        command = ledgermq_command("worker", "--bootstrap", self.bootstrap)
        with (self._directory / f"{name}.log").open("ab") as log:
            worker = subprocess.Popen(
                [*command, "--data-dir", self._directory / name], env=kept, stdout=log, stderr=log
            )
        self._workers.append(worker)
        return worker

    def brokers(self) -> int:
        """How many nodes the cluster knows."""
        with contextlib.suppress(Exception):
            admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
            return len(admin.list_topics(timeout=5).brokers)
        return 0

    def doctor(self, check: str) -> str:
        """Verdict and finding of a check."""
        told = said("doctor", "--bootstrap", self.bootstrap).stdout
        return next(line for line in told.splitlines() if f"\t{check}\t" in line)

    def leader(self) -> int:
        """The node that leads the ledger of QM1."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        found = admin.list_topics("ledgermq.operations", timeout=10).topics
        return found["ledgermq.operations"].partitions[0].leader

    def end(self) -> None:
        """End what runs."""
        for worker in self._workers:
            worker.kill()
            worker.wait()
        for node in self.nodes.values():
            node.kill()


@pytest.fixture
def cluster(tmp_path) -> Iterator[Cluster]:
    """Nodes that are formatted and not started."""
    made = Cluster(tmp_path)
    try:
        for node in made.nodes.values():
            node.format("bGVkZ2VybXEtdGVzdC0wMA")
        yield made
    finally:
        made.end()


def put_and_get(bootstrap: str, put: list[str], got: list[str]) -> None:
    """Put messages one by one and get them in units of work, whatever happens meanwhile."""
    with ledgermq.connect(f"kafka://{bootstrap}/QM1", timeout=PATIENCE_SECONDS) as connection:
        connection.admin.create_queue("q")
        with (
            connection.session() as sending,
            connection.session(transacted=True) as receiving,
        ):
            producer, consumer = sending.producer("queue:q"), receiving.consumer("queue:q")
            for _ in range(MESSAGES):
                text = uuid.uuid4().hex
                producer.send(text)
                put.append(text)
                message = consumer.receive(timeout=PATIENCE_SECONDS)
                receiving.commit()
                got.append(message.body)


@pytest.mark.kafka
@pytest.mark.long
def test_a_cluster_of_three_loses_nothing_when_a_node_is_killed(cluster):
    """The leader of the ledger and a worker die; all that was put is got, in order, once, and the
    audit agrees. Topics are not made before all three nodes are there.
    """
    cluster.nodes[1].start()
    cluster.nodes[2].start()
    wait_for(lambda: cluster.brokers() == 2, "two nodes are a majority")
    assert cluster.start_worker("early").wait(timeout=PATIENCE_SECONDS) == UNREACHABLE
    cluster.nodes[3].start()
    wait_for(lambda: cluster.brokers() == 3, "three nodes")
    first = cluster.start_worker("first")
    cluster.start_worker("second")
    wait_for(
        lambda: said("check", "cluster", "--bootstrap", cluster.bootstrap).returncode == OK, ""
    )
    assert cluster.doctor("durability").startswith("ok\tdurability\treplicated: 3 copies")

    put: list[str] = []
    got: list[str] = []
    client = threading.Thread(target=put_and_get, args=(cluster.bootstrap, put, got))
    client.start()
    wait_for(lambda: len(got) >= KILL_AT, "messages flow")
    killed = cluster.leader()
    cluster.nodes[killed].kill()
    wait_for(lambda: len(got) >= 2 * KILL_AT, "messages flow without the node")
    assert "2 in sync now" in cluster.doctor("durability")
    os.kill(first.pid, signal.SIGKILL)
    client.join(timeout=2 * PATIENCE_SECONDS)
    assert (len(put), got) == (MESSAGES, put)

    cluster.nodes[killed].start()
    wait_for(lambda: cluster.doctor("durability").startswith("ok\t"), "the node catches up")
    audit = said("audit", "--bootstrap", cluster.bootstrap)
    assert audit.returncode == OK, audit.stdout + audit.stderr


@pytest.mark.kafka
@pytest.mark.long
def test_a_cluster_that_lost_its_majority_goes_on_when_it_is_back(cluster):
    """Clients wait, commands and doctor say what is down, and the worker goes on by itself."""
    for node in cluster.nodes.values():
        node.start()
    wait_for(lambda: cluster.brokers() == 3, "three nodes")
    worker = cluster.start_worker("only")
    where = ("--bootstrap", cluster.bootstrap)
    wait_for(lambda: said("check", "cluster", *where).returncode == OK, "a worker answers")
    assert cluster.doctor("broker").startswith("ok\t")
    with ledgermq.connect(f"kafka://{cluster.bootstrap}/QM1", timeout=PATIENCE_SECONDS) as client:
        producer = client.session().producer("queue:q")
        producer.send("before")
        left = cluster.leader()
        for number in set(NODES) - {left}:
            cluster.nodes[number].kill()
        sending = threading.Thread(target=producer.send, args=("while they are down",))
        sending.start()
        for command in (("queue", "list"), ("check", "cluster"), ("chain", "show")):
            told = said(*command, *where, "--timeout", "5")
            assert told.returncode == UNREACHABLE, told.stdout + told.stderr
            assert told.stderr.startswith("error: "), told.stderr
        assert "no connection to 127.0.0.1:" in cluster.doctor("broker")
        for number in set(NODES) - {left}:
            cluster.nodes[number].start()
        sending.join(timeout=PATIENCE_SECONDS)
        assert not sending.is_alive()
        assert client.admin.queue_status("q").message_count == 2
    assert worker.poll() is None
