"""The log's real size on disk, asked of every broker (PROTOCOL.md §9, STORAGE)."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final

from aiokafka.client import AIOKafkaClient
from aiokafka.errors import (
    BrokerNotAvailableError,
    ClusterAuthorizationFailedError,
    KafkaError,
)
from aiokafka.protocol.types import Boolean, CompactArray, Int16, Int32, Int64

from ledgermq.processor.log.aiokafka_options import aiokafka_options
from ledgermq.processor.log.kafka_requests import (
    NAME,
    PARTITIONS,
    TAGS,
    KafkaRequest,
    request_kind,
)
from ledgermq.wire.topics.ledger import Ledger

log = logging.getLogger(__name__)

PATIENCE_SECONDS: Final = 2.0


_SIZE: Final = CompactArray(
    ("partition", Int32), ("size_bytes", Int64), ("lag", Int64), ("is_future", Boolean), TAGS
)
_TOPICS: Final = CompactArray(("topic", NAME), ("partitions", _SIZE), TAGS)
_DIRECTORIES: Final = request_kind(
    35,
    2,
    PARTITIONS,
    ("throttle_time_ms", Int32),
    (
        "directories",
        CompactArray(("error_code", Int16), ("directory", NAME), ("topics", _TOPICS), TAGS),
    ),
)


class LogSizes:
    """How many bytes the log topics of one queue manager take, all replicas together."""

    def __init__(self, ledger: Ledger) -> None:
        topics, claim = ledger.topics, ledger.claim
        self._bootstrap = ledger.bootstrap
        self._partitions = {
            "operations_bytes": (topics.operations, [claim.partition]),
            "outcomes_bytes": (topics.outcomes, ledger.lanes),
            "questions_bytes": (topics.questions, [claim.partition]),
            "checkpoints_bytes": (topics.checkpoints, [claim.partition]),
        }

    async def measure(self) -> dict[str, int] | None:
        """The sizes by log topic; None if the brokers do not say."""
        client = AIOKafkaClient(
            bootstrap_servers=self._bootstrap, **aiokafka_options(AIOKafkaClient)
        )
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await client.bootstrap()
                return await self._ask_all(client)
        except (KafkaError, OSError, TimeoutError, NotImplementedError) as error:
            log.warning("the brokers do not tell how large the log is: %s", error)
            return None
        finally:
            await client.close()

    async def _ask_all(self, client: AIOKafkaClient) -> dict[str, int]:
        topics = self._partitions.values()
        asked: list[Any] = [(name, partitions, {}) for name, partitions in topics]
        sizes = dict.fromkeys((name for name, _ in topics), 0)
        brokers = client.cluster.brokers()
        if not brokers:
            # While it starts, Kafka answers with an empty cluster.
            raise BrokerNotAvailableError("Kafka names no broker of its cluster")
        for broker in brokers:
            while not await client.ready(broker.nodeId):
                await asyncio.sleep(0.1)
            answer = await client.send(broker.nodeId, KafkaRequest(_DIRECTORIES, asked))
            if not answer.directories:
                raise ClusterAuthorizationFailedError("Describe on the cluster is missing")
            for _, _, found, _ in answer.directories:
                for name, partitions, _ in found:
                    sizes[name] += sum(one[1] for one in partitions)
        return {field: sizes[name] for field, (name, _) in self._partitions.items()}
