"""Reads all partitions of a topic of Kafka, from positions that the reader is told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka import Message as Record
from confluent_kafka.admin import AdminClient

from ledgermq.errors import BrokerUnavailableError, LedgerMQError
from ledgermq.relay.running import SourceMovedError
from ledgermq.wire.kafka.access import denied
from ledgermq.wire.kafka.settings import client_options
from ledgermq.wire.topics.identity import log_identity
from ledgermq.wire.topics.reading import (
    MENDED,
    LogDamagedError,
    LogUnreadableError,
    close_aside,
    offsets_of,
    reader_settings,
    take_batch,
)

RECORDS_MAX: Final = 1_000
LOST: Final = (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE)


class TopicReader:
    """Only what is committed is read, and no consumer group has a part in it.

    Attributes:
        source: Name of the source at the beginning: the same topic for ever, made anew it is
            another.
        at_end: Partitions that were read to their ends, and the positions of these.
    """

    def __init__(self, bootstrap: str, topic: str, timeout_seconds: float) -> None:
        self.topic = topic
        self._timeout_seconds = timeout_seconds
        self._bootstrap = bootstrap
        self._admin = AdminClient(client_options(bootstrap, {"log_level": 0}))
        self.source = self.source_now()
        self.at_end: dict[int, int] = {}
        self._failure: LedgerMQError | None = None
        own = {
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "queued.max.messages.kbytes": 65_536,
        }
        self._consumer = Consumer(reader_settings(bootstrap, "bridge", own))

    def source_now(self) -> str:
        """Name of the topic that has this name now.

        Raises:
            AccessDeniedError: We may not see the topic.
            BrokerUnavailableError: Kafka does not say: it does not answer, or has no such topic.
        """
        try:
            found = log_identity(self._bootstrap, self.topic, self._timeout_seconds, self._admin)
        except LogUnreadableError as error:
            raise BrokerUnavailableError(str(error)) from error
        return f"kafka:{self.topic}/{found.topic_id}/{found.cluster_id}"

    def partitions(self) -> list[int]:
        """The partitions that there are now.

        Raises:
            AccessDeniedError: We may not see the topic.
            BrokerUnavailableError: Kafka does not say: it does not answer, or has no such topic.
        """
        try:
            found = self._consumer.list_topics(self.topic, timeout=self._timeout_seconds)
        except KafkaException as error:
            raise BrokerUnavailableError(error.args[0].str()) from error
        hidden = found.topics[self.topic].error
        if hidden is not None:
            raise denied(hidden, self.topic, "Describe") or BrokerUnavailableError(
                f"topic {self.topic} of Kafka cannot be described: {hidden.str()}"
            )
        return sorted(found.topics[self.topic].partitions)

    def ends(self, partition: int) -> tuple[int, int]:
        """First position and the one behind the last."""
        wanted = TopicPartition(self.topic, partition)
        try:
            return offsets_of(self._consumer, wanted, self._timeout_seconds)
        except KafkaException as error:
            raise BrokerUnavailableError(error.args[0].str()) from error

    def assign(self, positions: Mapping[int, int]) -> None:
        """Goes on with these positions of these partitions."""
        self.at_end.clear()
        self._consumer.assign(
            [TopicPartition(self.topic, one, position) for one, position in positions.items()]
        )

    def read(self, wait_seconds: float) -> dict[int, list[Record]]:
        """What came of each partition, in order.

        An error behind records is raised the next time: it comes again whenever they are read, so
        they are to be taken first.

        Raises:
            AccessDeniedError: We may not read the topic.
            SourceMovedError: The position that is to be read next is not on the topic.
            LogDamagedError: The record there is damaged.
            BrokerUnavailableError: Kafka says that it cannot be read.
        """
        if self._failure is not None:
            raise self._failure
        found: dict[int, list[Record]] = {}
        for record in take_batch(self._consumer, RECORDS_MAX, wait_seconds, as_written=True):
            error, partition = record.error(), record.partition()
            assert partition is not None, "records and errors of partitions have one"
            if error is None:
                self.at_end.pop(partition, None)
                found.setdefault(partition, []).append(record)
            elif error.code() == KafkaError._PARTITION_EOF:
                self.at_end[partition] = record.offset() or 0
            elif error.code() not in MENDED:
                self._failure = self._explained(error, partition)
                if not found:
                    raise self._failure
                break
        return found

    def _explained(self, error: KafkaError, partition: int) -> LedgerMQError:
        if error.code() in LOST:
            return SourceMovedError(
                f"partition {partition} of topic {self.topic} cannot be read on: {error.str()}"
            )
        if error.code() == KafkaError._BAD_MSG:
            return LogDamagedError(f"{self.topic}-{partition}", error.str())
        return denied(error, self.topic, "Read") or BrokerUnavailableError(
            f"partition {partition} of topic {self.topic} cannot be read: {error.str()}; run it "
            "again when Kafka answers"
        )

    def close(self) -> None:
        """Ends it."""
        if isinstance(self._failure, LogDamagedError):
            close_aside(self._consumer)
        else:
            self._consumer.close()
