"""Positions and times: what of the log a job reads, pinned before Spark starts reading."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from operator import index
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition

from ledgermq.digits import is_whole
from ledgermq.errors import LedgerMQError
from ledgermq.protocol.instants import EPOCH, utc_text
from ledgermq.wire.kafka.access import check_rights, raise_if_denied
from ledgermq.wire.kafka.settings import kafka_settings
from ledgermq.wire.topics.log_topics import Topics
from ledgermq.wire.topics.reading import reader_settings
from ledgermq.wire.topics.registry import Claim, RegistryError, find_queue_manager

REQUEST_TIMEOUT_SECONDS = 20.0
TRIMMED = "what stood before it was trimmed, an archive of it may have that"


class LogUnreachableError(LedgerMQError):
    """The Kafka cluster did not answer, or the log topic does not exist there."""

    code = "log-unreachable"


class PositionOutOfRangeError(LedgerMQError):
    """The position or time asked for lies before the log's start or after its end."""

    code = "position-out-of-range"


class Position(int):
    """A log position as it was written: `queue_manager` is whose, empty where none was named."""

    queue_manager: str = ""

    def is_of(self, queue_manager: str) -> bool:
        """Whether it can be one on that queue manager's log."""
        return self.queue_manager in ("", queue_manager)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRange:
    """Offsets of one partition that a job reads: from `start` up to, not including, `end`."""

    topic: str
    partition: int
    start: int
    end: int


@contextmanager
def reading(bootstrap: str) -> Iterator[Any]:
    """A consumer of the log, closed in the end.

    Raises:
        LogUnreachableError: The cluster does not answer.
    """
    consumer = log_consumer(bootstrap)
    try:
        yield consumer
    except KafkaException as cause:
        raise LogUnreachableError(
            f"the Kafka cluster at {bootstrap} does not answer: {cause.args[0]}"
        ) from cause
    finally:
        consumer.close()


def cut_meanwhile(where: str, position: int) -> PositionOutOfRangeError:
    """The error for a position that was there when a job began."""
    return PositionOutOfRangeError(
        f"{where} was cut while this read it, by `ledgermq log trim` or because its time is over: "
        f"position {position} was there, and is gone. Call the command again: it begins with what "
        "is left now"
    )


def refuse_trimmed(log: PartitionRange, queue_manager: str) -> None:
    """PositionOutOfRangeError: the beginning of a log is gone, and tables need all of it."""
    if log.start > 0:
        raise PositionOutOfRangeError(
            f"the log of {queue_manager} begins at position {log.start}: its tables need all "
            "of it, from position 0; an archive of it may have that (--archive)"
        )


def locate(bootstrap: str, topics: Topics, queue_manager: str) -> tuple[Claim, PartitionRange]:
    """The claim of a queue manager and what stands on its partition of the operations topic.

    Raises:
        QueueManagerNotFoundError: Nobody claimed that name.
        LogUnreachableError: The cluster does not answer, or lacks the topics.
    """
    try:
        claim = find_queue_manager(bootstrap, topics, queue_manager)
    except RegistryError as error:
        raise LogUnreachableError(str(error)) from error
    (log,) = partition_ranges(bootstrap, topics.operations, [claim.partition])
    return claim, log


def partition_ranges(bootstrap: str, topic: str, partitions: list[int]) -> list[PartitionRange]:
    """Resolve what stands on partitions now: first retained offset and the one after the last.

    Raises:
        LogUnreachableError: The cluster does not answer, or has no such topic or partition.
    """
    with reading(bootstrap) as consumer:
        metadata = consumer.list_topics(topic, timeout=REQUEST_TIMEOUT_SECONDS).topics.get(topic)
        if metadata is not None and metadata.error is not None:
            raise_if_denied(KafkaException(metadata.error), topic, "Read")
        if kafka_settings().protocol != "PLAINTEXT":
            # Spark tells it badly.
            check_rights(bootstrap, topic, ["Read"], REQUEST_TIMEOUT_SECONDS)
        if metadata is None or metadata.error is not None:
            raise LogUnreachableError(
                f"log topic {topic} does not exist at {bootstrap}; check the address and the "
                "topic prefix"
            )
        missing = [number for number in partitions if number not in metadata.partitions]
        if missing:
            raise LogUnreachableError(
                f"log topic {topic} has {len(metadata.partitions)} partitions, none numbered "
                f"{missing[0]}; the topics of this cluster do not belong together"
            )
        ranges = []
        for number in partitions:
            place = TopicPartition(topic, number)
            start, end = consumer.get_watermark_offsets(place, timeout=REQUEST_TIMEOUT_SECONDS)
            ranges.append(PartitionRange(topic=topic, partition=number, start=start, end=end))
        return ranges


def parse_moment(text: str) -> Position | datetime:
    """Read what `--at` says: a position (`1234` or `QM1@1234`) or a time (ISO 8601, UTC if bare).

    Raises:
        PositionOutOfRangeError: The text is neither.
    """
    name, _, number = (part.strip() for part in text.rpartition("@"))
    if is_whole(number):
        position = Position(number)
        position.queue_manager = name
        return position
    try:
        return instant_of(text.strip())
    except ValueError:
        raise PositionOutOfRangeError(
            f"{text!r} is neither a log position (1234, QM1@1234) nor a time (2026-11-20T10:00:00Z)"
        ) from None


def instant_of(text: str) -> datetime:
    """Read a time in ISO 8601, in UTC if it has no zone; ValueError if it is none."""
    moment = datetime.fromisoformat(text)
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    try:
        # Some hours of the first and of the last year are none in UTC.
        moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError(str(error)) from error
    return moment


def moment_of(at: Any) -> int | datetime | None:
    """A moment as a program gives it: a position, an aware datetime, a text of either, or None.

    Raises:
        PositionOutOfRangeError: It is none of these. A datetime without a zone may be in that of
            this machine, as Spark hands times over, or in UTC, and would mean another record.
    """
    if isinstance(at, str):
        return parse_moment(at)
    if at is None or isinstance(at, Position):
        return at
    if isinstance(at, datetime):
        if at.tzinfo is None:
            raise PositionOutOfRangeError(
                f"{at.isoformat()} has no time zone: give an aware datetime, such as "
                f"datetime.fromisoformat('{at.isoformat()}Z'), or this text for a time in UTC"
            )
        return at
    try:
        if isinstance(at, bool):
            raise TypeError
        return index(at)
    except TypeError:
        raise PositionOutOfRangeError(
            f"{at!r} is no moment of a log: give a position, an aware datetime, or a text such as "
            "2026-11-20T10:00:00Z"
        ) from None


def last_ms(moment: datetime, *, before: bool) -> int:
    """The last time in ms since 1970 that is not after a moment, or is `before` it.

    Records have times in whole milliseconds.
    """
    since = moment - EPOCH
    return (since - timedelta(microseconds=1) if before else since) // timedelta(milliseconds=1)


def resolve_at(
    bootstrap: str,
    log: PartitionRange,
    at: int | datetime | str | None,
    *,
    before: bool = False,
    queue_manager: str = "",
) -> int:
    """Turn a position, a time or nothing (the end of the log) into a log position.

    A time means the last record appended at or before it, or with `before` before it, and before
    any that was appended later: where a clock had leapt ahead, those behind that are not meant.
    Returns -1 only for an empty log without a moment asked for, or with `before` of a whole log's
    first record.

    Raises:
        PositionOutOfRangeError: The moment lies before the log's start or after its end, or names
            another queue manager than the one that is given.
        LogUnreachableError: The cluster does not answer.
    """
    moment = moment_of(at)
    if queue_manager and isinstance(moment, Position) and not moment.is_of(queue_manager):
        raise PositionOutOfRangeError(other_log(moment, queue_manager))
    last = log.end - 1
    if moment is None:
        return last
    where = f"log topic {log.topic} partition {log.partition}"
    if log.end == log.start:
        raise PositionOutOfRangeError(f"{where} holds no records: no moment lies on it")
    if isinstance(moment, datetime):
        return _last_position_by(bootstrap, log, moment, where, before=before)
    if moment < log.start:
        raise PositionOutOfRangeError(
            f"position {moment} lies before the start of the log: {where} begins at {log.start}"
            + (f"; {TRIMMED}" if moment >= 0 else "")
        )
    if moment > last:
        raise PositionOutOfRangeError(
            f"position {moment} lies after the end of the log: the last record of {where} is {last}"
        )
    return int(moment)


def other_log(moment: Position, queue_manager: str) -> str:
    """What is said of a position on another queue manager's log than the one that is asked."""
    return (
        f"{moment.queue_manager}@{moment} is a position on the log of {moment.queue_manager}, and "
        f"this is {queue_manager}: name that queue manager, or a position of this one"
    )


def before_first(time: str, where: str, first: int) -> PositionOutOfRangeError:
    """The error for a time before all that there is; `first` is the first position."""
    return PositionOutOfRangeError(
        f"{time} lies before the first record of {where}: name position {first}, or a later time"
        f"{f'; {TRIMMED}' if first else ''}"
    )


def _last_position_by(
    bootstrap: str, log: PartitionRange, moment: datetime, where: str, *, before: bool
) -> int:
    text = utc_text(moment)
    if moment > datetime.now(UTC):
        raise PositionOutOfRangeError(
            f"{text} lies in the future: {where} ends at position {log.end - 1}; where log time "
            "is or was ahead of the clock, name a position in place of a time that it told"
        )
    # Asks for the first record that was appended after the moment, or at it.
    # Kafka takes times before 1970 for the beginning or the end.
    asked_ms = max(0, last_ms(moment, before=before) + 1)
    wanted = TopicPartition(log.topic, log.partition, asked_ms)
    with reading(bootstrap) as consumer:
        answer = consumer.offsets_for_times([wanted], timeout=REQUEST_TIMEOUT_SECONDS)[0]
    after = answer.offset if 0 <= answer.offset < log.end else log.end
    if after <= log.start and not (before and log.start == 0):
        raise before_first(text, where, log.start)
    return after - 1


def log_consumer(bootstrap: str) -> Any:
    """A consumer that looks at places of the log, and reads little of what stands there."""
    return Consumer(
        reader_settings(
            bootstrap,
            "spark",
            {
                "fetch.message.max.bytes": 65_536,
                "queued.min.messages": 1,
                "allow.auto.create.topics": False,
            },
        )
    )
