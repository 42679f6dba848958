"""Discarding checkpoints and outcomes: an operator declares the log right as it is (H14).

Where the beginning of the log was trimmed, a checkpoint alone has what it held: there those that
belong to the log stay, and those of what the log has lost, or has otherwise, go, as do those that
only another release can read.
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
from ledgermq.wire.topics.ledger import Ledger
from ledgermq.wire.topics.reading import LogUnreadableError


class DiscardRefusedError(LedgerMQError):
    """A worker runs, whose checkpoints would lack what is discarded."""

    code = "discard-refused"


def discard_checkpoints(ledger: Ledger) -> int:
    """Takes away the checkpoints of a queue manager, and all else there; how many there were.

    Of a trimmed log those alone that are not of it, or of another release. What was told of the
    log goes from the lanes too, and the next worker tells all of it anew. No worker may run
    meanwhile: it counts chunks as stored that are gone, and its next checkpoints would lack them.

    Raises:
        LogIncompleteError: The beginning of the log is gone, and all checkpoints are of it, or none
            that a worker of this release could start from.
        LogUnreadableError: Kafka did not answer, or did not take all of it.
        AccessDeniedError: Kafka does not let us write checkpoints, or take outcomes away.
    """
    name = ledger.claim.queue_manager
    with ledger.reader() as reader:
        begins, _ = reader.ends(*ledger.operations)
        records = read_stored_records(reader, ledger)
    keys, count = records.all_keys(), len(records.manifests)
    if begins > 0:
        keys = [manifest_key(name, position) for position in _unfit(ledger, begins)]
        count = len(keys)
    try:
        write_all(checkpoint_producer(ledger), ledger, [(key, None) for key in keys])
    except KafkaException as error:
        raise LogUnreadableError(
            f"{name}: not all checkpoints were discarded: {error}; do it again"
        ) from error
    discard_outcomes(ledger)
    return count


def _unfit(ledger: Ledger, begins: int) -> list[int]:
    """Positions of checkpoints of a trimmed log that no worker starts on; LogIncompleteError."""
    found = find_checkpoints(ledger)
    unfit = [one for one in found if one.foreign or one.of_another_release]
    if unfit and any(not one.problem or one.lacks_outcomes for one in found):
        return [one.position for one in unfit]
    told = (
        f"{ledger.claim.queue_manager}: {ledger.name} begins at {begins}, not at 0: without its "
        "checkpoints the state could not be folded again. Nothing was discarded; "
    )
    if any(one.of_another_release for one in unfit):
        raise LogIncompleteError(
            f"{told}this release can read none of the checkpoints: start the release that wrote "
            "them, or a later one"
        )
    if unfit:
        raise LogIncompleteError(
            f"{told}none of the checkpoints belongs to the log that is here, so no worker can "
            "start on it: put back a backup of all of Kafka's data, made at one moment"
        )
    raise LogIncompleteError(
        f"{told}restore the log, or the checkpoints that belong to it. Where only outcomes are of "
        "another log, use `ledgermq checkpoint discard --outcomes`"
    )


def discard_outcomes(ledger: Ledger) -> None:
    """Takes away what the lanes of a queue manager tell, and no worker then holds against its log.

    Raises:
        LogUnreadableError: Kafka did not answer, or did not take all of it.
        AccessDeniedError: Kafka does not let us take outcomes away.
    """
    try:
        ledger.delete_before(ledger.topics.outcomes, dict.fromkeys(ledger.lanes, OFFSET_END))
    except KafkaException as error:
        raise LogUnreadableError(
            f"{ledger.claim.queue_manager}: not all outcomes were discarded: {error}; do it again"
        ) from error
