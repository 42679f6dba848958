"""Discarding checkpoints and outcomes: an operator declares the log right as it is (H14).

Where the beginning of the log was trimmed, a checkpoint alone has what it held: there those that
belong to the log stay, and those of what the log has lost, or has otherwise, go.
"""

from __future__ import annotations

from confluent_kafka import OFFSET_END, KafkaException

from ledgermq.errors import LedgerMQError
from ledgermq.processor.checkpoints.loading import LogIncompleteError
from ledgermq.processor.checkpoints.restoring import find_checkpoints
from ledgermq.processor.checkpoints.stored_records import (
    checkpoint_producer,
    read_stored_records,
    write_all,
)
from ledgermq.wire.framing.checkpoint_keys import manifest_key
from ledgermq.wire.topics.deleting import delete_before
from ledgermq.wire.topics.log_topics import Topics, lane_partition
from ledgermq.wire.topics.reading import LogUnreadableError, partition_reader
from ledgermq.wire.topics.registry import Claim


class DiscardRefusedError(LedgerMQError):
    """A worker runs, whose checkpoints would lack what is discarded."""

    code = "discard-refused"


def discard_checkpoints(
    bootstrap: str, topics: Topics, claim: Claim, *, timeout_seconds: float
) -> int:
    """Takes away the checkpoints of a queue manager, and all else there; how many there were.

    Of a trimmed log those alone that are not of it. What was told of the log goes from the lanes
    too, and the next worker tells all of it anew. No worker may run meanwhile: it counts chunks as
    stored that are gone, and its next checkpoints would lack them.

    Raises:
        LogIncompleteError: The beginning of the log is gone, and all checkpoints are of it, or none
            that a worker could start from.
        LogUnreadableError: Kafka did not answer, or did not take all of it.
        AccessDeniedError: Kafka does not let us write checkpoints, or take outcomes away.
    """
    where = (bootstrap, topics, claim)
    with partition_reader(bootstrap, timeout_seconds) as reader:
        begins, _ = reader.ends(topics.operations, claim.partition)
        records = read_stored_records(reader, topics, claim)
    keys, count = records.all_keys(), len(records.manifests)
    if begins > 0:
        foreign = _foreign(where, begins, timeout_seconds)
        keys = [manifest_key(claim.queue_manager, position) for position in foreign]
        count = len(keys)
    try:
        write_all(
            checkpoint_producer(bootstrap, timeout_seconds),
            topics.checkpoints,
            claim.partition,
            [(key, None) for key in keys],
            timeout_seconds,
        )
    except KafkaException as error:
        raise LogUnreadableError(
            f"{claim.queue_manager}: not all checkpoints were discarded: {error}; do it again"
        ) from error
    discard_outcomes(*where, timeout_seconds=timeout_seconds)
    return count


def _foreign(where: tuple[str, Topics, Claim], begins: int, timeout_seconds: float) -> list[int]:
    """Positions of the checkpoints that are not of a trimmed log; LogIncompleteError."""
    _, topics, claim = where
    found = find_checkpoints(*where, timeout_seconds=timeout_seconds)
    foreign = [one.position for one in found if one.foreign]
    if foreign and any(not one.problem or one.lacks_outcomes for one in found):
        return foreign
    told = (
        f"{claim.queue_manager}: {topics.operations}-{claim.partition} begins at {begins}, not at "
        "0: without its checkpoints the state could not be folded again. Nothing was discarded; "
    )
    if foreign:
        raise LogIncompleteError(
            f"{told}none of the checkpoints belongs to the log that is here, so no worker can "
            "start on it: put back a backup of all of Kafka's data, made at one moment"
        )
    raise LogIncompleteError(
        f"{told}restore the log, or the checkpoints that belong to it. Where only outcomes are of "
        "another log, use `ledgermq checkpoint discard --outcomes`"
    )


def discard_outcomes(
    bootstrap: str, topics: Topics, claim: Claim, *, timeout_seconds: float
) -> None:
    """Takes away what the lanes of a queue manager tell, and no worker then holds against its log.

    Raises:
        LogUnreadableError: Kafka did not answer, or did not take all of it.
        AccessDeniedError: Kafka does not let us take outcomes away.
    """
    lanes = [lane_partition(claim.partition, claim.lanes, lane) for lane in range(claim.lanes)]
    try:
        delete_before(bootstrap, topics.outcomes, dict.fromkeys(lanes, OFFSET_END), timeout_seconds)
    except KafkaException as error:
        raise LogUnreadableError(
            f"{claim.queue_manager}: not all outcomes were discarded: {error}; do it again"
        ) from error
