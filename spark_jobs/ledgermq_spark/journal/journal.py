"""The journal of a queue manager, derived from its log (PROTOCOL.md §21, DB-17 to DB-19).

The fold tells which Puts were accepted and where their messages got numbers; what they say is read
from the log, in a second pass over the part that the journal needs. Of a log whose beginning was
cut, the state to begin with, and what came in before it, are taken from the last backup.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Unpack

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from ledgermq.protocol.limits import TIME_ROUNDING_US
from ledgermq.wire.topics.registry import Claim
from ledgermq_spark.journal.archive import Archive, Archived, JournalArchiveError
from ledgermq_spark.journal.arrivals import arrivals_in, messages_of, moves_told
from ledgermq_spark.journal.summary import JOURNAL_COLUMNS, Journal
from ledgermq_spark.log.positions import PartitionRange, locate
from ledgermq_spark.log.read_log import read_raw
from ledgermq_spark.rebuild.checkpoints import Checkpoint, Checkpoints, read_checkpoints
from ledgermq_spark.rebuild.frames import links_frame
from ledgermq_spark.rebuild.rebuilt import Rebuilt
from ledgermq_spark.rebuild.running import LogJobOptions, Running

OTHER_LOG: Final = (
    "these are backups of another log of that name, or the log was cut or altered since; name the "
    "directory of this log's backups, or a new one"
)
LIFETIME_MS_DEFAULT: Final = 7 * 24 * 3600 * 1000


def journal_of(
    bootstrap: str,
    queue_manager: str,
    *,
    archive: Path | None = None,
    apart: bool = False,
    from_checkpoint: bool = False,
    **options: Unpack[LogJobOptions],
) -> Journal:
    """Derive the journal from the log as it is now.

    Args:
        bootstrap: Address of the Kafka cluster.
        queue_manager: Its name.
        archive: Where backups went to, which must be of this log.
        apart: Look there only if the beginning of the log was cut: nothing there is read beside it.
        from_checkpoint: Where the archive of such a log is lost, begin with the oldest checkpoint
            that is kept, and leave out what came in before it.
        **options: How it runs, as `LogJobOptions` says.

    Raises:
        QueueManagerNotFoundError: Nobody claimed that name.
        LogUnreachableError: The cluster does not answer, or lacks the topics.
        JournalArchiveError: The log begins late, and the archive does not have what stood before;
            or the archive is of another log of that name.
        FoldStoppedError: The log has a hole, or an entry of an unknown protocol version.
    """
    running = Running(**options)
    running.tell("locating", 0, 3)
    # Looked at first: none of these lies above the end that the log has then.
    backups = [] if archive is None or apart else Archive(archive).backups(queue_manager)
    claim, log = locate(bootstrap, running.topics, queue_manager)
    spark = running.session()
    base = checkpoint = stored = None
    if log.start > 0:
        stored = read_checkpoints(bootstrap, running.topics, claim)
        if archive is not None and apart:
            backups = Archive(archive).backups(queue_manager)
        base = None if from_checkpoint else _base(claim, log, archive, backups)
        checkpoint = _oldest(stored, claim, log) if base is None else base.checkpoint()
    running.tell("folding", 1, 3)
    rebuilt = moves_told(spark, bootstrap, claim, log, checkpoint, running.place)
    _check_same_log(spark, rebuilt, backups, stored if base else None)
    running.tell("reading", 2, 3)
    begins = 0 if base is not None or checkpoint is None else checkpoint.position + 1
    return _journal(spark, bootstrap, log, rebuilt, base, begins)


def _base(
    claim: Claim, log: PartitionRange, archive: Path | None, backups: Sequence[Archived]
) -> Archived:
    """The backup whose state the fold begins with: the newest that the log goes on from."""
    fitting = [one for one in backups if log.start <= one.through <= log.end]
    if not fitting:
        where = "no archive was named" if archive is None else f"{archive} has no backup of it"
        raise JournalArchiveError(
            f"the log of {claim.queue_manager} begins at position {log.start}, so what its journal "
            f"has rests on the last backup, and {where}: name the directory that the last backup "
            "was written to; or, if that is lost, back up --from-checkpoint"
        )
    return fitting[-1]


def _check_same_log(
    spark: SparkSession,
    rebuilt: Rebuilt,
    backups: Sequence[Archived],
    stored: Checkpoints | None,
) -> None:
    """Backups are of the log that was folded, as far as that tells their digest chain.

    `stored`: checkpoints, which must be of it, too, where the fold began with a backup.

    Raises:
        JournalArchiveError: One is not.
    """
    chains = {one.through - 1: bytes.fromhex(one.manifest["chain"]) for one in backups}
    name = rebuilt.queue_manager
    if chains and max(chains) > rebuilt.position:
        raise JournalArchiveError(
            f"{backups[-1].archive.path} has a backup of {name} up to position {max(chains)}, and "
            f"its log ends at {rebuilt.position}: {OTHER_LOG}"
        )
    if stored is not None:
        chains = {at: one["chain"] for at, one in stored.manifests.items()} | chains
    if not chains:
        return
    wanted = spark.createDataFrame([(at,) for at in chains], "at long")
    is_here = "at >= position AND at < position + octet_length(payload) div 32"
    link = "substring(payload, cast((at - position) * 32 + 1 AS int), 32) AS link"
    links = links_frame(rebuilt.files).frame(spark)
    rows = links.join(wanted, f.expr(is_here)).selectExpr("at", link).collect()
    differing = [at for at, link in rows if bytes(link) != chains[at]]
    if differing:
        raise JournalArchiveError(
            f"the digest chain of {name} at position {min(differing)} is not the one that was "
            f"noted there when it was backed up to {backups[-1].archive.path}: {OTHER_LOG}"
        )


def _oldest(stored: Checkpoints, claim: Claim, log: PartitionRange) -> Checkpoint:
    """The oldest whole checkpoint that the log goes on from."""
    found = stored.oldest_between(log.start - 1, log.end - 1)
    if found is None:
        raise JournalArchiveError(
            f"the log of {claim.queue_manager} begins at position {log.start}, and no whole "
            "checkpoint goes on from there: its journal cannot be told"
        )
    return found


def _journal(
    spark: SparkSession,
    bootstrap: str,
    log: PartitionRange,
    rebuilt: Rebuilt,
    base: Archived | None,
    begins: int,
) -> Journal:
    """What the fold told, with what the log and the archive say of it.

    `begins`: what came in below was told by nobody, although it may be in the journal.
    """
    root = rebuilt.root
    told = root["journal"] or {"intervals": [], "lifetime_ms": LIFETIME_MS_DEFAULT}
    intervals = [(one["first"], one["end"]) for one in told["intervals"]]
    kept_from = told["kept_from"] if intervals else None
    arrivals = arrivals_in(spark, rebuilt).where(_within(intervals, "put_position"))
    needed = log.end if kept_from is None else max(log.start, told["needed_from"])
    puts = read_raw(spark, bootstrap, [replace(log, start=needed)], in_order=False)
    came_in = arrivals.where(f.col("position") >= (kept_from or 0))
    rows = messages_of(came_in, puts).where(f.col("content").isNotNull()).select(*_KEPT)
    if base is not None:
        if kept_from is not None and base.manifest["from"] > kept_from:
            raise JournalArchiveError(
                f"the newest backup in {base.archive.path} begins at {base.manifest['from']}, the "
                f"journal of {rebuilt.queue_manager} at {kept_from}: name the directory that the "
                "last backup was written to; or, if that is lost, back up --from-checkpoint"
            )
        rows = base.rows(spark, *_KEPT).where(f.col("position") >= (kept_from or 0)).union(rows)
    return Journal(
        queue_manager=rebuilt.queue_manager,
        through=rebuilt.position + 1,
        time=rebuilt.time,
        lifetime_ms=told["lifetime_ms"],
        is_on=bool(intervals) and intervals[-1][1] == -1,
        kept_from=None if kept_from is None else max(kept_from, begins),
        rows=_with_expiry(rows, told["lifetime_ms"], rebuilt.time),
        waiting=[one for one in _waiting(root) if _is_within(intervals, one)],
        rebuilt=rebuilt,
    )


# The columns that do not depend on when one looks.
_KEPT: Final = tuple(name for name in JOURNAL_COLUMNS if name not in ("expires_at", "expired"))


def _within(intervals: list[tuple[int, int]], column: str) -> str:
    """A condition: that a position stands where journaling was on."""
    parts = [
        f"{column} >= {first}" + (f" AND {column} < {end}" if end >= 0 else "")
        for first, end in intervals
    ]
    return " OR ".join(f"({part})" for part in parts) or "false"


def _is_within(intervals: list[tuple[int, int]], position: int) -> bool:
    return any(first <= position and (end < 0 or position < end) for first, end in intervals)


def _waiting(root: dict[str, Any]) -> list[int]:
    """Where the open and blocked puts of a state stand."""
    found = {one["position"] for one in root["blocked_puts"]}
    for session in root["sessions"]:
        for puts in session["open_puts"]:
            found |= {one["put_position"] for one in puts["messages"]}
    return sorted(found)


def _with_expiry(rows: DataFrame, lifetime_ms: int, time: int) -> DataFrame:
    """With when each expires in the journal, and whether it has by a time in µs."""
    ends = f.lit(None).cast("timestamp")
    if lifetime_ms:
        # In whole numbers: a double does not tell microseconds of today apart once divided.
        moment = f"unix_micros(enqueued_at) + {lifetime_ms * 1000 + TIME_ROUNDING_US - 1}L"
        ends = f.expr(f"timestamp_micros(({moment}) div {TIME_ROUNDING_US}L * {TIME_ROUNDING_US}L)")
    expired = f.coalesce(f.unix_micros("expires_at") <= f.lit(time), f.lit(False))
    return (
        rows.withColumn("expires_at", ends).withColumn("expired", expired).select(*JOURNAL_COLUMNS)
    )
