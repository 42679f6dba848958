"""The fold inside Spark: one task per queue manager streams its log through `core.apply`.

A task keeps one state and one batch of records in memory, whatever the length of the log. It stops,
and says so in a row, where no fold may go on: at a hole in the positions that nobody declared
skipped, and before an entry of a protocol version that it does not know; before an entry that
brings a version, too, until its plan has what stands above (PROTOCOL.md §8).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ledgermq.core.apply import apply, new_state
from ledgermq.core.queries.destination_status import subscription_statuses, topic_statuses
from ledgermq.core.queries.questions import queue_statuses
from ledgermq.core.snapshot.state_records import blocks, restore, root_of
from ledgermq.core.state.manager import QueueManager
from ledgermq.core.versions import SKIPPED, may_be_skipped, time_of_hole
from ledgermq.protocol.limits import PROTOCOL_VERSION
from ledgermq.protocol.operations import Operation
from ledgermq.protocol.outcomes import Addressed
from ledgermq.wire.framing.checkpoint_chunks import encode_block_record
from ledgermq.wire.framing.codec import decode_record, outcome_from_union
from ledgermq_spark.log.outcome_rows import OUTCOME_COLUMNS, outcome_row
from ledgermq_spark.log.read_log import as_operation
from ledgermq_spark.log.rows import BYTES, LONG, TEXT, arrow_batch
from ledgermq_spark.log.skipped import Skipped
from ledgermq_spark.rebuild.checkpoints import encode_root
from ledgermq_spark.rebuild.inbound import Arrival, Inbound

if TYPE_CHECKING:
    import pyarrow as pa


# `part` says what a row is: outcome, root, block, chain (at the end), links (the chain at every
# position from `block` on, 32 bytes each), stopped, the statuses of queues (statuses), topics or
# subscriptions, or inbound: messages of a Put that came in and got their numbers, `queue` their
# destination, `created_position` and `block` the first one's place, `number` its sequence number. A
# large block has several rows, `number` from 0 on.
FOLD_COLUMNS = (
    ("part", TEXT),
    ("partition", LONG),
    ("queue", TEXT),
    ("created_position", LONG),
    ("block", LONG),
    ("payload", BYTES),
    *OUTCOME_COLUMNS,
)
NO_OUTCOME = (None,) * len(OUTCOME_COLUMNS)
NUMBER_AT = [name for name, _ in OUTCOME_COLUMNS].index("number")
ROWS_PER_BATCH = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldPlan:
    """What one task folds: where it starts, what it tells."""

    partition: int
    start: int = 0
    root: bytes | None = None
    blocks: list[bytes] = field(default_factory=list)
    chain: bytes = bytes(32)
    with_outcomes: bool = False
    with_links: bool = False
    with_inbound: bool = False
    # Positions that were declared skipped, once somebody has looked ahead for them.
    skips: tuple[tuple[int, int], ...] = ()
    looked_ahead: bool = False

    def skips_all(self, first: int, last: int) -> bool:
        """Whether all of some positions were declared skipped."""
        return all(
            any(one[0] <= position <= one[1] for one in self.skips)
            for position in range(first, last + 1)
        )


Row = tuple[Any, ...]


def _row(
    part: str,
    partition: int,
    payload: bytes,
    *,
    queue: str | None = None,
    created_position: int | None = None,
    block: int | None = None,
    number: int | None = None,
) -> Row:
    rest: Row = NO_OUTCOME
    if number is not None:
        rest = (*NO_OUTCOME[:NUMBER_AT], number, *NO_OUTCOME[NUMBER_AT + 1 :])
    return (part, partition, queue, created_position, block, payload, *rest)


def starting_state(plan: FoldPlan) -> QueueManager:
    """The state that a plan begins with: empty, or that of its checkpoint."""
    if plan.root is None:
        return new_state()
    root = decode_record(plan.root)[1]
    for session in root["sessions"]:
        session["replies"] = [outcome_from_union(branch) for branch in session["replies"]]
    return restore(root, (decode_record(block)[1] for block in plan.blocks))


def state_rows(state: QueueManager, partition: int, chain: bytes) -> Iterator[Row]:
    """A state as rows: its digest chain, its root, its blocks, what statuses it has."""
    where = json.dumps({"position": state.position, "time": state.time})
    yield _row("end", partition, where.encode())
    yield _row("chain", partition, chain, block=state.position)
    yield _row("root", partition, encode_root(root_of(state)))
    for block in blocks(state):
        for number, value in enumerate(encode_block_record(block)):
            yield _row(
                "block",
                partition,
                value,
                queue=block["queue"],
                created_position=block["created_position"],
                block=block["block"],
                number=number,
            )
    yield _row("statuses", partition, json.dumps(queue_statuses(state)).encode())
    yield _row("topics", partition, json.dumps(topic_statuses(state)).encode())
    yield _row("subscriptions", partition, json.dumps(subscription_statuses(state)).encode())


def fold_task(plans: dict[int, FoldPlan]) -> Callable[[Iterable[Any]], Iterator[pa.RecordBatch]]:
    """The function that Spark runs on each partition's records in order.

    Its input has the columns partition, offset, append_time_ms, timestamp_type, value.
    """

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        fold: _Fold | None = None
        for batch in batches:
            columns = [column.to_pylist() for column in batch.columns]
            if not columns[0]:
                continue
            if fold is None:
                fold = _Fold(plans[columns[0][0]])
            assert columns[0][0] == fold.plan.partition, "one queue manager to a task"
            rows = fold.take(*columns[1:])
            for start in range(0, len(rows), ROWS_PER_BATCH):
                yield arrow_batch(FOLD_COLUMNS, rows[start : start + ROWS_PER_BATCH])
        if fold is not None:
            rows = list(state_rows(fold.state, fold.plan.partition, fold.chain))
            for start in range(0, len(rows), 64):
                yield arrow_batch(FOLD_COLUMNS, rows[start : start + 64])

    return run


class _Fold:
    """One queue manager's state on its way through the log."""

    def __init__(self, plan: FoldPlan) -> None:
        self.plan = plan
        self.state = starting_state(plan)
        self.chain = plan.chain
        self.stopped = False
        self.inbound = Inbound(self.state) if plan.with_inbound else None

    def take(
        self,
        offsets: list[int],
        times_ms: list[int],
        stamps: list[int],
        values: list[bytes | None],
    ) -> list[Row]:
        """Folds records; returns the rows that they give."""
        rows: list[Row] = []
        if self.stopped:
            return rows
        state, partition = self.state, self.plan.partition
        tells, inbound = self.plan.with_outcomes, self.inbound
        links: list[bytes] = []
        sha256 = hashlib.sha256
        chain = self.chain
        for offset, time_ms, stamp, value in zip(offsets, times_ms, stamps, values, strict=True):
            hole = self._hole_before(offset)
            if hole is not None:
                for position in range(hole.first, hole.last + 1):
                    chain = sha256(chain + position.to_bytes(8, "big") + bytes(8)).digest()
                    outcomes = apply(state, SKIPPED, position, time_of_hole(state))
                    rows.extend(_outcome_rows(partition, outcomes) if tells else ())
                    links.append(chain)
                rows.append(_skipped_row(partition, hole))
            operation = as_operation(value, stamp)
            problem = self._problem(offset, operation)
            if problem is not None:
                rows.append(_row("stopped", partition, json.dumps(problem).encode()))
                self.stopped = True
                break
            if may_be_skipped(state, operation) and self.plan.skips_all(offset, offset):
                operation = SKIPPED
                rows.append(_skipped_row(partition, Skipped(offset, offset, False)))
            head = offset.to_bytes(8, "big") + time_ms.to_bytes(8, "big", signed=True)
            chain = sha256(chain + head + (value or b"")).digest()
            # A time that nobody trusts moves no clock.
            time_us = time_ms * 1000 if stamp == 1 else state.time
            if inbound is not None:
                inbound.ask(state, operation, offset)
            outcomes = apply(state, operation, offset, time_us)
            if inbound is not None:
                found = inbound.hear((one.outcome for one in outcomes), state.time)
                rows.extend(_inbound_row(partition, one) for one in found)
            if tells:
                rows.extend(_outcome_rows(partition, outcomes))
            links.append(chain)
        self.chain = chain
        if self.plan.with_links and links:
            first = state.position + 1 - len(links)
            rows.append(_row("links", partition, b"".join(links), block=first))
        return rows

    def _hole_before(self, offset: int) -> Skipped | None:
        """The positions without a record before the next one, if all were declared skipped."""
        first = self.state.position + 1
        if first < offset and self.plan.skips_all(first, offset - 1):
            return Skipped(first, offset - 1, True)
        return None

    def _problem(self, offset: int, operation: Operation) -> dict[str, Any] | None:
        expected = self.state.position + 1
        if offset != expected:
            return {"why": "hole", "position": expected, "found": offset}
        if self.state.active_version != PROTOCOL_VERSION:
            version = self.state.active_version
            return {"why": "version", "position": offset, "version": version}
        if not self.plan.looked_ahead and may_be_skipped(self.state, operation):
            return {"why": "look ahead", "position": offset}
        return None


def _skipped_row(partition: int, one: Skipped) -> Row:
    return _row("skipped", partition, json.dumps([one.first, one.last, one.hole]).encode())


def _outcome_rows(partition: int, outcomes: list[Addressed]) -> list[Row]:
    return [
        (
            "outcome",
            partition,
            None,
            None,
            None,
            None,
            *outcome_row(
                one.outcome,
                one.connection,
                one.lane,
                (one.previous_position, one.previous_index),
                with_content=False,
            ),
        )
        for one in outcomes
    ]


def _inbound_row(partition: int, one: Arrival) -> Row:
    told = {
        "position": one.position,
        "number": one.sequence,
        "count": one.messages,
        "enqueued_ats": [one.enqueued_at],
    }
    columns = (told.get(name) for name, _ in OUTCOME_COLUMNS)
    place = (one.destination, one.put_position, one.put_index)
    return ("inbound", partition, *place, None, *columns)
