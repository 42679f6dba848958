"""A worker without Faust, in a thread of the test, that can be told to lose, repeat and delay.

It folds with the one fold, has no checkpoints and keeps every body in memory. Tests of the client
use it where a fault must be planted; elsewhere they use the real worker.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from ledgermq.core.apply import apply, new_state
from ledgermq.core.queries import questions as query
from ledgermq.protocol.administration import bodies_in
from ledgermq.protocol.answers import Answer
from ledgermq.protocol.operations import Suspect
from ledgermq.protocol.outcomes import Delivered, Outcome, body_place
from ledgermq.wire.framing.answers import encode_answer
from ledgermq.wire.framing.codec import (
    decode_operation,
    decode_record,
    encode_chunk,
    encode_operation,
)
from ledgermq.wire.framing.headers import address_of, chunk_headers, operation_headers
from ledgermq.wire.framing.schemas import ANSWER
from ledgermq.wire.topics.log_topics import Topics, lane_partition
from ledgermq.wire.topics.reading import offsets_of
from ledgermq.wire.topics.registry import Claim

LOGGER = logging.getLogger("plain-worker")
CHUNK = "ledgermq.outcome.Chunk"


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A chunk before it is written: what a tampering test gets to see."""

    connection: bytes | None
    lane: int
    previous_position: int
    previous_index: int
    outcomes: list[Outcome]


def as_it_is(written: Written) -> list[Written]:
    """The tampering that does nothing."""
    return [written]


class PlainWorker:
    """Folds one queue manager from the start of its log.

    Attributes:
        tamper: Given each chunk, returns what is written in its place: [], [one], [one, one] ...
        answers: Given each question, says whether it is answered.
        state: The fold's state; look at it only when the worker is idle or stopped.
        operations: What was folded, repeats and refusals included.
    """

    def __init__(self, bootstrap: str, topics: Topics, claim: Claim) -> None:
        self.tamper: Callable[[Written], list[Written]] = as_it_is
        self.state = new_state()
        self.operations: list[Any] = []
        self.answers: Callable[[dict[str, Any]], bool] = lambda _: True
        self._topics = topics
        self._claim = claim
        self._contents: dict[int, list[bytes]] = {}
        self._running = threading.Event()
        self._running.set()
        self._stopped = False
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 0},
            logger=LOGGER,
        )
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": f"plain-worker-{topics.prefix}-{claim.queue_manager}",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "fetch.wait.max.ms": 50,
            },
            logger=LOGGER,
        )
        questions = TopicPartition(topics.questions, claim.partition)
        _, end = offsets_of(self._consumer, questions, 10.0)
        self._consumer.assign(
            [
                TopicPartition(topics.operations, claim.partition, 0),
                TopicPartition(topics.questions, claim.partition, end),
            ]
        )
        self._thread = threading.Thread(target=self._run, name="plain-worker", daemon=True)
        self._thread.start()

    def pause(self) -> None:
        """Folds and answers nothing until `resume`."""
        self._running.clear()

    def resume(self) -> None:
        """Goes on."""
        self._running.set()

    def stop(self) -> None:
        """Ends."""
        self._stopped = True
        self._running.set()
        self._thread.join()
        self._consumer.close()
        self._producer.flush(5)

    def suspect(self, *sessions: int) -> None:
        """Writes a Suspect, as a worker does that hears no heartbeats."""
        operation = Suspect(worker="plain", sessions=list(sessions))
        self._producer.produce(
            self._topics.operations,
            encode_operation(operation),
            partition=self._claim.partition,
            headers=operation_headers(
                self._claim.queue_manager, bytes(16), 0, -1, "ledgermq.operation.Suspect"
            ),
        )
        self._producer.flush(5)

    def _run(self) -> None:
        while not self._stopped:
            self._running.wait()
            record = self._consumer.poll(0.2)
            if record is None:
                continue
            if record.error() is not None:
                LOGGER.warning("%s", record.error().str())
                continue
            if not self._running.is_set():
                self._running.wait()
            if record.topic() == self._topics.operations:
                self._fold(record)
            else:
                self._answer(record)
            self._producer.poll(0)

    def _fold(self, record: Any) -> None:
        operation = decode_operation(record.value())
        self.operations.append(operation)
        position = record.offset()
        bodies = bodies_in(operation)
        if bodies is not None:
            self._contents[position] = bodies
        groups: dict[bytes | None, Written] = {}
        for connection, lane, previous_position, previous_index, outcome in apply(
            self.state, operation, position, record.timestamp()[1] * 1000
        ):
            if isinstance(outcome, Delivered):
                self._fill(outcome.messages)
            if connection is None:
                address = address_of(record.headers())
                connection, lane = address.connection, address.lane
            group = groups.get(connection)
            if group is None:
                group = groups[connection] = Written(
                    connection=connection,
                    lane=lane,
                    previous_position=previous_position,
                    previous_index=previous_index,
                    outcomes=[],
                )
            group.outcomes.append(outcome)
        for group in groups.values():
            for written in self.tamper(group):
                self.write(written)

    def _fill(self, messages: list[Any]) -> None:
        for message in messages:
            position, index = body_place(message)
            message["content"] = self._contents[position][index]

    def write(self, written: Written) -> None:
        """Writes a chunk to its lane."""
        first = written.outcomes[0]
        self._send(
            written.connection,
            written.lane,
            CHUNK,
            encode_chunk(written.previous_position, written.previous_index, written.outcomes),
            first.position,
            first.index,
        )

    def _send(
        self,
        connection: bytes | None,
        lane: int,
        name: str,
        value: bytes,
        position: int,
        index: int,
    ) -> None:
        self._producer.produce(
            self._topics.outcomes,
            value,
            b"" if connection is None else connection.hex().encode(),
            lane_partition(self._claim.partition, self._claim.lanes, max(lane, 0)),
            headers=chunk_headers(self._claim.queue_manager, connection, position, index, name),
        )

    def _answer(self, record: Any) -> None:
        name, ask = decode_record(record.value())
        if name != "ledgermq.question.Ask" or not self.answers(ask):
            return
        deadline = time.monotonic() + ask["wait_ms"] / 1000
        while self.state.position < ask["not_before"] and time.monotonic() < deadline:
            folding = self._consumer.poll(0.1)
            if folding is None or folding.error() is not None:
                continue
            if folding.topic() == self._topics.operations:
                self._fold(folding)
        told = Answer(reason="position-not-reached", detail="not there yet")
        if self.state.position >= ask["not_before"]:
            told = query.answer(self.state, ask, self._claim.queue_manager, "plain")
        for messages in told.unfilled:
            self._fill(messages)
        value = encode_answer(ask["question"], self.state.position, self.state.time, told)
        self._send(ask["connection"], ask["lane"], ANSWER, value, self.state.position, 0)
