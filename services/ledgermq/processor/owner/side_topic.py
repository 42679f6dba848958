"""The side topic: questions to the worker's queue managers, and heartbeats (D15, H12).

Partitions are assigned explicitly, from those of operations, so the owner of a queue manager hears
its questions whatever the group's assignor thinks of other topics. The registry is followed by
the same consumer, so that a queue manager claimed while the worker runs is taken up.

Anybody may write there with any client, so librdkafka reads: aiokafka raises at a header whose name
is no UTF-8, and has no codec but gzip of its own. A record at which reading stops would stop every
worker anew, that on the registry for ever.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any, Final, Protocol

from confluent_kafka import Consumer, KafkaException, TopicPartition
from faust.types import TP

from ledgermq.errors import LedgerMQError
from ledgermq.processor.faust_shell.feed import LogRecord, RecordFeed
from ledgermq.wire.framing.codec import UndecodableError, decode_record
from ledgermq.wire.framing.schemas import ASK, HEARTBEAT
from ledgermq.wire.topics.log_topics import Topics
from ledgermq.wire.topics.reading import offset_at, offsets_of, reader_settings

log = logging.getLogger(__name__)

# Questions that came while nobody owned the partition are answered if they are this young.
LOOK_BACK_SECONDS = 30.0
ANSWER_SECONDS = 30.0
READ_SECONDS = 10.0
SAY_AGAIN_SECONDS = 10.0
READING: Final = {
    # What was deleted by its age was too old to be answered.
    "auto.offset.reset": "earliest",
    "enable.partition.eof": True,
    "fetch.message.max.bytes": 1024 * 1024,
    "queued.max.messages.kbytes": 4 * 1024,
}


class Listener(Protocol):
    """Who hears what comes on one partition."""

    def take_question(self, ask: dict[str, Any], size_bytes: int) -> None: ...

    def take_heartbeat(self, connection: bytes) -> None: ...


class SideTopic:
    def __init__(self, bootstrap: str, topics: Topics, on_claim: Callable[[], None]) -> None:
        self._topics = topics
        self._on_claim = on_claim
        self._arrived = asyncio.Event()
        self._feed = RecordFeed(
            bootstrap, self._arrived.set, "side-topic", READING, skips_damage=True
        )
        # Asked in threads that may outlast the stop, so it is never closed, only forgotten.
        self._asked = Consumer(reader_settings(bootstrap, "side-topic-ends", {}))
        self._listeners: dict[int, Listener] = {}
        self._registry = TP(topics.registry, 0)
        self._next: dict[TP, int] = {}
        self._changed = asyncio.Lock()
        # Until it fires, what is passed over is counted and not said.
        self._say_again: asyncio.TimerHandle | None = None
        self._unsaid = 0
        self._last_unsaid = ("", "")

    def start(self) -> None:
        self._read_from(self._registry, 0)

    def _read_from(self, tp: TP, offset: int) -> None:
        self._next[tp] = offset
        self._feed.read_from(tp, offset)

    async def listen(self, partition: int, listener: Listener) -> None:
        """Hears a partition from now on, and what came in the last half minute."""
        tp = TP(self._topics.questions, partition)
        since_ms = int((time.time() - LOOK_BACK_SECONDS) * 1000)
        async with self._changed:
            start = await asyncio.to_thread(
                offset_at, self._asked, TopicPartition(*tp), since_ms, ANSWER_SECONDS
            )
            self._listeners[partition] = listener
            self._read_from(tp, start)

    async def leave(self, partition: int, listener: Listener) -> None:
        """Hears a partition no longer, unless somebody else listens by now."""
        async with self._changed:
            if self._listeners.get(partition) is not listener:
                return
            del self._listeners[partition]
            tp = TP(self._topics.questions, partition)
            if self._next.pop(tp, None) is not None:
                self._feed.leave(tp)

    def hears(self, partition: int) -> bool:
        """Whether the side topic's partition is read here, as it must be beside its owner (H12)."""
        return TP(self._topics.questions, partition) in self._next

    async def read_to_end(self, partition: int) -> bool:
        """Waits until everything that is on the partition now was heard; False if it was not."""
        end = await self.end_of_questions(partition)
        return end is not None and await self.read_to(partition, end)

    async def read_to(self, partition: int, end: int) -> bool:
        """Waits until everything below an offset was heard; False if it was not."""
        tp = TP(self._topics.questions, partition)
        limit = time.monotonic() + READ_SECONDS
        while self._next.get(tp, -1) < end:
            if time.monotonic() > limit or tp not in self._next:
                return False
            await asyncio.sleep(0.01)
        return True

    async def end_of_questions(self, partition: int) -> int | None:
        """The end offset of the questions of a queue manager, or None if it is not known."""
        tp = TP(self._topics.questions, partition)
        return await self._end_of(tp) if tp in self._next else None

    async def end_of_operations(self, partition: int) -> int | None:
        """The end offset of the operations of a queue manager, or None if it is not known."""
        return await self._end_of(TP(self._topics.operations, partition))

    async def _end_of(self, tp: TP) -> int | None:
        where = TopicPartition(*tp)
        try:
            return (await asyncio.to_thread(offsets_of, self._asked, where, ANSWER_SECONDS))[1]
        except (KafkaException, LedgerMQError) as error:
            log.warning("the end of %s is unknown: %s", tp.topic, error)
            return None

    async def run(self) -> None:
        """Hands on what comes; raises AccessDeniedError if Kafka does not let us read."""
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            self._feed.check()
            while (batch := self._feed.take()) is not None:
                for record in batch.records:
                    self._dispatch(batch.tp, record)
                if batch.tp in self._next:
                    self._next[batch.tp] = batch.next_offset
                # Others have their turn between two batches of a flood.
                await asyncio.sleep(0)

    def _dispatch(self, tp: TP, record: LogRecord) -> None:
        if tp == self._registry:
            self._on_claim()
            return
        listener = self._listeners.get(tp.partition)
        if listener is None:
            return
        try:
            full_name, datum = decode_record(record.value, short_lists=True)
        except UndecodableError as error:
            self._pass_over(tp, record, str(error))
            return
        if full_name == HEARTBEAT:
            listener.take_heartbeat(datum["connection"])
        elif full_name == ASK:
            listener.take_question(datum, len(record.value or b""))
        else:
            problem = f"it is neither a question nor a heartbeat, but {full_name}"
            self._pass_over(tp, record, problem)

    def _pass_over(self, tp: TP, record: LogRecord, problem: str) -> None:
        """Says it of one; of those that follow soon only how many there were, as of a flood."""
        where = f"{tp.topic}-{tp.partition}@{record.offset}"
        if self._say_again is None:
            log.warning("the record at %s is passed over: %s", where, problem)
            self._count_from_now()
        else:
            self._unsaid += 1
            self._last_unsaid = (where, problem)

    def _say_how_many(self) -> None:
        self._say_again = None
        if self._unsaid:
            log.warning(
                "%d more records were passed over in up to %.0f s, the last one at %s: %s",
                self._unsaid,
                SAY_AGAIN_SECONDS,
                *self._last_unsaid,
            )
            self._unsaid = 0
            self._count_from_now()

    def _count_from_now(self) -> None:
        loop = asyncio.get_running_loop()
        self._say_again = loop.call_later(SAY_AGAIN_SECONDS, self._say_how_many)

    async def stop(self) -> None:
        self._say_how_many()
        if self._say_again is not None:
            self._say_again.cancel()
        await self._feed.stop()
