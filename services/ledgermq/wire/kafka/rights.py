"""The rights that each role needs from Kafka's authorizer: no more than these, and no fewer.

Bridges need some more, on topics that are none of LedgerMQ's. Read and Write contain Describe.
Consumers that choose their partitions themselves need no right on a group; only workers share one.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Final, NamedTuple

from ledgermq.wire.topics.log_topics import Topics

ROLES: Final = ("client", "worker", "auditor", "administrator")
CLUSTER: Final = "kafka-cluster"
# What a bridge to a topic calls its transactions and its group begins so; the rest is a digest.
BRIDGES: Final = "ledgermq-"


class Right(NamedTuple):
    """An operation on a resource, in Kafka's words; `Prefixed`: on all whose names begin so."""

    resource: str
    name: str
    operation: str
    pattern: str = "Literal"


def rights_of(role: str, prefix: str) -> list[Right]:
    """What a role needs on the topics of a prefix, in a stable order."""
    topics = Topics(prefix)
    workers = f"{prefix}.workers"
    by_role = {
        "client": [
            *_topic(topics.registry, "Read"),
            *_topic(topics.operations, "Write"),
            *_topic(topics.outcomes, "Read"),
            *_topic(topics.questions, "Write"),
        ],
        "worker": [
            *_topic(topics.registry, "Read", "Write", "Create", "DescribeConfigs"),
            *_topic(topics.operations, "Read", "Write", "Create", "DescribeConfigs"),
            *_topic(topics.outcomes, "Read", "Write", "Create", "DescribeConfigs"),
            *_topic(topics.questions, "Read", "Create", "DescribeConfigs"),
            *_topic(topics.checkpoints, "Read", "Write", "Create", "DescribeConfigs"),
            Right("Group", workers, "Read"),
            # How large the log is on disk.
            Right("Cluster", CLUSTER, "Describe"),
        ],
        "auditor": [
            *_topic(topics.registry, "Read"),
            *_topic(topics.operations, "Read"),
            *_topic(topics.outcomes, "Read"),
            *_topic(topics.checkpoints, "Read"),
        ],
        "administrator": [
            *_topic(topics.registry, "Read"),
            *_topic(topics.operations, "Read", "Write", "Delete"),
            *_topic(topics.outcomes, "Read", "Delete"),
            *_topic(topics.questions, "Write"),
            *_topic(topics.checkpoints, "Read", "Write"),
            *(Right("Topic", name, "DescribeConfigs") for name in topics.names),
            Right("Group", workers, "Describe"),
        ],
    }
    return sorted(by_role[role], key=lambda one: (one.resource != "Topic", one.name))


def rights_of_bridge(from_topics: Iterable[str], to_topics: Iterable[str]) -> list[Right]:
    """What bridges need on topics of Kafka, beside the rights of a client, in a stable order."""
    read = [right for name in from_topics for right in _topic(name, "Read")]
    # Positions are noted in the transaction as those of a group that reads the topic.
    written = [right for name in to_topics for right in _topic(name, "Read", "Write")]
    if written:
        written += [
            Right("Group", BRIDGES, "Read", "Prefixed"),
            Right("TransactionalId", BRIDGES, "Write", "Prefixed"),
        ]
    both = dict.fromkeys([*read, *written])
    return sorted(both, key=lambda one: (one.resource != "Topic", one.resource, one.name))


def _topic(name: str, *operations: str) -> list[Right]:
    return [Right("Topic", name, operation) for operation in operations]


def kafka_acls_lines(rights: Iterable[Right], command: str, principal: str) -> list[str]:
    """The arguments for Kafka's own program, a line for each resource."""
    lines = []
    for (resource, name, pattern), ones in groupby(
        rights, key=lambda one: (one.resource, one.name, one.pattern)
    ):
        operations = " ".join(f"--operation {one.operation}" for one in ones)
        kind = "transactional-id" if resource == "TransactionalId" else resource.lower()
        where = "--cluster" if resource == "Cluster" else f"--{kind} '{name}'"
        if pattern != "Literal":
            where += f" --resource-pattern-type {pattern.lower()}"
        lines.append(f"{command} --add --allow-principal '{principal}' {operations} {where}")
    return lines
