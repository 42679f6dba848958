"""What the lanes tell of the ledger: nothing that it has not got, unless it was cut (H14).

A ledger that lost its end, or an older copy of it that was put back, would give new operations
positions of which clients were told other outcomes. The last records of the lanes show it: one of
a position at or above the end at once, one below as soon as the fold comes there with another
digest chain, as others may have appended meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Final

from ledgermq.errors import LedgerMQError
from ledgermq.wire.framing.codec import UndecodableError, decode_record
from ledgermq.wire.framing.schemas import ANSWER, CHUNK
from ledgermq.wire.topics.log_topics import Topics, lane_partition
from ledgermq.wire.topics.reading import LogDamagedError, PartitionReader
from ledgermq.wire.topics.registry import Claim

# Of each lane, as others than workers may have written the very last one.
TOLD_PER_LANE: Final = 10
# How many more records are read, where what was read tells of fewer positions.
READ_MORE: Final = 10


class LogCutError(LedgerMQError):
    """The operations log lost what was folded already."""

    code = "log-cut"


def anchors_on_lanes(reader: PartitionReader, topics: Topics, claim: Claim) -> dict[int, bytes]:
    """The digest chains that the last records of the lanes tell, by position.

    Raises:
        LogCutError: They tell of a position that the log does not reach.
        LogUnreadableError: Kafka did not answer.
        AccessDeniedError: The lanes may not be read.
    """
    told: dict[int, bytes | None] = {}
    for position, chain in _last_told(reader, topics, claim):
        # An answer, which has no chain, mostly comes behind outcomes of its position.
        told[position] = chain or told.get(position)
    # Behind them: what is told was on the log before.
    _, end = reader.ends(topics.operations, claim.partition)
    highest = max(told, default=-1)
    if highest >= end:
        ends = f"ends at position {end - 1}" if end else "is empty"
        raise LogCutError(
            f"{claim.queue_manager}: {topics.operations}-{claim.partition} {ends}, but "
            f"{topics.outcomes} has an outcome of position {highest}: "
            f"{_remedy(claim.queue_manager)}"
        )
    return {position: chain for position, chain in told.items() if chain is not None}


def check_chain(name: str, anchors: Mapping[int, bytes], position: int, chain: bytes) -> None:
    """Holds the digest chain at a position against what a lane told there; LogCutError."""
    if anchors.get(position, chain) != chain:
        raise LogCutError(
            f"{name}: the log up to position {position} is not the one whose outcomes clients were "
            f"told, as its digest chain shows: {_remedy(name)}"
        )


def _remedy(name: str) -> str:
    return (
        "its end was cut off, or an older copy was put back, and new operations would get "
        "positions of which clients were told other outcomes. Put back all that was there at one "
        "moment; or, if that is gone for good, stop all clients and declare the log right as it "
        f"is, with `ledgermq checkpoint discard --queue-manager {name} --yes`."
    )


def _last_told(
    reader: PartitionReader, topics: Topics, claim: Claim
) -> Iterator[tuple[int, bytes | None]]:
    """Positions with the digest chain there, if it is told; what cannot be read tells nothing."""
    for lane in range(claim.lanes):
        partition = lane_partition(claim.partition, claim.lanes, lane)
        first, end = reader.ends(topics.outcomes, partition)
        count = TOLD_PER_LANE
        while True:
            # What a worker says of a queue manager that it has stopped tells of no position, and
            # must not hide behind it why that was.
            start = max(first, end - count)
            told = _told_between(reader, topics, partition, start, end)
            if len(told) >= TOLD_PER_LANE or start == first:
                break
            count *= READ_MORE
        yield from told


def _told_between(
    reader: PartitionReader, topics: Topics, partition: int, start: int, end: int
) -> list[tuple[int, bytes | None]]:
    told: list[tuple[int, bytes | None]] = []
    with suppress(LogDamagedError):
        for record in reader.records(topics.outcomes, partition, start, end):
            with suppress(UndecodableError):
                name, datum = decode_record(record.value())
                if name == ANSWER and datum["position"] >= 0:
                    told.append((datum["position"], None))
                elif name == CHUNK and datum["outcomes"]:
                    _, last = datum["outcomes"][-1]
                    told.append((last["position"], datum["chain"]))
    return told
