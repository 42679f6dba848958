"""Logs of tests as the frames that the jobs decode from Kafka."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from ledgermq.protocol.outcomes import Addressed
from ledgermq_spark.laws.engines.engine import Engine, Frame
from ledgermq_spark.log.outcome_rows import OUTCOME_COLUMNS, outcome_row
from ledgermq_spark.log.read_log import RECORDED_COLUMNS, as_operation
from ledgermq_spark.log.rows import (
    OPERATION_COLUMNS,
    arrow_table,
    operation_row,
)
from ledgermq_spark.rebuild.rebuilt import STORED_COLUMNS, stored_rows
from support.brokers.log_writer import LOG_APPEND_TIME, Entry


def operations_frame(engine: Engine, entries: list[Entry]) -> Frame:
    """Entries as decoded operations."""
    rows = [decoded(position, entry) for position, entry in enumerate(entries)]
    return frame(engine, OPERATION_COLUMNS, rows)


def decoded(position: int, entry: Entry) -> tuple[Any, ...]:
    """The row of an entry."""
    operation = as_operation(entry.value, entry.stamp)
    return operation_row(operation, position, entry.time_us, entry.stamp == LOG_APPEND_TIME)


def folded(one: Addressed) -> tuple[Any, ...]:
    """The row of an outcome as the fold makes it."""
    previous = (one.previous_position, one.previous_index)
    return outcome_row(one.outcome, one.connection, one.lane, previous, with_content=False)


def outcomes_frame(
    engine: Engine, outcomes: list[list[Addressed]], *, as_folded: bool = False
) -> Frame:
    """Outcomes as recorded on the lanes, one to a chunk, or as the fold makes them."""
    made = [one for found in outcomes for one in found]
    if as_folded:
        return frame(engine, OUTCOME_COLUMNS, [folded(one) for one in made])
    rows = []
    for at, one in enumerate(made):
        previous, lane = (one.previous_position, one.previous_index), max(one.lane, 0)
        row = outcome_row(one.outcome, one.connection, lane, previous, with_content=True)
        rows.append((*row, 0, lane, at, None, None))
    return frame(engine, RECORDED_COLUMNS, rows)


def stored_messages(message_blocks: list[dict[str, Any]]) -> pa.Table:
    """Numbered messages of a rebuilt state."""
    return arrow_table(STORED_COLUMNS, [row for one in message_blocks for row in stored_rows(one)])


def frame(engine: Engine, columns: Any, rows: list[Any]) -> Frame:
    """Rows, tuples in the order of the columns, as a frame."""
    return Frame.taken(engine, "of_test", arrow_table(columns, rows))


def recorded_frame(engine: Engine, positions: Iterable[int], answers: Iterable[int] = ()) -> Frame:
    """Outcomes at positions, and answers that are true at positions, as the lanes have them."""
    told = [{"position": position, "index": 0, "kind": "Accepted"} for position in positions]
    told += [{"position": -1, "kind": "Answer", "number": position} for position in answers]
    rows = [tuple(one.get(name) for name, _ in RECORDED_COLUMNS) for one in told]
    return frame(engine, RECORDED_COLUMNS, rows)


def anchored_frame(engine: Engine, anchors: list[tuple[int, bytes]]) -> Frame:
    """Outcomes on the lanes, each the last of a chunk with its digest chain."""
    names = [name for name, _ in RECORDED_COLUMNS]
    rows = [
        tuple({"position": position, "chain_digest": digest}.get(name) for name in names)
        for position, digest in anchors
    ]
    return frame(engine, RECORDED_COLUMNS, rows)
