"""A queue manager in memory, for the unit tests of programs that use LedgerMQ.

It is the real fold and the real client, without Kafka and with a clock that the test moves:

    broker = MemoryBroker()
    with broker.connect() as connection, connection.session() as session:
        session.producer("queue:orders").send({"id": 1})
    broker.advance(seconds=3600)

What a program sees is what it would see of an installation; what it cannot see is speed,
durability and a network that fails. How long a message is held is measured by the test's clock:
what is held while `advance` moves it by a second or more counts as handed over in a crash.
"""

from __future__ import annotations

import contextlib
import math
import threading
import weakref
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final, Unpack

from ledgermq.client.argument_types import typed
from ledgermq.client.arguments import wrong_type
from ledgermq.client.connection import Connection
from ledgermq.client.link.route import Route
from ledgermq.client.link.transport import LogReceipt
from ledgermq.client.options import ConnectionOptions
from ledgermq.client.settings import ConnectionSettings, settings_from
from ledgermq.core.apply import apply, new_state
from ledgermq.core.queries import questions as query
from ledgermq.core.queries.work_status import session_statuses
from ledgermq.errors import ConnectionClosedError, IllegalStateError, LedgerMQError
from ledgermq.protocol.administration import bodies_in
from ledgermq.protocol.instants import EPOCH, datetime_from
from ledgermq.protocol.limits import TIME_ROUNDING_US
from ledgermq.protocol.operations import Operation, Suspect, TimeAgreed
from ledgermq.protocol.outcomes import Delivered, DeliveredMessage, Outcome, body_place
from ledgermq.wire.framing.answers import encode_answer
from ledgermq.wire.framing.codec import (
    decode_operation,
    decode_record,
    encode_chunk,
    encode_operation,
)
from ledgermq.wire.framing.headers import Headers, address_of
from ledgermq.wire.topics.address import parse_address

START: Final = datetime(2026, 1, 1, tzinfo=UTC)
WORKER: Final = "memory"
BOOTSTRAP: Final = "memory:1"
# Deadlines are rounded up to this (PROTOCOL.md §6).
DEADLINE_SECONDS: Final = TIME_ROUNDING_US / 1_000_000
# How long the reader of a connection may need for what came; no reader needs that long.
TAKEN_SECONDS: Final = 5.0


@typed
class MemoryBroker:
    """One queue manager with a log in memory; may be used from any thread.

    Time passes only by `advance` and `crash`: what waits for a delay or an expiry waits for them.

    Attributes:
        queue_manager: Its name.
    """

    def __init__(self, queue_manager: str = "QM1", *, now: datetime = START) -> None:
        """Begins with an empty log.

        Args:
            queue_manager: Its name, as an address of `connect` has it.
            now: What its clock says at first: a time with a time zone. It is rounded down to 50 ms,
                because what falls due does so at multiples of them: so what is sent with a delay
                of a minute is there when the clock was moved by a minute.

        Raises:
            IllegalStateError: `now` has no time zone.
            ArgumentTypeError: the name is no text, or `now` no datetime.
            AddressError: no queue manager can have the name.
        """
        if not isinstance(queue_manager, str):
            raise wrong_type("queue_manager", queue_manager, "text")
        if not isinstance(now, datetime):
            raise wrong_type("now", now, "a datetime")
        if now.tzinfo is None:
            raise IllegalStateError(f"now is {now!r}, which has no time zone: give an aware time")
        _, self.queue_manager = parse_address(f"kafka://{BOOTSTRAP}/{queue_manager}")
        self._lock = threading.RLock()
        self._now_us = (now - EPOCH) // timedelta(microseconds=1)
        self._now_us -= self._now_us % TIME_ROUNDING_US
        self._state = new_state()
        self._contents: dict[int, list[bytes]] = {}
        self._lanes: dict[bytes, _Lane] = {}
        self._connections: weakref.WeakSet[Connection] = weakref.WeakSet()

    @property
    def now(self) -> datetime:
        """The time of the log."""
        return datetime_from(self._now_us)

    def advance(self, seconds: float) -> None:
        """Moves the clock forward; everything that falls due until then happens, in order.

        What it brings to open connections is there when it returns, also for `receive(timeout=0)`.
        What falls due between two multiples of 50 ms does so at the later one.

        Args:
            seconds: By how much, 0 or more.

        Raises:
            IllegalStateError: `seconds` is negative, or more than a deadline can be away.
        """
        # Outside of the lock: sessions write while they hold their own.
        self._let_sessions_tell()
        with self._lock:
            self._now_us += round(seconds * 1_000_000)
            self._append(TimeAgreed(worker=WORKER, writer_time=self._now_us))
            lanes = list(self._lanes.values())
        # Outside of the lock too: who takes what came may write.
        for lane in lanes:
            lane.wait_taken()
        self._let_sessions_tell()

    def _let_sessions_tell(self) -> None:
        """Sessions notice what they hold, or tell of it, as those of an installation do in time."""
        for connection in list(self._connections):
            if not connection.is_closed:
                with contextlib.suppress(LedgerMQError):
                    connection._running.heartbeats.report_handed_over()

    def connect(self, **settings: Unpack[ConnectionOptions]) -> Connection:
        """A connection, as `ledgermq.connect` gives one.

        The settings are the same, save those that say where Kafka is. Time-outs of calls are by the
        clock of the machine. What waits for a quota waits by this clock: until another thread makes
        room or moves it.

        Raises:
            AddressError: a setting cannot be used.
            InvalidClientIDError: another connection has the client id, or it is none.
            TypeError: there is no setting of that name.
        """
        address = f"kafka://{BOOTSTRAP}/{self.queue_manager}"
        connection = Connection(settings_from(address, **settings), self._route)
        self._connections.add(connection)
        return connection

    def crash(self, connection: Connection) -> None:
        """Lets a connection die as its process would: its sessions end, their work goes back.

        The clock moves by the connection's suspect time-out, as it would for a queue manager that
        waits for a sign of life. Calls on the connection raise ConnectionClosedError from now on. A
        second time it does nothing.
        """
        connection._running.stop(0.0)
        with self._lock:
            sessions = [
                one["session"]
                for one in session_statuses(self._state)
                if one["connection"] == connection.identity
            ]
            if sessions:
                self._append(Suspect(worker=WORKER, sessions=sessions))
        if sessions:
            self.advance(connection._running.settings.suspect_timeout_seconds + DEADLINE_SECONDS)

    # -- the log, behind the lock ------------------------------------------------------------------

    def _route(self, settings: ConnectionSettings, _deadline: float) -> Route:
        lane = _Lane(lambda: self._now_us)
        with self._lock:
            self._lanes[settings.identity] = lane
        return Route(lane, _Log(self, settings.identity))

    def _append(self, operation: Operation) -> None:
        self._fold(encode_operation(operation), [])

    def _write(self, identity: bytes, value: bytes, headers: Headers) -> int:
        """Takes an operation of a connection; returns its position."""
        with self._lock:
            self._check(identity)
            return self._fold(value, headers)

    def _check(self, identity: bytes) -> None:
        if identity not in self._lanes:
            raise ConnectionClosedError("the connection is closed; connect again")

    def _fold(self, value: bytes, headers: Headers) -> int:
        position = self._state.position + 1
        operation = decode_operation(value)
        bodies = bodies_in(operation)
        if bodies is not None:
            self._contents[position] = bodies
        chunks: dict[bytes | None, tuple[int, int, list[Outcome]]] = {}
        for connection, _lane, previous_position, previous_index, outcome in apply(
            self._state, operation, position, self._now_us
        ):
            target = address_of(headers).connection if connection is None else connection
            if isinstance(outcome, Delivered):
                self._fill(outcome.messages)
            chunk = chunks.setdefault(target, (previous_position, previous_index, []))
            chunk[2].append(outcome)
        for target, chunk in chunks.items():
            self._send(target, encode_chunk(*chunk))
        return position

    def _fill(self, messages: list[DeliveredMessage]) -> None:
        for message in messages:
            position, index = body_place(message)
            message["content"] = self._contents[position][index]

    def _send(self, connection: bytes | None, value: bytes) -> None:
        lane = None if connection is None else self._lanes.get(connection)
        if lane is not None:
            lane.put(value)

    def _answer(self, identity: bytes, value: bytes) -> None:
        _, ask = decode_record(value)
        with self._lock:
            self._check(identity)
            answer = query.answer(self._state, ask, self.queue_manager, WORKER)
            for messages in answer.unfilled:
                self._fill(messages)
            at, time = self._state.position, self._state.time
            self._send(ask["connection"], encode_answer(ask["question"], at, time, answer))

    def _leave(self, identity: bytes) -> None:
        with self._lock:
            self._lanes.pop(identity, None)


class _Lane:
    """Outcomes and answers of one connection on their way."""

    lane = 0

    def __init__(self, log_time: Callable[[], int]) -> None:
        self.log_time = log_time
        self._values: list[bytes] = []
        self._taking = False
        self._closed = False
        self._changed = threading.Condition()

    def put(self, value: bytes) -> None:
        with self._changed:
            self._values.append(value)
            self._changed.notify_all()

    def read(self, timeout_seconds: float) -> tuple[list[bytes], bool]:
        with self._changed:
            # Whoever reads again has taken what it read before.
            self._taking = False
            self._changed.notify_all()
            if not self._values and not self._closed:
                self._changed.wait(timeout_seconds)
            found, self._values = self._values, []
            self._taking = bool(found)
        return found, False

    def wait_taken(self) -> None:
        """Waits until its connection has taken what was put so far, unless its reader is gone."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._closed or not (self._values or self._taking), TAKEN_SECONDS
            )

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._values.clear()
            self._changed.notify_all()


class _Log:
    """What a connection writes to."""

    def __init__(self, broker: MemoryBroker, identity: bytes) -> None:
        self._broker = broker
        self._identity = identity
        self.failed = False
        self.refused = None
        self.away = ""
        self.is_held_up = False
        # Nobody takes its client for dead.
        self.heard_at = math.inf

    def write(self, value: bytes, headers: Headers, receipt: LogReceipt | None = None) -> None:
        position = self._broker._write(self._identity, value, headers)
        if receipt is not None:
            receipt.position = position
            receipt.landed.set()

    def ask(self, value: bytes) -> None:
        self._broker._answer(self._identity, value)

    def beat(self) -> None:
        """There is nobody who would miss it."""

    def serve(self) -> None:
        """There is nothing on its way."""

    def clock(self) -> float:
        return self._broker._now_us / 1_000_000

    def wait_landed(self, receipt: LogReceipt, timeout_seconds: float) -> bool:
        return receipt.landed.wait(timeout_seconds)

    def close(self, timeout_seconds: float) -> None:
        del timeout_seconds
        self._broker._leave(self._identity)
