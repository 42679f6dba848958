"""Batches that a client in another language may write, and the Python ones cannot."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from aiokafka.client import AIOKafkaClient
from aiokafka.errors import NotLeaderForPartitionError
from aiokafka.protocol.produce import ProduceRequest
from aiokafka.record.default_records import _DefaultRecordBatchBuilderPy
from aiokafka.structs import TopicPartition
from confluent_kafka import Producer

# gzip is the only one that needs no library beside Python.
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
NOT_TEXT = b"\xff\xfe\x80"
LEADER_SECONDS_MAX = 30.0


class _NotText(str):
    """The name of a header whose bytes are no UTF-8."""

    __slots__ = ()

    def encode(self, *_unused: Any) -> bytes:
        """What is written for it."""
        return NOT_TEXT


def write_unnamed_header(
    bootstrap: str,
    topic: str,
    value: bytes | None,
    key: bytes | None = None,
    headers: list[tuple[str, bytes | None]] | None = None,
    timestamp_ms: int = -1,
    partition: int = 0,
) -> None:
    """Writes a record with a header whose name is no UTF-8, and by default no time."""
    builder = _DefaultRecordBatchBuilderPy(2, 0, 0, -1, -1, -1, 1_000_000)
    named = [*(headers or ()), (_NotText("name"), NOT_TEXT)]
    builder.append(0, timestamp_ms, key, value, named)
    batch = bytes(builder.build())

    async def send() -> int:
        client = AIOKafkaClient(bootstrap_servers=bootstrap)
        try:
            await client.bootstrap()
            await client.set_topics([topic])
            leader = client.cluster.leader_for_partition(TopicPartition(topic, partition))
            request = ProduceRequest(None, 1, 30_000, [(topic, [(partition, batch)])])
            ((_, ((_, code, *_),)),) = (await client.send(leader, request)).topics
            return int(code)
        finally:
            await client.close()

    until = time.monotonic() + LEADER_SECONDS_MAX
    while (code := asyncio.run(send())) == NotLeaderForPartitionError.errno:
        # A broker that has just started names itself before it leads.
        assert time.monotonic() < until, f"nobody leads {topic}"
        time.sleep(0.1)
    assert code == 0, f"Kafka's error {code} on {topic}"


def producers(bootstrap: str, **more: Any) -> list[Producer]:
    """A producer for each codec that Kafka knows."""
    shared = {"bootstrap.servers": bootstrap, "linger.ms": 20, **more}
    return [Producer(shared | {"compression.type": codec}) for codec in CODECS]
