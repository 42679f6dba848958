"""A client made of the wire format alone: for tests of the processor that want no other code."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from ledgermq.protocol import operations as op
from ledgermq.protocol.outcomes import Delivered, Opened, Outcome, Reply
from ledgermq.wire.framing.codec import (
    decode_chunk,
    decode_record,
    encode_operation,
    encode_record,
    full_name_of,
)
from ledgermq.wire.framing.confluent import headers_of, value_of
from ledgermq.wire.framing.headers import CONNECTION, operation_headers, with_identity
from ledgermq.wire.topics.log_topics import Topics, lane_partition
from ledgermq.wire.topics.reading import offsets_of
from ledgermq.wire.topics.registry import Claim


class RawClient:
    """A connection: writes operations and questions, reads its lane and checks its chain."""

    def __init__(self, bootstrap: str, topics: Topics, claim: Claim, lane: int = 0) -> None:
        self.topics = topics
        self.claim = claim
        self.lane = lane
        self.connection = os.urandom(16)
        self.outcomes: dict[tuple[int, int], Outcome] = {}
        self.unchained: list[Outcome] = []
        self.answers: dict[int, dict[str, Any]] = {}
        self.holes: list[tuple[int, int]] = []
        self.repeats = 0
        self._last = (-1, -1)
        self._question = 0
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 0,
                "message.max.bytes": 10 * 1024 * 1024,
            }
        )
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "raw",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "fetch.wait.max.ms": 50,
            }
        )
        place = TopicPartition(topics.outcomes, lane_partition(claim.partition, claim.lanes, lane))
        _, place.offset = offsets_of(self._consumer, place, 10.0)
        self._consumer.assign([place])

    def write(
        self, operation: op.Operation, session: int = -1, sequence: int = 0, **raw: Any
    ) -> list[int]:
        """Writes an operation; the list gets its position once it is appended."""
        shared = operation_headers(
            self.claim.queue_manager, self.connection, self.lane, session, full_name_of(operation)
        )
        headers = with_identity(shared, session, sequence)
        return self.write_raw(encode_operation(operation), headers=headers, **raw)

    def write_raw(self, value: bytes | None, **more: Any) -> list[int]:
        """Writes any bytes to the operations log."""
        appended: list[int] = []
        problems: list[Any] = []

        def delivered(error: Any, message: Any) -> None:
            if error is not None:
                problems.append(error)
            else:
                appended.append(message.offset())

        self._producer.produce(
            self.topics.operations,
            value=value,
            key=self.claim.queue_manager.encode(),
            partition=self.claim.partition,
            on_delivery=delivered,
            **more,
        )
        self._producer.poll(0)
        return appended

    def flush(self) -> None:
        """Waits until everything written is appended."""
        assert self._producer.flush(30) == 0, "the broker did not take everything"

    def beat(self) -> None:
        """Writes a heartbeat."""
        self._side("ledgermq.question.Heartbeat", {"connection": self.connection})

    def ask(self, kind: str, *, wait_seconds: float = 20.0, **fields: Any) -> dict[str, Any]:
        """Asks and waits for the answer."""
        number = self.ask_only(kind, **fields)
        self.read_until(lambda: number in self.answers, wait_seconds)
        return self.answers[number]

    def ask_only(self, kind: str, **fields: Any) -> int:
        """Asks; the number of the question."""
        self._question += 1
        ask = {
            "connection": self.connection,
            "lane": self.lane,
            "question": self._question,
            "kind": kind,
            "not_before": -1,
            "wait_ms": 0,
            "queue": "",
            "after_priority": 9,
            "after_sequence": -1,
            "limit": 100,
            "group_id": b"",
        }
        self._side("ledgermq.question.Ask", ask | fields)
        return self._question

    def _side(self, full_name: str, datum: dict[str, Any]) -> None:
        self._producer.produce(
            self.topics.questions,
            value=encode_record(full_name, datum),
            key=self.connection.hex(),
            partition=self.claim.partition,
        )
        self.flush()

    def read(self, seconds: float) -> None:
        """Reads what comes for a while, at most until something came."""
        first = self._consumer.poll(seconds)
        if first is None:
            return
        for message in [first, *self._consumer.consume(num_messages=500, timeout=0)]:
            if message.error() is not None:
                raise AssertionError(message.error())
            headers = dict(headers_of(message))
            if headers.get(CONNECTION) == self.connection.hex().encode():
                self._take(headers["ce_type"].decode(), value_of(message))

    def read_until(self, enough: Any, seconds: float = 20.0) -> None:
        """Reads until a condition holds."""
        limit = time.monotonic() + seconds
        while not enough():
            assert time.monotonic() < limit, "what was waited for did not come"
            self._producer.poll(0)
            self.read(0.1)

    def _take(self, full_name: str, value: bytes | None) -> None:
        if full_name == "ledgermq.question.Answer":
            _, answer = decode_record(value)
            self.answers[answer["question"]] = answer
            return
        chunk = decode_chunk(value)
        if chunk.previous_index == -2:
            self.unchained += chunk.outcomes
            return
        previous = (chunk.previous_position, chunk.previous_index)
        for outcome in chunk.outcomes:
            identity = (outcome.position, outcome.index)
            if identity <= self._last:
                self.repeats += 1
                assert self.outcomes[identity] == outcome, f"outcome {identity} changed"
            else:
                if previous not in (self._last, (-1, -1)):
                    self.holes.append(previous)
                self.outcomes[identity] = outcome
                self._last = identity
            previous = identity

    def open(self, mode: str = "TRANSACTED", suspect_timeout_ms: int = 45_000) -> RawSession:
        """Opens a session and waits for its handle."""
        key = os.urandom(16)
        self.write(
            op.Open(
                connection=self.connection,
                lane=self.lane,
                session_key=key,
                acknowledge_mode=mode,
                suspect_timeout_ms=suspect_timeout_ms,
                client="raw",
            )
        )
        self.flush()

        def opened() -> list[Opened]:
            found = (one for one in self.outcomes.values() if isinstance(one, Opened))
            return [one for one in found if one.session_key == key]

        self.read_until(opened)
        return RawSession(self, opened()[0].session)

    def close(self) -> None:
        """Lets go of the connections."""
        self._consumer.close()


@dataclass
class RawSession:
    """A session of a raw client: numbers its operations."""

    client: RawClient
    handle: int
    sequence: int = 0
    answered: int = 0
    positions: dict[int, list[int]] = field(default_factory=dict)

    def write(self, kind: type[op.SessionOperation], **fields: Any) -> int:
        """Writes the session's next operation; its number."""
        self.sequence += 1
        operation = kind(
            session=self.handle,
            session_sequence=self.sequence,
            answered_through=self.answered,
            **fields,
        )
        self.positions[self.sequence] = self.client.write(operation, self.handle, self.sequence)
        return self.sequence

    def reply(self, number: int, seconds: float = 20.0) -> Outcome:
        """Waits for the reply to an operation; tells the worker that it came."""
        self.client.flush()
        found: list[Reply] = []

        def there() -> bool:
            found[:] = [
                one
                for one in self.client.outcomes.values()
                if isinstance(one, Reply)
                and one.session == self.handle
                and one.session_sequence == number
            ]
            return bool(found)

        self.client.read_until(there, seconds)
        self.answered = max(self.answered, number)
        return found[0]

    def do(self, kind: type[op.SessionOperation], **fields: Any) -> Outcome:
        """Writes an operation and waits for its reply."""
        return self.reply(self.write(kind, **fields))

    def put(self, destination: str, count: int = 1, size: int = 20, priority: int = 4) -> int:
        """Writes a Put of messages with bodies of their own; its number."""
        messages: list[op.PutMessage] = [
            {
                "message_id": os.urandom(16),
                "priority": priority,
                "persistent": True,
                "content": f"{self.handle}:{self.sequence + 1}:{index}:".encode().ljust(size, b"."),
            }
            for index in range(count)
        ]
        return self.write(op.Put, destination=destination, messages=messages)

    def consumer(self, number: int, destination: str, credit: int) -> Outcome:
        """Opens a consumer and gives it credit."""
        self.do(op.OpenConsumer, consumer=number, destination=destination)
        return self.do(op.Get, consumer=number, credit=credit)

    @property
    def delivered(self) -> list[Delivered]:
        """All Delivered outcomes of this session so far."""
        found = (one for one in self.client.outcomes.values() if isinstance(one, Delivered))
        return [one for one in found if one.session == self.handle]

    @property
    def deliveries(self) -> int:
        """How many messages were delivered so far."""
        return sum(len(one.messages) for one in self.delivered)
