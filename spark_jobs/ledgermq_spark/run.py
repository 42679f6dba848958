"""What the command line and the jobs call: audit, tables and trace of one queue manager."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from ledgermq_spark.alignment import alignment
from ledgermq_spark.audit import AuditReport, Subject, audit, unreadable_chunks
from ledgermq_spark.checkpoints import (
    Checkpoint,
    CheckpointBrokenError,
    Checkpoints,
    read_checkpoints,
)
from ledgermq_spark.evidence import Evidence
from ledgermq_spark.history import Life, life_of
from ledgermq_spark.positions import (
    PositionOutOfRangeError,
    resolve_at,
)
from ledgermq_spark.rebuild import Progress, Rebuilt, fold_log, rebuild_at
from ledgermq_spark.tables import Tables, build_tables, write_tables
from ledgermq_spark.totals import depth_over_time, queue_totals, subscription_totals
from ledgermq_spark.work import STEPS, Work, begin

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["rebuild_at", "run_audit", "run_tables", "trace_message"]


def run_tables(
    bootstrap: str,
    queue_manager: str,
    at: int | str | datetime | None = None,
    *,
    topic_prefix: str = "ledgermq",
    spark: SparkSession | None = None,
    directory: Path | None = None,
    output: Path | None = None,
    progress: Progress | None = None,
) -> Tables:
    """Build the tables (`tables.TABLES`) as of a position or time.

    They are written as Parquet below `output`, if given; `directory` keeps intermediate results.

    Raises:
        PositionOutOfRangeError: `at` lies before the log's start or after its end.
        QueueManagerUnknownError: Nobody claimed that name.
        LogUnreachableError: The cluster does not answer, or lacks the topics.
    """
    work = begin(bootstrap, queue_manager, topic_prefix, spark, directory, progress)
    position = resolve_at(bootstrap, work.log, at)
    _refuse_trimmed(work, queue_manager)
    with work.stage("reading the log", 1):
        operations, recorded = work.operations(position), work.outcomes(position)
    with work.stage("building the tables", 3):
        recorded = recorded.where(f.col("position").between(0, position))
        tables = build_tables(work.store, operations, recorded)
    if output is not None:
        write_tables(tables, output)
    work.tell("done", STEPS, STEPS)
    return tables


def _refuse_trimmed(work: Work, queue_manager: str) -> None:
    if work.log.start > 0:
        raise PositionOutOfRangeError(
            f"the log of {queue_manager} begins at position {work.log.start}: its tables need all "
            "of it, from position 0"
        )


def trace_message(
    bootstrap: str,
    queue_manager: str,
    message_id: str,
    *,
    topic_prefix: str = "ledgermq",
    spark: SparkSession | None = None,
    directory: Path | None = None,
    progress: Progress | None = None,
) -> Life | None:
    """Tell the life of a message by its message id (32 hexadecimal digits); None if unknown.

    Raises:
        QueueManagerUnknownError: Nobody claimed that name.
        LogUnreachableError: The cluster does not answer, or lacks the topics.
        PositionOutOfRangeError: The message id is none, or the log's start is gone.
    """
    try:
        identifier = bytes.fromhex(message_id.removeprefix("ID:"))
    except ValueError:
        raise PositionOutOfRangeError(
            f"{message_id!r} is no message id: it has 32 hexadecimal digits"
        ) from None
    tables = run_tables(
        bootstrap,
        queue_manager,
        topic_prefix=topic_prefix,
        spark=spark,
        directory=directory,
        progress=progress,
    )
    return life_of(tables, queue_manager, identifier)


def run_audit(
    bootstrap: str,
    queue_manager: str,
    at: int | str | datetime | None = None,
    *,
    live_position: int | None = None,
    topic_prefix: str = "ledgermq",
    spark: SparkSession | None = None,
    directory: Path | None = None,
    progress: Progress | None = None,
    with_tables: Callable[[Tables], None] | None = None,
) -> AuditReport:
    """Audit a queue manager: operations, outcomes, tables, rebuild and live state at one position.

    Args:
        bootstrap: Address of the Kafka cluster.
        queue_manager: Its name.
        at: A position or time; the end of the log if not given.
        live_position: Position of the checkpoint that a CHECKPOINT question was answered with: the
            live state is compared there, and `at` is not looked at.
        topic_prefix: Of the installation's log topics.
        spark: The session to use; one is started if not given.
        directory: Where intermediate results are kept; a fresh temporary one if not given.
        progress: Called as the audit goes on.
        with_tables: Called with the tables that were built, for those who want more of them.

    Raises:
        PositionOutOfRangeError: `at` lies before the log's start or after its end.
        QueueManagerUnknownError: Nobody claimed that name.
        LogUnreachableError: The cluster does not answer, or lacks the topics.
    """
    work = begin(bootstrap, queue_manager, topic_prefix, spark, directory, progress)
    position = resolve_at(bootstrap, work.log, at if live_position is None else live_position)
    if work.log.start > 0 or position < 0:
        return _nothing_to_prove(work, position)
    return _Audit(work, position, with_tables or (lambda _: None)).run(live_position)


class _Audit:
    """One audit on its way: what was found so far, and up to where things can be compared."""

    def __init__(self, work: Work, position: int, with_tables: Callable[[Tables], None]) -> None:
        self._work = work
        self._with_tables = with_tables
        self._asked = position
        self._findings: list[Evidence] = []
        self._unproven: list[str] = []

    def run(self, live_position: int | None) -> AuditReport:
        """Read, align, fold, build the tables, compare."""
        work, position, findings = self._work, self._asked, self._findings
        with work.stage("reading checkpoints"):
            checkpoints = read_checkpoints(
                work.bootstrap,
                work.topics.checkpoints,
                work.claim.partition,
                work.claim.queue_manager,
            )
            live = _live(checkpoints, position, live_position, findings)
        chain_at = frozenset(one for one in checkpoints.manifests if one <= position)
        with work.stage("folding and reading the log", 1):
            rebuilt, operations, recorded = _read_all(work, position, chain_at)
        findings.extend(unreadable_chunks(recorded))
        recorded = recorded.where("position >= 0")
        with work.stage("aligning log and lanes", 3):
            aligned = alignment(operations, recorded, position + 1)
        findings.extend(aligned.evidence)
        end = _comparable_end(rebuilt, aligned.comparable_until, findings, self._unproven)
        if end < position:
            live = None
            operations = operations.where(f.col("position") <= end)
            recorded = recorded.where(f.col("position") <= end)
            if end != rebuilt.position:
                with work.stage("folding again, up to the gap", 3):
                    rebuilt = _fold(work, end, frozenset(one for one in chain_at if one <= end))
        report = self._compare(rebuilt, operations, recorded, checkpoints, live)
        if end < position:
            note = f"nothing above position {end} was compared, up to {position}"
            report = replace(report, notes=[*report.notes, note])
        work.tell("done", STEPS, STEPS)
        return report

    def _compare(
        self,
        rebuilt: Rebuilt,
        operations: DataFrame,
        recorded: DataFrame,
        checkpoints: Checkpoints,
        live: Checkpoint | None,
    ) -> AuditReport:
        work = self._work
        with work.stage("building the tables", 4):
            tables = build_tables(work.store, operations, recorded)
            totals = queue_totals(tables)
            self._with_tables(tables)
        with work.stage("comparing", 5):
            subject = _subject(work, rebuilt, operations, recorded, tables, checkpoints, live)
            subject = replace(
                subject,
                first_findings=self._findings,
                unproven=self._unproven,
                totals=totals,
                subscription_totals=subscription_totals(tables),
            )
            report = audit(subject)
        return replace(report, depth=depth_over_time(tables), seconds=work.seconds)


def _read_all(
    work: Work, position: int, chain_at: frozenset[int]
) -> tuple[Rebuilt, DataFrame, DataFrame]:
    """Folds and decodes at once: the fold of one queue manager keeps but one core busy."""
    with ThreadPoolExecutor(max_workers=2) as pool:
        folding = pool.submit(_fold, work, position, chain_at)
        reading = pool.submit(lambda: (work.operations(position), work.outcomes(position)))
        operations, recorded = reading.result()
        return folding.result(), operations, recorded


def _fold(work: Work, position: int, chain_at: frozenset[int]) -> Rebuilt:
    return fold_log(
        work.spark,
        work.bootstrap,
        work.claim,
        work.log,
        position,
        with_outcomes=True,
        chain_at=chain_at,
        directory=work.store.path / f"to-{position}",
    )


def _live(
    checkpoints: Checkpoints, position: int, asked: int | None, findings: list[Evidence]
) -> Checkpoint | None:
    """The checkpoint at the position: the live state as its worker knows it."""
    if position not in checkpoints.manifests and asked is None:
        return None
    try:
        return checkpoints.load(position)
    except CheckpointBrokenError as problem:
        findings.append(
            Evidence(
                kind="digest mismatch",
                source="live state",
                summary=str(problem),
                position=position,
            )
        )
        return None


def _comparable_end(
    rebuilt: Rebuilt,
    aligned_until: int | None,
    findings: list[Evidence],
    unproven: list[str],
) -> int:
    """Up to where everything can be compared: holes and unknown versions end it earlier."""
    end = rebuilt.position if aligned_until is None else min(rebuilt.position, aligned_until)
    stopped = rebuilt.stopped
    if stopped is not None and stopped["why"] == "hole":
        findings.append(
            Evidence(
                kind="gap",
                source="operations",
                summary="the log has a hole: positions are missing from it",
                position=stopped["position"],
                expected=f"a record at position {stopped['position']}",
                found=f"the next record at position {stopped['found']}",
            )
        )
    elif stopped is not None:
        unproven.append(
            f"entries from position {stopped['position']} on need protocol version "
            f"{stopped['version']}, which this program does not know"
        )
    return end


def _subject(
    work: Work,
    rebuilt: Rebuilt,
    operations: DataFrame,
    recorded: DataFrame,
    tables: Tables,
    checkpoints: Checkpoints,
    live: Checkpoint | None,
) -> Subject:
    answered = None
    if live is None:
        highest = recorded.agg(f.max("position")).collect()[0][0]
        answered = -1 if highest is None else highest
    return Subject(
        queue_manager=work.claim.queue_manager,
        position=rebuilt.position,
        time=rebuilt.time,
        lanes=work.claim.lanes,
        operations=operations,
        recorded=recorded,
        expected=rebuilt.outcomes(),
        tables=tables,
        root=rebuilt.root,
        root_bytes=rebuilt.root_bytes,
        blocks=rebuilt.block_bytes,
        rebuilt_messages=rebuilt.messages(),
        statuses=rebuilt.statuses,
        topics=rebuilt.topics,
        subscriptions=rebuilt.subscriptions,
        totals=[],
        subscription_totals=[],
        digest=rebuilt.digest,
        chains=rebuilt.chains,
        manifests=list(checkpoints.manifests.values()),
        live=live,
        floors=_floors(work, recorded),
        answered_until=answered,
    )


def _floors(work: Work, recorded: DataFrame) -> dict[int, int]:
    """Lanes that have lost their oldest records, and the position up to which that matters."""
    expired = [at for at, lane in enumerate(work.lanes) if lane.start > 0]
    if not expired:
        return {}
    rows = (
        recorded.groupBy("lane", "lane_offset")
        .agg(f.max("position").alias("position"))
        .groupBy("lane")
        .agg(f.min_by("position", "lane_offset").alias("position"))
        .collect()
    )
    first = {row["lane"]: row["position"] for row in rows}
    floors = {lane: first.get(lane, 2**62) for lane in expired}
    return floors | {-1: max(floors.values())}


def _nothing_to_prove(work: Work, position: int) -> AuditReport:
    empty = position < 0
    why = (
        "the log is empty"
        if empty
        else f"the log begins at position {work.log.start}: what stood before can prove nothing"
    )
    return AuditReport(
        queue_manager=work.claim.queue_manager,
        position=position,
        time=-1,
        verdict="agrees" if empty else "unproven",
        anomalies=[],
        consequences=0,
        unproven=[] if empty else [why],
        notes=[why],
        compared={},
        totals=[],
        subscription_totals=[],
        refusals={},
        refused_records=[],
        corrections=[],
        digest="",
        chain="",
    )
