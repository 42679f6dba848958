"""The digest chain as the log itself gives it, read record by record (PROTOCOL.md §10)."""

from __future__ import annotations

from typing import NamedTuple

from ledgermq.processor.checkpoints.digests import CHAIN_START, chain_next
from ledgermq.processor.checkpoints.loading import readable_manifests
from ledgermq.processor.checkpoints.stored_records import read_stored_records
from ledgermq.wire.topics.ledger import Ledger
from ledgermq.wire.topics.reading import LogUnreadableError
from ledgermq.wire.topics.skipping import Hole, LookAhead, skip_command


class ChainLink(NamedTuple):
    """The digest chain at a position, and the position from which on it was computed here.

    What lies before `computed_from` was taken from a checkpoint: the log does not hold it any more.
    """

    position: int
    digest: bytes
    computed_from: int


def read_chain(ledger: Ledger, position: int) -> ChainLink:
    """Computes the chain at a position from the records at and below it.

    Raises:
        LogUnreadableError: Kafka did not answer, the position is not there, or the start of the
            log is gone and no checkpoint tells the chain there.
    """
    where = ledger.name
    with ledger.reader() as reader:
        first, end = reader.ends(*ledger.operations)
        if not first <= position < end:
            raise LogUnreadableError(
                f"{where} holds positions {first} to {end - 1}, not {position}"
            )
        chain, start = CHAIN_START, 0
        if first > 0:
            known = readable_manifests(read_stored_records(reader, ledger))
            usable = [one for at, one in known.items() if first - 1 <= at <= position]
            if not usable:
                raise LogUnreadableError(
                    f"{where} begins at {first} and no checkpoint tells the digest chain between "
                    f"there and {position}"
                )
            chain, start = usable[-1]["chain"], usable[-1]["position"] + 1
        expected = start
        ahead = LookAhead(ledger.bootstrap, *ledger.operations, ledger.timeout_seconds)
        for record in reader.records(*ledger.operations, start, position + 1):
            offset = record.offset() or 0
            chain = _over_hole(ahead, ledger, chain, Hole(expected, offset - 1))
            chain = chain_next(chain, offset, record.timestamp()[1], record.value())
            expected = offset + 1
        chain = _over_hole(ahead, ledger, chain, Hole(expected, position))
    return ChainLink(position, chain, start)


def _over_hole(ahead: LookAhead, ledger: Ledger, chain: bytes, hole: Hole) -> bytes:
    """The chain behind positions without a record; LogUnreadableError if nobody declared them."""
    if hole.first > hole.last:
        return chain
    if not ahead.skipped(hole.first):
        ahead.look(hole.first)
    if ahead.skipped_through(hole) < hole.last:
        raise LogUnreadableError(
            f"{ledger.name} has no record at {hole.first}: the log has a hole. If there was none, "
            "as where a Kafka transaction ended, declare it skipped: "
            f"`{skip_command(ledger, hole)}`"
        )
    for position in range(hole.first, hole.last + 1):
        chain = chain_next(chain, position, 0, None)
    return chain
