"""What a connection logs of its broker: that it is away, at growing distance, and when it is back.

librdkafka tries to connect many times a second, for as long as it takes, with a line to log for
each attempt. Here the first is passed on, then one after a second, two, four ... five minutes.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Final

from confluent_kafka import KafkaError

from ledgermq.errors import LedgerMQError
from ledgermq.wire.kafka.access import Reports, denied
from ledgermq.wire.kafka.settings import KafkaSettings

# What librdkafka has to say; without a handler of the application's, it keeps quiet.
KAFKA_LOGGER = logging.getLogger("ledgermq.client.kafka")
KAFKA_LOGGER.addHandler(logging.NullHandler())
PAUSE_FIRST_SECONDS: Final = 1.0
PAUSE_MAX_SECONDS: Final = 300.0
# What to do about a broker that is away.
BRING_BACK: Final = "start it again, or look at the network in between"
# Lines of librdkafka about connections to brokers.
FACILITIES: Final = ("FAIL", "ERROR")


class BrokerNews:
    """Of one connection's producer and consumer together; may be used from any thread."""

    def __init__(
        self,
        bootstrap: str,
        clock: Callable[[], float] = time.monotonic,
        kafka: KafkaSettings | None = None,
    ) -> None:
        self._bootstrap = bootstrap
        self._kafka = KafkaSettings() if kafka is None else kafka
        self.reports = Reports(self._kafka, bootstrap)
        self.refused: LedgerMQError | None = None
        self._clock = clock
        self._lock = threading.Lock()
        # When the trouble began that goes on, and when there was a sign of it last.
        self._since: float | None = None
        self._last = -PAUSE_MAX_SECONDS
        self._said = False
        self._untold = 0
        self._pause = PAUSE_FIRST_SECONDS
        self._next_at = 0.0

    def log(self, level: int, form: str, facility: str, client: str, text: str) -> None:
        """A line of librdkafka, which calls this as it would a logger's `log`."""
        if facility in FACILITIES:
            self.trouble(text)
        else:
            KAFKA_LOGGER.log(level, form, facility, client, text)

    def error(self, error: KafkaError) -> None:
        self.reports(error)
        self.trouble(error.str())

    def note_refusal(self, error: KafkaError, topic: str, operation: str) -> None:
        """Keeps what Kafka does not let us do; other errors are none of this."""
        self.refused = self.refused or denied(error, topic, operation, self._kafka)

    def trouble(self, text: str) -> None:
        """There is no way to a broker; said now, or counted until it is time again."""
        with self._lock:
            now = self._clock()
            if self._since is None:
                self._since = now
                if now - self._last >= PAUSE_MAX_SECONDS:
                    self._pause, self._next_at = PAUSE_FIRST_SECONDS, now
            self._last = now
            if now < self._next_at:
                self._untold += 1
                return
            away, untold, self._untold = now - self._since, self._untold, 0
            self._next_at = now + self._pause
            self._pause = min(2 * self._pause, PAUSE_MAX_SECONDS)
            self._said = True
        if untold:
            KAFKA_LOGGER.warning(
                "still trouble with the broker at %s, for %.3g s now (%d more such lines): %s",
                self._bootstrap,
                away,
                untold,
                text,
            )
        else:
            KAFKA_LOGGER.warning(
                "trouble with the broker at %s, tried again until it is back: %s",
                self._bootstrap,
                text,
            )

    @property
    def away(self) -> str:
        """That there is trouble with the broker, since when and which; empty: none is known."""
        with self._lock:
            if self._since is None:
                return ""
            seconds = self._clock() - self._since
            return f"there is trouble with the broker at {self._bootstrap}, for {seconds:.3g} s now"

    def well(self) -> None:
        if self._since is None:
            return
        with self._lock:
            since, self._since = self._since, None
            said, self._said = self._said, False
            now = self._clock()
        if said and since is not None:
            KAFKA_LOGGER.warning(
                "the broker at %s is back after %.3g s", self._bootstrap, now - since
            )
