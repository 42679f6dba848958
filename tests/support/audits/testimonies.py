"""Many logs of tests as the frames that laws are asked of: each is a queue manager of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ledgermq.core.apply import new_state
from ledgermq.core.state.manager import QueueManager
from ledgermq.protocol.outcomes import Addressed
from ledgermq_spark.laws.engines.engine import Engine
from ledgermq_spark.laws.facts import Facts
from ledgermq_spark.log.outcome_rows import OUTCOME_COLUMNS
from ledgermq_spark.log.rows import OPERATION_COLUMNS, TEXT, arrow_table
from ledgermq_spark.rebuild.testimony import (
    CLOCK_COLUMNS,
    MOVE_COLUMNS,
    SEGMENT_COLUMNS,
    STANDING_COLUMNS,
    Testimony,
)
from support.audits.frames import decoded, folded
from support.brokers.log_writer import Entry, fold_one

COLUMNS = {
    name: (("queue_manager", TEXT), *columns)
    for name, columns in {
        "operations": OPERATION_COLUMNS,
        "outcomes": OUTCOME_COLUMNS,
        "moves": MOVE_COLUMNS,
        "clock": CLOCK_COLUMNS,
        "standing": STANDING_COLUMNS,
        "segments": SEGMENT_COLUMNS,
    }.items()
}


class Logs:
    """Logs that were folded, each under a name; `rows` are those of each frame."""

    def __init__(self) -> None:
        self.rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in COLUMNS}

    def fold(
        self, name: str, entries: Sequence[Entry]
    ) -> tuple[QueueManager, list[list[Addressed]]]:
        """Folds a log and keeps what was written, answered and stated; returns how it ended."""
        state, answered, (logs,) = folded_stretches(name, entries, [len(entries) - 1])
        self.add(logs)
        return state, answered

    def add(self, others: Logs) -> None:
        """Takes in what others have."""
        for name, rows in others.rows.items():
            self.rows[name] += rows

    def facts(self, engine: Engine) -> Facts:
        """The frames of all logs."""
        frames = {name: arrow_table(COLUMNS[name], rows) for name, rows in self.rows.items()}
        return Facts(engine, engine.taken(frames))


def told_moves(testimony: Testimony) -> Iterator[tuple[Any, ...]]:
    """The moves that a testimony tells of next, as rows of `MOVE_COLUMNS`."""
    for moves in testimony.take():
        yield from zip(*(column.to_pylist() for column in moves), strict=True)


def folded_stretches(
    name: str, entries: Sequence[Entry], ends: Sequence[int]
) -> tuple[QueueManager, list[list[Addressed]], list[Logs]]:
    """Folds a log once; returns how it ended, and the rows of each stretch up to its end."""
    answered: list[list[Addressed]] = []
    state, contents = new_state(), {}
    testimony, stretches = Testimony(state), [Logs() for _ in ends]
    at = 0
    for position, entry in enumerate(entries):
        rows = stretches[at].rows
        outcomes = fold_one(state, contents, position, entry, testimony.hear)
        answered.append(outcomes)
        rows["operations"].append((name, *decoded(position, entry)))
        rows["outcomes"] += [(name, *folded(one)) for one in outcomes]
        rows["moves"] += [(name, *row) for row in told_moves(testimony)]
        rows["clock"].append((name, position, state.time, state.time_reference))
        if position == ends[at]:
            rows["standing"] += [(name, *row) for row in testimony.standing()]
            rows["segments"] += [(name, *row) for row in testimony.segments()]
            at += 1
    return state, answered, stretches
