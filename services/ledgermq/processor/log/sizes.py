"""The log's real size on disk, asked of every broker (PROTOCOL.md §9, STORAGE).

Neither of our Kafka libraries has this request, so it is written here with aiokafka's
protocol classes.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from aiokafka.client import AIOKafkaClient
from aiokafka.errors import ClusterAuthorizationFailedError, KafkaError
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import Array, Boolean, Int16, Int32, Int64, Schema, String

from ledgermq.processor.log.aiokafka_options import aiokafka_options
from ledgermq.wire.topics.ledger import Ledger

log = logging.getLogger(__name__)

PATIENCE_SECONDS: Final = 2.0


class _Sizes(Response):
    API_KEY = 35
    API_VERSION = 1
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "directories",
            Array(
                ("error_code", Int16),
                ("directory", String("utf-8")),
                (
                    "topics",
                    Array(
                        ("name", String("utf-8")),
                        (
                            "partitions",
                            Array(
                                ("partition", Int32),
                                ("size_bytes", Int64),
                                ("lag", Int64),
                                ("is_future", Boolean),
                            ),
                        ),
                    ),
                ),
            ),
        ),
    )


class _AskSizes(RequestStruct):
    API_KEY = 35
    API_VERSION = 1
    RESPONSE_TYPE = _Sizes
    SCHEMA = Schema(("topics", Array(("name", String("utf-8")), ("partitions", Array(Int32)))))


class _DescribeLogDirectories(Request[_AskSizes]):
    API_KEY = 35

    def __init__(self, topics: dict[str, list[int]]) -> None:
        self._topics = list(topics.items())

    def build(self, request_struct_class: type[_AskSizes]) -> _AskSizes:
        return request_struct_class(self._topics)


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
        wanted = dict(self._partitions.values())
        sizes = dict.fromkeys(wanted, 0)
        for broker in client.cluster.brokers():
            while not await client.ready(broker.nodeId):
                await asyncio.sleep(0.1)
            answer = await client.send(broker.nodeId, _DescribeLogDirectories(wanted))
            if not answer.directories:
                raise ClusterAuthorizationFailedError("Describe on the cluster is missing")
            for _, _, topics in answer.directories:
                for name, partitions in topics:
                    sizes[name] += sum(one[1] for one in partitions)
        return {field: sizes[name] for field, (name, _) in self._partitions.items()}
