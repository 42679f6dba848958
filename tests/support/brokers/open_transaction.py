"""A transaction that is open on its partitions, and that its coordinator takes for complete.

Kafka leaves one so where its only broker is killed before the markers are written. Here the
coordinator is not asked: it is not told that the producer begins again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from aiokafka.client import AIOKafkaClient, CoordinationType
from aiokafka.protocol.produce import ProduceRequest
from aiokafka.protocol.transaction import TxnOffsetCommitRequest
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.structs import TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from ledgermq.processor.log.kafka_requests import KafkaRequest
from ledgermq.relay import transaction_markers

PATIENCE_SECONDS = 10
VERIFICATION = "transaction.partition.verification.enable"


async def state_of(bootstrap: str, name: str) -> transaction_markers.State:
    """What the coordinator knows, as soon as it is about nothing."""
    client = AIOKafkaClient(bootstrap_servers=bootstrap)
    await client.bootstrap()
    try:
        while True:
            found = await transaction_markers._state(client, name)
            if found.state not in transaction_markers.DECIDING:
                return found
            await asyncio.sleep(0.05)
    finally:
        await client.close()


def leave_open(
    bootstrap: str, name: str, topic: str, value: bytes | None, position: int | None
) -> None:
    """Leaves the next transaction of a transactional id open, as its last one was decided.

    A record is open on partition 0 of the topic, and a position of the group of the same name.
    """
    with _unverified(bootstrap):
        asyncio.run(_leave_open(bootstrap, name, topic, value, position))


async def _leave_open(
    bootstrap: str, name: str, topic: str, value: bytes | None, position: int | None
) -> None:
    state = await state_of(bootstrap, name)
    assert state.state in transaction_markers.DECIDED
    client = AIOKafkaClient(bootstrap_servers=bootstrap)
    await client.bootstrap()
    try:
        if value is not None:
            await client.set_topics([topic])
            leader = client.cluster.leader_for_partition(TopicPartition(topic, 0))
            asked = KafkaRequest(transaction_markers._PRODUCERS, [(topic, [0], {})])
            ((_, ((_, _, _, producers, _),), _),) = (await client.send(leader, asked)).topics
            # A number that was there before would be taken for sent twice.
            (last,) = [one[2] for one in producers if one[0] == state.producer_id]
            batch = DefaultRecordBatchBuilder(
                2, 0, 1, state.producer_id, state.producer_epoch, last + 1, 1 << 20
            )
            batch.append(0, int(time.time() * 1000), None, value, [])
            written = ProduceRequest(name, -1, 10_000, [(topic, [(0, bytes(batch.build()))])])

            async def write() -> int:
                ((_, ((_, code, *_),)),) = (await client.send(leader, written)).topics
                return int(code)

            await _until_taken(write)
        if position is not None:
            node = await client.coordinator_lookup(CoordinationType.GROUP, name)
            noted = TxnOffsetCommitRequest(
                name, name, state.producer_id, state.producer_epoch, [(topic, [(0, position, "")])]
            )

            async def note() -> int:
                ((_, ((_, code),)),) = (await client.send(node, noted)).errors
                return int(code)

            await _until_taken(note)
    finally:
        await client.close()


async def _until_taken(send: Callable[[], Awaitable[int]]) -> None:
    """A broker learns late that it is not to ask the coordinator."""
    limit = time.monotonic() + PATIENCE_SECONDS
    while code := await send():
        assert time.monotonic() < limit, code
        await asyncio.sleep(0.05)


@contextmanager
def _unverified(bootstrap: str) -> Iterator[None]:
    """Kafka otherwise asks the coordinator whether the producer has begun."""
    admin = AdminClient({"bootstrap.servers": bootstrap})

    def alter(kind: AlterConfigOpType) -> None:
        entry = ConfigEntry(VERIFICATION, "false", incremental_operation=kind)
        for broker in admin.list_topics(timeout=20).brokers:
            one = ConfigResource(ResourceType.BROKER, str(broker), incremental_configs=[entry])
            admin.incremental_alter_configs([one])[one].result()

    alter(AlterConfigOpType.SET)
    try:
        yield
    finally:
        alter(AlterConfigOpType.DELETE)
