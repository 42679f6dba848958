"""What an operator, an accident or an enemy can do to the log topics, for tests."""

from __future__ import annotations

import time
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from ledgermq.wire.framing.codec import decode_record, encode_record
from support.checks.history import read_partition

MANIFEST = "ledgermq.checkpoint.Manifest"


def _admin(place: Any) -> AdminClient:
    return AdminClient({"bootstrap.servers": place.bootstrap})


def alter_topic(place: Any, topic: str, **settings: Any) -> None:
    """Changes settings of a topic; underscores stand for dots."""
    entries = [
        ConfigEntry(name.replace("_", "."), str(value), incremental_operation=AlterConfigOpType.SET)
        for name, value in settings.items()
    ]
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
    admin = _admin(place)
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(20)


def delete_topic(place: Any, topic: str) -> None:
    """Deletes a topic and waits until it is gone."""
    admin = _admin(place)
    admin.delete_topics([topic], operation_timeout=20)[topic].result(20)
    while topic in admin.list_topics(timeout=10).topics:
        pass


def delete_records(place: Any, topic: str, partition: int, before: int) -> None:
    """Deletes the records of a partition below an offset."""
    wanted = TopicPartition(topic, partition, before)
    admin = _admin(place)
    for future in admin.delete_records([wanted]).values():
        future.result(20)


def commit_to_group(place: Any, offset: int) -> None:
    """Commits an offset of operations to the workers' group; no worker may be in it."""
    consumer = Consumer(
        {"bootstrap.servers": place.bootstrap, "group.id": f"{place.topics.prefix}.workers"}
    )
    wanted = TopicPartition(place.topics.operations, place.claim.partition, offset)
    for _ in range(60):
        try:
            consumer.commit(offsets=[wanted], asynchronous=False)
        except KafkaException:  # the last member has not left yet
            time.sleep(0.2)
        else:
            break
    consumer.close()


def write(place: Any, topic: str, key: str | None, value: bytes | None, **more: Any) -> None:
    """Writes one record to the queue manager's partition of a topic."""
    producer = Producer(
        {"bootstrap.servers": place.bootstrap, "message.max.bytes": 20 * 1024 * 1024}
    )
    producer.produce(topic, key=key, value=value, partition=place.claim.partition, **more)
    assert producer.flush(20) == 0, f"{topic} took no record"


def checkpoint_shelf(place: Any) -> dict[str, bytes]:
    """What compaction would leave of the checkpoints of a place, by key."""
    shelf: dict[str, bytes] = {}
    for record in read_partition(place.bootstrap, place.topics.checkpoints, place.claim.partition):
        key = record.key().decode()
        shelf.pop(key, None)
        if record.value() is not None:
            shelf[key] = record.value()
    return shelf


def rewrite_manifest(place: Any, **changes: Any) -> int:
    """Changes fields of the newest manifest; its position."""
    shelf = checkpoint_shelf(place)
    keys = [key for key in shelf if "/manifest/" in key]
    newest = max(keys, key=lambda key: int(key.rpartition("/")[2]))
    _, manifest = decode_record(shelf[newest])
    manifest |= changes
    key = f"QM1/manifest/{manifest['position']}"
    write(place, place.topics.checkpoints, key, encode_record(MANIFEST, manifest))
    return int(manifest["position"])
