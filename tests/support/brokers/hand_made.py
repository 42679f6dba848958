"""A connection's parts without a broker: a log that only notes, and chunks and answers by hand."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from ledgermq.client.engine.engine import Engine
from ledgermq.client.engine.work import Services, Work
from ledgermq.client.link.questions import Questions
from ledgermq.client.link.router import Router
from ledgermq.client.link.transport import LogReceipt
from ledgermq.client.problems import Problems
from ledgermq.client.settings import ConnectionSettings
from ledgermq.protocol.answers import Answer
from ledgermq.protocol.operations import Operation
from ledgermq.protocol.outcomes import (
    Accepted,
    Delivered,
    DeliveredMessage,
    Outcome,
    Refused,
    Returned,
    SessionEnded,
)
from ledgermq.wire.framing.answers import encode_answer
from ledgermq.wire.framing.codec import decode_operation, decode_record, encode_chunk
from ledgermq.wire.framing.headers import Headers

IDENTITY = bytes(range(16))
# Nothing is asked for, and nobody told.
SERVICES = Services(
    questions=SimpleNamespace(in_flight_of=lambda _: set()),  # type: ignore[arg-type]
    name_temporary=lambda kind: f"{kind}:temporary/1",
    soon=lambda: None,
    closed=lambda _: None,
)


class NotingLog:
    """A way to the log that notes what was written, and answers nothing by itself.

    Attributes:
        operations: What was written, in order.
        headers: The headers of each.
        asks: The questions, in order.
        beats: How many heartbeats.
        now: What its clock shows, in seconds.
        is_held_up: Whether records wait for a broker.
        heard_at: When, by that, the last heartbeat was written that is on the log.
        served: How often reports were served.
        on_write: Called after each operation, in the thread of the writer.
        on_ask: Called after each question, likewise.
        on_close: Called at the end.
    """

    def __init__(self) -> None:
        self.failed = False
        self.refused = None
        self.away = ""
        self.is_held_up = False
        self.operations: list[Any] = []
        self.headers: list[dict[str, bytes]] = []
        self.asks: list[dict[str, Any]] = []
        self.beats = 0
        self.now = 0.0
        self.heard_at = math.inf
        self.served = 0
        self.on_write: Callable[[Any], None] = lambda _: None
        self.on_ask: Callable[[dict[str, Any]], None] = lambda _: None
        self.on_close: Callable[[], None] = lambda: None

    def write(self, value: bytes, headers: Headers, receipt: LogReceipt | None = None) -> None:
        """Notes an operation."""
        operation = decode_operation(value)
        self.operations.append(operation)
        self.headers.append(dict(headers))
        if receipt is not None:
            receipt.landed.set()
        self.on_write(operation)

    def ask(self, value: bytes) -> None:
        """Notes a question."""
        name, datum = decode_record(value)
        assert name == "ledgermq.question.Ask"
        self.asks.append(datum)
        self.on_ask(datum)

    def beat(self) -> None:
        """Counts a heartbeat."""
        self.beats += 1

    def serve(self) -> None:
        """Counts."""
        self.served += 1

    def clock(self) -> float:
        """Stands still until the test moves it."""
        return self.now

    def wait_landed(self, receipt: LogReceipt, timeout_seconds: float) -> bool:
        """Whether it landed; nothing lands later."""
        del timeout_seconds
        return receipt.landed.is_set()

    def close(self, timeout_seconds: float) -> None:
        """Nothing is under way."""
        self.on_close()

    def kinds(self) -> list[str]:
        """The names of the operations."""
        return [type(one).__name__ for one in self.operations]

    def numbers(self, kind: type[Operation]) -> list[int]:
        """The numbers of the operations of a kind, in the order written."""
        return [one.session_sequence for one in self.operations if type(one) is kind]


class Desk:
    """The router of a connection, its questions, and a log that only notes.

    Attributes:
        settled: What became of operations that were given `note`, in order.
        works: What sessions do, by their engine.
    """

    def __init__(self) -> None:
        self.log = NotingLog()
        settings = ConnectionSettings(
            bootstrap="h:1", queue_manager="QM1", identity=IDENTITY, timeout_seconds=20
        )
        self.questions = Questions(settings, 2, self.log)
        self.router = Router(self.questions, Problems())
        self.settled: list[Any] = []
        self.works: dict[Engine, Work] = {}

    def core(self, handle: int, mode: str = "CLIENT") -> Engine:
        """An engine, with its work, that is not known to the router yet; waits for nothing."""
        engine = Engine(
            handle,
            mode,
            ConnectionSettings(
                bootstrap="h:1", queue_manager="QM1", identity=IDENTITY, timeout_seconds=0.01
            ),
            lane=2,
            transport=self.log,
        )
        self.works[engine] = Work(engine, SERVICES)
        return engine

    def session(self, handle: int, mode: str = "CLIENT") -> Engine:
        """A session that the router knows."""
        core = self.router.sessions[handle] = self.core(handle, mode)
        return core

    def write(self, core: Engine, kind: type[Operation], **fields: Any) -> Any:
        """Writes an operation whose end is noted in `settled`."""
        with core.lock:
            return core.write_locked(kind, on_settled=self.settled.append, **fields)

    def chunk(self, previous: tuple[int, int], *outcomes: Outcome) -> None:
        """Lets the lane bring a chunk."""
        self.router.take([encode_chunk(*previous, outcomes)])

    def answer(self, number: int, position: int, **fields: Any) -> None:
        """Lets the lane bring an answer."""
        self.router.take([encode_answer(number, position, 0, Answer(**fields))])

    def resynced(
        self,
        number: int,
        last: tuple[int, int],
        sessions: Sequence[int],
        *outcomes: Outcome,
        position: int | None = None,
    ) -> None:
        """Answers RESYNC: the sessions that live, and the chain's last outcome."""
        told = [{"session": one, "session_key": key_of(one).hex()} for one in sessions]
        document = {"last_position": last[0], "last_index": last[1], "sessions": told}
        at = last[0] if position is None else position
        self.answer(number, at, document=document, outcomes=outcomes)


def key_of(handle: int) -> bytes:
    """The session key of a session."""
    return handle.to_bytes(16, "big")


def accepted(position: int, session: int, number: int) -> Accepted:
    """A reply."""
    return Accepted(position=position, index=0, session=session, session_sequence=number)


def refused(position: int, session: int, number: int, reason: str, expected: int = 0) -> Refused:
    """A refusal."""
    return Refused(
        position=position,
        index=0,
        session=session,
        session_sequence=number,
        reason=reason,
        detail="so it is",
        expected_sequence=expected,
    )


def returned(position: int, session: int, number: int) -> Returned:
    """The reply to a rollback or recover of nothing."""
    return Returned(
        position=position,
        index=0,
        session=session,
        session_sequence=number,
        returned=0,
        discarded=0,
    )


def ended(position: int, session: int, number: int = 0, *, reason: str = "LOST") -> SessionEnded:
    """The end of a session: by the queue manager, or as the answer to a Close."""
    return SessionEnded(
        position=position,
        index=0,
        session=session,
        session_sequence=number,
        reason=reason,
        returned=3,
        discarded=2,
    )


def delivered(position: int, session: int, first: int, count: int, consumer: int = 1) -> Delivered:
    """Messages whose sequence numbers are their delivery numbers; index -1 as RESYNC tells them."""
    messages: list[DeliveredMessage] = [
        {
            "sequence": number,
            "put_position": 0,
            "put_index": 0,
            "message_id": key_of(number),
            "priority": 4,
            "persistent": True,
            "backout_count": 0,
            "enqueued_at": 0,
            "content": b"",
        }
        for number in range(first, first + count)
    ]
    return Delivered(
        position=position,
        index=-1,
        session=session,
        consumer=consumer,
        destination="queue:q",
        first_delivery=first,
        messages=messages,
    )


def got(route: Any, session: Any, count: int = 3, **options: Any) -> tuple[Any, list[Any]]:
    """A consumer of a session, and the messages that it was given."""
    consumer = session.consumer("queue:q", **options)
    route.tell(delivered(0, session.handle, 1, count, consumer._shared.buffer.number))
    return consumer, [consumer.receive(20) for _ in range(count)]
