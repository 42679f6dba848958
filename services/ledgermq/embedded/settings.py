"""The server settings of the embedded broker: one node, loopback only, small, nothing forgotten.

docker-compose.yml gives a container the same settings; a test compares the two.
"""

from collections.abc import Mapping
from pathlib import Path

from ledgermq.embedded.errors import BrokerStartError

HOST = "127.0.0.1"

# Operations are at most 8 MiB; the rest is room for keys, headers and the batch around them.
MESSAGE_BYTES_MAX = 9 * 1024 * 1024

SERVER_SETTINGS: Mapping[str, str] = {
    # A mistyped name must be an error, and partition counts are fixed at creation.
    "auto.create.topics.enable": "false",
    "message.max.bytes": str(MESSAGE_BYTES_MAX),
    "replica.fetch.max.bytes": str(MESSAGE_BYTES_MAX),
    # The log is the only source of truth: nothing ages out unless its topic says so.
    "log.retention.ms": "-1",
    "unclean.leader.election.enable": "false",
    # There is one node, so internal topics have one replica, and few partitions start quicker.
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "4",
    # A worker that restarts gets its partitions back at once, and one that died is missed soon.
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "broker.heartbeat.interval.ms": "500",
    # A two-core machine is shared with workers and clients.
    "num.network.threads": "1",
    "num.io.threads": "2",
    "num.recovery.threads.per.data.dir": "2",
    "background.threads": "2",
    "log.cleaner.threads": "1",
    # The default of 128 MiB would take a quarter of the heap.
    "log.cleaner.dedupe.buffer.size": str(16 * 1024 * 1024),
}

# After a crash the controller lets the broker in again only when its old session has ended; Kafka's
# 9 seconds would be the longest part of a restart. Without a crash nobody waits for that, and a
# brief session is a danger: where a machine is so busy that no heartbeat comes through for as
# long, all partitions lose their leader.
AFTER_CRASH = "broker.session.timeout.ms=2000\n"


def server_properties(*, data: Path, port: int, controller_port: int) -> str:
    """Return the text of the server's properties file.

    Args:
        data: The directory of the log.
        port: The loopback port that clients use.
        controller_port: The loopback port that the controller inside the broker uses.

    Raises:
        BrokerStartError: Kafka cannot work in a directory of this name.
    """
    if "," in str(data):
        raise BrokerStartError(
            f"Kafka takes a comma in a directory's name for a separator, so the broker cannot work "
            f"in {data}; choose another directory."
        )
    settings = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "listeners": f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{controller_port}",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{controller_port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": f"{HOST}:{controller_port}",
        "log.dirs": str(data),
        **SERVER_SETTINGS,
    }
    return "".join(f"{name}={_escaped(value)}\n" for name, value in settings.items())


def java_options(heap: str) -> list[str]:
    """Return the options of the broker's Java, for a heap such as "512m"."""
    return [
        f"-Xmx{heap}",
        # On two cores the serial collector starts quickest and keeps out of the clients' way.
        "-XX:+UseSerialGC",
        "-XX:+ExitOnOutOfMemoryError",
        "-Djava.awt.headless=true",
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=info",
        "-Dorg.slf4j.simpleLogger.showDateTime=true",
        "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd'T'HH:mm:ss.SSSXXX",
        "-Dorg.slf4j.simpleLogger.showThreadName=false",
        # The broker prints all of its settings several times over at this level.
        "-Dorg.slf4j.simpleLogger.log.org.apache.kafka.common.config=warn",
        "-Dorg.slf4j.simpleLogger.log.kafka.server.KafkaConfig=warn",
    ]


def _escaped(value: str) -> str:
    # Java reads a properties file as Latin-1 with escapes.
    text = value.replace("\\", "\\\\")
    units = text.encode("utf-16-be")
    codes = [int.from_bytes(units[at : at + 2], "big") for at in range(0, len(units), 2)]
    return "".join(chr(code) if 32 <= code < 127 else f"\\u{code:04x}" for code in codes)
