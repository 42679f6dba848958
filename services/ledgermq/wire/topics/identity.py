"""Which log this is: the cluster and the operations topic in it (H14)."""

from __future__ import annotations

from dataclasses import dataclass

from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient

from ledgermq.wire.kafka.access import raise_if_denied
from ledgermq.wire.kafka.settings import client_options
from ledgermq.wire.topics.reading import LogUnreadableError


@dataclass(frozen=True, slots=True, kw_only=True)
class LogIdentity:
    """The ids by which Kafka tells a cluster and a topic from others of the same name."""

    cluster_id: str
    topic_id: str


def log_identity(
    bootstrap: str, topic: str, timeout_seconds: float, admin: AdminClient | None = None
) -> LogIdentity:
    """LogUnreadableError: Kafka did not answer, or there is no such topic."""
    admin = admin or AdminClient(client_options(bootstrap, {"log_level": 0}))
    try:
        cluster = admin.describe_cluster(request_timeout=timeout_seconds).result()
        described = admin.describe_topics(TopicCollection([topic]), request_timeout=timeout_seconds)
        topic_id = described[topic].result().topic_id
    except KafkaException as error:
        raise_if_denied(error, topic, "Describe")
        text = error.args[0].str()
        raise LogUnreadableError(f"{topic} at {bootstrap} cannot be described: {text}") from error
    return LogIdentity(cluster_id=str(cluster.cluster_id), topic_id=str(topic_id))
