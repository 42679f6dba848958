"""The way to the log: one producer per connection (operations, questions, heartbeats).

Delivery reports are served in whichever thread polls, so their callbacks only set plain fields;
nothing in them takes a lock of the session's.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Producer

from ledgermq.client.link.broker_news import BrokerNews
from ledgermq.client.settings import ConnectionSettings
from ledgermq.errors import (
    BrokerUnavailableError,
    ConnectionClosedError,
    LedgerMQError,
    LogError,
    MessageTooLargeError,
)
from ledgermq.wire.framing.codec import encode_record
from ledgermq.wire.framing.confluent import ConfluentFraming, framed
from ledgermq.wire.framing.headers import Headers
from ledgermq.wire.framing.schemas import HEARTBEAT
from ledgermq.wire.kafka.access import denied
from ledgermq.wire.kafka.settings import ANSWERED_WITHIN_MS, client_options
from ledgermq.wire.topics.log_topics import OPERATION_BYTES_MAX
from ledgermq.wire.topics.registry import Claim

LOGGER = logging.getLogger("ledgermq.client")
CLOSED: Final = "the connection is closed; connect again"
# Of Linux; elsewhere there is none.
CLOCK: Final[int | None] = getattr(time, "CLOCK_BOOTTIME", None)
QUEUE_FULL_WAIT_SECONDS: Final = 0.05
# For how long a full queue may hold up whoever writes: no broker has taken anything by then.
QUEUE_FULL_SECONDS: Final = 5.0
# Longer than a broker that is there takes for an operation.
HELD_UP_SECONDS: Final = 1.0
# librdkafka counts milliseconds in 32 bits.
KAFKA_SECONDS_MAX: Final = 1_000_000.0
# librdkafka cuts it at 127 bytes, with a number of its own behind, be it within a character: what
# it says of its brokers is no text then.
CLIENT_ID_BYTES_MAX: Final = 100
# A slow link needs as long for a large record.
ANSWERED_WITHIN_MS_MIN: Final = 5_000


def kafka_common(settings: ConnectionSettings, news: BrokerNews) -> dict[str, Any]:
    """Settings of a connection's producer and consumer."""
    # A connection of Kafka's that is dead without a word is given up before sessions end.
    answered_within_ms = min(settings.suspect_timeout_ms, ANSWERED_WITHIN_MS)
    name = settings.application or settings.client_id or "ledgermq"
    own = {
        "client.id": name.encode()[:CLIENT_ID_BYTES_MAX].decode(errors="ignore"),
        "error_cb": news.error,
        "log_level": 3,
        "socket.nagle.disable": True,
        # Brokers come back within seconds; the defaults of librdkafka wait up to ten.
        "reconnect.backoff.ms": 50,
        "reconnect.backoff.max.ms": 1000,
        "socket.timeout.ms": max(answered_within_ms, ANSWERED_WITHIN_MS_MIN),
    }
    return client_options(settings.bootstrap, own, settings.kafka)


class LogReceipt:
    """Where an operation landed on the log, for those who wait for no more than that."""

    def __init__(self) -> None:
        self.landed = threading.Event()
        self.position = -1
        self.error: str | None = None


class Transport:
    """The log of a connection's `Route` over Kafka; may be used from any thread."""

    def __init__(
        self,
        settings: ConnectionSettings,
        news: BrokerNews,
        framing: ConfluentFraming | None = None,
    ) -> None:
        self._framing = framing
        self._news = news
        self._settings = settings
        self._operations = settings.topics.operations
        self._questions = settings.topics.questions
        self._partition = -1
        self._operation_key = settings.queue_manager.encode()
        self._question_key = settings.identity.hex().encode()
        self._heartbeat = encode_record(HEARTBEAT, {"connection": settings.identity})
        self._closed = False
        self.failed = False
        self.heard_at = -math.inf
        # On the monotonic clock, when the operations were written of which nothing is reported yet.
        self._unreported: deque[float] = deque()
        self._producer = Producer(
            kafka_common(settings, self._news)
            | {
                # Operations are numbered and applied at most once (D7), so a record that Kafka
                # appends twice does no harm, and an idempotent producer would add nothing but
                # its limit: librdkafka spins while five of its messages are unacknowledged.
                "enable.idempotence": False,
                "acks": "all",
                "linger.ms": 0,
                # Keeps the order over retries, and lets what many threads write while a request
                # is being flushed gather in the next one.
                "max.in.flight.requests.per.connection": 1,
                "message.max.bytes": OPERATION_BYTES_MAX,
                "message.timeout.ms": 120_000,
                "retry.backoff.ms": 50,
                "delivery.report.only.error": False,
            },
            logger=self._news,
        )

    def write_for(self, claim: Claim) -> None:
        """Has all that is written from now on go to a queue manager."""
        self._partition = claim.partition

    def warm_up(self, timeout_seconds: float) -> None:
        """Connects now, so that the first operation need not wait for it."""
        try:
            self._producer.list_topics(self._operations, timeout=timeout_seconds)
        except KafkaException as error:
            LOGGER.info("the producer has no broker yet: %s", error)

    def _report(self, error: KafkaError | None, _: Any) -> None:
        # Ctrl-C may have come between an operation and its note here.
        with suppress(IndexError):
            self._unreported.popleft()
        if error is not None:
            self.failed = True
            self._news.note_refusal(error, self._operations, "Write")
        else:
            self._news.well()

    def _report_to(self, receipt: LogReceipt, error: KafkaError | None, record: Any) -> None:
        self._report(error, record)
        if error is not None:
            receipt.error = error.str()
        else:
            receipt.position = record.offset()
        receipt.landed.set()

    def _note(self, error: KafkaError | None, _: Any) -> None:
        """The report of what nobody waits for, and nobody writes again."""
        if error is None:
            self._news.well()
        else:
            self._news.note_refusal(error, self._questions, "Write")

    def _note_heard(self, at: float, error: KafkaError | None, record: Any) -> None:
        self._note(error, record)
        if error is None:
            self.heard_at = max(self.heard_at, at)

    @property
    def refused(self) -> LedgerMQError | None:
        return self._news.refused

    @property
    def away(self) -> str:
        return self._news.away

    @property
    def is_held_up(self) -> bool:
        try:
            return time.monotonic() - self._unreported[0] > HELD_UP_SECONDS
        except IndexError:
            return False

    def write(self, value: bytes, headers: Headers, receipt: LogReceipt | None = None) -> None:
        """Hands an operation to the producer; waits while its queue is full.

        Raises:
            ConnectionClosedError: the connection is closed.
            MessageTooLargeError: Kafka's producer takes no record of this size.
            BrokerUnavailableError: its queue is full, and stays so, because no broker takes it.
            AccessDeniedError: Kafka does not let us write there.
            LogError: it refuses the record for another reason, such as an unknown topic.
        """
        report = self._report if receipt is None else partial(self._report_to, receipt)
        self._unreported.append(time.monotonic())
        try:
            self._produce(self._operations, value, self._operation_key, headers, report)
        except BaseException:
            self._unreported.pop()
            raise

    def ask(self, value: bytes) -> None:
        self._produce(self._questions, value, self._question_key, [], self._note)

    def beat(self) -> None:
        report = partial(self._note_heard, self.clock())
        self._produce(self._questions, self._heartbeat, self._question_key, [], report)

    def _produce(
        self,
        topic: str,
        value: bytes,
        key: bytes,
        headers: Headers,
        report: Callable[[KafkaError | None, Any], None],
    ) -> None:
        value, headers = framed(self._framing, value, headers)
        deadline = time.monotonic() + QUEUE_FULL_SECONDS
        while True:
            if self._closed:
                raise ConnectionClosedError(CLOSED)
            try:
                self._producer.produce(
                    topic, value, key, self._partition, headers=list(headers), on_delivery=report
                )
                return
            except BufferError as error:
                if time.monotonic() > deadline:
                    raise BrokerUnavailableError(
                        f"nothing was written: what waits for the broker at "
                        f"{self._settings.bootstrap} fills the queue of this connection; try again "
                        "when the broker is back"
                    ) from error
                self._poll(QUEUE_FULL_WAIT_SECONDS)
            except KafkaException as error:
                raise self._refused(topic, len(value), error.args[0]) from error
            except RuntimeError:
                raise ConnectionClosedError(CLOSED) from None

    def _refused(self, topic: str, size_bytes: int, error: KafkaError) -> LedgerMQError:
        """Why a record was not even queued; that a right is missing is known from earlier ones."""
        if error.code() == KafkaError.MSG_SIZE_TOO_LARGE:
            return MessageTooLargeError(
                f"a record of {size_bytes:,} bytes is too large for {topic}; nothing was written"
            )
        return denied(error, topic, "Write", self._settings.kafka) or LogError(
            f"a record for {topic} was not taken, nothing was written: {error.str()}"
        )

    def serve(self) -> None:
        self._poll(0.0)

    def _poll(self, seconds: float) -> None:
        try:
            self._producer.poll(seconds)
        except RuntimeError:
            raise ConnectionClosedError(CLOSED) from None

    def clock(self) -> float:
        """Seconds on a clock of the machine that only goes forward, also while the machine sleeps.

        Sessions end meanwhile, but the usual clock of Linux stands still.
        """
        return time.clock_gettime(CLOCK) if CLOCK is not None else time.monotonic()

    def wait_landed(self, receipt: LogReceipt, timeout_seconds: float) -> bool:
        deadline = time.monotonic() + timeout_seconds
        while not receipt.landed.is_set():
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            self._poll(min(left, 0.1))
        return True

    def close(self, timeout_seconds: float) -> None:
        """Lets what is on its way arrive, at most for the time-out; then nothing more is sent."""
        self._closed = True
        # It says so where it was closed before.
        with suppress(RuntimeError):
            if self._producer.flush(min(timeout_seconds, KAFKA_SECONDS_MAX)):
                self._producer.purge()
                self._producer.flush(1.0)
            # Else its threads and its way to the broker were there until Python looks for cycles.
            self._producer.close()
