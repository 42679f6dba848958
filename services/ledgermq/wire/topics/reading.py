"""Reading log topics outside any consumer group: ends, single records, ranges of a partition."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from ledgermq.errors import LedgerMQError
from ledgermq.wire.framing.confluent import value_of

RECORDS_MAX = 1_000
# librdkafka mends these by itself.
PASSING = (KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN)
# A broker that has just come up, or whose partition just moved, answers so for a moment.
COMING_UP = (
    KafkaError._TRANSPORT,
    KafkaError._UNKNOWN_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
)
AGAIN_SECONDS = 0.1


class LogUnreadableError(LedgerMQError):
    code = "log-unreadable"


def reader_settings(bootstrap: str, name: str, more: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a consumer that chooses its partitions itself and commits nothing."""
    return {
        "bootstrap.servers": bootstrap,
        # librdkafka wants a group to be named, although nothing is done with it.
        "group.id": f"ledgermq-{name}",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "error",
        # By default librdkafka hides what an aborted transaction wrote, and waits for the end of
        # one that is open.
        "isolation.level": "read_uncommitted",
        "log_level": 0,
        **more,
    }


def offsets_of(
    consumer: Consumer, partition: TopicPartition, timeout_seconds: float
) -> tuple[int, int]:
    """First offset and end offset, asked for again while a broker comes up.

    Raises:
        KafkaException: Kafka did not answer in time.
    """
    limit = time.monotonic() + timeout_seconds
    while True:
        left = max(AGAIN_SECONDS, limit - time.monotonic())
        try:
            first, end = consumer.get_watermark_offsets(partition, timeout=left)
            return int(first), int(end)
        except KafkaException as error:
            if error.args[0].code() not in COMING_UP or time.monotonic() >= limit:
                raise
            time.sleep(AGAIN_SECONDS)
            # Librdkafka takes a partition that it does not know for one that never will be.
            with suppress(KafkaException):
                consumer.list_topics(partition.topic, timeout=left)


def take_batch(
    consumer: Consumer, records_max: int, timeout_seconds: float, *, as_written: bool = False
) -> list[Message]:
    """What is there, or the first record that comes in time; `consume` would wait for all.

    Values are in single-object framing, unless they are wanted as they were written.
    """
    first = consumer.poll(timeout_seconds)
    if first is None:
        return []
    found = [first, *consumer.consume(num_messages=records_max - 1, timeout=0)]
    for record in () if as_written else found:
        if record.error() is None:
            record.set_value(value_of(record))
    return found


class PartitionReader:
    """Reads any partition; for one thread at a time. What librdkafka logs goes to `logger`."""

    def __init__(
        self,
        bootstrap: str,
        timeout_seconds: float,
        logger: logging.Logger | None = None,
        *,
        as_written: bool = False,
    ) -> None:
        self._as_written = as_written
        self._timeout_seconds = timeout_seconds
        settings = reader_settings(
            bootstrap,
            "reader",
            {
                "enable.partition.eof": True,
                # The end is only reported when a fetch that waits for more comes back empty.
                "fetch.wait.max.ms": 10,
                "queued.max.messages.kbytes": 65_536,
            },
        )
        if logger is None:
            self._consumer = Consumer(settings)
        else:
            self._consumer = Consumer({**settings, "log_level": 3}, logger=logger)

    def partition_count(self, topic: str) -> int:
        """0 if there is no such topic; LogUnreadableError if Kafka does not answer."""
        try:
            topics = self._consumer.list_topics(timeout=self._timeout_seconds).topics
        except KafkaException as error:
            raise LogUnreadableError(error.args[0].str()) from error
        return len(topics[topic].partitions) if topic in topics else 0

    def ends(self, topic: str, partition: int) -> tuple[int, int]:
        """First offset and end offset; LogUnreadableError if Kafka does not answer."""
        wanted = TopicPartition(topic, partition)
        try:
            return offsets_of(self._consumer, wanted, self._timeout_seconds)
        except KafkaException as error:
            text = error.args[0].str()
            raise LogUnreadableError(f"{topic}-{partition} does not answer: {text}") from error

    def records(
        self, topic: str, partition: int, start: int, end: int | None = None
    ) -> Iterator[Message]:
        """The records from one offset on up to another, not included, or to the end of the log.

        Raises:
            LogUnreadableError: Kafka did not answer in time, or a record is damaged.
        """
        if end is not None and start >= end:
            return
        self._consumer.assign([TopicPartition(topic, partition, start)])
        waiting = 0.0
        while True:
            batch = take_batch(self._consumer, RECORDS_MAX, 1.0, as_written=self._as_written)
            waiting = 0.0 if batch else waiting + 1.0
            if waiting > self._timeout_seconds:
                raise LogUnreadableError(f"{topic}-{partition} did not answer for {waiting:.0f} s")
            for message in batch:
                error, offset = message.error(), message.offset() or 0
                if error is None:
                    if end is not None and offset >= end:
                        return
                    yield message
                    if end is not None and offset + 1 >= end:
                        return
                elif error.code() == KafkaError._PARTITION_EOF:
                    return
                elif error.code() not in PASSING:
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
        self._consumer.close()


@contextmanager
def partition_reader(
    bootstrap: str,
    timeout_seconds: float,
    logger: logging.Logger | None = None,
    *,
    as_written: bool = False,
) -> Iterator[PartitionReader]:
    """A reader for as long as the block runs; values in single-object framing, or as written."""
    reader = PartitionReader(bootstrap, timeout_seconds, logger, as_written=as_written)
    try:
        yield reader
    finally:
        reader.close()
