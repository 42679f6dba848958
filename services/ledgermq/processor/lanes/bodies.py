"""Bodies of messages: a bounded cache, and reading the others back from the log (D6).

The state knows where a body stands: (put position, put index), or where it was written again
(H24). A Put stays here as it was decoded until others were used more recently. What has left the
cache is read back from the operations log in order; the reader fetches ahead, so that draining a
deep queue costs one seek, not one per message. In logical order a delivery wants bodies from all
over the log; the Puts that it is read from hold those of the groups that come next too.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from confluent_kafka import Consumer, KafkaError, TopicPartition

from ledgermq.processor.worker.logs import KAFKA_LOGGER
from ledgermq.protocol.administration import bodies_in
from ledgermq.protocol.operations import PutMessage
from ledgermq.protocol.outcomes import DeliveredMessage, body_place
from ledgermq.wire.framing.codec import decode_operation
from ledgermq.wire.kafka.access import denied
from ledgermq.wire.topics.ledger import Ledger
from ledgermq.wire.topics.reading import (
    MENDED,
    BodyLostError,
    LogUnreadableError,
    close_aside,
    reader_settings,
    take_batch,
)

log = logging.getLogger(__name__)

# What a Put and each of its messages cost in memory beside their bytes.
PUT_BYTES = 300
MESSAGE_BYTES = 40
# A reader that is not asked for this long lets go of its connection and its prefetched records.
IDLE_SECONDS = 5.0
AVERAGED_RECORDS = 16
READ_BYTES = 16 * 1024 * 1024
# Up to this distance reading on is cheaper than seeking, which drops what was fetched ahead.
READ_ON_BYTES = 1024 * 1024
# Of how many lost bodies the worker's log tells; where there are more, the log was cut.
LOST_MAX = 1_000


class LogReader:
    """Reads values of the operations log at given positions; used by one thread at a time."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._consumer: Consumer | None = None
        self._next = -1
        self._pool: OrderedDict[int, bytes | None] = OrderedDict()
        self._pool_bytes = 0
        self._record_bytes = 0.0
        self.last_used = 0.0

    def value_at(self, position: int) -> bytes | None:
        """The value of the record at a position.

        Raises:
            BodyLostError: The log does not hold that position, or its record is damaged.
            LogUnreadableError: The log did not answer in time.
        """
        self.last_used = time.monotonic()
        if position not in self._pool:
            self._read_through(position)
        return self._pool[position]

    def _read_through(self, position: int) -> None:
        """Reads on until the position is in the pool; what comes by on the way is kept too."""
        limit = time.monotonic() + self._ledger.timeout_seconds
        while position not in self._pool:
            consumer, ahead = self._consumer or self._open(), position - self._next
            if self._next < 0 or not 0 <= ahead * self._record_bytes < READ_ON_BYTES:
                consumer.assign([TopicPartition(*self._ledger.operations, position)])
                self._next = position
            for message in take_batch(consumer, 200, 0.5):
                self._keep(message, position)
            if self._next > position and position not in self._pool:
                raise BodyLostError(f"{self._at(position)} has no record any more")
            if time.monotonic() > limit:
                raise LogUnreadableError(
                    f"reading {self._at(position)} back took longer than "
                    f"{self._ledger.timeout_seconds:.0f} s; look at Kafka, then start the worker "
                    "again"
                )

    def _keep(self, message: Any, wanted: int) -> None:
        error = message.error()
        if error is not None:
            if error.code() == KafkaError._AUTO_OFFSET_RESET and message.offset() == self._next:
                self._disconnect()
                text = f"{self._at(wanted)} has no record any more, the log was cut"
                raise BodyLostError(text, is_cut=True)
            if error.code() == KafkaError._BAD_MSG:
                self._look_at_damage(wanted, error)
            topic = self._ledger.topics.operations
            if error.code() not in MENDED and (refused := denied(error, topic, "Read")) is not None:
                raise refused
            return
        offset, value = message.offset(), message.value()
        self._next = offset + 1
        # Read on from an earlier position, what is there comes by again.
        self._pool_bytes -= len(self._pool.pop(offset, None) or b"")
        self._pool[offset] = value
        self._pool_bytes += len(value or b"")
        # How long records are here, for the choice between reading on and seeking.
        self._record_bytes += (len(value or b"") - self._record_bytes) / AVERAGED_RECORDS
        while self._pool_bytes > READ_BYTES:
            oldest = next(iter(self._pool))
            if oldest == wanted:
                break
            self._pool_bytes -= len(self._pool.pop(oldest) or b"")

    def _look_at_damage(self, wanted: int, error: KafkaError) -> None:
        """What is damaged is what is wanted only if that was to come next; else it is asked for."""
        is_wanted = self._next == wanted
        self._disconnect()
        if is_wanted:
            raise BodyLostError(f"{self._at(wanted)} is damaged ({error.str()})")

    def _at(self, position: int) -> str:
        return f"{self._ledger.name}@{position}"

    def _open(self) -> Consumer:
        self._consumer = Consumer(
            reader_settings(
                self._ledger.bootstrap,
                "bodies",
                {
                    "fetch.wait.max.ms": 20,
                    "queued.max.messages.kbytes": 4096,
                    # A full queue makes the library pause; its default of a second is for others.
                    "fetch.queue.backoff.ms": 2,
                    "log_level": 3,
                },
            ),
            logger=KAFKA_LOGGER,
        )
        return self._consumer

    def close(self) -> None:
        """Lets go of the connection and of what was read; the next use opens it again."""
        self._disconnect()
        self._pool.clear()
        self._pool_bytes = 0

    def _disconnect(self) -> None:
        """Begins anew: librdkafka does not find on behind what is damaged or not there."""
        if self._consumer is not None:
            close_aside(self._consumer)
            self._consumer = None
        self._next = -1


def _contents_of(position: int, value: bytes | None, wanted: list[DeliveredMessage]) -> list[bytes]:
    """The contents in a record; BodyLostError if those that are wanted are not there."""
    contents = bodies_in(decode_operation(value))
    if contents is None or max(body_place(one)[1] for one in wanted) >= len(contents):
        raise BodyLostError(f"the log was changed: position {position} holds something else")
    return contents


def _cost_bytes(value_bytes: int, messages: int) -> int:
    return value_bytes + PUT_BYTES + MESSAGE_BYTES * messages


class BodyStore:
    def __init__(self, cache_bytes: int, reader: LogReader) -> None:
        self._limit = cache_bytes
        self._reader = reader
        # By time of last use. An ordered dict, because finding the oldest entry of a plain one
        # looks at every place that was freed before it.
        self._kept: OrderedDict[int, tuple[int, list[bytes]]] = OrderedDict()
        self._kept_bytes = 0
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="bodies")
        self.read_back = 0
        # Where bodies were lost, as far as it was said.
        self._lost: set[tuple[int, int]] = set()
        # Bodies that were asked for, and those of them that were not in memory.
        self._asked = 0
        self._misses = 0

    def add(self, position: int, messages: list[PutMessage], value_bytes: int) -> None:
        """Keeps the bodies of a Put that was just decoded, in place of those not used longest."""
        cost = _cost_bytes(value_bytes, len(messages))
        self._kept[position] = (cost, [message["content"] for message in messages])
        self._kept_bytes += cost
        self._trim()

    def _trim(self) -> None:
        while self._kept_bytes > self._limit:
            self._kept_bytes -= self._kept.popitem(last=False)[1][0]

    def fill(self, messages: list[DeliveredMessage]) -> int:
        """Fills in the contents; their bytes together, or -1 if one is not in memory."""
        kept = self._kept
        size = 0
        known = -1
        contents: list[bytes] = []
        for message in messages:
            position, index = body_place(message)
            if position != known:
                entry = kept.get(position)
                if entry is None:
                    return -1
                kept.move_to_end(position)
                contents, known = entry[1], position
            content = contents[index]
            message["content"] = content
            size += len(content)
        self._asked += len(messages)
        return size

    async def fill_cold(
        self, messages: list[DeliveredMessage], where: str = "", *, refuse_cut: bool = False
    ) -> int:
        """Fills in the contents, reading back what is not in memory; their bytes together.

        Others may use the store meanwhile; what is in memory now is taken at once. A content that
        is lost is left empty, and the worker's log says so with the destination, `where`.

        Raises:
            BodyLostError: The log was cut behind a body, and that is to be refused.
            LogUnreadableError: The log did not answer in time.
        """
        missing: dict[int, list[DeliveredMessage]] = {}
        for message in messages:
            position, index = body_place(message)
            entry = self._kept.get(position)
            if entry is None:
                missing.setdefault(position, []).append(message)
            else:
                message["content"] = entry[1][index]
        loop = asyncio.get_running_loop()
        read = partial(self._read, missing, where, refuse_cut=refuse_cut)
        found = await loop.run_in_executor(self._thread, read)
        self.read_back += len(missing)
        self._asked += len(messages)
        self._misses += sum(map(len, missing.values()))
        for position, entry in found.items():
            if position not in self._kept:
                self._kept[position] = entry
                self._kept_bytes += entry[0]
        self._trim()
        return sum([len(message["content"]) for message in messages])

    def _read(
        self, missing: dict[int, list[DeliveredMessage]], where: str, *, refuse_cut: bool
    ) -> OrderedDict[int, tuple[int, list[bytes]]]:
        """Fills in contents from the log; the Puts that were read last, for those who come next.

        A delivery in any order may want a message each of a thousand Puts: all of them at a time
        could be more than the worker may have in memory.
        """
        found: OrderedDict[int, tuple[int, list[bytes]]] = OrderedDict()
        found_bytes = 0
        for position in sorted(missing):
            try:
                value = self._reader.value_at(position)
                contents = _contents_of(position, value, missing[position])
            except BodyLostError as error:
                if refuse_cut and error.is_cut:
                    raise
                for message in missing[position]:
                    message["content"] = b""
                    self._report_lost(message, where, error)
                continue
            for message in missing[position]:
                message["content"] = contents[body_place(message)[1]]
            cost = _cost_bytes(len(value or b""), len(contents))
            found[position] = (cost, contents)
            found_bytes += cost
            while found_bytes > READ_BYTES and len(found) > 1:
                found_bytes -= found.popitem(last=False)[1][0]
        return found

    def _report_lost(self, message: DeliveredMessage, where: str, error: BodyLostError) -> None:
        if body_place(message) in self._lost or len(self._lost) > LOST_MAX:
            return
        self._lost.add(body_place(message))
        if len(self._lost) > LOST_MAX:
            told = "the contents of more than %d messages are lost: no more of them are named"
            log.error(told, LOST_MAX)
            return
        log.error(
            "the content of message %s, number %d%s, is lost: %s. The message is delivered without "
            "it, and its receivers are told. Put it again from an archive, or from where it came "
            "from; `ledgermq msg delete` takes it off its queue [%s]",
            message["message_id"].hex(),
            message["sequence"],
            f" of {where}" if where else "",
            error,
            error.code,
        )

    def figures(self) -> dict[str, int]:
        """How large the cache is, and how often a body was in it, since this worker took over."""
        return {
            "limit_bytes": self._limit,
            "bytes": self._kept_bytes,
            "puts": len(self._kept),
            "hits": self._asked - self._misses,
            "misses": self._misses,
        }

    def rest(self) -> None:
        used = self._reader.last_used
        if used and time.monotonic() - used > IDLE_SECONDS:
            self._reader.last_used = 0.0
            self._thread.submit(self._reader.close)

    def close(self) -> None:
        self._kept.clear()
        self._kept_bytes = 0
        self._thread.submit(self._reader.close)
        self._thread.shutdown(wait=False)
