"""The side topic: questions and heartbeats of the queue managers that this worker owns (D15,
H12).

Partitions are assigned explicitly, from those of operations, so the owner of a queue manager hears
its questions whatever the group's assignor thinks of other topics. The registry is followed by
the same consumer, so that a queue manager claimed while the worker runs is taken up.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any, Protocol

from aiokafka import AIOKafkaConsumer
from aiokafka.errors import KafkaError
from aiokafka.structs import TopicPartition

from ledgermq.processor.log.aiokafka_options import aiokafka_options
from ledgermq.wire.framing.codec import UndecodableError, decode_record
from ledgermq.wire.framing.confluent import single_object
from ledgermq.wire.topics.log_topics import Topics

log = logging.getLogger(__name__)

ASK = "ledgermq.question.Ask"
HEARTBEAT = "ledgermq.question.Heartbeat"
# Questions that came while nobody owned the partition are answered if they are this young.
LOOK_BACK_SECONDS = 30.0


class Listener(Protocol):
    """Who hears what comes on one partition."""

    def take_question(self, ask: dict[str, Any]) -> None: ...

    def take_heartbeat(self, connection: bytes) -> None: ...


class SideTopic:
    def __init__(self, bootstrap: str, topics: Topics, on_claim: Callable[[], None]) -> None:
        self._topics = topics
        self._on_claim = on_claim
        self._consumer = AIOKafkaConsumer(
            bootstrap_servers=bootstrap,
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            fetch_max_wait_ms=100,
            max_partition_fetch_bytes=1024 * 1024,
            **aiokafka_options(),
        )
        self._listeners: dict[int, Listener] = {}
        self._registry = TopicPartition(topics.registry, 0)
        self._next = {self._registry: 0}
        self._changed = asyncio.Lock()

    async def start(self) -> None:
        await self._consumer.start()
        self._assign()

    async def listen(self, partition: int, listener: Listener) -> None:
        """Hears a partition from now on, and what came in the last half minute."""
        tp = TopicPartition(self._topics.questions, partition)
        async with self._changed:
            self._next[tp] = await self._start_of(tp)
            self._listeners[partition] = listener
            self._assign()

    async def leave(self, partition: int, listener: Listener) -> None:
        """Hears a partition no longer, unless somebody else listens by now."""
        async with self._changed:
            if self._listeners.get(partition) is not listener:
                return
            del self._listeners[partition]
            if self._next.pop(TopicPartition(self._topics.questions, partition), None) is not None:
                self._assign()

    def hears(self, partition: int) -> bool:
        """Whether the side topic's partition is read here, as it must be beside its owner (H12)."""
        tp = TopicPartition(self._topics.questions, partition)
        return tp in self._consumer.assignment()

    async def _start_of(self, tp: TopicPartition) -> int:
        since_ms = int((time.time() - LOOK_BACK_SECONDS) * 1000)
        found = (await self._consumer.offsets_for_times({tp: since_ms}))[tp]
        if found is not None:
            return int(found.offset)
        return int((await self._consumer.end_offsets([tp]))[tp])

    def _assign(self) -> None:
        self._consumer.assign(list(self._next))
        for tp, position in self._next.items():
            self._consumer.seek(tp, position)

    async def read_to_end(self, partition: int, timeout_seconds: float = 10.0) -> bool:
        """Waits until everything that is on the partition now was heard; False if it was not."""
        tp = TopicPartition(self._topics.questions, partition)
        end = await self._end_of(tp) if tp in self._next else None
        if end is None:
            return False
        limit = time.monotonic() + timeout_seconds
        while not await self._has_read(tp, end):
            if time.monotonic() > limit or tp not in self._next:
                return False
            await asyncio.sleep(0.01)
        return True

    async def _has_read(self, tp: TopicPartition, end: int) -> bool:
        """Whether all below an offset was heard; behind a Kafka transaction stand no records."""
        if self._next.get(tp, -1) >= end:
            return True
        return int(await self._consumer.position(tp)) >= end

    async def end_of_operations(self, partition: int) -> int | None:
        """The end offset of the operations of a queue manager, or None if it is not known."""
        return await self._end_of(TopicPartition(self._topics.operations, partition))

    async def _end_of(self, tp: TopicPartition) -> int | None:
        try:
            return int((await self._consumer.end_offsets([tp]))[tp])
        except (KafkaError, OSError) as error:
            log.warning("the end of %s is unknown: %s", tp.topic, error)
            return None

    async def run(self) -> None:
        while True:
            found = await self._consumer.getmany(timeout_ms=1000)
            for tp, records in found.items():
                wanted = self._next.get(tp)
                for record in records:
                    # After a change of assignment records of before may still come.
                    if wanted is not None and record.offset >= wanted:
                        self._dispatch(tp, record)
                if wanted is not None and records:
                    self._next[tp] = max(wanted, records[-1].offset + 1)

    def _dispatch(self, tp: TopicPartition, record: Any) -> None:
        if tp == self._registry:
            self._on_claim()
            return
        listener = self._listeners.get(tp.partition)
        if listener is None:
            return
        try:
            value = single_object(record.value, record.headers)
            full_name, datum = decode_record(value, short_lists=True)
        except UndecodableError as error:
            where = f"{tp.topic}-{tp.partition}@{record.offset}"
            log.warning("the record at %s is passed over: %s", where, error)
            return
        if full_name == HEARTBEAT:
            listener.take_heartbeat(datum["connection"])
        elif full_name == ASK:
            listener.take_question(datum)
        else:
            log.warning("%s at %s@%d is no question", full_name, tp.topic, record.offset)

    async def stop(self) -> None:
        await self._consumer.stop()
