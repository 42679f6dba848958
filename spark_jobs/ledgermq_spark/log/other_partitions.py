"""Records of a queue manager on partitions that the registry does not give it.

A claim that was altered points at a partition where nothing is, and what is there agrees with
everything. But the records themselves say whose they are: operations by their key, outcomes by
their source, checkpoints by their key. The first record of each other partition is looked at.
"""

from __future__ import annotations

from typing import Any

from confluent_kafka import TopicPartition

from ledgermq.wire.framing.confluent import headers_of
from ledgermq.wire.topics.log_topics import Topics, lane_partition
from ledgermq.wire.topics.registry import Claim
from ledgermq_spark.audit.findings.evidence import Evidence
from ledgermq_spark.log.positions import REQUEST_TIMEOUT_SECONDS, reading


def records_elsewhere(bootstrap: str, topics: Topics, claim: Claim) -> list[Evidence]:
    """Evidence of the first record elsewhere that says it is of this queue manager, per topic.

    Raises:
        LogUnreachableError: The cluster does not answer.
    """
    name, partition, lanes = claim
    own_lanes = {lane_partition(partition, lanes, lane) for lane in range(lanes)}
    found = []
    for topic, own in (
        (topics.operations, {partition}),
        (topics.outcomes, own_lanes),
        (topics.checkpoints, {partition}),
    ):
        for record in _first_records(bootstrap, topic, own):
            if _owner(topics, topic, record) == name:
                found.append(_evidence(topic, record, claim))
                break
    return found


def _owner(topics: Topics, topic: str, record: Any) -> str:
    """The queue manager that a record says it is of; empty: it says nothing."""
    if topic == topics.outcomes:
        headers: dict[str, bytes | None] = dict(headers_of(record))
        source = (headers.get("ce_source") or b"").decode("utf-8", "replace")
        return source.removeprefix("/ledgermq/").rpartition("/")[0]
    key = (record.key() or b"").decode("utf-8", "replace")
    if topic == topics.operations:
        return key
    for kind in ("/manifest/", "/chunk/"):
        if kind in key:
            return key.rpartition(kind)[0]
    return ""


def _evidence(topic: str, record: Any, claim: Claim) -> Evidence:
    return Evidence(
        kind="altered operations",
        source="registry",
        field="partition",
        summary=f"records of {claim.queue_manager} stand on partition {record.partition()} of "
        f"{topic}, which the registry does not give it: its claim was altered, or the records "
        "were put there",
        expected=f"none there: the registry gives {claim.queue_manager} partition "
        f"{claim.partition}",
        found=f"a record at offset {record.offset()}",
    )


def _first_records(bootstrap: str, topic: str, own: set[int]) -> list[Any]:
    """The first record of each partition that holds any, but for those of one's own."""
    with reading(bootstrap) as consumer:
        metadata = consumer.list_topics(topic, timeout=REQUEST_TIMEOUT_SECONDS).topics[topic]
        places = []
        for number in sorted(set(metadata.partitions) - own):
            place = TopicPartition(topic, number)
            start, end = consumer.get_watermark_offsets(place, timeout=REQUEST_TIMEOUT_SECONDS)
            if start < end:
                places.append(TopicPartition(topic, number, start))
        found = []
        for place in places:
            consumer.assign([place])
            record = consumer.poll(REQUEST_TIMEOUT_SECONDS)
            if record is not None and record.error() is None:
                found.append(record)
        return found
