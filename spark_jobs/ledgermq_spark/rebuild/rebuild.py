"""Rebuilds the state of a queue manager at any position or time, by the same fold in Spark."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import pyarrow as pa
from pyspark.sql import functions as f

from ledgermq.errors import LedgerMQError
from ledgermq.wire.framing.codec import decode_record
from ledgermq.wire.topics.log_topics import Topics
from ledgermq.wire.topics.registry import Claim, RegistryError, find_queue_manager
from ledgermq.wire.topics.skipping import LookAhead
from ledgermq_spark.log.headers import group_text, origin_text
from ledgermq_spark.log.positions import (
    LogUnreachableError,
    PartitionRange,
    QueueManagerUnknownError,
    partition_ranges,
    resolve_at,
)
from ledgermq_spark.log.read_log import read_raw
from ledgermq_spark.log.rows import (
    BYTES,
    FLAG,
    LONG,
    TEXT,
    arrow_batch,
    spark_schema,
)
from ledgermq_spark.log.scratch import directory_until_exit
from ledgermq_spark.log.session import spark_session
from ledgermq_spark.log.skipped import Skipped
from ledgermq_spark.rebuild.checkpoints import Checkpoint, read_checkpoints, state_digest
from ledgermq_spark.rebuild.fold import (
    FOLD_COLUMNS,
    FoldPlan,
    fold_task,
    starting_state,
    state_rows,
)
from ledgermq_spark.rebuild.stopping import FoldStoppedError, why_stopped

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "FoldStoppedError",
    "LogTrimmedError",
    "Progress",
    "Rebuilt",
    "fold_log",
    "locate",
    "rebuild_at",
    "stored_rows",
]

# Called with a stage's name, steps done and steps in all.
Progress: TypeAlias = Callable[[str, int, int], None]


class LogTrimmedError(LedgerMQError):
    """The start of the log is gone and no checkpoint stands in for it."""

    code = "log-trimmed"


class Digests(NamedTuple):
    """What a checkpoint at a position must have: the digest of the state, and the chain."""

    state: str
    chain: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    """The state of a queue manager at one position, as the fold says it.

    Times are microseconds since 1970 UTC. `rows` keeps everything the fold told, on disk.
    `stopped` says where and why it could not reach the position asked for, or is None; `skipped`
    what was passed over on the way because it was declared skipped; `digests` those of state and
    chain on the way, at positions that were asked for.
    """

    queue_manager: str
    position: int
    time: int
    digest: str
    chain: bytes
    root_bytes: bytes
    statuses: list[dict[str, Any]]
    topics: list[dict[str, Any]]
    subscriptions: list[dict[str, Any]]
    groups: list[dict[str, Any]]
    stalls: list[dict[str, Any]]
    rows: DataFrame
    seconds: float
    operations: int
    stopped: dict[str, Any] | None
    skipped: list[Skipped] = field(default_factory=list)
    digests: dict[int, Digests] = field(default_factory=dict)

    @property
    def root(self) -> dict[str, Any]:
        """The state without its numbered messages, as `checkpoint.Root`."""
        return decode_record(self.root_bytes)[1]

    def block_bytes(self) -> list[bytes]:
        """The blocks of messages, encoded, in manifest order."""
        return [bytes(row["payload"]) for row in _block_rows(self.rows)]

    def named_blocks(self) -> list[tuple[str, int, bytes]]:
        """The blocks with their queue and number, as a manifest lists them; several of a number."""
        rows = _block_rows(self.rows)
        return [(row["queue"], row["block"], bytes(row["payload"])) for row in rows]

    def blocks(self) -> list[dict[str, Any]]:
        """The numbered messages as `checkpoint.MessageBlock` records, in manifest order.

        Of a block that was too large for one, there are several.
        """
        return [decode_record(block)[1] for block in self.block_bytes()]

    def messages(self) -> DataFrame:
        """The numbered messages: queue, queue_created, sequence and the rest of a StoredMessage."""
        blocks = self.rows.where("part = 'block'").select("payload")
        return blocks.mapInArrow(_stored_messages, spark_schema(STORED_COLUMNS))

    def told(self, name: str) -> DataFrame:
        """What the fold told on its way, if it was asked to: one of `fold.TOLD`."""
        return self.rows.where(f.col("part") == name).select(f"{name}.*")

    def links(self) -> DataFrame:
        """The digest chain, if it was asked for: `position` of the first link, and the links."""
        told = self.rows.where("part = 'links'")
        return told.select(f.col("block").alias("position"), "payload")

    def queue_statuses(self, spark: SparkSession) -> DataFrame:
        """The statuses of the queues as a DataFrame, one row per queue."""
        schema = ", ".join(f"{name} {kind}" for name, kind in STATUS_COLUMNS)
        rows = [tuple(one[name] for name, _ in STATUS_COLUMNS) for one in self.statuses]
        return spark.createDataFrame(rows, schema)


STORED_COLUMNS = (
    ("queue", TEXT),
    ("queue_created", LONG),
    ("sequence", LONG),
    ("put_position", LONG),
    ("put_index", LONG),
    ("message_id", BYTES),
    ("priority", LONG),
    ("persistent", FLAG),
    ("size_bytes", LONG),
    ("enqueued_at", LONG),
    ("backout_count", LONG),
    ("uncounted_backout_count", LONG),
    ("group", TEXT),
    ("in_unit_of_work", FLAG),
    ("origin", TEXT),
)


def _stored_messages(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for payload in batch.column(0).to_pylist():
            block = decode_record(payload)[1]
            yield arrow_batch(STORED_COLUMNS, stored_rows(block))


def stored_rows(block: dict[str, Any]) -> list[tuple[Any, ...]]:
    """The messages of a MessageBlock as rows of `STORED_COLUMNS`."""
    names = [name for name, _ in STORED_COLUMNS[2:]]
    head = (block["queue"], block["created_position"])
    rows = []
    for one in block["messages"]:
        header = next(iter(one["header"]), None)
        told = one | {
            "group": None if header is None else group_text(header.get("group")),
            "origin": origin_text(one.get("origin")),
        }
        rows.append((*head, *(told[name] for name in names)))
    return rows


STATUS_COLUMNS = (
    ("name", "string"),
    ("created_position", "long"),
    ("description", "string"),
    ("message_bytes_max", "long"),
    ("unacknowledged_max", "long"),
    ("group_affinity", "boolean"),
    ("groups", "long"),
    ("temporary", "boolean"),
    ("gets_disabled", "boolean"),
    ("receivers", "long"),
    ("message_count", "long"),
    ("sent_and_committed", "long"),
    ("removed_by_administration", "long"),
    ("min_sequence", "long"),
    ("max_sequence", "long"),
    ("next_sequence", "long"),
    ("first_enqueued_at", "long"),
    ("last_enqueued_at", "long"),
    ("current", "long"),
    ("pending", "long"),
    ("uncommitted_puts", "long"),
    ("unacknowledged", "long"),
    ("uncommitted_gets", "long"),
)


def locate(bootstrap: str, topics: Topics, queue_manager: str) -> tuple[Claim, PartitionRange]:
    """The claim of a queue manager and what stands on its partition of the operations topic.

    Raises:
        QueueManagerUnknownError: Nobody claimed that name.
        LogUnreachableError: The cluster does not answer, or lacks the topics.
    """
    try:
        claim = find_queue_manager(bootstrap, topics, queue_manager)
    except RegistryError as error:
        raise LogUnreachableError(str(error)) from error
    if claim is None:
        raise QueueManagerUnknownError(
            f"there is no queue manager {queue_manager} at {bootstrap} under topic prefix "
            f"{topics.prefix}; `ledgermq up` or a first connection creates it"
        )
    (log,) = partition_ranges(bootstrap, topics.operations, [claim.partition])
    return claim, log


def rebuild_at(
    bootstrap: str,
    queue_manager: str,
    at: int | str | datetime | None = None,
    *,
    topic_prefix: str = "ledgermq",
    from_checkpoint: bool = False,
    spark: SparkSession | None = None,
    directory: Path | None = None,
    progress: Progress | None = None,
) -> Rebuilt:
    """Rebuild a queue manager's state as of a position, a time, or the end of its log.

    Args:
        bootstrap: Address of the Kafka cluster.
        queue_manager: Its name.
        at: A position (`1234`, `QM1@1234`), a time (aware datetime or ISO 8601), None: the end.
        topic_prefix: Of the installation's log topics.
        from_checkpoint: Begin with the newest whole checkpoint at or below, not from zero.
        spark: The session to use; one is started if not given.
        directory: Where intermediate rows are kept; a fresh temporary one if not given.
        progress: Called as the rebuild goes on.

    Raises:
        PositionOutOfRangeError: `at` lies before the log's start or after its end.
        QueueManagerUnknownError: Nobody claimed that name.
        LogUnreachableError: The cluster does not answer, or lacks the topics.
        LogTrimmedError: The start of the log is gone and no checkpoint stands in for it.
        FoldStoppedError: The log has a hole, or an entry of an unknown protocol version.
    """
    tell = progress or (lambda *_: None)
    topics = Topics(topic_prefix)
    tell("locating", 0, 3)
    claim, log = locate(bootstrap, topics, queue_manager)
    position = resolve_at(bootstrap, log, at, queue_manager=queue_manager)
    checkpoint: Checkpoint | None = None
    if from_checkpoint or log.start > 0:
        stored = read_checkpoints(bootstrap, topics.checkpoints, claim.partition, queue_manager)
        checkpoint = stored.newest_at_or_below(position)
    spark = spark or spark_session()
    tell("folding", 1, 3)
    rebuilt = fold_log(
        spark,
        bootstrap,
        claim,
        log,
        position,
        checkpoint=checkpoint,
        directory=directory,
    )
    if rebuilt.stopped is not None:
        raise FoldStoppedError(why_stopped(queue_manager, rebuilt.stopped))
    tell("done", 3, 3)
    return rebuilt


# Parts of which there is one row, and which fit the driver.
SMALL = (
    *("end", "chain", "root", "stopped"),
    *("statuses", "topics", "subscriptions", "groups", "stalls"),
)
# Parts of which there are few, each a list in JSON.
LISTED = ("skipped", "digest")


def fold_log(
    spark: SparkSession,
    bootstrap: str,
    claim: Claim,
    log: PartitionRange,
    position: int,
    *,
    checkpoint: Checkpoint | None = None,
    tells: tuple[str, ...] = (),
    digests_at: frozenset[int] = frozenset(),
    directory: Path | None = None,
) -> Rebuilt:
    """Fold a queue manager's log up to a position, from zero or from a checkpoint below it.

    On its way it `tells` what it is asked to: any of `fold.TOLD`, and "links", the digest chain;
    and the digests of the state at some positions.

    Raises:
        LogTrimmedError: The start of the log is gone and no checkpoint stands in for it.
    """
    started = time.monotonic()
    plan = FoldPlan(
        partition=claim.partition,
        start=0 if checkpoint is None else checkpoint.position + 1,
        root=None if checkpoint is None else checkpoint.root,
        blocks=[] if checkpoint is None else checkpoint.blocks,
        chain=bytes(32) if checkpoint is None else checkpoint.manifest["chain"],
        tells=tells,
        digests_at=digests_at,
    )
    if plan.start < log.start:
        raise LogTrimmedError(
            f"the log of {claim.queue_manager} begins at position {log.start}: what stood before "
            "is gone, and no whole checkpoint covers it"
        )
    path = str((directory or directory_until_exit()) / "fold")
    rows, told = _folded(spark, bootstrap, plan, log, position, path)
    stopped = json.loads(told.small["stopped"]) if "stopped" in told.small else None
    if stopped is not None and stopped["why"] != "version":
        ahead = LookAhead(bootstrap, log.topic, log.partition)
        ahead.look(stopped["position"])
        skips = tuple((one.first, one.last) for one in ahead.declared)
        plan = replace(plan, skips=skips, looked_ahead=True)
        rows, told = _folded(spark, bootstrap, plan, log, position, path)
    return _rebuilt(claim.queue_manager, plan.start, position, rows, told, started)


def rebuilt_from(
    queue_manager: str, first: int, position: int, rows: DataFrame, started: float
) -> Rebuilt:
    """What the rows of a fold say, from its first position to the one asked for.

    `started` is when the fold began, on the monotonic clock.
    """
    return _rebuilt(queue_manager, first, position, rows, _told_in(rows), started)


def _rebuilt(
    queue_manager: str, first: int, position: int, rows: DataFrame, told: _Told, started: float
) -> Rebuilt:
    small = told.small
    stopped = json.loads(small["stopped"]) if "stopped" in small else None
    end = json.loads(small["end"])
    if stopped is None and end["position"] < position:
        stopped = {"why": "hole", "position": end["position"] + 1, "found": None}
    root = bytes(small["root"])
    return Rebuilt(
        queue_manager=queue_manager,
        position=end["position"],
        time=end["time"],
        digest=state_digest([root, *(bytes(row["payload"]) for row in _block_rows(rows))]),
        chain=bytes(small["chain"]),
        root_bytes=root,
        statuses=json.loads(small["statuses"]),
        topics=json.loads(small["topics"]),
        subscriptions=json.loads(small["subscriptions"]),
        groups=json.loads(small["groups"]),
        stalls=json.loads(small["stalls"]),
        rows=rows,
        seconds=time.monotonic() - started,
        operations=end["position"] + 1 - first,
        stopped=stopped,
        skipped=told.skipped,
        digests=told.digests,
    )


def _folded(
    spark: SparkSession,
    bootstrap: str,
    plan: FoldPlan,
    log: PartitionRange,
    position: int,
    path: str,
) -> tuple[DataFrame, _Told]:
    """Folds as planned: all rows, and those that fit the driver."""
    _fold_rows(spark, bootstrap, plan, log, position).write.mode("overwrite").parquet(path)
    rows = spark.read.schema(spark_schema(FOLD_COLUMNS)).parquet(path)
    told = _told_in(rows)
    if "end" not in told.small:
        # Not one record stands there, so no task began.
        return _folded(spark, bootstrap, plan, log, plan.start - 1, path)
    return rows, told


class _Told(NamedTuple):
    """The parts of a fold that fit the driver: what there is one of, and what is listed."""

    small: dict[str, Any]
    skipped: list[Skipped]
    digests: dict[int, Digests]


def _told_in(rows: DataFrame) -> _Told:
    told = rows.where(f.col("part").isin(*SMALL, *LISTED)).select("part", "payload").collect()
    small = {row["part"]: row["payload"] for row in told if row["part"] in SMALL}
    listed = [(row["part"], json.loads(row["payload"])) for row in told if row["part"] in LISTED]
    skipped = [Skipped(*one) for part, one in listed if part == "skipped"]
    digests = {
        position: Digests(state, bytes.fromhex(chain))
        for part, (position, state, chain) in listed
        if part == "digest"
    }
    return _Told(small, sorted(skipped, key=lambda one: one.first), digests)


def _fold_rows(
    spark: SparkSession, bootstrap: str, plan: FoldPlan, log: PartitionRange, position: int
) -> DataFrame:
    schema = spark_schema(FOLD_COLUMNS)
    if position < plan.start:
        # Nothing lies between the checkpoint and the position: there is no record to start a task.
        rows = list(state_rows(starting_state(plan), plan.partition, plan.chain))
        return spark.createDataFrame(pa.Table.from_batches([arrow_batch(FOLD_COLUMNS, rows)]))
    wanted = PartitionRange(
        topic=log.topic, partition=log.partition, start=plan.start, end=position + 1
    )
    raw = read_raw(spark, bootstrap, [wanted])
    chosen = raw.select("partition", "offset", "append_time_ms", "timestamp_type", "value")
    return chosen.mapInArrow(fold_task({plan.partition: plan}), schema)


def _block_rows(rows: DataFrame) -> list[Any]:
    blocks = rows.where("part = 'block'").select(
        "queue", "created_position", "block", "number", "payload"
    )
    return blocks.orderBy("created_position", "block", "number").collect()
