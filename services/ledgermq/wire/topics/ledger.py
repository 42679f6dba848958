"""The ledger of one queue manager and what stands beside it: where on Kafka all of that is."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from ledgermq.wire.kafka.access import raise_if_denied
from ledgermq.wire.kafka.settings import client_options
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

    def delete_before(self, topic: str, offsets: Mapping[int, int]) -> None:
        """Takes away for ever what lies below an offset of each of these partitions.

        Raises:
            KafkaException: Kafka did not do it, or did not answer in time.
            AccessDeniedError: It does not let us.
        """
        places = [TopicPartition(topic, partition, offset) for partition, offset in offsets.items()]
        admin = AdminClient(client_options(self.bootstrap, {"log_level": 0}))
        asked = admin.delete_records(places, request_timeout=self.timeout_seconds)
        try:
            for future in asked.values():
                future.result()
        except KafkaException as error:
            raise_if_denied(error, topic, "Delete")
            raise
