"""The records of one queue manager on the checkpoints topic, read key by key and written.

Anybody who can write to the topic can write any key: what is no key of a checkpoint is passed over
with a word in the log.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from confluent_kafka import KafkaException, Producer

from ledgermq.processor.worker.logs import ManagerLog
from ledgermq.wire.kafka.access import raise_if_denied
from ledgermq.wire.kafka.settings import CONNECTION_LIMITS, client_options
from ledgermq.wire.topics.appending import numbered_producer
from ledgermq.wire.topics.checkpoint_records import StoredRecords
from ledgermq.wire.topics.ledger import Ledger
from ledgermq.wire.topics.log_topics import DERIVED_BYTES_MAX
from ledgermq.wire.topics.reading import PartitionReader, latest_values

log = logging.getLogger(__name__)

WRITTEN_TOGETHER_BYTES = 32 * 1024 * 1024


def read_stored_records(reader: PartitionReader, ledger: Ledger) -> StoredRecords:
    """Reads the topic to its end; LogUnreadableError if Kafka does not answer."""
    ends = reader.ends(*ledger.checkpoints)
    values = latest_values(reader.records(*ledger.checkpoints, *ends))
    stored = StoredRecords(ledger.claim.queue_manager, values, ends)
    if stored.rubbish:
        ManagerLog(log, ledger.claim.queue_manager).warning(
            "%d keys of %s-%d are no keys of its checkpoints (such as %r); they are passed over, "
            "and taken away with the next checkpoint",
            len(stored.rubbish),
            *ledger.checkpoints,
            stored.rubbish[0][:100],
        )
    return stored


def checkpoint_producer(ledger: Ledger) -> Producer:
    own = {
        "acks": "all",
        "linger.ms": 5,
        "compression.type": "zstd",
        "message.max.bytes": DERIVED_BYTES_MAX,
        "queue.buffering.max.messages": 0,
        "message.timeout.ms": int(ledger.timeout_seconds * 1000),
        **CONNECTION_LIMITS,
        "log_level": 0,
    }
    return numbered_producer(client_options(ledger.bootstrap, own))


def written_together(chunks: Mapping[str, bytes]) -> list[list[str]]:
    """The digests of chunks in portions that are written at once."""
    portions: list[list[str]] = []
    size = WRITTEN_TOGETHER_BYTES
    for digest, value in chunks.items():
        if size >= WRITTEN_TOGETHER_BYTES:
            portions.append([])
            size = 0
        portions[-1].append(digest)
        size += len(value)
    return portions


def write_all(
    producer: Producer, ledger: Ledger, records: Sequence[tuple[bytes, bytes | None]]
) -> None:
    """Writes records by a producer of checkpoints, and waits until all are acknowledged.

    Raises:
        KafkaException: One is not.
        AccessDeniedError: Kafka does not let us write.
    """
    topic, partition = ledger.checkpoints
    # A moment longer than the records themselves, so that Kafka's own reason is heard.
    timeout_seconds = ledger.timeout_seconds + 5.0
    problems: list[Any] = []

    def delivered(error: Any, _message: Any) -> None:
        if error is not None:
            problems.append(error)

    for key, value in records:
        while True:
            try:
                producer.produce(
                    topic, value=value, key=key, partition=partition, on_delivery=delivered
                )
                break
            except BufferError:
                # Each record is given up after its own time-out, so there is room in the end.
                producer.poll(0.1)
        producer.poll(0)
    if producer.flush(timeout_seconds):
        raise KafkaException(f"{topic}-{partition} did not acknowledge in {timeout_seconds:.0f} s")
    if problems:
        failed = KafkaException(problems[0])
        raise_if_denied(failed, topic, "Write")
        raise failed
