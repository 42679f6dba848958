"""Takes records away from the beginning of partitions, for ever."""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from ledgermq.wire.kafka.access import raise_if_denied
from ledgermq.wire.kafka.settings import client_options


def delete_before(
    bootstrap: str, topic: str, offsets: Mapping[int, int], timeout_seconds: float
) -> None:
    """Takes away what lies below an offset of each partition.

    Raises:
        KafkaException: Kafka did not do it, or did not answer in time.
        AccessDeniedError: It does not let us.
    """
    places = [TopicPartition(topic, partition, offset) for partition, offset in offsets.items()]
    admin = AdminClient(client_options(bootstrap, {"log_level": 0}))
    try:
        for future in admin.delete_records(places, request_timeout=timeout_seconds).values():
            future.result()
    except KafkaException as error:
        raise_if_denied(error, topic, "Delete")
        raise
