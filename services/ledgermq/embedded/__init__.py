"""A real single-node Kafka that runs without Docker, for development, tests and small sites."""

from ledgermq.embedded.broker import EmbeddedBroker as EmbeddedBroker
from ledgermq.embedded.errors import *  # noqa: F403
from ledgermq.embedded.jars import broker_jars as broker_jars
from ledgermq.embedded.jars import delta_jars as delta_jars
from ledgermq.embedded.jars import spark_connector_jars as spark_connector_jars
