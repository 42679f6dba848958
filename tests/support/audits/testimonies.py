"""Many logs of tests as the frames that laws are asked of: each is a queue manager of its own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from ledgermq.core.apply import apply, new_state
from ledgermq.protocol import operations as op
from ledgermq.wire.framing.codec import NOT_STAMPED, decode_operation
from ledgermq_spark.laws.law import Facts
from ledgermq_spark.log.outcome_rows import OUTCOME_COLUMNS, outcome_row
from ledgermq_spark.log.rows import OPERATION_COLUMNS, TEXT, arrow_batch, operation_row
from ledgermq_spark.rebuild.testimony import (
    CLOCK_COLUMNS,
    MOVE_COLUMNS,
    STANDING_COLUMNS,
    Testimony,
)
from support.brokers.log_writer import LOG_APPEND_TIME, Entry

WHO = ("queue_manager", TEXT)


class Logs:
    """Logs that were folded, each under a name."""

    def __init__(self) -> None:
        self.operations: list[tuple[Any, ...]] = []
        self.outcomes: list[tuple[Any, ...]] = []
        self.moves: list[tuple[Any, ...]] = []
        self.clock: list[tuple[Any, ...]] = []
        self.standing: list[tuple[Any, ...]] = []

    def fold(self, name: str, entries: Iterable[Entry]) -> None:
        """Folds a log and keeps what was written, answered and stated."""
        state = new_state()
        testimony = Testimony(state)
        for position, entry in enumerate(entries):
            stamped = entry.stamp == LOG_APPEND_TIME
            operation: op.Operation = decode_operation(entry.value) if stamped else NOT_STAMPED
            time_us = entry.time_us if stamped else state.time
            self.operations.append(
                (name, *operation_row(operation, position, entry.time_us, stamped))
            )
            for one in apply(state, operation, position, time_us, testimony.hear):
                previous = (one.previous_position, one.previous_index)
                row = outcome_row(
                    one.outcome, one.connection, one.lane, previous, with_content=False
                )
                self.outcomes.append((name, *row))
            self.moves.extend((name, *row) for row in testimony.take())
            self.clock.append((name, position, state.time, state.time_reference))
        self.standing.extend((name, *row) for row in testimony.standing())

    def add(self, others: Logs) -> None:
        """Takes in what others have."""
        self.operations += others.operations
        self.outcomes += others.outcomes
        self.moves += others.moves
        self.clock += others.clock
        self.standing += others.standing

    def facts(self, spark: Any) -> Facts:
        """The frames of all logs."""
        return Facts(
            spark,
            _frame(spark, OPERATION_COLUMNS, self.operations),
            _frame(spark, OUTCOME_COLUMNS, self.outcomes),
            _frame(spark, MOVE_COLUMNS, self.moves),
            _frame(spark, CLOCK_COLUMNS, self.clock),
            _frame(spark, STANDING_COLUMNS, self.standing),
        )


def _frame(spark: Any, columns: Any, rows: list[Any]) -> Any:
    batch = arrow_batch((WHO, *columns), rows)
    return spark.createDataFrame(pa.Table.from_batches([batch])).cache()
