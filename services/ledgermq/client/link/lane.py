"""The way back: reads one outcome lane and keeps only this connection's records (PROTOCOL.md §7,
H17).
"""

from __future__ import annotations

import logging
import random
from functools import partial
from typing import Final

from confluent_kafka import (
    TIMESTAMP_LOG_APPEND_TIME,
    Consumer,
    KafkaError,
    KafkaException,
    TopicPartition,
)

from ledgermq.client.link.broker_news import BrokerNews
from ledgermq.client.link.transport import kafka_common
from ledgermq.client.sansio.log_clock import LogClock
from ledgermq.client.settings import ConnectionSettings
from ledgermq.errors import BrokerUnavailableError, LedgerMQError, LogError
from ledgermq.wire.framing.confluent import value_of
from ledgermq.wire.kafka.access import ask, denied, partition_count_of, text_of
from ledgermq.wire.topics.log_topics import lane_partition
from ledgermq.wire.topics.reading import close_aside, offsets_of
from ledgermq.wire.topics.registry import Claim

LOGGER = logging.getLogger("ledgermq.client")
RECORDS_PER_READ: Final = 500
# What Kafka answers at once, if one batch of records is not larger. A slow link must carry that
# before the answer is given up: else it would be asked for again, for ever.
FETCH_BYTES: Final = 1024 * 1024
# It is asked for again, and whoever closes the connection waits for the answer.
FIND_END_SECONDS: Final = 2.0
PASSING: Final = frozenset(
    {KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._TIMED_OUT}
)


class LaneReader:
    """The lane of a `Route` over Kafka, read from where it ends now; by one thread at a time."""

    def __init__(self, settings: ConnectionSettings, news: BrokerNews) -> None:
        self._news = news
        self._settings = settings
        self._topic = settings.topics.outcomes
        self._key = settings.identity.hex().encode()
        self._partition = -1
        self._clock = LogClock()
        # Whether the lane went on without us; librdkafka reads nothing then until it is told where.
        self._is_lost = False
        # Whether it met a damaged record, and librdkafka has not found its way on since.
        self._is_at_damage = False
        self.lane = -1
        self._consumer = Consumer(
            kafka_common(settings, self._news)
            | {
                "group.id": f"ledgermq-lane-{settings.identity.hex()}",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "isolation.level": "read_uncommitted",
                # A record whose bytes a disk has changed is a hole, which is caught up.
                "check.crcs": True,
                "fetch.min.bytes": 1,
                "fetch.wait.max.ms": 500,
                "fetch.error.backoff.ms": 50,
                "fetch.message.max.bytes": FETCH_BYTES,
                "receive.message.max.bytes": 80 * 1024 * 1024,
            },
            logger=self._news,
        )

    def check_broker(self, timeout_seconds: float) -> None:
        """Raises BrokerUnavailableError if no broker answers, LogError without the topics.

        AuthenticationFailedError or AccessDeniedError if it does not let us in. Whoever finds the
        queue manager looks after the other topics.
        """
        bootstrap, kafka = self._settings.bootstrap, self._settings.kafka
        reports = self._news.reports
        topics = self._settings.topics
        for name in (topics.outcomes, topics.questions):
            try:
                found = ask(
                    partial(partition_count_of, self._consumer, name, kafka=kafka),
                    self._consumer.poll,
                    reports,
                    timeout_seconds,
                )
            except KafkaException as error:
                raise BrokerUnavailableError(
                    f"no Kafka broker answers at {bootstrap} ({text_of(error, reports)}): "
                    "start it (`ledgermq up`), or check the address"
                ) from error
            if not found:
                raise LogError(
                    f"the broker at {bootstrap} has no topic {name}: start a worker, which "
                    f"creates the topics, or check the topic prefix ({topics.prefix!r} now)"
                )

    def start(self, claim: Claim, timeout_seconds: float) -> None:
        """Picks a lane at random and reads from its end on.

        The shortest lane would be the same one for all who connect before it is written to.
        """
        self.lane = random.randrange(claim.lanes)
        self._partition = lane_partition(claim.partition, claim.lanes, self.lane)
        self._go_to_end(timeout_seconds)

    def _go_to_end(self, timeout_seconds: float) -> None:
        lane = TopicPartition(self._topic, self._partition)
        try:
            _, lane.offset = offsets_of(self._consumer, lane, timeout_seconds, self._settings.kafka)
        except KafkaException as error:
            refused = denied(error.args[0], self._topic, "Read", self._settings.kafka)
            if refused is not None:
                raise refused from error
            raise BrokerUnavailableError(
                f"partition {self._partition} of topic {self._topic} cannot be read: "
                f"{error.args[0].str()}; connect again when Kafka answers"
            ) from error
        self._consumer.assign([lane])

    def read(self, timeout_seconds: float) -> tuple[list[bytes], bool]:
        consumer = self._consumer
        if self._is_lost:
            return [], self._found_end()
        first = consumer.poll(timeout_seconds)
        if first is None:
            return [], False
        records = [first, *consumer.consume(RECORDS_PER_READ, 0)]
        key = self._key
        values: list[bytes] = []
        for record in records:
            error = record.error()
            if error is not None:
                self._cope(error)
                continue
            self._news.well()
            self._is_at_damage = False
            stamp, appended_ms = record.timestamp()
            if stamp == TIMESTAMP_LOG_APPEND_TIME:
                self._clock.note(appended_ms * 1000)
            if record.key() == key:
                value = value_of(record)
                if value is not None:
                    values.append(value)
        return values, False

    def log_time(self) -> int:
        return self._clock.now_us()

    def _found_end(self) -> bool:
        """Goes on from the lane's end; False: Kafka does not tell it, and is asked again."""
        try:
            self._go_to_end(FIND_END_SECONDS)
        except BrokerUnavailableError as error:
            self._news.trouble(str(error))
        except LedgerMQError as error:
            self._news.refused = self._news.refused or error
        else:
            self._is_lost = False
        return not self._is_lost

    def _cope(self, error: KafkaError) -> None:
        if error.code() in PASSING:
            self._news.trouble(error.str())
            return
        # A group must be named, and nothing is done with it.
        if error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
            return
        self._news.note_refusal(error, self._topic, "Read")
        self._is_at_damage = error.code() == KafkaError._BAD_MSG
        if error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
            LOGGER.warning(
                "lane %s-%s went on without us; catching up", self._topic, self._partition
            )
            self._is_lost = True
        else:
            LOGGER.warning("lane %s-%s: %s", self._topic, self._partition, error.str())

    def close(self) -> None:
        if self._is_at_damage:
            close_aside(self._consumer)
        else:
            self._consumer.close()
