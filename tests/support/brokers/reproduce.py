"""Re-produces the registry, operations and outcomes of one cluster into a second one's directory.

The copy keeps what an auditor relies on: partitions, order, keys, values, headers and append times.
A broker stamps what it is given, so records are produced one batch each with their old time as
creation time, and the batches on disk are then marked as log-append time, as the originals are.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from aiokafka.record.util import calc_crc32c
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from ledgermq.embedded import EmbeddedBroker
from ledgermq.wire.framing.confluent import headers_of
from ledgermq.wire.topics.log_topics import Topics, ensure_topics

LOG_APPEND_TIME = 0x08
LENGTH_AT, CRC_AT, ATTRIBUTES_AT = 8, 17, 21
PREFIX_BYTES = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Copied:
    """A record on its way into the copy."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]

    def with_value(self, value: bytes | None) -> Copied:
        """The same record with another value."""
        return replace(self, value=value)


Change = Callable[[Copied], Copied | list[Copied] | None]


def keep(record: Copied) -> Copied | None:
    """The change that changes nothing."""
    return record


def reproduce(source: str, directory: Path, topics: Topics, change: Change = keep) -> None:
    """Copies the three topics into a broker directory; `change` alters, drops or adds records."""
    names = (topics.registry, topics.operations, topics.outcomes)
    with EmbeddedBroker(directory, brief=True) as target:
        counts = _create(source, target.bootstrap, names)
        _copy(source, target.bootstrap, counts, change)
        _stamp_as_log_append_time(target.bootstrap, names)
        ensure_topics(
            target.bootstrap,
            topics,
            partitions=counts[topics.operations],
            lanes=counts[topics.outcomes] // counts[topics.operations],
        )
    for name in names:
        for segment in sorted(directory.glob(f"**/{name}-*/*.log")):
            segment.write_bytes(_marked(segment.read_bytes()))


def _create(source: str, target: str, names: tuple[str, ...]) -> dict[str, int]:
    metadata = AdminClient({"bootstrap.servers": source}).list_topics(timeout=15).topics
    counts = {name: len(metadata[name].partitions) for name in names}
    config = {
        "message.timestamp.type": "CreateTime",
        "message.timestamp.before.max.ms": str(2**63 - 1),
        "max.message.bytes": str(10 * 1024 * 1024),
        "retention.ms": "-1",
    }
    wanted = [NewTopic(name, count, 1, config=config) for name, count in counts.items()]
    admin = AdminClient({"bootstrap.servers": target})
    for future in admin.create_topics(wanted).values():
        future.result(timeout=15)
    return counts


def _copy(source: str, target: str, counts: dict[str, int], change: Change) -> None:
    problems: list[KafkaError] = []
    producer = Producer(
        {
            "bootstrap.servers": target,
            "enable.idempotence": True,
            "batch.num.messages": 1,
            "message.max.bytes": 10 * 1024 * 1024,
        }
    )
    for name, count in counts.items():
        for partition in range(count):
            for record in records_of(source, name, partition):
                changed = change(record)
                for one in changed if isinstance(changed, list) else [changed]:
                    if one is not None:
                        _produce(producer, one, problems)
    assert not producer.flush(60), "the copy could not be written in time"
    assert not problems, f"the copy could not be written: {problems[0]}"


def _produce(producer: Producer, record: Copied, problems: list[KafkaError]) -> None:
    while True:
        try:
            producer.produce(
                record.topic,
                key=record.key,
                value=record.value,
                partition=record.partition,
                timestamp=record.timestamp_ms,
                headers=list(record.headers),
                on_delivery=lambda problem, _: problems.append(problem) if problem else None,
            )
        except BufferError:
            producer.poll(0.1)
        else:
            producer.poll(0)
            return


def records_of(source: str, topic: str, partition: int) -> Iterator[Copied]:
    """The records of a partition, in order."""
    consumer = Consumer(
        {
            "bootstrap.servers": source,
            "group.id": "reproduce",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 10,
        }
    )
    consumer.assign([TopicPartition(topic, partition, 0)])
    try:
        while True:
            for record in consumer.consume(1000, 0.2):
                problem = record.error()
                if problem is not None:
                    assert problem.code() == KafkaError._PARTITION_EOF, problem
                    return
                yield Copied(
                    topic=topic,
                    partition=partition,
                    offset=record.offset(),
                    timestamp_ms=record.timestamp()[1],
                    key=record.key(),
                    value=record.value(),
                    headers=tuple(headers_of(record)),
                )
    finally:
        consumer.close()


def _stamp_as_log_append_time(target: str, names: tuple[str, ...]) -> None:
    entry = ConfigEntry(
        "message.timestamp.type",
        "LogAppendTime",
        incremental_operation=AlterConfigOpType.SET,
    )
    resources = [
        ConfigResource(ResourceType.TOPIC, name, incremental_configs=[entry]) for name in names
    ]
    admin = AdminClient({"bootstrap.servers": target})
    for future in admin.incremental_alter_configs(resources).values():
        future.result(timeout=15)


def _marked(segment: bytes) -> bytes:
    """The segment with every batch marked as stamped by the log, checksums made anew."""
    found = bytearray(segment)
    at = 0
    while at + ATTRIBUTES_AT + 2 <= len(found):
        (length,) = struct.unpack_from(">i", found, at + LENGTH_AT)
        if length <= 0:
            break
        end = at + PREFIX_BYTES + length
        (attributes,) = struct.unpack_from(">h", found, at + ATTRIBUTES_AT)
        struct.pack_into(">h", found, at + ATTRIBUTES_AT, attributes | LOG_APPEND_TIME)
        checksum = calc_crc32c(bytes(found[at + ATTRIBUTES_AT : end]))
        struct.pack_into(">I", found, at + CRC_AT, checksum)
        at = end
    return bytes(found)
