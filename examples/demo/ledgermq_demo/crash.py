"""What was under way when the worker died: read off the log, which is all that is left then.

The worker had folded up to the last position that has an outcome on the lanes; what the state was
there, an own fold tells. Operations behind it, and their commits, nobody had seen yet.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from ledgermq.core.apply import apply, new_state
from ledgermq.protocol.operations import Open, SessionOperation
from ledgermq.protocol.outcomes import Opened, Outcome, Reply
from ledgermq.wire.framing.codec import UndecodableError, decode_chunk, decode_operation
from ledgermq.wire.topics.log_topics import Topics, lane_partition
from ledgermq.wire.topics.reading import PartitionReader
from ledgermq.wire.topics.registry import Claim

if TYPE_CHECKING:
    from ledgermq.protocol.operations import Operation


TIMEOUT_SECONDS: Final = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """Where the log ended at one moment: the ledger, and each lane of outcomes."""

    operations: int
    lanes: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnderWay:
    """What was under way when the worker died.

    Attributes:
        position: The last position that it had folded.
        units_of_work: Transacted sessions with puts or deliveries that were not committed.
        puts: Messages put in them.
        gets: Messages delivered in them.
        unanswered: Operations on the ledger without a reply on the lanes.
    """

    position: int
    units_of_work: int
    puts: int
    gets: int
    unanswered: int


def ends_of(bootstrap: str, topics: Topics, claim: Claim) -> Ends:
    with PartitionReader(bootstrap, TIMEOUT_SECONDS) as reader:
        return Ends(
            operations=reader.ends(topics.operations, claim.partition)[1],
            lanes=tuple(
                reader.ends(topics.outcomes, lane_partition(claim.partition, claim.lanes, lane))[1]
                for lane in range(claim.lanes)
            ),
        )


def under_way(bootstrap: str, topics: Topics, claim: Claim, ends: Ends) -> UnderWay:
    """What was under way where the log ended: its own fold, its own look at the lanes."""
    state, unanswered, folded_to = new_state(), 0, -1
    open_puts: list[int] = []
    open_gets: list[int] = []
    with PartitionReader(bootstrap, TIMEOUT_SECONDS) as reader:
        answered: set[tuple[int, int]] = set()
        for lane, end in enumerate(ends.lanes):
            partition = lane_partition(claim.partition, claim.lanes, lane)
            for record in reader.records(topics.outcomes, partition, 0, end):
                outcomes = _outcomes(record.value() or b"")
                answered.update(_replies(outcomes))
                folded_to = max([folded_to, *(one.position for one in outcomes)])
        for record in reader.records(topics.operations, claim.partition, 0, ends.operations):
            operation = decode_operation(record.value(), state.active_version)
            position = cast(int, record.offset())
            apply(state, operation, position, record.timestamp()[1] * 1000)
            owed = _identity(operation, position)
            unanswered += owed is not None and owed not in answered
            if position == folded_to:
                transacted = [one for one in state.sessions.values() if one.transacted]
                open_puts = [sum(map(len, one.open_puts.values())) for one in transacted]
                open_gets = [len(one.deliveries) for one in transacted]
    return UnderWay(
        position=folded_to,
        units_of_work=sum(1 for one in zip(open_puts, open_gets, strict=True) if any(one)),
        puts=sum(open_puts),
        gets=sum(open_gets),
        unanswered=unanswered,
    )


def _identity(operation: Operation, position: int) -> tuple[int, int] | None:
    """What a reply names: handle and session sequence number; None if no reply is owed."""
    if isinstance(operation, Open):
        return position, 0
    if isinstance(operation, SessionOperation):
        return operation.session, operation.session_sequence
    return None


def _outcomes(value: bytes) -> list[Outcome]:
    try:
        return decode_chunk(value).outcomes
    except UndecodableError:
        # An answer to a question stands on the lanes too.
        return []


def _replies(outcomes: list[Outcome]) -> Iterator[tuple[int, int]]:
    for outcome in outcomes:
        if isinstance(outcome, Opened):
            yield outcome.session, 0
        elif isinstance(outcome, Reply):
            yield outcome.session, outcome.session_sequence
