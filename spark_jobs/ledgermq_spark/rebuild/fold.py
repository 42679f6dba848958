"""The fold inside Spark: one task per queue manager streams its log through `core.apply`.

A task keeps one state and one batch of records in memory, whatever the length of the log. It stops,
and says so in a row, where no fold may go on: at a hole in the positions that nobody declared
skipped, and before an entry of a protocol version that it does not know; before an entry that
brings a version, too, until its plan has what stands above (PROTOCOL.md §8).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from heapq import nsmallest
from operator import itemgetter
from typing import Any

import pyarrow as pa

from ledgermq.core.apply import apply, new_state
from ledgermq.core.queries.destination_status import (
    queue_statuses,
    subscription_statuses,
    topic_statuses,
)
from ledgermq.core.queries.group_status import group_status
from ledgermq.core.snapshot.state_records import blocks, restore, root_of
from ledgermq.core.state.manager import QueueManager
from ledgermq.core.versions import SKIPPED, may_be_skipped, time_of_hole
from ledgermq.protocol.limits import PROTOCOL_VERSION
from ledgermq.protocol.operations import Operation
from ledgermq.protocol.outcomes import Addressed
from ledgermq.wire.framing.checkpoint_chunks import decode_root, encode_block_record, encode_root
from ledgermq.wire.framing.plain_messages import decode_block
from ledgermq_spark.log.outcome_rows import OUTCOME_COLUMNS, outcome_row
from ledgermq_spark.log.read_log import as_operation
from ledgermq_spark.log.rows import (
    BYTES,
    LONG,
    TEXT,
    arrow_arrays,
    arrow_batch,
    batch_of,
    spark_schema,
)
from ledgermq_spark.log.skipped import Skipped
from ledgermq_spark.log.store import Make
from ledgermq_spark.rebuild.checkpoints import Checkpoint, state_digest
from ledgermq_spark.rebuild.rebuilt import GROUPS_MAX
from ledgermq_spark.rebuild.stalls import stalls_of
from ledgermq_spark.rebuild.testimony import (
    CLOCK_COLUMNS,
    MOVE_COLUMNS,
    SEGMENT_COLUMNS,
    STANDING_COLUMNS,
    Testimony,
)

# What a fold can be asked to tell on its way: each is rows of a struct of its own.
TOLD = {
    "outcome": OUTCOME_COLUMNS,
    "move": MOVE_COLUMNS,
    "clock": CLOCK_COLUMNS,
    "standing": STANDING_COLUMNS,
    "segment": SEGMENT_COLUMNS,
}
# `part` says what a row is: one of `TOLD`, or, with a payload, root, block, chain (at the end),
# links (the chain at every position from `block` on, 32 bytes each), digest (of the state and the
# chain, at a position that was asked for), stopped, skipped, the statuses
# of queues (statuses), topics or subscriptions, groups that lack something, and where messages wait
# for long (stalls). A large block has several rows, `number` from 0 on.
FOLD_COLUMNS = (
    ("part", TEXT),
    ("partition", LONG),
    ("queue", TEXT),
    ("created_position", LONG),
    ("block", LONG),
    ("number", LONG),
    ("payload", BYTES),
    *((name, spark_schema(columns)) for name, columns in TOLD.items()),
)
NOTHING_TOLD = (None,) * len(TOLD)
ROWS_PER_BATCH = 4_000
PAYLOADS_PER_BATCH = 64
# Who looks for one of them passes over no more than these.
LINKS_PER_ROW = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldPlan:
    """What one task folds: where it starts, what it tells."""

    partition: int
    start: int = 0
    root: bytes | None = None
    blocks: list[bytes] = field(default_factory=list)
    chain: bytes = bytes(32)
    # Which of `TOLD`, and "links".
    tells: tuple[str, ...] = ()
    # Positions at which the digest of the state is told.
    digests_at: frozenset[int] = frozenset()
    # Positions that were declared skipped, once somebody has looked ahead for them.
    skips: tuple[tuple[int, int], ...] = ()
    looked_ahead: bool = False

    @classmethod
    def behind(cls, base: Checkpoint | None, **others: Any) -> FoldPlan:
        """To go on from a checkpoint; None: from the beginning of the log."""
        if base is None:
            return cls(**others)
        state = {"root": base.root, "blocks": base.blocks, "chain": base.manifest["chain"]}
        return cls(start=base.position + 1, **state, **others)

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
    return (part, partition, queue, created_position, block, number, payload, *NOTHING_TOLD)


def starting_state(plan: FoldPlan) -> QueueManager:
    """The state that a plan begins with: empty, or that of its checkpoint."""
    if plan.root is None:
        return new_state()
    return restore(decode_root(plan.root), map(decode_block, plan.blocks))


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
    yield _row("groups", partition, json.dumps(incomplete_groups(state)).encode())
    yield _row("stalls", partition, json.dumps(stalls_of(state)).encode())


def _digest_row(state: QueueManager, partition: int, chain: bytes) -> Row:
    """The digests of a state on the way, for which all of it is encoded."""
    chunks = [encode_root(root_of(state))]
    for block in blocks(state):
        chunks += encode_block_record(block)
    told = [state.position, state_digest(chunks), chain.hex()]
    return _row("digest", partition, json.dumps(told).encode())


def incomplete_groups(state: QueueManager) -> list[dict[str, Any]]:
    """Groups that lack something, the oldest first, as their statuses with their queue."""

    def found() -> Iterator[dict[str, Any]]:
        for queue in state.queues.values():
            lacking = [one for one in queue.groups.values() if not one.is_complete]
            oldest = min(queue.messages) if lacking else 0
            for one in lacking:
                told = group_status(queue, one)
                is_oldest = told["first_sequence"] == oldest
                yield {"queue": queue.name, "oldest": is_oldest, **told}

    return nsmallest(GROUPS_MAX, found(), key=itemgetter("first_enqueued_at", "queue"))


def fold_task(plans: dict[int, FoldPlan]) -> Make:
    """The function that Spark runs on each partition's records in order.

    Its input has the columns partition, offset, append_time_ms, timestamp_type, value.
    """

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        fold: Fold | None = None
        for batch in batches:
            columns = [column.to_pylist() for column in batch.columns]
            if not columns[0]:
                continue
            if fold is None:
                fold = Fold(plans[columns[0][0]])
            assert columns[0][0] == fold.plan.partition, "one queue manager to a task"
            fold.take(*columns[1:])
            yield from fold.told()
        if fold is not None:
            fold.end()
            yield from fold.told()

    return run


class Fold:
    """One queue manager's state on its way through the log, and what is yet to be told of it."""

    def __init__(self, plan: FoldPlan) -> None:
        self.plan = plan
        self.state = starting_state(plan)
        self.chain = plan.chain
        self.stopped = False
        self.testimony = Testimony(self.state)
        self._rows: list[Row] = []
        # Moves are the testimony's.
        self._told: dict[str, list[Row]] = {name: [] for name in TOLD if name != "move"}

    def take(
        self,
        offsets: list[int],
        times_ms: list[int],
        stamps: list[int],
        values: list[bytes | None],
    ) -> None:
        """Folds records."""
        if self.stopped:
            return
        state, plan = self.state, self.plan
        listener = self.testimony.hear if "move" in plan.tells else None
        tells_outcomes, tells_clock = "outcome" in plan.tells, "clock" in plan.tells
        outcome_rows, clock_rows = self._told["outcome"], self._told["clock"]
        links: list[bytes] = []
        sha256 = hashlib.sha256

        def fold(operation: Operation, position: int, time_us: int) -> None:
            outcomes = apply(state, operation, position, time_us, listener)
            if tells_outcomes:
                outcome_rows.extend(map(_outcome_row, outcomes))
            if tells_clock:
                clock_rows.append((position, state.time, state.time_reference))
            links.append(self.chain)
            if position in plan.digests_at:
                self._rows.append(_digest_row(state, plan.partition, self.chain))

        for offset, time_ms, stamp, value in zip(offsets, times_ms, stamps, values, strict=True):
            hole = self._hole_before(offset)
            if hole is not None:
                for position in range(hole.first, hole.last + 1):
                    head = position.to_bytes(8, "big") + bytes(8)
                    self.chain = sha256(self.chain + head).digest()
                    fold(SKIPPED, position, time_of_hole(state))
                self._rows.append(_skipped_row(plan.partition, hole))
            operation = as_operation(value, stamp)
            problem = self._problem(offset, operation)
            if problem is not None:
                self._rows.append(_row("stopped", plan.partition, json.dumps(problem).encode()))
                self.stopped = True
                break
            if may_be_skipped(state, operation) and plan.skips_all(offset, offset):
                operation = SKIPPED
                self._rows.append(_skipped_row(plan.partition, Skipped(offset, offset, False)))
            head = offset.to_bytes(8, "big") + time_ms.to_bytes(8, "big", signed=True)
            self.chain = sha256(self.chain + head + (value or b"")).digest()
            # A time that nobody trusts moves no clock.
            fold(operation, offset, time_ms * 1000 if stamp == 1 else state.time)
        if "links" in plan.tells:
            first = state.position + 1 - len(links)
            for at in range(0, len(links), LINKS_PER_ROW):
                some = b"".join(links[at : at + LINKS_PER_ROW])
                self._rows.append(_row("links", plan.partition, some, block=first + at))

    def end(self) -> None:
        """Tells of the state at the end."""
        self._rows += state_rows(self.state, self.plan.partition, self.chain)
        if "standing" in self.plan.tells:
            self._told["standing"] = self.testimony.standing()
        if "segment" in self.plan.tells:
            self._told["segment"] = self.testimony.segments()

    def told(self) -> Iterator[pa.RecordBatch]:
        """What is to be told since the last call."""
        rows, self._rows = self._rows, []
        for start in range(0, len(rows), PAYLOADS_PER_BATCH):
            yield arrow_batch(FOLD_COLUMNS, rows[start : start + PAYLOADS_PER_BATCH])
        for moves in self.testimony.take():
            yield batch_of(FOLD_COLUMNS, "move", moves)
        for name, told in self._told.items():
            self._told[name] = []
            for start in range(0, len(told), ROWS_PER_BATCH):
                some = arrow_arrays(TOLD[name], told[start : start + ROWS_PER_BATCH])
                yield batch_of(FOLD_COLUMNS, name, some)

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
        if self.state.active_version > PROTOCOL_VERSION:
            version = self.state.active_version
            return {"why": "version", "position": offset, "version": version}
        if not self.plan.looked_ahead and may_be_skipped(self.state, operation):
            return {"why": "look ahead", "position": offset}
        return None


def _skipped_row(partition: int, one: Skipped) -> Row:
    return _row("skipped", partition, json.dumps([one.first, one.last, one.hole]).encode())


def _outcome_row(one: Addressed) -> Row:
    previous = (one.previous_position, one.previous_index)
    return outcome_row(one.outcome, one.connection, one.lane, previous, with_content=False)
