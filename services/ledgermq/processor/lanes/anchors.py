"""Anchors: digest chains on the lanes, which the ledger must have unless it was cut (H14).

A ledger that lost its end, or an older copy of it that was put back, would give new operations
positions of which clients were told other outcomes. The last records of the lanes show it: one of
a position at or above the end, or one below at which the log has another digest chain, as others
may have appended meanwhile. All of it is found out before anything is told anew: the next worker
would look at what was told last, and find it right.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Final

from ledgermq.errors import LedgerMQError
from ledgermq.processor.checkpoints.digests import chain_next
from ledgermq.wire.framing.codec import UndecodableError, decode_record
from ledgermq.wire.framing.schemas import ANSWER, CHUNK
from ledgermq.wire.topics.ledger import Ledger
from ledgermq.wire.topics.reading import LogDamagedError, PartitionReader

# Of each lane, as others than workers may have written the very last one; further ones if none of
# these tells a digest chain, as answers to whoever watches a queue manager at rest, or what a
# worker says of one that it has stopped, which must not hide why that was.
RECORDS_PER_LANE: Final = 10
RECORDS_PER_LANE_MAX: Final = 10_000


class LogCutError(LedgerMQError):
    """The operations log lost what was folded already."""

    code = "log-cut"


def anchors_on_lanes(reader: PartitionReader, ledger: Ledger) -> dict[int, bytes]:
    """The digest chains that the last records of the lanes tell, by position.

    Raises:
        LogCutError: They tell of a position that the log does not reach.
        LogUnreadableError: Kafka did not answer.
        AccessDeniedError: The lanes may not be read.
    """
    told: dict[int, bytes | None] = {}
    for position, chain in _last_chains(reader, ledger):
        # An answer, which has no chain, mostly comes behind outcomes of its position.
        told[position] = chain or told.get(position)
    # Behind them: what is told was on the log before.
    _, end = reader.ends(*ledger.operations)
    highest = max(told, default=-1)
    if highest >= end:
        ends = f"ends at position {end - 1}" if end else "is empty"
        name = ledger.claim.queue_manager
        raise LogCutError(
            f"{name}: {ledger.name} {ends}, but {ledger.topics.outcomes} has an outcome of "
            f"position {highest}: {_remedy(name)}"
        )
    return {position: chain for position, chain in told.items() if chain is not None}


def check_ahead(
    reader: PartitionReader,
    ledger: Ledger,
    anchors: Mapping[int, bytes],
    position: int,
    chain: bytes,
) -> None:
    """Holds the log above a state against what the lanes tell, up to what nobody can fold yet.

    Raises:
        LogCutError: It is not the log whose outcomes clients were told.
        LogUnreadableError: Kafka did not answer.
    """
    last = max(anchors, default=-1)
    with suppress(LogDamagedError):
        for record in reader.records(*ledger.operations, position + 1, last + 1):
            position += 1
            if record.offset() != position:
                return
            chain = chain_next(chain, position, record.timestamp()[1], record.value())
            check_chain(ledger.claim.queue_manager, anchors, position, chain)


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


def _last_chains(reader: PartitionReader, ledger: Ledger) -> Iterator[tuple[int, bytes | None]]:
    """Positions with the digest chain there, if it is told; what cannot be read tells nothing."""
    topic = ledger.topics.outcomes
    for partition in ledger.lanes:
        first, end = reader.ends(topic, partition)
        start, has_chain = max(first, end - RECORDS_PER_LANE), False
        for position, chain in _chains(reader, topic, partition, start, end):
            has_chain = has_chain or chain is not None
            yield position, chain
        if not has_chain:
            further = max(first, end - RECORDS_PER_LANE_MAX)
            yield from _chains(reader, topic, partition, further, start)


def _chains(
    reader: PartitionReader, topic: str, partition: int, start: int, end: int
) -> Iterator[tuple[int, bytes | None]]:
    """What the records of a lane between two offsets tell."""
    with suppress(LogDamagedError):
        for record in reader.records(topic, partition, start, end):
            with suppress(UndecodableError):
                name, datum = decode_record(record.value())
                if name == ANSWER and datum["position"] >= 0:
                    yield datum["position"], None
                elif name == CHUNK and datum["outcomes"]:
                    _, last = datum["outcomes"][-1]
                    yield last["position"], datum["chain"]
