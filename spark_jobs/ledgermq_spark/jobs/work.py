"""One run of a job: what it reads, pinned at its beginning, folded and decoded, and who answers."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Final, Unpack

from ledgermq.wire.topics.log_topics import Topics, lane_partition
from ledgermq.wire.topics.registry import Claim
from ledgermq_spark.laws.engines.choice import Choice, quickest_engine
from ledgermq_spark.laws.engines.engine import Engine, Frame
from ledgermq_spark.laws.facts import Facts
from ledgermq_spark.log.positions import PartitionRange, locate, partition_ranges
from ledgermq_spark.log.read_log import read_operations, read_outcomes
from ledgermq_spark.log.rows import OPERATION_COLUMNS
from ledgermq_spark.log.session import (
    BRIEF_OPERATIONS_MAX,
    BRIEF_PARTITIONS,
    Spark,
    configure,
    cores_of,
    is_spared,
    is_submitted,
    partitions,
    session_of,
    thread_beside,
)
from ledgermq_spark.log.skipped import Skipped
from ledgermq_spark.log.store import ALL, ParquetRows, Store
from ledgermq_spark.rebuild.checkpoints import Checkpoint
from ledgermq_spark.rebuild.fold import TOLD
from ledgermq_spark.rebuild.frames import ROWS_IN_MEMORY_MAX, told_frame, told_frames
from ledgermq_spark.rebuild.rebuild import fold_log
from ledgermq_spark.rebuild.rebuilt import Rebuilt
from ledgermq_spark.rebuild.running import LogJobOptions, Progress, Running

STEPS = 5
SHORT_LOG_RECORDS = 20_000
NO_CODEGEN = "NO_CODEGEN"


@dataclass(slots=True, kw_only=True)
class Work:
    """One run: what it reads, where it keeps things, how long its stages took."""

    spark: Spark
    bootstrap: str
    topics: Topics
    claim: Claim
    log: PartitionRange
    lanes: list[PartitionRange]
    store: Store
    tell: Progress
    # Whether the Spark session is the job's own, to be set for how much there is.
    tunes: bool = True
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str, done: int = 0) -> Iterator[None]:
        """Tells that a stage begins, and notes how long it took."""
        self.tell(name, done, STEPS)
        started = time.monotonic()
        yield
        self.seconds[name] = round(time.monotonic() - started, 3)

    def tune(self, is_long: bool) -> None:
        """Compiles code, and divides among all processors, where there is much to read.

        For little, compiling and beginning tasks take longer.
        """
        if self.tunes:
            long = str(is_long).lower()
            settings = {
                "spark.sql.codegen.wholeStage": long,
                "spark.sql.codegen.factoryMode": "FALLBACK" if is_long else NO_CODEGEN,
                "spark.sql.adaptive.enabled": long,
                # What follows from a query's conditions saves reading, and costs a tenth of
                # planning.
                "spark.sql.constraintPropagation.enabled": long,
            }
            number = cores_of(self.spark) if is_long else BRIEF_PARTITIONS
            configure(self.spark, settings | partitions(number))

    def operations(
        self, position: int, first: int = 0, skipped: Sequence[Skipped] = ()
    ) -> ParquetRows:
        """The decoded operations of some positions, as far as they are there, kept on disk."""
        wanted = replace(self.log, start=max(first, self.log.start), end=position + 1)
        place = self.store.path / ("operations-skipped" if skipped else "operations")
        name = self.claim.queue_manager
        return read_operations(self.spark, self.bootstrap, wanted, name, place, skipped)

    def outcomes(self, position: int, lanes_from: Sequence[int] | None = None) -> ParquetRows:
        """The decoded outcomes of all lanes, from some offset of each on, kept on disk.

        None between a position in mid-log and the end of the log.
        """
        name, place = self.claim.queue_manager, self.store.path / "outcomes"
        firsts = lanes_from or [one.start for one in self.lanes]
        lanes = [
            replace(one, start=max(first, one.start))
            for one, first in zip(self.lanes, firsts, strict=True)
        ]
        rows = read_outcomes(self.spark, self.bootstrap, lanes, name, place)
        if position >= self.log.end - 1:
            return rows
        return replace(
            rows, query=f"{ALL} WHERE position <= {position} OR position >= {self.log.end}"
        )

    def engine(self, files: Sequence[str], choice: Choice = quickest_engine) -> Engine:
        """What answers questions about the rows of some files, and tunes Spark for as many."""
        is_long = ParquetRows(paths=files).rows_in_files() > ROWS_IN_MEMORY_MAX
        self.tune(is_long)
        return choice(self.spark, self.store, is_long=is_long)


def begin(
    bootstrap: str,
    queue_manager: str,
    *,
    tunes: bool = True,
    **options: Unpack[LogJobOptions],
) -> Work:
    """Pins what is read: lanes first, so that every outcome's operation is on the log read.

    It `tunes` a session of its own for the length of the log; that of somebody else it leaves, and
    one that was submitted, too.
    """
    running = Running(**options)
    running.tell("locating the queue manager", 0, STEPS)
    topics = running.topics
    claim, _ = locate(bootstrap, topics, queue_manager)
    numbers = [lane_partition(claim.partition, claim.lanes, lane) for lane in range(claim.lanes)]
    lanes = partition_ranges(bootstrap, topics.outcomes, numbers)
    (log,) = partition_ranges(bootstrap, topics.operations, [claim.partition])
    operations = log.end - log.start
    spark = running.when_needed(brief=operations <= BRIEF_OPERATIONS_MAX)
    if not is_spared(spark, operations):
        # Here, where Ctrl-C waits for its start: what reads are threads.
        session_of(spark)
    work = Work(
        spark=spark,
        bootstrap=bootstrap,
        topics=topics,
        claim=claim,
        log=log,
        lanes=lanes,
        store=Store(spark, running.place / "work"),
        tell=running.tell,
        tunes=tunes and not is_submitted(),
    )
    work.tune(operations > SHORT_LOG_RECORDS)
    return work


# All that a fold can tell.
EVERYTHING: Final = (*TOLD, "links")


def read_log(work: Work, position: int) -> tuple[Rebuilt, ParquetRows]:
    """Folds and decodes at once: the fold of one queue manager keeps but one core busy."""
    with thread_beside(work.spark) as pool:
        folding = pool.submit(fold, work, position, tells=EVERYTHING)
        operations = work.operations(position)
        return folding.result(), operations


def read_all(work: Work, position: int) -> tuple[Rebuilt, ParquetRows, ParquetRows]:
    """The log, and meanwhile what the lanes hold."""
    with thread_beside(work.spark) as pool:
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
