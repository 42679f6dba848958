"""A Kafka cluster of three nodes on loopback, each broker and controller, for tests that stop one.

Topics are made with three replicas, as the worker makes them on such a cluster.
"""

from __future__ import annotations

import base64
import os
import subprocess
import time
import uuid
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from ledgermq.embedded.jars import broker_jars
from ledgermq.embedded.java import find_java
from ledgermq.embedded.ports import choose_port
from ledgermq.embedded.settings import HOST, SERVER_SETTINGS, java_options

NODES = (1, 2, 3)
START_SECONDS = 180.0
REPLICATED = {
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
    # Another node leads soon after one is killed.
    "broker.session.timeout.ms": "2000",
}


class KafkaCluster:
    """Three nodes; a context manager. They end with the test process' call of `__exit__`."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        taken: list[int] = []
        for _ in range(2 * len(NODES)):
            port = choose_port()
            while port in taken:
                port = choose_port()
            taken.append(port)
        self._ports = dict(zip(NODES, taken[: len(NODES)], strict=True))
        self._controller_ports = dict(zip(NODES, taken[len(NODES) :], strict=True))
        self._nodes: dict[int, subprocess.Popen[bytes]] = {}

    @property
    def bootstrap(self) -> str:
        """The addresses of all nodes."""
        return ",".join(f"{HOST}:{port}" for port in self._ports.values())

    def __enter__(self) -> KafkaCluster:
        self._directory.mkdir(parents=True, exist_ok=True)
        for node in NODES:
            self._properties(node).write_text(self._settings(node))
            tool = ["kafka.tools.StorageTool", "format", "-t", self._cluster_id]
            command = [*self._java(), *tool, "-c", str(self._properties(node))]
            subprocess.run(command, check=True, capture_output=True)
        for node in NODES:
            self.start(node)
        self.wait_until_whole()
        return self

    def __exit__(self, *_: object) -> None:
        for node in NODES:
            self.kill(node)

    def start(self, node: int) -> None:
        """Starts a node; it is not waited for."""
        log = self._directory / f"node-{node}.log"
        with log.open("ab") as output:
            self._nodes[node] = subprocess.Popen(
                [*self._java(), "kafka.Kafka", str(self._properties(node))],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )

    def kill(self, node: int) -> None:
        """Kills a node as a crash would."""
        process = self._nodes.pop(node, None)
        if process is not None:
            process.kill()
            process.wait()

    def wait_until_whole(self) -> None:
        """Waits until all nodes are in, and every partition has all of its replicas in sync."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        limit = time.monotonic() + START_SECONDS
        while not self._is_whole(admin):
            assert time.monotonic() < limit, self._said()
            time.sleep(0.2)

    def leader_of(self, topic: str, partition: int = 0) -> int:
        """The node that leads a partition."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        return int(admin.list_topics(topic, timeout=30).topics[topic].partitions[partition].leader)

    def _is_whole(self, admin: AdminClient) -> bool:
        try:
            found = admin.list_topics(timeout=2)
        except KafkaException:
            return False
        partitions = [one for topic in found.topics.values() for one in topic.partitions.values()]
        return len(found.brokers) == len(NODES) and all(
            len(one.isrs) == len(one.replicas) and one.leader > 0 for one in partitions
        )

    def _java(self) -> list[str]:
        path = os.pathsep.join(str(jar) for jar in broker_jars())
        return [str(find_java()), *java_options("256m"), "-cp", path]

    def _properties(self, node: int) -> Path:
        return self._directory / f"node-{node}.properties"

    def _settings(self, node: int) -> str:
        listeners = f"PLAINTEXT://{HOST}:{self._ports[node]}"
        controller = f"CONTROLLER://{HOST}:{self._controller_ports[node]}"
        voters = ",".join(f"{one}@{HOST}:{port}" for one, port in self._controller_ports.items())
        settings = {
            **SERVER_SETTINGS,
            **REPLICATED,
            "process.roles": "broker,controller",
            "node.id": str(node),
            "listeners": f"{listeners},{controller}",
            "advertised.listeners": listeners,
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": voters,
            "log.dirs": str(self._directory / f"data-{node}"),
        }
        return "".join(f"{name}={value}\n" for name, value in settings.items())

    def _said(self) -> str:
        logs = (self._directory / f"node-{node}.log" for node in NODES)
        return "\n".join(log.read_text(errors="replace")[-2000:] for log in logs)
