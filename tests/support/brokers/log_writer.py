"""Writes logs for tests: scripts of operations, folded as they grow, in memory or on a broker."""

from __future__ import annotations

import hashlib
import random
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from ledgermq.core.apply import apply, new_state
from ledgermq.core.entry import Listener
from ledgermq.core.state.manager import QueueManager
from ledgermq.protocol import operations as op
from ledgermq.protocol.outcomes import Addressed, Delivered
from ledgermq.wire.content.content import encode_content
from ledgermq.wire.framing.codec import (
    NOT_STAMPED,
    decode_operation,
    encode_chunk,
    encode_operation,
)
from ledgermq.wire.framing.headers import Headers, chunk_headers
from ledgermq.wire.topics.log_topics import Topics, lane_partition

START_US = 1_760_000_000_000_000
LANES = 4
LOG_APPEND_TIME = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A record of the operations log: what it holds, when it was appended, how it is stamped."""

    value: bytes | None
    time_us: int
    stamp: int = LOG_APPEND_TIME
    wait_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Range:
    """Builds delivery ranges: `Range(1, 3)` is deliveries 1 to 3."""

    first: int
    last: int

    def record(self) -> op.DeliveryRange:
        """The range as operations carry it."""
        return {"first": self.first, "last": self.last}


def ranges(*numbers: int | tuple[int, int]) -> list[op.DeliveryRange]:
    """Delivery ranges from single numbers and (first, last) pairs."""
    pairs = [one if isinstance(one, tuple) else (one, one) for one in numbers]
    return [{"first": first, "last": last} for first, last in pairs]


def fold(entries: Iterable[Entry]) -> tuple[QueueManager, list[list[Addressed]]]:
    """Folds entries; returns the state and each entry's outcomes with contents filled in."""
    state = new_state()
    contents: dict[tuple[int, int], bytes] = {}
    outcomes = []
    for position, entry in enumerate(entries):
        found = fold_one(state, contents, position, entry)
        outcomes.append(found)
    return state, outcomes


def fold_one(
    state: QueueManager,
    contents: dict[tuple[int, int], bytes],
    position: int,
    entry: Entry,
    listener: Listener | None = None,
) -> list[Addressed]:
    """Folds one entry as a worker does; a listener gets its moves."""
    operation: op.Operation = decode_operation(entry.value)
    time_us = entry.time_us
    if entry.stamp != LOG_APPEND_TIME:
        operation = NOT_STAMPED
        time_us = state.time
    if isinstance(operation, op.Put):
        for index, message in enumerate(operation.messages):
            contents[position, index] = message["content"]
    found = apply(state, operation, position, time_us, listener)
    for one in found:
        if isinstance(one.outcome, Delivered):
            for message in one.outcome.messages:
                message["content"] = contents[message["put_position"], message["put_index"]]
    return found


@dataclass(slots=True)
class Script:
    """A log that grows operation by operation, with the state and outcomes it has so far."""

    random: random.Random = field(default_factory=lambda: random.Random(7))
    entries: list[Entry] = field(default_factory=list)
    outcomes: list[list[Addressed]] = field(default_factory=list)
    state: QueueManager = field(default_factory=new_state)
    now_us: int = START_US
    step_us: int = 1_000
    # How long puts may wait for a quota.
    blocking_ms: Callable[[], int] = lambda: 0
    _contents: dict[tuple[int, int], bytes] = field(default_factory=dict)
    _wait_seconds: float = 0.0

    def add(self, operation: op.Operation) -> int:
        """Appends an operation; returns its position."""
        return self.add_value(encode_operation(operation))

    def add_value(self, value: bytes | None, stamp: int = LOG_APPEND_TIME) -> int:
        """Appends a record as it is; returns its position."""
        self.now_us += self.step_us
        position = len(self.entries)
        # Kafka stamps whole milliseconds.
        time_us = self.now_us // 1000 * 1000
        entry = Entry(value=value, time_us=time_us, stamp=stamp, wait_seconds=self._wait_seconds)
        self._wait_seconds = 0.0
        self.entries.append(entry)
        self.outcomes.append(fold_one(self.state, self._contents, position, entry))
        return position

    def wait(self, seconds: float) -> None:
        """Lets time pass before the next entry."""
        self.now_us += int(seconds * 1_000_000)
        self._wait_seconds += seconds

    def identifier(self) -> bytes:
        """A fresh identifier."""
        return self.random.randbytes(16)

    def session(
        self,
        mode: str = "CLIENT",
        *,
        connection: bytes | None = None,
        lane: int = 0,
        suspect_timeout_ms: int = 1_000,
        client_id: str = "",
        takeover: bytes = b"",
        redelivery_delay_ms: int = 0,
        unit_of_work_time_limit_ms: int = 0,
        unit_of_work_idle_limit_ms: int = 0,
    ) -> ScriptSession:
        """Opens a session."""
        handle = self.add(
            op.Open(
                connection=connection or self.identifier(),
                lane=lane,
                session_key=self.identifier(),
                acknowledge_mode=mode,
                suspect_timeout_ms=suspect_timeout_ms,
                client_id=client_id,
                takeover=takeover,
                redelivery_delay_ms=redelivery_delay_ms,
                unit_of_work_time_limit_ms=unit_of_work_time_limit_ms,
                unit_of_work_idle_limit_ms=unit_of_work_idle_limit_ms,
            )
        )
        return ScriptSession(script=self, handle=handle)

    def message(
        self, body: str = "x", priority: int = 4, header: op.Header | None = None
    ) -> op.PutMessage:
        """A message to put."""
        content = encode_content(body, client_time=self.now_us)
        message: op.PutMessage = {
            "message_id": self.identifier(),
            "priority": priority,
            "persistent": True,
            "content": content,
        }
        if header is not None:
            message["header"] = header
        return message

    def in_flight(self, session: ScriptSession) -> list[int]:
        """Delivery numbers in flight of a session."""
        known = self.state.sessions.get(session.handle)
        return list(known.deliveries) if known else []


def color_header(color: str) -> op.Header:
    """A header with a property color, and a number beside it."""
    return {
        "properties": {"color": color, "size": len(color)},
        "correlation_id": None,
        "type": None,
        "time_to_live_ms": 0,
        "delivery_delay_ms": 0,
        "age_ms": 0,
    }


@dataclass(slots=True)
class ScriptSession:
    """A session of a script; numbers its operations."""

    script: Script
    handle: int
    number: int = 0
    handed: int = 0

    def send(self, kind: Callable[..., op.Operation], **fields: Any) -> int:
        """Appends the session's next operation; returns its position."""
        self.number += 1
        if kind is op.Put:
            fields.setdefault("blocking_ms", self.script.blocking_ms())
        return self.again(kind, self.number, **fields)

    def again(self, kind: Callable[..., op.Operation], number: int, **fields: Any) -> int:
        """Appends an operation under a number of one's choice."""
        fields.setdefault("answered_through", max(0, number - 1))
        fields.setdefault("handed_through", self.handed)
        return self.script.add(kind(session=self.handle, session_sequence=number, **fields))

    def put(self, queue: str, *bodies: str, priority: int = 4) -> int:
        """Puts messages; returns the position."""
        messages = [self.script.message(body, priority) for body in bodies]
        return self.send(op.Put, destination="queue:" + queue, messages=messages)

    def publish(self, topic: str, *bodies: str, priority: int = 4, color: str = "") -> int:
        """Puts messages to a topic, with a property color if given; returns the position."""
        header = color_header(color) if color else None
        messages = [self.script.message(body, priority, header) for body in bodies]
        return self.send(op.Put, destination="topic:" + topic, messages=messages)

    def subscribe(self, topic: str, number: int = 1, credit: int = 0, **fields: Any) -> None:
        """Opens a consumer of a topic and gives it credit."""
        self.send(op.OpenConsumer, consumer=number, destination="topic:" + topic, **fields)
        if credit:
            self.get(credit, number)

    def consumer(self, queue: str, number: int = 1, credit: int = 0, **fields: Any) -> None:
        """Opens a consumer and gives it credit."""
        self.send(op.OpenConsumer, consumer=number, destination="queue:" + queue, **fields)
        if credit:
            self.get(credit, number)

    def get(self, credit: int, number: int = 1) -> int:
        """Grants credit."""
        return self.send(op.Get, consumer=number, credit=credit)

    def acknowledge(self, *numbers: int | tuple[int, int]) -> int:
        """Acknowledges deliveries."""
        return self.send(op.Acknowledge, deliveries=ranges(*numbers))

    def commit(self, *numbers: int | tuple[int, int], puts: int | None = None) -> int:
        """Commits; the number of puts is what the unit of work holds unless given."""
        if puts is None:
            session = self.script.state.sessions[self.handle]
            puts = sum(len(messages) for messages in session.open_puts.values())
            puts += sum(len(one.messages) for one in session.blocked.values())
        return self.send(op.Commit, deliveries=ranges(*numbers), puts=puts)

    def rollback(self, *seen: int | tuple[int, int]) -> int:
        """Rolls back."""
        return self.send(op.Rollback, seen=ranges(*seen))

    def recover(self, *seen: int | tuple[int, int]) -> int:
        """Recovers."""
        return self.send(op.Recover, seen=ranges(*seen))

    def close(self, *seen: int | tuple[int, int]) -> int:
        """Closes the session."""
        return self.send(op.Close, seen=ranges(*seen))


# Partition, key, value and headers of a record.
Chunk = tuple[int, bytes, bytes, Headers]


def chain_of(entries: list[Entry]) -> list[bytes]:
    """The digest chain at each position, as PROTOCOL.md §10 defines it."""
    found, chain = [], bytes(32)
    for offset, entry in enumerate(entries):
        head = offset.to_bytes(8, "big") + (entry.time_us // 1000).to_bytes(8, "big")
        chain = hashlib.sha256(chain + head + (entry.value or b"")).digest()
        found.append(chain)
    return found


def chunks(
    outcomes: list[list[Addressed]],
    partition: int,
    chain: list[bytes],
    size: int = 50,
    queue_manager: str = "QM1",
) -> list[Chunk]:
    """Outcomes as records of the lanes, in the order of the log."""
    records: list[Chunk] = []
    pending: dict[bytes, list[Addressed]] = {}

    def add(lane: int, group: list[Addressed]) -> None:
        first, last, connection = group[0].outcome, group[-1].outcome, group[0].connection
        previous = (group[0].previous_position, group[0].previous_index)
        found = [one.outcome for one in group]
        name = "ledgermq.outcome.Chunk"
        records.append(
            (
                lane_partition(partition, LANES, lane),
                (connection or b"").hex().encode(),
                encode_chunk(*previous, found, chain[last.position]),
                chunk_headers(queue_manager, connection, first.position, first.index, name),
            )
        )

    def flush(connection: bytes) -> None:
        group = pending.pop(connection)
        add(group[0].lane, group)

    for found in outcomes:
        for one in found:
            if one.connection is None:
                add(0, [one])
                continue
            pending.setdefault(one.connection, []).append(one)
            if len(pending[one.connection]) >= size:
                flush(one.connection)
    for connection in list(pending):
        flush(connection)
    return records


def append_operations(
    bootstrap: str, topics: Topics, queue_manager: str, partition: int, entries: list[Entry]
) -> list[Entry]:
    """Appends entries to the ledger; returns them with the append times that the log gave."""
    from ledgermq.wire.topics.appending import numbered_producer

    settings = {"bootstrap.servers": bootstrap, "linger.ms": 5, "message.max.bytes": 9_000_000}
    producer = numbered_producer(settings)
    stamped: dict[int, int] = {}

    def note(problem: Any, record: Any) -> None:
        assert problem is None, problem
        stamped[record.offset()] = record.timestamp()[1]

    for entry in entries:
        if entry.wait_seconds:
            producer.flush(30)
            time.sleep(entry.wait_seconds)
        while True:
            try:
                producer.produce(
                    topics.operations,
                    key=queue_manager,
                    value=entry.value,
                    partition=partition,
                    on_delivery=note,
                )
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
    assert producer.flush(60) == 0
    first = min(stamped, default=0)
    return [replace(entry, time_us=stamped[first + at] * 1000) for at, entry in enumerate(entries)]


def append_records(bootstrap: str, topic: str, records: Iterable[tuple[Any, ...]]) -> None:
    """Appends records to a log topic: partition, key, value and, if there are any, headers."""
    from confluent_kafka import Producer

    settings = {"bootstrap.servers": bootstrap, "linger.ms": 5, "message.max.bytes": 11_000_000}
    producer = Producer(settings)
    problems: list[Any] = []
    for partition, key, value, *headers in records:
        while True:
            try:
                producer.produce(
                    topic,
                    key=key,
                    value=value,
                    partition=partition,
                    headers=headers[0] if headers else None,
                    on_delivery=lambda problem, _: problems.append(problem) if problem else None,
                )
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
    assert producer.flush(60) == 0
    assert not problems, problems
