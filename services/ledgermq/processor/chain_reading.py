"""The digest chain as the log itself gives it, read record by record outside the group
(PROTOCOL.md §10).
"""

from __future__ import annotations

from typing import NamedTuple

from ledgermq.processor.checkpoint_loading import read_manifests
from ledgermq.processor.digests import CHAIN_START, chain_next
from ledgermq.processor.log_reading import LogUnreadableError, partition_reader
from ledgermq.wire.registry import Claim
from ledgermq.wire.topics import Topics

__all__ = ["ChainLink", "read_chain"]


class ChainLink(NamedTuple):
    """The digest chain at a position, and the position from which on it was computed here.

    What lies before `computed_from` was taken from a checkpoint: the log does not hold it any more.
    """

    position: int
    digest: bytes
    computed_from: int


def read_chain(
    bootstrap: str, topics: Topics, claim: Claim, position: int, *, timeout_seconds: float = 30.0
) -> ChainLink:
    """Computes the chain at a position from the records at and below it.

    Raises:
        LogUnreadableError: Kafka did not answer, the position is not there, or the start of the
            log is gone and no checkpoint tells the chain there.
    """
    where = f"{topics.operations}-{claim.partition}"
    with partition_reader(bootstrap, timeout_seconds) as reader:
        first, end = reader.ends(topics.operations, claim.partition)
        if not first <= position < end:
            raise LogUnreadableError(
                f"{where} holds positions {first} to {end - 1}, not {position}"
            )
        chain, start = CHAIN_START, 0
        if first > 0:
            known = read_manifests(reader, topics, claim)
            usable = [one for one in known if first - 1 <= one["position"] <= position]
            if not usable:
                raise LogUnreadableError(
                    f"{where} begins at {first} and no checkpoint tells the digest chain between "
                    f"there and {position}"
                )
            chain, start = usable[-1]["chain"], usable[-1]["position"] + 1
        expected = start
        for record in reader.records(topics.operations, claim.partition, start, position + 1):
            if record.offset() != expected:
                break
            chain = chain_next(chain, expected, record.timestamp()[1], record.value())
            expected += 1
        if expected != position + 1:
            raise LogUnreadableError(f"{where} has no record at {expected}: the log has a hole")
    return ChainLink(position, chain, start)
