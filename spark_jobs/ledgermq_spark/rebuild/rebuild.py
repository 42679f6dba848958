"""Rebuilds the state of a queue manager at any position or time, by the same fold in Spark."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Unpack

from ledgermq.errors import LedgerMQError
from ledgermq.wire.topics.registry import Claim
from ledgermq.wire.topics.skipping import LookAhead
from ledgermq_spark.log.positions import PartitionRange, locate, resolve_at
from ledgermq_spark.log.read_log import write_read
from ledgermq_spark.log.rows import arrow_batch
from ledgermq_spark.log.session import BRIEF_OPERATIONS_MAX, Spark
from ledgermq_spark.log.store import write_rows
from ledgermq_spark.rebuild.checkpoints import Checkpoint, read_checkpoints
from ledgermq_spark.rebuild.fold import (
    FOLD_COLUMNS,
    FoldPlan,
    fold_task,
    starting_state,
    state_rows,
)
from ledgermq_spark.rebuild.rebuilt import FoldStoppedError, Rebuilt, rebuilt_from, why_stopped
from ledgermq_spark.rebuild.running import LogJobOptions, Running


class LogTrimmedError(LedgerMQError):
    """The start of the log is gone and no checkpoint stands in for it."""

    code = "log-trimmed"


def rebuild_at(
    bootstrap: str,
    queue_manager: str,
    at: int | str | datetime | None = None,
    *,
    from_checkpoint: bool = False,
    **options: Unpack[LogJobOptions],
) -> Rebuilt:
    """Rebuild a queue manager's state as of a position, a time, or the end of its log.

    Args:
        bootstrap: Address of the Kafka cluster.
        queue_manager: Its name.
        at: A position (`1234`, `QM1@1234`), a time (aware datetime or ISO 8601), None: the end.
        from_checkpoint: Begin with the newest whole checkpoint at or below, not from zero.
        **options: How it runs, as `LogJobOptions` says.

    Raises:
        PositionOutOfRangeError: `at` lies before the log's start or after its end.
        QueueManagerNotFoundError: Nobody claimed that name.
        LogUnreachableError: The cluster does not answer, or lacks the topics.
        LogTrimmedError: The start of the log is gone and no checkpoint stands in for it.
        FoldStoppedError: The log has a hole, or an entry of an unknown protocol version.
    """
    running = Running(**options)
    running.tell("locating", 0, 3)
    claim, log = locate(bootstrap, running.topics, queue_manager)
    position = resolve_at(bootstrap, log, at, queue_manager=queue_manager)
    checkpoint: Checkpoint | None = None
    if from_checkpoint or log.start > 0:
        stored = read_checkpoints(bootstrap, running.topics, claim)
        checkpoint = stored.newest_at_or_below(position)
    spark = running.when_needed(brief=log.end - log.start <= BRIEF_OPERATIONS_MAX)
    running.tell("folding", 1, 3)
    rebuilt = fold_log(
        spark,
        bootstrap,
        claim,
        log,
        position,
        checkpoint=checkpoint,
        directory=running.place,
    )
    if rebuilt.stopped is not None:
        raise FoldStoppedError(why_stopped(queue_manager, rebuilt.stopped))
    running.tell("done", 3, 3)
    return rebuilt


def fold_log(
    spark: Spark,
    bootstrap: str,
    claim: Claim,
    log: PartitionRange,
    position: int,
    *,
    checkpoint: Checkpoint | None = None,
    tells: tuple[str, ...] = (),
    digests_at: frozenset[int] = frozenset(),
    directory: Path,
) -> Rebuilt:
    """Fold a queue manager's log up to a position, from zero or from a checkpoint below it.

    On its way it `tells` what it is asked to: any of `fold.TOLD`, and "links", the digest chain;
    and the digests of the state at some positions.

    Raises:
        LogTrimmedError: The start of the log is gone and no checkpoint stands in for it.
    """
    started = time.monotonic()
    plan = FoldPlan.behind(
        checkpoint, partition=claim.partition, tells=tells, digests_at=digests_at
    )
    if plan.start < log.start:
        raise LogTrimmedError(
            f"the log of {claim.queue_manager} begins at position {log.start}: what stood before "
            "is gone, and no whole checkpoint covers it; an archive of it may have that"
        )
    place = directory / "fold"
    name = claim.queue_manager
    _fold_into(place, spark, bootstrap, plan, log, position)
    rebuilt = rebuilt_from(name, plan.start, position, [str(place)], started)
    stopped = rebuilt.stopped
    if stopped is not None and stopped["why"] != "version":
        ahead = LookAhead(bootstrap, log.topic, log.partition)
        ahead.look(stopped["position"])
        skips = tuple((one.first, one.last) for one in ahead.declared)
        plan = replace(plan, skips=skips, looked_ahead=True)
        _fold_into(place, spark, bootstrap, plan, log, position)
        rebuilt = rebuilt_from(name, plan.start, position, [str(place)], started)
    return rebuilt


def _fold_into(
    place: Path,
    spark: Spark,
    bootstrap: str,
    plan: FoldPlan,
    log: PartitionRange,
    position: int,
) -> None:
    """Folds as planned, and writes all that the fold tells."""
    wanted = PartitionRange(
        topic=log.topic, partition=log.partition, start=plan.start, end=position + 1
    )
    parts = ("partition", "offset", "append_time_ms", "timestamp_type", "value")
    task = fold_task({plan.partition: plan})
    if not write_read(spark, bootstrap, [wanted], parts, task, FOLD_COLUMNS, place):
        # Not one record stands there, so that no task began.
        state = state_rows(starting_state(plan), plan.partition, plan.chain)
        write_rows(place / "part.parquet", FOLD_COLUMNS, [arrow_batch(FOLD_COLUMNS, state)])
