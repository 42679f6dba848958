"""Asking a worker whether it is there, by the questions that clients use."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from ledgermq.errors import LedgerMQError
from ledgermq.protocol.reasons import Reason
from ledgermq.wire.framing.codec import decode_record, encode_record
from ledgermq.wire.framing.confluent import headers_of, value_of
from ledgermq.wire.framing.headers import CONNECTION
from ledgermq.wire.framing.schemas import ASK
from ledgermq.wire.kafka.settings import client_options
from ledgermq.wire.topics.log_topics import Topics, lane_partition
from ledgermq.wire.topics.reading import offsets_of, reader_settings
from ledgermq.wire.topics.registry import Claim, RegistryError, list_queue_managers

ASK_AGAIN_SECONDS = 1.0


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

    def answered(claim: Claim) -> bool:
        def note(value: bytes) -> bool:
            if stopped is not None and _says_stopped(value):
                stopped.add(claim.queue_manager)
            return True

        return _answers(bootstrap, topics, claim, limit, hopeless, note)

    limit = time.monotonic() + timeout_seconds
    while time.monotonic() < limit and not hopeless():
        try:
            claims = list_queue_managers(bootstrap, topics, timeout_seconds=5.0)
            if claims and all(answered(one) for one in claims):
                return True
        except (RegistryError, KafkaException):
            pass
        time.sleep(0.1)
    return False


def wait_for_another_worker(
    bootstrap: str, topics: Topics, claim: Claim, worker: str, timeout_seconds: float
) -> bool:
    """Waits until a worker that is called otherwise answers for a queue manager; whether it did."""

    def is_by_another(value: bytes) -> bool:
        document = json.loads(decode_record(value)[1]["document"] or "null")
        # Without one it is a refusal, as of a queue manager that is stopped there.
        return document is None or document["worker"] != worker

    limit = time.monotonic() + timeout_seconds
    return _answers(bootstrap, topics, claim, limit, lambda: False, is_by_another)


def is_stopped(bootstrap: str, topics: Topics, claim: Claim, timeout_seconds: float) -> bool:
    """Whether a worker says that none can go on with a queue manager, as it is damaged."""
    told: list[bool] = []

    def note(value: bytes) -> bool:
        told.append(_says_stopped(value))
        return True

    limit = time.monotonic() + timeout_seconds
    with contextlib.suppress(KafkaException, LedgerMQError):
        _answers(bootstrap, topics, claim, limit, lambda: False, note)
    return any(told)


def _says_stopped(answer: bytes) -> bool:
    return bool(decode_record(answer)[1]["reason"] == Reason.QUEUE_MANAGER_STOPPED)


def _answers(
    bootstrap: str,
    topics: Topics,
    claim: Claim,
    limit: float,
    hopeless: Callable[[], bool],
    is_wanted: Callable[[bytes], bool],
) -> bool:
    connection = os.urandom(16)
    consumer = Consumer(reader_settings(bootstrap, "asking", {"fetch.wait.max.ms": 50}))
    producer = Producer(client_options(bootstrap, {"log_level": 0}))
    lane = TopicPartition(topics.outcomes, lane_partition(claim.partition, claim.lanes, 0))
    try:
        _, lane.offset = offsets_of(consumer, lane, 5.0)
        consumer.assign([lane])
        while time.monotonic() < limit and not hopeless():
            _ask(producer, topics, claim, connection)
            heard_by = time.monotonic() + ASK_AGAIN_SECONDS
            while time.monotonic() < min(heard_by, limit):
                record = consumer.poll(0.1)
                if record is None or record.error() is not None:
                    continue
                headers = dict(headers_of(record))
                mine = headers.get(CONNECTION) == connection.hex().encode()
                if mine and is_wanted(value_of(record) or b""):
                    return True
        return False
    finally:
        consumer.close()


def _ask(producer: Producer, topics: Topics, claim: Claim, connection: bytes) -> None:
    ask = {"connection": connection, "lane": 0, "question": 1, "kind": "QUEUE_MANAGER"}
    ask |= {"not_before": -1, "wait_ms": 0, "queue": ""}
    ask |= {"after_priority": 9, "after_sequence": -1, "limit": 1, "group_id": b""}
    producer.produce(
        topics.questions,
        value=encode_record(ASK, ask),
        key=connection.hex(),
        partition=claim.partition,
    )
    producer.flush(5.0)
