"""The registry: which queue manager is which partition (PROTOCOL.md §1, D1).

A log of claims, folded from its start; the first valid claim counts, so that two writers who claim
at once agree on the outcome.
"""

from __future__ import annotations

import uuid
from typing import Final, NamedTuple

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)

from ledgermq.protocol.limits import is_name
from ledgermq.wire.codec import UndecodableError, decode_record, encode_record
from ledgermq.wire.topics import LANES_DEFAULT, Topics

__all__ = [
    "Claim",
    "RegistryError",
    "claim_queue_manager",
    "find_queue_manager",
    "list_queue_managers",
]

CLAIM: Final = "ledgermq.registry.Claim"


class RegistryError(RuntimeError):
    """The registry cannot be read or a claim cannot be made; the text says why."""


class Claim(NamedTuple):
    """A queue manager, its partition and its number of lanes."""

    queue_manager: str
    partition: int
    lanes: int


def list_queue_managers(
    bootstrap: str, topics: Topics | None = None, *, timeout_seconds: float = 15.0
) -> list[Claim]:
    """All queue managers by partition; RegistryError if the registry cannot be read."""
    topics = topics or Topics()
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"ledgermq-registry-{uuid.uuid4()}",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "enable.partition.eof": True,
            "isolation.level": "read_uncommitted",
            # The end is only told when a fetch that waits for more comes back empty.
            "fetch.wait.max.ms": 10,
            "log_level": 0,
        }
    )
    try:
        return _read(consumer, topics, timeout_seconds)
    except KafkaException as error:
        text = error.args[0].str()
        raise RegistryError(f"the registry at {bootstrap} cannot be read: {text}") from error
    finally:
        consumer.close()


def _read(consumer: Consumer, topics: Topics, timeout_seconds: float) -> list[Claim]:
    metadata = consumer.list_topics(timeout=timeout_seconds).topics
    if topics.registry not in metadata or topics.operations not in metadata:
        raise RegistryError(
            f"topic {topics.registry} or {topics.operations} does not exist: "
            "start a worker first, or check the topic prefix"
        )
    partitions = len(metadata[topics.operations].partitions)
    consumer.assign([TopicPartition(topics.registry, 0, OFFSET_BEGINNING)])
    claims: dict[int, Claim] = {}
    while True:
        record = consumer.poll(timeout_seconds)
        if record is None:
            raise RegistryError(f"topic {topics.registry} did not answer in {timeout_seconds} s")
        problem = record.error()
        if problem is not None:
            if problem.code() == KafkaError._PARTITION_EOF:
                return [claims[partition] for partition in sorted(claims)]
            raise KafkaException(problem)
        claim = _claim_from(record.value())
        if claim is None or not 0 <= claim.partition < partitions or claim.partition in claims:
            continue
        if claim.queue_manager not in {one.queue_manager for one in claims.values()}:
            claims[claim.partition] = claim


def _claim_from(value: bytes | None) -> Claim | None:
    """The claim in a record, or None for what is no claim: it then counts for nothing."""
    try:
        full_name, datum = decode_record(value)
    except UndecodableError:
        return None
    if full_name != CLAIM or not is_name(datum["queue_manager"]) or datum["lanes"] < 1:
        return None
    return Claim(datum["queue_manager"], datum["partition"], datum["lanes"])


def find_queue_manager(
    bootstrap: str, topics: Topics | None, name: str, *, timeout_seconds: float = 15.0
) -> Claim | None:
    """The claim of a queue manager, or None if nobody made one."""
    claims = list_queue_managers(bootstrap, topics, timeout_seconds=timeout_seconds)
    return next((one for one in claims if one.queue_manager == name), None)


def claim_queue_manager(
    bootstrap: str,
    topics: Topics | None,
    name: str,
    *,
    lanes: int = LANES_DEFAULT,
    timeout_seconds: float = 15.0,
) -> Claim:
    """The claim of a queue manager, made now if there is none.

    Raises RegistryError for a name that is none, or when every partition is taken.
    """
    topics = topics or Topics()
    if not is_name(name):
        raise RegistryError(f"{name!r} is no queue manager name: 1 to 128 of A-Z a-z 0-9 . _ / % -")
    tried: set[int] = set()
    while True:
        claims = list_queue_managers(bootstrap, topics, timeout_seconds=timeout_seconds)
        for one in claims:
            if one.queue_manager == name:
                return one
        partitions = _operations_partitions(bootstrap, topics, timeout_seconds)
        taken = {one.partition for one in claims} | tried
        free = [partition for partition in range(partitions) if partition not in taken]
        if not free:
            raise RegistryError(
                f"no partition is left for queue manager {name}: all {partitions} are taken, and "
                "the number is fixed; use another topic prefix for more"
            )
        tried.add(free[0])
        _write(bootstrap, topics, Claim(name, free[0], lanes), timeout_seconds)


def _operations_partitions(bootstrap: str, topics: Topics, timeout_seconds: float) -> int:
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
    metadata = producer.list_topics(topics.operations, timeout=timeout_seconds)
    return len(metadata.topics[topics.operations].partitions)


def _write(bootstrap: str, topics: Topics, claim: Claim, timeout_seconds: float) -> None:
    problems: list[KafkaError] = []
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "message.timeout.ms": int(timeout_seconds * 1000),
            "log_level": 0,
        }
    )
    producer.produce(
        topics.registry,
        key=claim.queue_manager,
        value=encode_record(CLAIM, claim._asdict()),
        partition=0,
        on_delivery=lambda problem, _: problems.append(problem) if problem else None,
    )
    if producer.flush(timeout_seconds) or problems:
        what = problems[0].str() if problems else "no answer"
        raise RegistryError(f"queue manager {claim.queue_manager} cannot be claimed: {what}")
