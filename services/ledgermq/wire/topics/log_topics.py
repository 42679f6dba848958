"""The log topics of an installation: names, settings, creation and verification (PROTOCOL.md §1).

Creation is explicit: nothing relies on the broker's automatic topic creation. Existing topics are
verified; partition counts are fixed for ever, because queue managers are partitions (D1).
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Final

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    ConfigResource,
    NewTopic,
    ResourceType,
    TopicDescription,
)

from ledgermq.errors.shown import shown
from ledgermq.wire.kafka.access import (
    PASSING,
    Reports,
    metadata_of,
    raise_if_denied,
    text_of,
)
from ledgermq.wire.kafka.settings import client_options, kafka_settings
from ledgermq.wire.topics.address import AddressError

TOPIC_PREFIX_DEFAULT: Final = "ledgermq"
# Kafka takes 249 in a topic's name.
PREFIX_CHARACTERS_MAX: Final = 230
PARTITIONS_DEFAULT: Final = 4
LANES_DEFAULT: Final = 4
OPERATION_BYTES_MAX: Final = 8 * 1024 * 1024
DERIVED_BYTES_MAX: Final = 10 * 1024 * 1024
OUTCOMES_RETENTION_MS: Final = 7 * 24 * 3600 * 1000
QUESTIONS_RETENTION_MS: Final = 10 * 60 * 1000
# Kafka compacts closed segments alone, and its own close after a week or a gigabyte: so much a
# worker would read at its start, for the few records that count.
CHECKPOINTS_SEGMENT_MS: Final = 3600 * 1000
CHECKPOINTS_SEGMENT_BYTES: Final = 32 * 1024 * 1024
KINDS: Final = ("registry", "operations", "outcomes", "questions", "checkpoints")

_PREFIX = re.compile(rf"[A-Za-z0-9._-]{{1,{PREFIX_CHARACTERS_MAX}}}", re.ASCII)


class TopicError(RuntimeError):
    """Topics that cannot be created or are not as the protocol needs them; the text says which."""


@dataclass(frozen=True, slots=True)
class Topics:
    """The log topics of an installation: `operations` is the ledger, `outcomes` are the lanes."""

    prefix: str = TOPIC_PREFIX_DEFAULT

    def __post_init__(self) -> None:
        if not _PREFIX.fullmatch(self.prefix):
            raise AddressError(
                f"{shown(self.prefix)} is no prefix of topics: 1 to {PREFIX_CHARACTERS_MAX} "
                "characters of A-Z a-z 0-9 . _ -"
            )

    @property
    def names(self) -> tuple[str, ...]:
        """All of them."""
        return tuple(f"{self.prefix}.{kind}" for kind in KINDS)

    @property
    def registry(self) -> str:
        return f"{self.prefix}.registry"

    @property
    def operations(self) -> str:
        return f"{self.prefix}.operations"

    @property
    def outcomes(self) -> str:
        return f"{self.prefix}.outcomes"

    @property
    def questions(self) -> str:
        return f"{self.prefix}.questions"

    @property
    def checkpoints(self) -> str:
        return f"{self.prefix}.checkpoints"


def is_log_topic(topic: str, beside: Collection[str]) -> bool:
    """Whether a topic is one of some installation's, by the names of the topics beside it."""
    prefix, _, kind = topic.rpartition(".")
    if kind not in KINDS or not _PREFIX.fullmatch(prefix):
        return False
    its = Topics(prefix)
    # Those that all may see whom Kafka lets use the installation.
    return {its.registry, its.operations} <= {topic, *beside}


def lane_partition(partition: int, lanes: int, lane: int) -> int:
    """The partition of the outcomes topic that is a lane of a queue manager.

    A lane that the queue manager does not have is taken modulo, so that no client can name a
    partition of another queue manager.
    """
    return partition * lanes + lane % lanes


def _settings(replicas: int, bytes_max: int) -> dict[str, str]:
    common = {
        "message.timestamp.type": "LogAppendTime",
        "unclean.leader.election.enable": "false",
        "max.message.bytes": str(bytes_max),
        "retention.bytes": "-1",
        "cleanup.policy": "delete",
        "retention.ms": "-1",
    }
    return common | ({"min.insync.replicas": "2"} if replicas >= 3 else {})


def _wanted(topics: Topics, partitions: int, lanes: int, replicas: int) -> list[NewTopic]:
    """The topics as they are created; a single broker flushes the ledger entry by entry (D13)."""
    ledger = _settings(replicas, OPERATION_BYTES_MAX)
    if replicas == 1:
        # A flush also syncs the two index files of the segment, which takes the longer the larger
        # they are: ten megabytes each unless told otherwise.
        ledger |= {
            "flush.messages": "1",
            "segment.index.bytes": str(512 * 1024),
            "index.interval.bytes": str(32 * 1024),
        }
    derived = _settings(replicas, DERIVED_BYTES_MAX)
    wanted = {
        topics.registry: (1, ledger),
        topics.operations: (partitions, ledger),
        topics.outcomes: (
            partitions * lanes,
            derived | {"retention.ms": str(OUTCOMES_RETENTION_MS)},
        ),
        topics.questions: (
            partitions,
            derived | {"retention.ms": str(QUESTIONS_RETENTION_MS), "segment.ms": "300000"},
        ),
        topics.checkpoints: (
            partitions,
            derived
            | {
                "cleanup.policy": "compact",
                "segment.ms": str(CHECKPOINTS_SEGMENT_MS),
                "segment.bytes": str(CHECKPOINTS_SEGMENT_BYTES),
            },
        ),
    }
    return [
        NewTopic(name, num_partitions=count, replication_factor=replicas, config=config)
        for name, (count, config) in wanted.items()
    ]


def made_settings(topics: Topics, replicas: int) -> dict[str, dict[str, str]]:
    """The settings that each topic would have if it were made now, by its name."""
    return {one.topic: dict(one.config or {}) for one in _wanted(topics, 1, 1, replicas)}


def ensure_topics(
    bootstrap: str,
    topics: Topics,
    *,
    partitions: int = PARTITIONS_DEFAULT,
    lanes: int = LANES_DEFAULT,
    brokers_min: int = 1,
    timeout_seconds: float = 15.0,
) -> None:
    """Creates the log topics where they are missing and verifies those that are there.

    They have three replicas if there are three brokers at that moment, else one.

    Raises TopicError if the broker cannot be reached, if topics are missing and there are fewer
    brokers than asked for, if the partition counts differ from what is asked for (they can never be
    changed), or if a topic does not stamp LogAppendTime; AuthenticationFailedError or
    AccessDeniedError if Kafka refuses it.
    """
    kafka = kafka_settings()
    reports = Reports(kafka, bootstrap)
    admin = AdminClient(client_options(bootstrap, {"log_level": 0, "error_cb": reports}, kafka))
    try:
        metadata = metadata_of(admin, reports, timeout_seconds)
    except KafkaException as error:
        raise TopicError(f"no broker answers at {bootstrap}: {text_of(error, reports)}") from error
    replicas = 3 if len(metadata.brokers) >= 3 else 1
    wanted = _wanted(topics, partitions, lanes, replicas)
    counts = {name: len(found.partitions) for name, found in metadata.topics.items()}
    missing = [topic for topic in wanted if topic.topic not in counts]
    if missing:
        if len(metadata.brokers) < brokers_min:
            raise TopicError(
                f"the log topics are not there yet, and only {len(metadata.brokers)} of "
                f"{brokers_min} brokers are: start the others, or the topics would have too few "
                "replicas for ever"
            )
        _create(admin, missing, timeout_seconds)
        counts = _await_topics(admin, [topic.topic for topic in wanted], timeout_seconds)
    for topic in wanted:
        found = counts[topic.topic]
        if found != topic.num_partitions:
            raise TopicError(
                f"topic {topic.topic} has {found} partitions, {topic.num_partitions} were asked "
                "for; the count is fixed when the topics are created, so give the old one"
            )
    _verify_stamps(admin, [topic.topic for topic in wanted], timeout_seconds)


def _create(admin: AdminClient, missing: list[NewTopic], timeout_seconds: float) -> None:
    for name, future in admin.create_topics(missing, operation_timeout=timeout_seconds).items():
        try:
            future.result(timeout=timeout_seconds)
        except KafkaException as error:
            # Two starters may race; what the other one made is verified like all others.
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise_if_denied(error, name, "Create")
                text = error.args[0].str()
                raise TopicError(f"topic {name} cannot be created: {text}") from error


def _await_topics(admin: AdminClient, names: list[str], timeout_seconds: float) -> dict[str, int]:
    """Partition counts, once each partition has a leader; brokers learn of new topics late."""
    deadline = time.monotonic() + timeout_seconds
    while True:
        # Of these alone: all others may be thousands.
        asked = admin.describe_topics(TopicCollection(names), request_timeout=timeout_seconds)
        counts = {name: _led_partitions(name, future) for name, future in asked.items()}
        late = [name for name, count in counts.items() if not count]
        if not late:
            return counts
        if time.monotonic() > deadline:
            raise TopicError(
                f"topic {late[0]} has no leader {timeout_seconds} s after its creation"
            )
        time.sleep(0.02)


def _led_partitions(name: str, described: Future[TopicDescription]) -> int:
    """How many partitions a topic has if all of them are led, else 0."""
    try:
        partitions = described.result().partitions
    except KafkaException as error:
        raise_if_denied(error, name, "Describe")
        if error.args[0].code() not in (*PASSING, KafkaError.UNKNOWN_TOPIC_OR_PART):
            raise TopicError(f"topic {name} cannot be described: {error.args[0].str()}") from error
        return 0
    return len(partitions) if all(one.leader is not None for one in partitions) else 0


def _verify_stamps(admin: AdminClient, names: list[str], timeout_seconds: float) -> None:
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
    for resource, future in admin.describe_configs(resources).items():
        try:
            stamp = future.result(timeout=timeout_seconds)["message.timestamp.type"].value
        except KafkaException as error:
            raise_if_denied(error, resource.name, "DescribeConfigs")
            text = error.args[0].str()
            raise TopicError(f"topic {resource.name} cannot be described: {text}") from error
        if stamp != "LogAppendTime":
            raise TopicError(
                f"topic {resource.name} stamps {stamp}; LedgerMQ needs LogAppendTime: "
                "set message.timestamp.type, or use another topic prefix"
            )
