"""The worker's idempotent producer: outcomes to lanes, the worker's own entries to the ledger.

A write that fails for good stops the worker (H2): the producer tells its owner once and takes
nothing more. Append times in the acknowledgements are the freshest there are, and set the log
clock (H7).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from ledgermq.errors import LedgerMQError
from ledgermq.processor.worker.logs import KAFKA_LOGGER
from ledgermq.wire.framing.confluent import ConfluentFraming, framed
from ledgermq.wire.framing.headers import Headers, chunk_headers
from ledgermq.wire.kafka.access import denied
from ledgermq.wire.kafka.settings import CONNECTION_LIMITS, client_options
from ledgermq.wire.topics.log_topics import Topics, lane_partition
from ledgermq.wire.topics.registry import Claim

POLL_SECONDS = 0.004
# Where nothing is to be acknowledged, only errors may come, which no write waits for.
IDLE_SECONDS = 0.25


class WriteFailedError(LedgerMQError):
    code = "write-failed"


class LogClock:
    """An estimate of the time that the log would stamp now (H7)."""

    def __init__(self) -> None:
        # How far it was ahead of this machine's clock at the last acknowledgement, and what the
        # monotonic one was then ahead of that.
        self.ahead_us = 0
        self._monotonic_ahead_us = self._monotonic_us() - int(time.time() * 1_000_000)

    def observe(self, append_ms: int) -> None:
        now_us = int(time.time() * 1_000_000)
        self.ahead_us = append_ms * 1000 - now_us
        self._monotonic_ahead_us = self._monotonic_us() - now_us

    def now_us(self) -> int:
        """The estimate in µs, by this machine's clock."""
        return int(time.time() * 1_000_000) + self.ahead_us

    def latest_us(self) -> int:
        """The estimate in µs; if this machine's clock was set back since, as if it had not been.

        That may have been set to what Kafka's is, which nobody hears of before the next
        acknowledgement.
        """
        as_before_us = self._monotonic_us() - self._monotonic_ahead_us
        return max(as_before_us + self.ahead_us, self.now_us())

    @staticmethod
    def _monotonic_us() -> int:
        return time.monotonic_ns() // 1000


class LaneBook:
    """How many records a queue manager's lanes were sent, and have."""

    __slots__ = ("acknowledged", "claim", "sent")

    def __init__(self, claim: Claim) -> None:
        self.claim = claim
        self.sent = [0] * claim.lanes
        self.acknowledged = [0] * claim.lanes

    def covers(self, sent: Sequence[int]) -> bool:
        return all(done >= due for done, due in zip(self.acknowledged, sent, strict=True))


class LogProducer:
    """Writes to the lanes and to the ledger; used from the event loop only."""

    def __init__(
        self,
        bootstrap: str,
        topics: Topics,
        on_failure: Callable[[BaseException], None],
        unsent_bytes_max: int,
        framing: ConfluentFraming | None = None,
    ) -> None:
        self._framing = framing
        self._topics = topics
        self._on_failure = on_failure
        self._unsent_bytes_max = unsent_bytes_max
        self._failed: BaseException | None = None
        self._written = asyncio.Event()
        self.clock = LogClock()
        self.unsent_bytes = 0
        self.outstanding = 0
        own = {
            "enable.idempotence": True,
            "acks": "all",
            "linger.ms": 0,
            "message.max.bytes": 10 * 1024 * 1024,
            "queue.buffering.max.messages": 0,
            "message.timeout.ms": 120_000,
            **CONNECTION_LIMITS,
            "log_level": 3,
            "error_cb": self._error,
        }
        self._producer = Producer(client_options(bootstrap, own), logger=KAFKA_LOGGER)

    def send_outcomes(
        self,
        book: LaneBook,
        connection: bytes | None,
        lane: int,
        value: bytes,
        full_name: str,
        position: int,
        index: int = 0,
        acknowledged: Callable[[int], object] = lambda _: None,
    ) -> None:
        """Hands a record to a lane, noted in the book; WriteFailedError if one failed before.

        It is a CHUNK or an ANSWER for a connection, about a position. `acknowledged` gets the
        append time in ms once Kafka has the record.
        """
        if self._failed is not None:
            raise WriteFailedError("an earlier write failed") from self._failed
        name, partition, lanes = book.claim
        lane %= lanes
        partition = lane_partition(partition, lanes, lane)
        key = b"" if connection is None else connection.hex().encode()
        headers = chunk_headers(name, connection, position, index, full_name)
        size = len(value)

        def delivered(error: KafkaError | None, message: Message) -> None:
            self.unsent_bytes -= size
            self.outstanding -= 1
            if error is not None:
                self._fail_for(error, self._topics.outcomes, partition)
                return
            book.acknowledged[lane] += 1
            append_ms = message.timestamp()[1]
            self.clock.observe(append_ms)
            acknowledged(append_ms)

        self._produce(self._topics.outcomes, partition, key, value, headers, delivered)
        book.sent[lane] += 1
        self.unsent_bytes += size

    def append_operation(
        self, partition: int, key: bytes, value: bytes, headers: Headers
    ) -> asyncio.Future[int]:
        """Appends one of the worker's own entries; the future holds its position."""
        appended: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        def delivered(error: KafkaError | None, message: Message) -> None:
            self.outstanding -= 1
            if error is not None:
                failed = self._fail_for(error, self._topics.operations, partition)
                if not appended.done():
                    appended.set_exception(failed)
                return
            self.clock.observe(message.timestamp()[1])
            if not appended.done():
                appended.set_result(message.offset() or 0)

        self._produce(self._topics.operations, partition, key, value, headers, delivered)
        return appended

    def _produce(
        self,
        topic: str,
        partition: int,
        key: bytes,
        value: bytes,
        headers: Headers,
        delivered: Callable[[KafkaError | None, Message], None],
    ) -> None:
        value, headers = framed(self._framing, value, headers)
        try:
            self._producer.produce(
                topic,
                value=value,
                key=key,
                partition=partition,
                headers=list(headers),
                on_delivery=delivered,
            )
        except (BufferError, KafkaException) as error:
            if isinstance(error, KafkaException):
                self._fail_for(error.args[0], topic, partition)
            else:
                self._fail(f"{topic}-{partition}: {error}")
            raise WriteFailedError(f"{topic}-{partition} took no record: {error}") from error
        self.outstanding += 1
        self._written.set()

    async def wait_for_room(self) -> None:
        """Waits while more waits to be acknowledged than may."""
        while self.unsent_bytes > self._unsent_bytes_max and self._failed is None:
            self.poll()
            await asyncio.sleep(POLL_SECONDS)

    def poll(self) -> None:
        """Takes what Kafka has acknowledged; WriteFailedError if it takes nothing any more."""
        try:
            self._producer.poll(0)
        except KafkaException as error:
            raise self._fail(_told(error.args[0])) from None

    async def run(self) -> None:
        """Takes acknowledgements as they come; raises as `poll` does."""
        while True:
            self.poll()
            if not self.outstanding:
                self._written.clear()
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._written.wait(), IDLE_SECONDS)
            await asyncio.sleep(POLL_SECONDS)

    def flush(self, timeout_seconds: float) -> int:
        """Waits until all is acknowledged; how many records are not."""
        remaining: int = self._producer.flush(timeout_seconds)
        return remaining

    def _error(self, error: KafkaError) -> None:
        if error.fatal():
            self._fail(_told(error))

    def _fail_for(self, error: KafkaError, topic: str, partition: int) -> LedgerMQError:
        refused = denied(error, topic, "Write")
        if refused is None:
            return self._fail(f"{topic}-{partition}: {error.str()}")
        return self._fail_with(refused)

    def _fail(self, text: str) -> LedgerMQError:
        return self._fail_with(WriteFailedError(f"a write failed for good: {text}"))

    def _fail_with(self, error: LedgerMQError) -> LedgerMQError:
        if self._failed is None:
            self._failed = error
            self._on_failure(error)
        return error


def _told(error: KafkaError) -> str:
    """What ends a producer, and where that comes from if a person put it there."""
    if error.code() != KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER:
        return error.str()
    return (
        f"{error.str()}. So it is where Kafka's own metadata (__cluster_metadata) are older than "
        "other data, and it gives out numbers of producers again: a worker that is started again "
        "gets another one. If a backup was put back, put back all of it"
    )
