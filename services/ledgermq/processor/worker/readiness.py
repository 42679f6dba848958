"""Asking a worker whether it is there, by the questions that clients use."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from ledgermq.errors import LedgerMQError
from ledgermq.protocol.reasons import Reason
from ledgermq.wire.framing.codec import decode_record, encode_record
from ledgermq.wire.framing.confluent import headers_of, value_of
from ledgermq.wire.framing.headers import CONNECTION
from ledgermq.wire.framing.schemas import ASK
from ledgermq.wire.kafka.settings import client_options
from ledgermq.wire.topics.ledger import Ledger
from ledgermq.wire.topics.log_topics import Topics
from ledgermq.wire.topics.reading import offsets_of, reader_settings
from ledgermq.wire.topics.registry import Claim, RegistryError, list_queue_managers

ASK_AGAIN_SECONDS = 1.0
# How long a worker is asked whether it has stopped a queue manager.
STOPPED_SECONDS = 5.0


def wait_for_worker(
    bootstrap: str,
    topic_prefix: str,
    timeout_seconds: float,
    hopeless: Callable[[], bool] = lambda: False,
    stopped: set[str] | None = None,
) -> bool:
    """Waits until a worker answers for every queue manager in the registry; whether it did.

    Those that it says to have stopped are added to a set.
    """
    topics = Topics(topic_prefix)
    limit = time.monotonic() + timeout_seconds

    def answered(claim: Claim) -> bool:
        answer = next(_answers(Ledger(bootstrap, topics, claim, 5.0), limit, hopeless), None)
        if answer is not None and stopped is not None and _says_stopped(answer):
            stopped.add(claim.queue_manager)
        return answer is not None

    while time.monotonic() < limit and not hopeless():
        try:
            claims = list_queue_managers(bootstrap, topics, timeout_seconds=5.0)
            if claims and all(answered(one) for one in claims):
                return True
        except (RegistryError, KafkaException):
            pass
        time.sleep(0.1)
    return False


def wait_for_another_worker(ledger: Ledger, worker: str) -> bool:
    """Waits until a worker that is called otherwise answers for a queue manager; whether it did."""
    answers = _answers(ledger, time.monotonic() + ledger.timeout_seconds)
    documents = (json.loads(one["document"] or "null") for one in answers)
    # Without a document it is a refusal, as of a queue manager that is stopped there.
    return any(one is None or one["worker"] != worker for one in documents)


def is_stopped(ledger: Ledger) -> bool:
    """Whether a worker says that none can go on with a queue manager, as it is damaged."""
    limit = time.monotonic() + STOPPED_SECONDS
    try:
        answer = next(_answers(ledger, limit), None)
    except (KafkaException, LedgerMQError):
        return False
    return answer is not None and _says_stopped(answer)


def _says_stopped(answer: dict[str, Any]) -> bool:
    return bool(answer["reason"] == Reason.QUEUE_MANAGER_STOPPED)


def _answers(
    ledger: Ledger, limit: float, hopeless: Callable[[], bool] = lambda: False
) -> Iterator[dict[str, Any]]:
    """What workers answer for a queue manager, which is asked of them again and again."""
    connection = os.urandom(16)
    consumer = Consumer(reader_settings(ledger.bootstrap, "asking", {"fetch.wait.max.ms": 50}))
    producer = Producer(client_options(ledger.bootstrap, {"log_level": 0}))
    lane = TopicPartition(ledger.topics.outcomes, ledger.lanes[0])
    with closing(consumer):
        _, lane.offset = offsets_of(consumer, lane, 5.0)
        consumer.assign([lane])
        while time.monotonic() < limit and not hopeless():
            _ask(producer, ledger, connection)
            heard_by = time.monotonic() + ASK_AGAIN_SECONDS
            while time.monotonic() < min(heard_by, limit):
                record = consumer.poll(0.1)
                if record is None or record.error() is not None:
                    continue
                headers = dict(headers_of(record))
                if headers.get(CONNECTION) == connection.hex().encode():
                    yield decode_record(value_of(record))[1]


def _ask(producer: Producer, ledger: Ledger, connection: bytes) -> None:
    ask = {"connection": connection, "lane": 0, "question": 1, "kind": "QUEUE_MANAGER"}
    ask |= {"not_before": -1, "wait_ms": 0, "queue": ""}
    ask |= {"after_priority": 9, "after_sequence": -1, "limit": 1, "group_id": b""}
    producer.produce(
        ledger.topics.questions,
        value=encode_record(ASK, ask),
        key=connection.hex(),
        partition=ledger.claim.partition,
    )
    producer.flush(5.0)
