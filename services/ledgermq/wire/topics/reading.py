"""Reading log topics outside any consumer group: ends, single records, ranges of a partition."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Self, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from ledgermq.errors import LedgerMQError
from ledgermq.wire.framing.confluent import value_of
from ledgermq.wire.kafka.access import (
    COMING_UP,
    Reports,
    ask,
    denied,
    partition_count_of,
    text_of,
)
from ledgermq.wire.kafka.settings import (
    ANSWERED_WITHIN_MS,
    CONNECTION_LIMITS,
    KafkaSettings,
    client_options,
    kafka_settings,
)

RECORDS_MAX = 1_000
# librdkafka mends these by itself; and the group that it wants to be named needs no rights.
MENDED = (
    KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
)
AGAIN_SECONDS = 0.1
# How long librdkafka takes at most to find an offset out of range.
SETTLES_SECONDS = 1.0

T = TypeVar("T")


class LogUnreadableError(LedgerMQError):
    code = "log-unreadable"


class LogDamagedError(LogUnreadableError):
    """A record has another checksum than when it was written."""

    code = "log-damaged"

    def __init__(self, where: str, details: str) -> None:
        super().__init__(
            f"{where} holds a record that is damaged: {details}. Where the partition has replicas, "
            "stop the broker that leads it, delete its directory of the partition and start it: it "
            "copies the records of another one. Else restore them from a backup of the broker's "
            "data; docs/operations.md has what goes on without"
        )


class BodyLostError(LedgerMQError):
    """The operations log does not have a body any more, or not as it was.

    Attributes:
        is_cut: Whether the log begins behind it.
    """

    code = "body-lost"

    def __init__(self, text: str, *, is_cut: bool = False) -> None:
        super().__init__(text)
        self.is_cut = is_cut


def reader_settings(
    bootstrap: str, name: str, more: Mapping[str, Any], kafka: KafkaSettings | None = None
) -> dict[str, Any]:
    """Settings of a consumer that chooses its partitions itself and commits nothing."""
    own = {
        # librdkafka wants a group to be named, although nothing is done with it.
        "group.id": f"ledgermq-{name}",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "error",
        # By default librdkafka hides what an aborted transaction wrote, and waits for the end of
        # one that is open.
        "isolation.level": "read_uncommitted",
        # A disk may give back other bytes than it was given.
        "check.crcs": True,
        **CONNECTION_LIMITS,
        "log_level": 0,
        **more,
    }
    return client_options(bootstrap, own, kafka)


def offsets_of(
    consumer: Consumer,
    partition: TopicPartition,
    timeout_seconds: float,
    kafka: KafkaSettings | None = None,
) -> tuple[int, int]:
    """First offset and end offset, asked for again while a broker comes up.

    Raises:
        KafkaException: Kafka did not answer in time.
        AccessDeniedError: It does not let us know of the topic.
    """

    def ends(left: float) -> tuple[int, int]:
        first, end = consumer.get_watermark_offsets(partition, timeout=left)
        return int(first), int(end)

    return _ask_while_it_comes_up(ends, consumer, partition.topic, timeout_seconds, kafka)


def offset_at(
    consumer: Consumer, partition: TopicPartition, time_ms: int, timeout_seconds: float
) -> int:
    """The first offset whose record is of a time or later, or the end; asked for likewise.

    Raises:
        KafkaException: Kafka did not answer in time.
        AccessDeniedError: It does not let us know of the topic.
    """
    wanted = TopicPartition(partition.topic, partition.partition, time_ms)

    def found(left: float) -> int:
        answer = consumer.offsets_for_times([wanted], timeout=left)[0]
        if answer.error is not None:
            raise KafkaException(answer.error)
        return answer.offset

    offset = _ask_while_it_comes_up(found, consumer, partition.topic, timeout_seconds, None)
    # librdkafka's word for the end is a negative number.
    return offset if offset >= 0 else offsets_of(consumer, partition, timeout_seconds)[1]


def _ask_while_it_comes_up(
    question: Callable[[float], T],
    consumer: Consumer,
    topic: str,
    timeout_seconds: float,
    kafka: KafkaSettings | None,
) -> T:
    limit = time.monotonic() + timeout_seconds
    while True:
        left = max(AGAIN_SECONDS, limit - time.monotonic())
        try:
            return question(left)
        except KafkaException as error:
            if error.args[0].code() not in COMING_UP or time.monotonic() >= limit:
                raise
            time.sleep(AGAIN_SECONDS)
            # Has librdkafka ask for the topic: what it does not know it takes for what never is.
            with suppress(KafkaException):
                partition_count_of(consumer, topic, left, kafka)


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


def latest_values(records: Iterable[Message]) -> dict[bytes, bytes]:
    """What a compacted topic says: the last value of each key, of those that have one."""
    found: dict[bytes, bytes] = {}
    for record in records:
        key, value = record.key(), record.value()
        if key is not None:
            found.pop(key, None)
        if key is not None and value is not None:
            found[key] = value
    return found


def close_aside(consumer: Consumer) -> None:
    """Closes a consumer that met a damaged record, in a thread that nobody waits for.

    librdkafka goes on at an offset that it takes out of the damaged bytes. If it is closed before
    it has found that out of range, its threads may wait for each other for ever: so did a few of
    a thousand (librdkafka 2.16), and none that had said so.
    """

    def close() -> None:
        limit = time.monotonic() + SETTLES_SECONDS
        while time.monotonic() < limit:
            found = consumer.poll(AGAIN_SECONDS)
            error = None if found is None else found.error()
            if error is not None and error.code() == KafkaError._AUTO_OFFSET_RESET:
                break
        consumer.close()

    threading.Thread(target=close, name="closing-reader", daemon=True).start()


class PartitionReader:
    """Reads any partition; for one thread at a time. What librdkafka logs goes to `logger`.

    Values are in single-object framing, or `as_written`. An answer is waited for no longer than
    `answered_within_ms`, in which the largest record must come through the network.
    Whatever it is asked, it raises AuthenticationFailedError if Kafka does not let us in, and
    AccessDeniedError if it does not let us read.
    """

    def __init__(
        self,
        bootstrap: str,
        timeout_seconds: float,
        logger: logging.Logger | None = None,
        kafka: KafkaSettings | None = None,
        *,
        as_written: bool = False,
        answered_within_ms: int = ANSWERED_WITHIN_MS,
    ) -> None:
        self._as_written = as_written
        self._timeout_seconds = timeout_seconds
        self._logger = logger
        self._kafka = kafka_settings() if kafka is None else kafka
        self._reports = Reports(self._kafka, bootstrap)
        self._settings = reader_settings(
            bootstrap,
            "reader",
            {
                "enable.partition.eof": True,
                # The end is only reported when a fetch that waits for more comes back empty.
                "fetch.wait.max.ms": 10,
                "queued.max.messages.kbytes": 65_536,
                "socket.timeout.ms": answered_within_ms,
                "error_cb": self._reports,
            },
            self._kafka,
        )
        self._consumer = self._made()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        self._consumer.close()

    def _made(self) -> Consumer:
        if self._logger is None:
            return Consumer(self._settings)
        return Consumer({**self._settings, "log_level": 3}, logger=self._logger)

    def partition_count(self, topic: str) -> int:
        """0 if there is no such topic; LogUnreadableError if Kafka does not answer."""
        try:
            return self._ask(
                lambda seconds: partition_count_of(self._consumer, topic, seconds, self._kafka)
            )
        except KafkaException as error:
            raise LogUnreadableError(text_of(error, self._reports)) from error

    def _ask(self, question: Callable[[float], T]) -> T:
        return ask(question, self._consumer.poll, self._reports, self._timeout_seconds)

    def ends(self, topic: str, partition: int) -> tuple[int, int]:
        """First offset and end offset; LogUnreadableError if Kafka does not answer."""
        wanted = TopicPartition(topic, partition)
        try:
            return self._ask(
                lambda seconds: offsets_of(self._consumer, wanted, seconds, self._kafka)
            )
        except KafkaException as error:
            raise denied(error.args[0], topic, "Describe", self._kafka) or LogUnreadableError(
                f"{topic}-{partition} does not answer: {text_of(error, self._reports)}"
            ) from error

    def records(
        self, topic: str, partition: int, start: int, end: int | None = None
    ) -> Iterator[Message]:
        """The records from one offset on up to another, not included, or to the end of the log.

        Raises:
            LogUnreadableError: Kafka did not answer in time, or a record is damaged.
            AccessDeniedError: We may not read the topic.
        """
        if end is not None and start >= end:
            return
        self._consumer.assign([TopicPartition(topic, partition, start)])
        self._reports.refused = None
        waiting = 0.0
        while True:
            batch = take_batch(self._consumer, RECORDS_MAX, 1.0, as_written=self._as_written)
            waiting = 0.0 if batch else waiting + 1.0
            if not batch and self._reports.refused is not None:
                raise self._reports.refused
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
                elif error.code() == KafkaError._BAD_MSG:
                    # Of what is read next, too, it would be told what was out of range here.
                    close_aside(self._consumer)
                    self._consumer = self._made()
                    raise LogDamagedError(f"{topic}-{partition}", error.str())
                elif error.code() not in MENDED:
                    raise denied(error, topic, "Read", self._kafka) or LogUnreadableError(
                        f"{topic}-{partition}: {error.str()}"
                    )

    def record_at(self, topic: str, partition: int, offset: int) -> Message | None:
        """The record at an offset, or None if the log does not hold it."""
        first, end = self.ends(topic, partition)
        if not first <= offset < end:
            return None
        return next(self.records(topic, partition, offset, offset + 1), None)
