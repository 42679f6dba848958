"""A transaction that Kafka has decided and left open is finished, as Kafka decided it.

A broker that dies between the decision and the markers may lose the markers when it starts again,
and take the transaction for complete all the same (decision 0035): nobody reads on where it is
open, and Kafka does not tell the position that was noted in it. The markers that are missing are
written here, with the epoch of what is open: Kafka refuses them where another producer of the same
id has begun.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from itertools import groupby
from operator import attrgetter
from typing import Any, Final, NamedTuple

from aiokafka.client import AIOKafkaClient, CoordinationType
from aiokafka.errors import (
    ClusterAuthorizationFailedError,
    KafkaError,
    LeaderNotAvailableError,
    TopicAuthorizationFailedError,
    for_code,
)
from aiokafka.protocol.types import Boolean, CompactArray, Int16, Int32, Int64
from aiokafka.structs import TopicPartition

from ledgermq.errors import AccessDeniedError, BrokerUnavailableError
from ledgermq.processor.log.aiokafka_options import aiokafka_options
from ledgermq.processor.log.coordinators import look_up_coordinator
from ledgermq.processor.log.kafka_requests import (
    NAME,
    PARTITIONS,
    TAGS,
    KafkaRequest,
    request_kind,
)
from ledgermq.wire.kafka.settings import kafka_settings
from ledgermq.wire.topics.address import AddressError

# What this library reports of itself is raised, too.
logging.getLogger("aiokafka").addHandler(logging.NullHandler())

POSITIONS: Final = "__consumer_offsets"
DECIDED: Final = {"CompleteCommit": True, "CompleteAbort": False}
DECIDING: Final = ("PrepareCommit", "PrepareAbort")
PAUSE_SECONDS: Final = 0.1
# An address that does not answer must not take all the time.
REQUEST_MS: Final = 5_000


def _by_partition(*fields: tuple[str, Any]) -> CompactArray:
    parts = CompactArray(("partition", Int32), ("error_code", Int16), *fields, TAGS)
    return CompactArray(("topic", NAME), ("partitions", parts), TAGS)


_STATES: Final = request_kind(
    65,
    0,
    CompactArray(NAME),
    ("throttle_time_ms", Int32),
    (
        "states",
        CompactArray(
            ("error_code", Int16),
            ("transactional_id", NAME),
            ("state", NAME),
            ("timeout_ms", Int32),
            ("start_time_ms", Int64),
            ("producer_id", Int64),
            ("producer_epoch", Int16),
            ("topics", PARTITIONS),
            TAGS,
        ),
    ),
)
_PRODUCER: Final = CompactArray(
    ("producer_id", Int64),
    ("producer_epoch", Int32),
    ("last_sequence", Int32),
    ("last_timestamp", Int64),
    ("coordinator_epoch", Int32),
    ("transaction_offset", Int64),
    TAGS,
)
_PRODUCERS: Final = request_kind(
    61,
    0,
    PARTITIONS,
    ("throttle_time_ms", Int32),
    ("topics", _by_partition(("error_message", NAME), ("producers", _PRODUCER))),
)
_MARKERS: Final = request_kind(
    27,
    1,
    CompactArray(
        ("producer_id", Int64),
        ("producer_epoch", Int16),
        ("is_commit", Boolean),
        ("topics", PARTITIONS),
        ("coordinator_epoch", Int32),
        TAGS,
    ),
    ("markers", CompactArray(("producer_id", Int64), ("topics", _by_partition()), TAGS)),
)


class _NotYetError(KafkaError):
    """Kafka is still about it."""

    retriable = True

    def __str__(self) -> str:
        return str(self.args[0])


class State(NamedTuple):
    """What the coordinator knows of a transactional id."""

    state: str
    start_time_ms: int
    producer_id: int
    producer_epoch: int


class Open(NamedTuple):
    """A partition on which a transaction is open; positions sort before the topic's own."""

    is_topic: bool
    leader: int
    producer_epoch: int
    coordinator_epoch: int
    topic: str
    partition: int


def finish_transaction(
    bootstrap: str,
    name: str,
    topic: str,
    timeout_seconds: float,
    *,
    check_position: Callable[[], object],
) -> str:
    """Finishes the last transaction of a transactional id if Kafka left it open; says what it did.

    Does nothing, and says nothing, where all is well, or where Kafka cannot be asked.

    Args:
        bootstrap: Kafka's address.
        name: The transactional id.
        topic: Where its records are.
        timeout_seconds: How long it may take.
        check_position: Asks for the position, and raises if Kafka does not tell it; called where
            we may not look whether the transaction is open there.

    Raises:
        AccessDeniedError: It is open, and we may not finish it; beginning anew would make Kafka
            forget what it decided.
        BrokerUnavailableError: It is not known yet, or not finished.
    """
    try:
        options = aiokafka_options(AIOKafkaClient)
    except AddressError:
        return ""
    client_options = {"request_timeout_ms": REQUEST_MS, **options, "bootstrap_servers": bootstrap}
    return asyncio.run(_finish(client_options, name, topic, timeout_seconds, check_position))


async def _finish(
    client_options: dict[str, Any],
    name: str,
    topic: str,
    timeout_seconds: float,
    check_position: Callable[[], object],
) -> str:
    client = AIOKafkaClient(**client_options)
    failed: KafkaError | None = None
    try:
        await asyncio.wait_for(client.bootstrap(), timeout_seconds)
    except (KafkaError, OSError, TimeoutError):
        await client.close()
        return ""
    try:
        async with asyncio.timeout(timeout_seconds):
            while True:
                try:
                    return await _finish_once(client, name, topic, check_position)
                except KafkaError as error:
                    if not error.retriable:
                        return ""
                    failed = error
                await client.force_metadata_update()
                await asyncio.sleep(PAUSE_SECONDS)
    except NotImplementedError:
        return ""
    except TimeoutError as error:
        raise BrokerUnavailableError(
            f"Kafka does not tell how transaction {name} ended: {failed or 'no answer'}; run it "
            "again when Kafka answers"
        ) from error
    finally:
        await client.close()


async def _finish_once(
    client: AIOKafkaClient, name: str, topic: str, check_position: Callable[[], object]
) -> str:
    before = await _state(client, name)
    if before.state in DECIDING:
        raise _NotYetError(f"it is {before.state}")
    if before.state not in DECIDED:
        return ""
    found, is_all = await _open(client, topic, before.producer_id)
    # One that somebody else began in between is none that Kafka left.
    if await _state(client, name) != before:
        return ""
    if not found:
        if not is_all:
            check_position()
        return ""
    verb = "commit" if DECIDED[before.state] else "abort"
    places = _places(found)
    try:
        if not is_all:
            raise TopicAuthorizationFailedError(POSITIONS)
        # The topic comes last: if this ends in between, the next one finds it still open.
        for _, same in groupby(sorted(found), key=attrgetter(*Open._fields[:-1])):
            await _write(client, before, list(same))
    except (ClusterAuthorizationFailedError, TopicAuthorizationFailedError) as error:
        raise AccessDeniedError(
            f"Kafka decided to {verb} transaction {name} and left it open on {places}, as it does "
            f"when a broker is killed; nobody can read what comes after it: {remedy()}"
        ) from error
    return f"a transaction that Kafka had left open is finished: {verb} on {places}"


def remedy() -> str:
    """What an operator has to do where we may not finish a transaction."""
    return (
        "run this once as a user of Kafka who may also ClusterAction on the cluster and Read "
        f"topic {POSITIONS}, which {kafka_settings().user} may not"
    )


async def _state(client: AIOKafkaClient, name: str) -> State:
    node = await look_up_coordinator(client, CoordinationType.TRANSACTION, name)
    ((code, _, *told),) = (await client.send(node, KafkaRequest(_STATES, [name]))).states
    _check(code)
    state, _, start_time_ms, producer_id, producer_epoch, _, _ = told
    return State(state, start_time_ms, producer_id, producer_epoch)


async def _open(client: AIOKafkaClient, topic: str, producer_id: int) -> tuple[list[Open], bool]:
    """Where a producer has a transaction that is open, and whether we might look everywhere."""
    if not await client.set_topics([topic, POSITIONS]):
        raise _NotYetError("it does not tell its partitions")
    leaders: dict[int, dict[str, list[int]]] = {}
    for name in (topic, POSITIONS):
        for partition in sorted(client.cluster.partitions_for_topic(name) or ()):
            leader = client.cluster.leader_for_partition(TopicPartition(name, partition))
            leaders.setdefault(leader, {}).setdefault(name, []).append(partition)
    if -1 in leaders:
        raise LeaderNotAvailableError
    found = []
    is_all = POSITIONS not in client.cluster.unauthorized_topics
    for leader, wanted in sorted(leaders.items()):
        asked = KafkaRequest(_PRODUCERS, [(name, ones, {}) for name, ones in wanted.items()])
        for name, partitions, _ in (await client.send(leader, asked)).topics:
            for partition, code, _, producers, _ in partitions:
                if name == POSITIONS and for_code(code) is TopicAuthorizationFailedError:
                    is_all = False
                    continue
                _check(code)
                found += [
                    Open(name == topic, leader, epoch, max(0, coordinator_epoch), name, partition)
                    for producer, epoch, _, _, coordinator_epoch, offset, _ in producers
                    if producer == producer_id and offset >= 0
                ]
    return found, is_all


async def _write(client: AIOKafkaClient, state: State, same: list[Open]) -> None:
    """Writes the markers for partitions of one topic, leader and epoch."""
    first = same[0]
    marker: tuple[Any, ...] = (
        state.producer_id,
        first.producer_epoch,
        DECIDED[state.state],
        [(first.topic, [one.partition for one in same], {})],
        first.coordinator_epoch,
        {},
    )
    for _, topics, _ in (await client.send(first.leader, KafkaRequest(_MARKERS, [marker]))).markers:
        for _, partitions, _ in topics:
            for _, code, _ in partitions:
                if code and for_code(code) is not ClusterAuthorizationFailedError:
                    raise _NotYetError(for_code(code).__name__)
                _check(code)


def _check(code: int) -> None:
    if code:
        raise for_code(code)


def _places(found: list[Open]) -> str:
    parts = []
    for topic, ones in groupby(sorted(found), key=attrgetter("topic")):
        numbers = [str(one.partition) for one in ones]
        plural = "s" if len(numbers) > 1 else ""
        parts.append(f"partition{plural} {', '.join(numbers)} of topic {topic}")
    return " and ".join(parts)
