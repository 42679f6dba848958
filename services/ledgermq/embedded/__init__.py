"""A real single-node Kafka that runs without Docker, for development, tests and small sites."""

from ledgermq.embedded.broker import EmbeddedBroker
from ledgermq.embedded.errors import (
    BrokerStartError,
    DirectoryInUseError,
    EmbeddedError,
    ForeignClusterError,
    JarsUnavailableError,
    JavaMissingError,
    JavaTooOldError,
    PortTakenError,
)
from ledgermq.embedded.jars import broker_jars, delta_jars, spark_connector_jars

__all__ = [
    "BrokerStartError",
    "DirectoryInUseError",
    "EmbeddedBroker",
    "EmbeddedError",
    "ForeignClusterError",
    "JarsUnavailableError",
    "JavaMissingError",
    "JavaTooOldError",
    "PortTakenError",
    "broker_jars",
    "delta_jars",
    "spark_connector_jars",
]
