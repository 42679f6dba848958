"""Which node coordinates a group or a transaction, also asked when Kafka knows no broker yet.

A broker that starts, or that was away for so long that its registration is over, tells an empty
list of brokers for a moment. aiokafka asserts that there is one, and that ends whatever asked.
"""

from __future__ import annotations

from typing import Any, Final

from aiokafka.client import AIOKafkaClient, ConnectionGroup
from aiokafka.errors import CoordinatorNotAvailableError

# By this alone aiokafka learns of brokers as long as it knows none.
FIRST_CONNECTION: Final = ("bootstrap", ConnectionGroup.DEFAULT)


async def look_up_coordinator(client: AIOKafkaClient, kind: int, name: str) -> Any:
    """The node id of a coordinator.

    Raises:
        aiokafka.errors.KafkaError: There is none; retriable while no broker is up.
    """
    if client.get_random_node() is None:
        if FIRST_CONNECTION not in client._conns:
            await client.bootstrap()
        if client.get_random_node() is None:
            raise CoordinatorNotAvailableError("no broker is up")
    return await AIOKafkaClient.coordinator_lookup(client, kind, name)
