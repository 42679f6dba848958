"""The group that workers share the queue managers in, and who is in it."""

from __future__ import annotations

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from ledgermq.wire.kafka.access import raise_if_denied
from ledgermq.wire.kafka.settings import client_options
from ledgermq.wire.topics.log_topics import Topics
from ledgermq.wire.topics.reading import LogUnreadableError


def workers_group(topics: Topics) -> str:
    return f"{topics.prefix}.workers"


def running_workers(bootstrap: str, topics: Topics, timeout_seconds: float) -> list[str]:
    """The workers that the group counts, by name; one that was killed counts until its time-out.

    Raises:
        LogUnreadableError: Kafka did not answer.
    """
    group = workers_group(topics)
    admin = AdminClient(client_options(bootstrap, {"log_level": 0}))
    try:
        described = admin.describe_consumer_groups([group], request_timeout=timeout_seconds)
        members = described[group].result().members
    except KafkaException as error:
        if error.args[0].code() == KafkaError.GROUP_ID_NOT_FOUND:
            return []
        raise_if_denied(error, group, "Describe")
        raise LogUnreadableError(
            f"the group {group} at {bootstrap} cannot be described: {error.args[0].str()}"
        ) from error
    return sorted(one.group_instance_id or one.client_id for one in members)
