"""The feed: records of the partitions that are owned, read by librdkafka in a thread of its own.

Faust's own way of reading (aiokafka, parsed in Python in a second event loop) added a
millisecond to every operation and took half of the worker's processor time. Faust still decides
which partitions this worker has; the feed only fetches them. Nothing here is kept: what was read
for an earlier wish is told from later records by its epoch, and dropped.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

from confluent_kafka import (
    OFFSET_END,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)
from faust.types import TP

from ledgermq.errors import LedgerMQError
from ledgermq.processor.worker.logs import KAFKA_LOGGER
from ledgermq.wire.framing.confluent import headers_of, value_of
from ledgermq.wire.kafka.access import denied
from ledgermq.wire.topics.reading import LogDamagedError, reader_settings

log = logging.getLogger(__name__)

POLL_SECONDS = 0.05
RECORDS_MAX = 2000
CROWD_RECORDS = 4
GATHER_SECONDS = 0.001
WAITING_RECORDS_MAX = 20_000
WAITING_BYTES_MAX = 32 * 1024 * 1024
DAMAGE_PAUSE_SECONDS = 5.0
LEADER_SECONDS = 1.0
FETCH_BYTES = 8 * 1024 * 1024 + 64 * 1024


class FeedError(LedgerMQError):
    code = "record-missing"


class LogRecord:
    """A record of the log, as the fold wants it; headers are looked up only when asked for."""

    __slots__ = ("_message", "offset", "timestamp", "timestamp_type", "value")

    def __init__(self, message: Message) -> None:
        kind, self.timestamp = message.timestamp()
        # librdkafka counts creation time as 1 and log-append time as 2, Kafka as 0 and 1.
        self.timestamp_type = kind - 1
        self.offset = message.offset() or 0
        self.value = value_of(message)
        self._message = message

    @property
    def headers(self) -> list[tuple[str, bytes | None]]:
        return headers_of(self._message)


class Batch(NamedTuple):
    """Records of one partition that one poll brought, and where the partition ended then.

    Where the end is asked for (`enable.partition.eof`), there may be none: only `next_offset` tells
    that all was read, since behind a Kafka transaction stand no records.
    """

    tp: TP
    records: list[LogRecord]
    size_bytes: int
    end_offset: int
    next_offset: int


class RecordFeed:
    """Reads partitions from where it is told; used from one event loop.

    `arrived` is called in that loop when there is something to take, or to be raised by `check`.
    Before a damaged record it waits, and tries again, unless it is to skip to the partition's end.
    Of a partition that does not have the record to be read next `missing` is told; without it,
    `check` raises that.
    """

    def __init__(
        self,
        bootstrap: str,
        arrived: Callable[[], None],
        name: str = "feed",
        more: Mapping[str, Any] | None = None,
        *,
        skips_damage: bool = False,
        missing: Callable[[TP, FeedError], None] | None = None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._arrived = arrived
        self._waiting: deque[tuple[int, Batch]] = deque()
        self._waiting_records = self._waiting_bytes = 0
        self._epochs: dict[TP, int] = {}
        self._skips_damage = skips_damage
        self._missing = missing
        # The epochs of what the thread reads, where it reads on, and when it reads again what was
        # damaged.
        self._reading: dict[TP, int] = {}
        self._next: dict[TP, int] = {}
        self._damaged: dict[TP, float] = {}
        self._known_topics: set[str] = set()
        # Of which nothing was read since.
        self._stumbled: set[TP] = set()
        self._wishes: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._room = threading.Event()
        self._room.set()
        self._stopped = False
        self._failed: LedgerMQError | None = None
        self._consumer = Consumer(
            reader_settings(
                bootstrap,
                name,
                {
                    "fetch.wait.max.ms": 100,
                    "fetch.message.max.bytes": FETCH_BYTES,
                    "queued.max.messages.kbytes": 32 * 1024,
                    # With the default of a second, a full queue would stall the fold.
                    "fetch.queue.backoff.ms": 2,
                    "log_level": 3,
                    **(more or {}),
                },
            ),
            logger=KAFKA_LOGGER,
        )
        self._thread = threading.Thread(target=self._run, name=f"record-{name}", daemon=True)
        self._thread.start()

    def read_from(self, tp: TP, offset: int) -> None:
        self._wishes.put(partial(self._begin, tp, self._new_epoch(tp), offset))

    def leave(self, tp: TP) -> None:
        self._new_epoch(tp)
        self._wishes.put(partial(self._end, tp))

    def hold(self, tp: TP) -> None:
        """Holds a partition back; what was fetched of it stays where it is."""
        self._wishes.put(partial(self._let, self._consumer.pause, tp))

    def go_on(self, tp: TP) -> None:
        self._wishes.put(partial(self._let, self._consumer.resume, tp))

    def _new_epoch(self, tp: TP) -> int:
        epoch = self._epochs[tp] = self._epochs.get(tp, 0) + 1
        return epoch

    def check(self) -> None:
        """Raises FeedError if the log does not have what must be read next.

        AccessDeniedError if Kafka does not let us read it.
        """
        if self._failed is not None:
            raise self._failed

    def take(self) -> Batch | None:
        while self._waiting:
            epoch, batch = self._waiting.popleft()
            self._waiting_records -= len(batch.records)
            self._waiting_bytes -= batch.size_bytes
            if not self._is_full(share=0.5):
                self._room.set()
            if self._epochs.get(batch.tp) == epoch:
                return batch
        return None

    def _is_full(self, share: float) -> bool:
        """Whether more waits to be taken than a share of what may."""
        return (
            self._waiting_records > WAITING_RECORDS_MAX * share
            or self._waiting_bytes > WAITING_BYTES_MAX * share
        )

    async def stop(self) -> None:
        self._stopped = True
        self._room.set()
        await asyncio.to_thread(self._thread.join, 10.0)

    # The thread ---------------------------------------------------------------------------------

    def _run(self) -> None:
        count = 0
        while not self._stopped:
            self._fulfil()
            first = self._consumer.poll(POLL_SECONDS)
            if first is None:
                continue
            crowd = count >= CROWD_RECORDS
            found = [first, *self._consumer.consume(RECORDS_MAX, GATHER_SECONDS if crowd else 0)]
            count = len(found)
            self._hand_over(found)
            if self._is_full(share=1.0):
                self._room.clear()
                self._room.wait(1.0)
        self._consumer.close()

    def _fulfil(self) -> None:
        """Turns wishes into assignments, between two polls, so that no record is mistaken."""
        while True:
            try:
                wish = self._wishes.get_nowait()
            except Empty:
                self._read_damaged_again()
                return
            wish()

    def _begin(self, tp: TP, epoch: int, offset: int) -> None:
        self._end(tp)
        self._read(tp, offset)
        self._reading[tp] = epoch

    def _end(self, tp: TP) -> None:
        if self._reading.pop(tp, None) is not None:
            self._leave(tp)

    def _let(self, change: Callable[[list[TopicPartition]], None], tp: TP) -> None:
        if tp in self._reading and tp not in self._damaged:
            change([TopicPartition(*tp)])

    def _read(self, tp: TP, offset: int) -> None:
        if tp.topic not in self._known_topics:
            # Of a topic that it has not heard of, librdkafka learns who leads it when it next looks
            # after all of its topics, which is once a second.
            with suppress(KafkaException):
                self._consumer.list_topics(tp.topic, timeout=LEADER_SECONDS)
            self._known_topics.add(tp.topic)
        self._consumer.incremental_assign([TopicPartition(*tp, offset)])
        self._next[tp] = offset

    def _leave(self, tp: TP) -> None:
        if self._damaged.pop(tp, None) is None:
            self._consumer.incremental_unassign([TopicPartition(*tp)])

    def _stop_at_damage(self, tp: TP, before: list[LogRecord], error: KafkaError) -> None:
        """Leaves a partition for a moment: librdkafka does not find on behind a damaged record."""
        self._leave(tp)
        if before:
            self._next[tp] = before[-1].offset + 1
        self._damaged[tp] = time.monotonic() + DAMAGE_PAUSE_SECONDS
        if tp not in self._stumbled:
            self._stumbled.add(tp)
            log.warning("%s", LogDamagedError(f"{tp.topic}-{tp.partition}", error.str()))
        if self._skips_damage:
            self._next[tp] = OFFSET_END

    def _is_stale(self, tp: TP, message: Message) -> bool:
        """Whether it is about a place that librdkafka took out of a damaged record."""
        return tp in self._stumbled and message.offset() != self._next[tp]

    def _read_damaged_again(self) -> None:
        for tp, at in list(self._damaged.items()):
            if time.monotonic() >= at:
                del self._damaged[tp]
                self._read(tp, self._next[tp])

    def _hand_over(self, messages: list[Message]) -> None:
        epochs = self._reading
        batches: dict[TP, list[LogRecord]] = {}
        ends: dict[TP, int] = {}
        for message in messages:
            error = message.error()
            tp = TP(message.topic() or "", message.partition() or 0)
            if tp in self._damaged:
                continue
            if error is None:
                if tp in epochs:
                    batches.setdefault(tp, []).append(LogRecord(message))
            elif error.code() == KafkaError._BAD_MSG and tp in epochs:
                self._stop_at_damage(tp, batches.get(tp, []), error)
            elif error.code() != KafkaError._PARTITION_EOF:
                self._report(tp, message, error, epochs.get(tp, -1))
            elif tp in epochs:
                ends[tp] = message.offset() or 0
                batches.setdefault(tp, [])
        if batches:
            found = [
                (epochs[tp], self._batch(tp, records, ends.get(tp, 0)))
                for tp, records in batches.items()
            ]
            self._loop.call_soon_threadsafe(self._take_over, found)

    def _batch(self, tp: TP, records: list[LogRecord], read_to: int) -> Batch:
        if records:
            read_to = max(read_to, records[-1].offset + 1)
            if tp not in self._damaged:
                self._next[tp] = read_to
                self._stumbled.discard(tp)
        return Batch(tp, records, _size_of(records), self._end_of(tp), read_to)

    def _end_of(self, tp: TP) -> int:
        offsets = self._consumer.get_watermark_offsets(TopicPartition(*tp), cached=True)
        return -1 if offsets is None else int(offsets[1])

    def _report(self, tp: TP, message: Message, error: KafkaError, epoch: int) -> None:
        """Tells what the log does not have, or not for us; librdkafka mends the rest."""
        failed: LedgerMQError | None = None
        if error.code() == KafkaError._AUTO_OFFSET_RESET:
            if self._is_stale(tp, message):
                return
            failed = FeedError(
                f"{tp.topic}-{tp.partition} does not have the record that must be "
                f"folded next ({error.str()}): the log was cut. Restore it; what was "
                "acknowledged before must be there."
            )
        elif error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            failed = denied(error, tp.topic, "Read")
        if failed is not None:
            self._loop.call_soon_threadsafe(self._fail, failed, tp, epoch)

    # Back in the event loop ---------------------------------------------------------------------

    def _take_over(self, found: list[tuple[int, Batch]]) -> None:
        for epoch, batch in found:
            self._waiting.append((epoch, batch))
            self._waiting_records += len(batch.records)
            self._waiting_bytes += batch.size_bytes
        self._arrived()

    def _fail(self, failed: LedgerMQError, tp: TP, epoch: int) -> None:
        if self._missing is None or not isinstance(failed, FeedError):
            self._failed = failed
            self._arrived()
        elif self._epochs.get(tp) == epoch:
            self._missing(tp, failed)


def _size_of(records: list[LogRecord]) -> int:
    return sum([len(record.value or b"") for record in records])
