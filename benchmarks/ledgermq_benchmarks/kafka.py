"""The row `kafka`: plain produce and consume of the same bytes, to compare with."""

from __future__ import annotations

import os
import time
import uuid
from multiprocessing.connection import Connection

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from ledgermq_benchmarks.fold import BATCH_MESSAGES, BODY_BYTES


def create_topic(bootstrap: str, topic: str) -> None:
    """A topic like the operations topic: one partition, every record flushed."""
    config = {"flush.messages": "1", "message.timestamp.type": "LogAppendTime"}
    wanted = NewTopic(topic, num_partitions=1, replication_factor=1, config=config)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([wanted])[topic].result(timeout=15)


def plain_producer(
    bootstrap: str, destination: str, messages: int, pipe: Connection
) -> dict[str, float]:
    """Writes records of 100 bodies each and waits until all are confirmed."""
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    value = os.urandom(BODY_BYTES * BATCH_MESSAGES)
    pipe.send("ready")
    pipe.recv()
    started = time.time()
    for _ in range(messages // BATCH_MESSAGES):
        producer.produce(destination, value, partition=0)
        producer.poll(0)
    producer.flush()
    return {"started": started, "ended": time.time()}


def plain_consumer(
    bootstrap: str, destination: str, messages: int, pipe: Connection
) -> dict[str, float]:
    """Reads those records and cuts them into bodies again."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": str(uuid.uuid4())})
    consumer.assign([TopicPartition(destination, 0, 0)])
    pipe.send("ready")
    pipe.recv()
    started = time.time()
    got = 0
    while got < messages:
        for record in consumer.consume(100, 0.1):
            body = record.value() or b""
            got += len([body[at : at + BODY_BYTES] for at in range(0, len(body), BODY_BYTES)])
    consumer.close()
    return {"started": started, "ended": time.time()}
