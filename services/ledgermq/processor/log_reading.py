"""Reading log topics outside the group: whole partitions, single records, ends, identities."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient

from ledgermq.errors import LedgerMQError
from ledgermq.processor.logs import KAFKA_LOGGER

__all__ = [
    "LogIdentity",
    "LogUnreadableError",
    "PartitionReader",
    "log_identity",
    "partition_reader",
    "take_batch",
]


class LogUnreadableError(LedgerMQError):
    """A log topic did not answer as it must."""

    code = "log-unreadable"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogIdentity:
    """Which log this is: the cluster and the operations topic in it (H14)."""

    cluster_id: str
    topic_id: str


def log_identity(bootstrap: str, topic: str, timeout_seconds: float) -> LogIdentity:
    """The identity of a topic.

    Raises:
        LogUnreadableError: Kafka did not answer, or there is no such topic.
    """
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 3})
    try:
        cluster = admin.describe_cluster(request_timeout=timeout_seconds).result()
        described = admin.describe_topics(TopicCollection([topic]), request_timeout=timeout_seconds)
        topic_id = described[topic].result().topic_id
    except KafkaException as error:
        text = error.args[0].str()
        raise LogUnreadableError(f"{topic} at {bootstrap} cannot be described: {text}") from error
    return LogIdentity(cluster_id=str(cluster.cluster_id), topic_id=str(topic_id))


def take_batch(consumer: Consumer, records_max: int, timeout_seconds: float) -> list[Message]:
    """What is there, or the first record that comes in time; `consume` would wait for all."""
    first = consumer.poll(timeout_seconds)
    if first is None:
        return []
    return [first, *consumer.consume(num_messages=records_max - 1, timeout=0)]


class PartitionReader:
    """Reads partitions by hand, without a group; for one thread at a time."""

    def __init__(self, bootstrap: str, timeout_seconds: float) -> None:
        self._timeout_seconds = timeout_seconds
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "ledgermq-reader",
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "auto.offset.reset": "error",
                "isolation.level": "read_uncommitted",
                "enable.partition.eof": True,
                "fetch.wait.max.ms": 20,
                "queued.max.messages.kbytes": 65_536,
                "log_level": 3,
            },
            logger=KAFKA_LOGGER,
        )

    def ends(self, topic: str, partition: int) -> tuple[int, int]:
        """First offset and end offset of a partition.

        Raises:
            LogUnreadableError: Kafka did not answer.
        """
        wanted = TopicPartition(topic, partition)
        try:
            found = self._consumer.get_watermark_offsets(wanted, timeout=self._timeout_seconds)
        except KafkaException as error:
            text = error.args[0].str()
            raise LogUnreadableError(f"{topic}-{partition} does not answer: {text}") from error
        return int(found[0]), int(found[1])

    def records(self, topic: str, partition: int, start: int, end: int) -> Iterator[Message]:
        """The records from one offset on up to another, the end not included.

        Raises:
            LogUnreadableError: Kafka did not answer in time, or a record is damaged.
        """
        if start >= end:
            return
        self._consumer.assign([TopicPartition(topic, partition, start)])
        waiting = 0.0
        while True:
            batch = take_batch(self._consumer, 1000, 1.0)
            waiting = 0.0 if batch else waiting + 1.0
            if waiting > self._timeout_seconds:
                raise LogUnreadableError(f"{topic}-{partition} did not answer for {waiting:.0f} s")
            for message in batch:
                error, offset = message.error(), message.offset() or 0
                if error is None:
                    if offset >= end:
                        return
                    yield message
                    if offset + 1 >= end:
                        return
                elif error.code() == KafkaError._PARTITION_EOF:
                    return
                elif error.code() not in (KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN):
                    raise LogUnreadableError(f"{topic}-{partition}: {error.str()}")

    def record_at(self, topic: str, partition: int, offset: int) -> Message | None:
        """The record at an offset, or None if the log does not hold it."""
        first, end = self.ends(topic, partition)
        if not first <= offset < end:
            return None
        for message in self.records(topic, partition, offset, offset + 1):
            if message.offset() == offset:
                return message
        return None

    def close(self) -> None:
        """Lets go of the connection."""
        self._consumer.close()


@contextmanager
def partition_reader(bootstrap: str, timeout_seconds: float) -> Iterator[PartitionReader]:
    """A reader that closes itself."""
    reader = PartitionReader(bootstrap, timeout_seconds)
    try:
        yield reader
    finally:
        reader.close()
