"""The route between a connection and its queue manager: a lane to read, a log to write to.

Over Kafka it is a consumer and a producer; `ledgermq.testing` has one that stays in memory.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import ExitStack
from functools import partial
from typing import NamedTuple, Protocol

from ledgermq.client.link.broker_news import BrokerNews
from ledgermq.client.link.lane import LaneReader
from ledgermq.client.link.transport import KAFKA_SECONDS_MAX, LogReceipt, Transport
from ledgermq.client.settings import ConnectionSettings
from ledgermq.errors import BrokerUnavailableError, LedgerMQError, LogError
from ledgermq.wire.framing.headers import Headers
from ledgermq.wire.framing.schema_registry import framing_of
from ledgermq.wire.topics.registry import (
    Claim,
    RegistryError,
    RegistryUnreadableError,
    find_queue_manager,
)


class LaneIn(Protocol):
    """What the reader of a connection needs of a lane."""

    @property
    def lane(self) -> int: ...

    def read(self, timeout_seconds: float) -> tuple[list[bytes], bool]:
        """Waits for records; returns the values that are ours, and whether some may be missing."""

    def log_time(self) -> int:
        """The time of the log in µs since 1970, as far as known; -1: not at all."""

    def close(self) -> None: ...


class LogOut(Protocol):
    """What a connection needs to write; may be used from any thread."""

    # Whether something was refused since that was last looked at, and is to be written again.
    failed: bool
    # By its clock, when the last heartbeat was written that is on the log.
    heard_at: float

    @property
    def refused(self) -> LedgerMQError | None:
        """Why Kafka takes nothing, or gives nothing, of this connection for good."""

    @property
    def away(self) -> str:
        """What is wrong with the way to the broker; empty: nothing that is known."""

    @property
    def is_held_up(self) -> bool:
        """Whether records wait here for a broker; what is written now goes behind them."""

    def write(self, value: bytes, headers: Headers, receipt: LogReceipt | None = None) -> None: ...

    def ask(self, value: bytes) -> None: ...

    def beat(self) -> None: ...

    def serve(self) -> None: ...

    def clock(self) -> float:
        """Seconds by which an application holds messages: the machine's, or a test's."""

    def wait_landed(self, receipt: LogReceipt, timeout_seconds: float) -> bool:
        """Waits until an operation is on the log; False after the time-out."""

    def close(self, timeout_seconds: float) -> None: ...


class Route(NamedTuple):
    lane: LaneIn
    log: LogOut


def kafka_route(settings: ConnectionSettings, deadline: float) -> Route:
    """Finds the queue manager on Kafka and picks a lane; `deadline` on the monotonic clock.

    What can be is asked at the same time, as each answer of a broker that is far away takes long.
    """

    def left() -> float:
        return min(max(1.0, deadline - time.monotonic()), KAFKA_SECONDS_MAX)

    framing = framing_of(settings.schema_registry)
    news = BrokerNews(settings.bootstrap, kafka=settings.kafka)
    with ExitStack() as otherwise:
        lane = LaneReader(settings, news)
        otherwise.callback(lane.close)
        transport = Transport(settings, news, framing)
        otherwise.callback(transport.close, 0.0)
        finding = _begun(partial(find_claim, settings, left()))
        lane.check_broker(min(settings.timeout_seconds, KAFKA_SECONDS_MAX))
        transport.warm_up(left())
        claim = finding.result()
        transport.write_for(claim)
        lane.start(claim, left())
        otherwise.pop_all()
    return Route(lane, transport)


def _begun(find: Callable[[], Claim]) -> Future[Claim]:
    """Finds a claim in a thread, which holds up nobody who ends meanwhile."""
    found: Future[Claim] = Future()

    def work() -> None:
        try:
            found.set_result(find())
        except Exception as error:
            found.set_exception(error)

    threading.Thread(target=work, name="ledgermq-registry", daemon=True).start()
    return found


def find_claim(settings: ConnectionSettings, timeout_seconds: float) -> Claim:
    """The claim of a queue manager; QueueManagerNotFoundError if nobody claimed its name."""
    try:
        return find_queue_manager(
            settings.bootstrap,
            settings.topics,
            settings.queue_manager,
            timeout_seconds=timeout_seconds,
            kafka=settings.kafka,
        )
    except RegistryUnreadableError as error:
        raise BrokerUnavailableError(f"{error}: try again when Kafka answers") from error
    except RegistryError as error:
        raise LogError(str(error)) from error
