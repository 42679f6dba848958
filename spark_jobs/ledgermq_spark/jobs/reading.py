"""What a job reads of a log: folded and decoded, with what answers questions about it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Final

from ledgermq_spark.jobs.work import Work
from ledgermq_spark.laws.engines.engine import Engine
from ledgermq_spark.laws.engines.frame import Frame
from ledgermq_spark.laws.facts import Facts
from ledgermq_spark.log.rows import OPERATION_COLUMNS
from ledgermq_spark.log.store import ParquetRows
from ledgermq_spark.rebuild.checkpoints import Checkpoint
from ledgermq_spark.rebuild.fold import TOLD
from ledgermq_spark.rebuild.frames import told_frame, told_frames
from ledgermq_spark.rebuild.rebuild import fold_log
from ledgermq_spark.rebuild.rebuilt import Rebuilt

# All that a fold can tell.
EVERYTHING: Final = (*TOLD, "links")


def read_log(work: Work, position: int) -> tuple[Rebuilt, ParquetRows]:
    """Folds and decodes at once: the fold of one queue manager keeps but one core busy."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        folding = pool.submit(fold, work, position, tells=EVERYTHING)
        operations = work.operations(position)
        return folding.result(), operations


def read_all(work: Work, position: int) -> tuple[Rebuilt, ParquetRows, ParquetRows]:
    """The log, and meanwhile what the lanes hold."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        reading = pool.submit(read_log, work, position)
        recorded = work.outcomes(position)
        return *reading.result(), recorded


def fold(
    work: Work,
    position: int,
    base: Checkpoint | None = None,
    *,
    tells: tuple[str, ...] = (),
    digests_at: frozenset[int] = frozenset(),
) -> Rebuilt:
    """Folds the log up to a position, from zero or from a checkpoint (`fold_log`)."""
    return fold_log(
        work.spark,
        work.bootstrap,
        work.claim,
        work.log,
        position,
        checkpoint=base,
        tells=tells,
        digests_at=digests_at,
        directory=work.store.path / f"to-{position}",
    )


def facts_of(rebuilt: Rebuilt, operations: Frame) -> Facts:
    """What laws and tables are asked of, for one queue manager, by the engine of its operations."""
    name, files = rebuilt.queue_manager, rebuilt.files
    frames = operations.engine.taken(told_frames(files, f"'{name}'", ends=files))
    columns = ", ".join(column for column, _ in OPERATION_COLUMNS)
    own = operations.ask(
        f"SELECT {columns}, '{name}' AS queue_manager FROM {{rows}} "
        f"WHERE position <= {rebuilt.position}"
    )
    return Facts(operations.engine, {**frames, "operations": own.held})


def told_outcomes(rebuilt: Rebuilt, engine: Engine) -> Frame:
    """The outcomes that a fold told."""
    read = told_frame(rebuilt.files, "outcome", f"'{rebuilt.queue_manager}'")
    return Frame.taken(engine, "expected", read)


def lanes_frame(work: Work, position: int) -> Frame:
    """What the lanes hold (`Work.outcomes`), with an engine that suits it."""
    read = work.outcomes(position)
    return Frame.taken(work.engine(read.paths), "lanes", read)
