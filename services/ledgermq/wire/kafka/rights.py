"""The rights that each role needs from Kafka's authorizer: no more than these, and no fewer.

Read and Write contain Describe. Consumers that choose their partitions themselves need no right on
a group; only the workers share one.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Final, NamedTuple

from ledgermq.wire.topics.log_topics import Topics

ROLES: Final = ("client", "worker", "auditor", "administrator")
CLUSTER: Final = "kafka-cluster"


class Right(NamedTuple):
    """An operation on a resource, in Kafka's words."""

    resource: str
    name: str
    operation: str


def rights_of(role: str, prefix: str) -> list[Right]:
    """What a role needs on the topics of a prefix, in a stable order."""
    topics = Topics(prefix)
    workers = f"{prefix}.workers"
    every = (
        topics.registry,
        topics.operations,
        topics.outcomes,
        topics.questions,
        topics.checkpoints,
    )
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
            *_topic(topics.outcomes, "Write", "Create", "DescribeConfigs"),
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
            *_topic(topics.outcomes, "Read"),
            *_topic(topics.questions, "Write"),
            *_topic(topics.checkpoints, "Read", "Write"),
            *(Right("Topic", name, "DescribeConfigs") for name in every),
            Right("Group", workers, "Describe"),
        ],
    }
    return sorted(by_role[role], key=lambda one: (one.resource != "Topic", one.name))


def _topic(name: str, *operations: str) -> list[Right]:
    return [Right("Topic", name, operation) for operation in operations]


def kafka_acls_lines(rights: Iterable[Right], command: str, principal: str) -> list[str]:
    """The arguments for Kafka's own program, a line for each resource."""
    lines = []
    for (resource, name), ones in groupby(rights, key=lambda one: one[:2]):
        operations = " ".join(f"--operation {one.operation}" for one in ones)
        where = "--cluster" if resource == "Cluster" else f"--{resource.lower()} '{name}'"
        lines.append(f"{command} --add --allow-principal '{principal}' {operations} {where}")
    return lines
