"""A connection over a route by hand: a queue manager that does what the test tells it to."""

from __future__ import annotations

import dataclasses
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ledgermq.client.connection import Connection
from ledgermq.client.link.route import Route
from ledgermq.client.settings import ConnectionSettings, settings_from
from ledgermq.protocol.answers import Answer
from ledgermq.protocol.operations import Close, Open, Operation, Recover, Rollback
from ledgermq.protocol.outcomes import Delivered, Opened, Outcome
from ledgermq.wire.framing.answers import encode_answer
from ledgermq.wire.framing.codec import encode_chunk
from support.brokers.hand_made import NotingLog, accepted, ended, refused, returned


class HandLane:
    """A lane that brings what the test puts on it.

    Attributes:
        missing: What the next read says of missing records.
        time_us: The time of the log, as far as known.
        failures: Raised by the next reads, one each.
        closed: Whether it was left.
    """

    lane = 2

    def __init__(self) -> None:
        self.missing = False
        self.time_us = -1
        self.failures: deque[Exception] = deque()
        self.closed = False
        self._values: list[bytes] = []
        self._over = False
        self._changed = threading.Condition()

    def end(self) -> None:
        """Nothing more will come: nobody need wait for it."""
        with self._changed:
            self._over = True
            self._changed.notify()

    def put(self, value: bytes) -> None:
        """Lets the lane bring a record."""
        with self._changed:
            self._values.append(value)
            self._changed.notify()

    def read(self, timeout_seconds: float) -> tuple[list[bytes], bool]:
        """What was put meanwhile."""
        with self._changed:
            if not (self._values or self.failures or self.missing or self._over):
                self._changed.wait(timeout_seconds)
            if self.failures:
                raise self.failures.popleft()
            found, self._values = self._values, []
            missing, self.missing = self.missing, False
        return found, missing

    def log_time(self) -> int:
        """What the test says."""
        return self.time_us

    def close(self) -> None:
        """Leaves it."""
        self.closed = True


class HandRoute:
    """A route whose queue manager opens and ends sessions and accepts everything else.

    Attributes:
        silent: The kinds of operations that get no answer.
        refusing: The kinds of operations that are refused, and for which reason.
        settings: What the connection was made with.
        transacted: The transacted sessions, by handle.
    """

    def __init__(self) -> None:
        self.lane = HandLane()
        self.log = NotingLog()
        self.log.on_write = self._answer
        self.log.on_close = self.lane.end
        self.silent: set[type[Operation]] = set()
        self.refusing: dict[type[Operation], str] = {}
        self.settings: ConnectionSettings | None = None
        self.transacted: set[int] = set()
        self._last = (-1, -1)
        self._lock = threading.Lock()

    def __call__(self, settings: ConnectionSettings, deadline: float) -> Route:
        """Both directions, as a connection wants them."""
        del deadline
        self.settings = settings
        return Route(self.lane, self.log)

    def connect(self, timeout: float = 20.0, **settings: Any) -> Connection:
        """A connection over it."""
        given = settings_from("kafka://h:1/QM1", timeout=timeout, **settings)
        return Connection(given, route=self)

    @contextmanager
    def connected(self) -> Iterator[Connection]:
        """A connection that repeats nothing, however slow the machine is, and that is dropped at
        the end without a word.
        """
        opened = self.connect()
        opened._running.heartbeats.stop()
        yield opened
        opened._running.stop(0.0)

    def written(self, kind: type[Operation]) -> list[Any]:
        """The operations of a kind, in the order written."""
        return [one for one in self.log.operations if type(one) is kind]

    def tell(self, outcome: Outcome) -> None:
        """Lets the lane bring an outcome as the next of the chain, at its position or later."""
        with self._lock:
            position, index = self._last
            if outcome.position > position:
                place = (outcome.position, 0)
            else:
                place = (position, index + 1)
            moved = dataclasses.replace(outcome, position=place[0], index=place[1])
            self.lane.put(encode_chunk(*self._last, [moved]))
            self._last = place

    def in_flight(self, *deliveries: Delivered) -> None:
        """Answers the next questions with what is in flight."""

        def answer(ask: dict[str, Any]) -> None:
            self.lane.put(encode_answer(ask["question"], 0, 0, Answer(outcomes=deliveries)))

        self.log.on_ask = answer

    def _answer(self, operation: Any) -> None:
        position = len(self.log.operations) - 1
        kind = type(operation)
        session = getattr(operation, "session", -1)
        number = getattr(operation, "session_sequence", 0)
        if kind in self.silent:
            return
        if kind in self.refusing:
            self.tell(refused(position, session, number, self.refusing[kind]))
        elif isinstance(operation, Open):
            key = operation.session_key
            if operation.acknowledge_mode == "TRANSACTED":
                self.transacted.add(position)
            self.tell(Opened(position=position, index=0, session_key=key, session=position))
        elif isinstance(operation, Rollback | Recover):
            self.tell(returned(position, session, number))
        elif isinstance(operation, Close):
            self.tell(ended(position, session, number, reason="CLOSED"))
        else:
            self.tell(accepted(position, session, number))
