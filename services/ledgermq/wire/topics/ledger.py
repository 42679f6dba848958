"""The ledger of one queue manager and what stands beside it: where on Kafka all of that is."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from ledgermq.wire.topics.log_topics import Topics, lane_partition
from ledgermq.wire.topics.reading import PartitionReader
from ledgermq.wire.topics.registry import Claim


@dataclass(frozen=True, slots=True)
class Ledger:
    """A queue manager's partitions of the log topics at an address.

    Attributes:
        timeout_seconds: How long each answer of Kafka is waited for.
    """

    bootstrap: str
    topics: Topics
    claim: Claim
    timeout_seconds: float

    @property
    def operations(self) -> tuple[str, int]:
        """Topic and partition of the ledger itself."""
        return self.topics.operations, self.claim.partition

    @property
    def checkpoints(self) -> tuple[str, int]:
        return self.topics.checkpoints, self.claim.partition

    @property
    def lanes(self) -> list[int]:
        """The partitions of the outcomes topic that are its lanes."""
        _, partition, lanes = self.claim
        return [lane_partition(partition, lanes, lane) for lane in range(lanes)]

    @property
    def name(self) -> str:
        """The ledger as texts for people name it."""
        return f"{self.topics.operations}-{self.claim.partition}"

    def reader(self, logger: logging.Logger | None = None) -> PartitionReader:
        return PartitionReader(self.bootstrap, self.timeout_seconds, logger)
