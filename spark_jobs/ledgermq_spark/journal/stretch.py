"""A stretch of history: what came in between two positions, and what of it a replay put already.

As for the journal, the fold tells which messages were accepted, and where they got their numbers:
that is where they came in. A replay is known by its name, which its copies bear; none of them is
part of the stretch that it puts again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Unpack

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from ledgermq.wire.content.journaled import JournaledMessage
from ledgermq.wire.topics.log_topics import Topics
from ledgermq.wire.topics.registry import Claim
from ledgermq_spark.archive.log_archive import LogArchive
from ledgermq_spark.archive.stretch import FOLD, RECORDS
from ledgermq_spark.archive.stretch import Stretch as ArchivedStretch
from ledgermq_spark.archive.updating import update_archive
from ledgermq_spark.journal.arrivals import arrivals_in, in_turn, messages_of, moves_told
from ledgermq_spark.log.positions import PartitionRange, PositionOutOfRangeError, locate
from ledgermq_spark.log.read_log import read_raw
from ledgermq_spark.log.store import Store, as_it_is
from ledgermq_spark.rebuild.checkpoints import Checkpoint, read_checkpoints
from ledgermq_spark.rebuild.frames import HIGHEST
from ledgermq_spark.rebuild.rebuilt import Rebuilt, rebuilt_from
from ledgermq_spark.rebuild.running import LogJobOptions, Running

# What gives the records from a position on.
Records = Callable[[int], DataFrame]


STEPS: Final = 2
# Of what is gone, so many are named.
FIRST_MAX: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """What came in from one position to another, and what of it was replayed.

    Attributes:
        through: The last position that was read, to know what was replayed.
        rows: One row per message, as `messages_of` tells them; `is_replayed`: the replay has put it
            already.
        destinations: The queues and topics that were there then, as `queue:NAME`.
        creates: Whether others are created by their first use.
    """

    through: int
    rows: DataFrame
    destinations: frozenset[str]
    creates: bool

    def messages(self) -> Iterator[tuple[JournaledMessage, bool]]:
        """The messages in the order in which they got numbers, and whether each was replayed."""
        readable = self.rows.where(f.col("content").isNotNull())
        for row in in_turn(readable.orderBy("position", "step")):
            one = row | {"expires_at": None, "expired": False}
            yield (
                JournaledMessage.from_row(one, is_live=None, backup=None),
                bool(row["is_replayed"]),
            )

    def gone(self) -> tuple[int, list[tuple[int, int]]]:
        """How many messages' Puts are not on the log any more; position and index of the first."""
        rows = self.rows.where(f.col("content").isNull() & ~f.col("is_replayed"))
        first = rows.orderBy("position", "step").limit(FIRST_MAX)
        places = first.select("put_position", "put_index").collect()
        return rows.count(), [(row["put_position"], row["put_index"]) for row in places]


def stretch_of(
    bootstrap: str,
    queue_manager: str,
    *,
    first: int,
    last: int,
    replay: str,
    sources: Collection[str] = (),
    archive: Path | None = None,
    **options: Unpack[LogJobOptions],
) -> Stretch:
    """Read a stretch of history from the log as it is now.

    Args:
        bootstrap: Address of the Kafka cluster.
        queue_manager: Its name.
        first: The position of the stretch's first entry.
        last: That of its last one.
        replay: Name of the replay whose copies are looked for.
        sources: Destinations that messages were put to, as `queue:NAME`; none: all.
        archive: An archive of the log, which gets what is new and is read instead of the log.
        **options: How it runs, as `LogJobOptions` says.

    Raises:
        QueueManagerNotFoundError: Nobody claimed that name.
        LogUnreachableError: The cluster does not answer, or lacks the topics.
        PositionOutOfRangeError: The log was cut, and what is left does not tell the stretch.
        FoldStoppedError: The log has a hole, or an entry of an unknown protocol version.
        ArchiveBrokenError: The archive is not whole, or is of another log than this.
        ArchiveBusyError: Somebody else adds to the archive at this moment.
    """
    running = Running(**options)
    running.tell("folding", 0, STEPS)
    spark, path = running.session(), running.place
    if archive is None:
        rebuilt, records = _logged(spark, bootstrap, running.topics, queue_manager, first, path)
    else:
        update_archive(bootstrap, queue_manager, archive, **options)
        rebuilt, records = _archived(spark, LogArchive(archive, queue_manager).sealed())
    running.tell("reading", 1, STEPS)
    arrivals = arrivals_in(spark, rebuilt).where(f.col("position") >= first)
    meant = f.col("position") <= last
    if sources:
        meant &= f.col("destination").isin(*sources)
    rows = _read(Store(spark, path / "work"), records, arrivals, meant)
    places = {"queue": rebuilt.statuses, "topic": rebuilt.topics}
    return Stretch(
        through=rebuilt.position,
        rows=_marked(rows, queue_manager, meant, replay),
        destinations=frozenset(f"{kind}:{one['name']}" for kind in places for one in places[kind]),
        creates=rebuilt.root["automatic_creation"],
    )


def _checkpoint_below(
    bootstrap: str, topics: Topics, claim: Claim, log: PartitionRange, first: int
) -> Checkpoint | None:
    """What to begin with where the log's beginning was cut; None: with that."""
    if log.start == 0:
        return None
    name = claim.queue_manager
    stored = read_checkpoints(bootstrap, topics, claim)
    checkpoint = stored.newest_at_or_below(first - 1)
    if checkpoint is None or checkpoint.position < log.start - 1:
        usable = [one for one in stored.manifests if one >= log.start - 1]
        hint = f"; from {name}@{min(usable) + 1} on it does" if usable else ""
        raise PositionOutOfRangeError(
            f"the log of {name} begins at position {log.start}, and no whole checkpoint between "
            f"that and {name}@{first} tells which puts were accepted then{hint}"
        )
    return checkpoint


def _logged(
    spark: SparkSession, bootstrap: str, topics: Topics, queue_manager: str, first: int, path: Path
) -> tuple[Rebuilt, Records]:
    """What the fold of a log tells from a position on, and what gives its records."""
    claim, log = locate(bootstrap, topics, queue_manager)
    checkpoint = _checkpoint_below(bootstrap, topics, claim, log, first)
    rebuilt = moves_told(spark, bootstrap, claim, log, checkpoint, path)

    def records(start: int) -> DataFrame:
        begins = min(max(log.start, start), log.end)
        return read_raw(spark, bootstrap, [replace(log, start=begins)], in_order=False)

    return rebuilt, records


def _archived(spark: SparkSession, stretches: Sequence[ArchivedStretch]) -> tuple[Rebuilt, Records]:
    """What the fold of all of an archive told, and what gives its records from a position on."""
    for one in stretches:
        one.check()
    end = stretches[-1]
    folds = [one.part(FOLD) for one in stretches]
    rebuilt = rebuilt_from(end.queue_manager, 0, end.last, folds, time.monotonic(), ends=folds[-1:])

    def records(start: int) -> DataFrame:
        parts = [one.part(RECORDS) for one in stretches if one.last >= start]
        paths = parts or [end.part(RECORDS)]
        return spark.read.parquet(*map(as_it_is, paths)).where(f.col("offset") >= start)

    return rebuilt, records


def _read(store: Store, records: Records, arrivals: DataFrame, meant: Column) -> DataFrame:
    """What came in from the stretch's beginning on, kept on disk; what is not meant has no body."""
    lowest = arrivals.where(meant).agg(f.min("put_position")).collect()[0][0]
    # Copies stand behind their originals.
    rows = messages_of(arrivals, records(HIGHEST if lowest is None else lowest))
    return store.keep("stretch", rows.withColumn("content", f.when(meant, f.col("content"))))


def _marked(rows: DataFrame, queue_manager: str, meant: Column, name: str) -> DataFrame:
    """The originals of a stretch, and whether a copy of each is on the log."""
    is_copy = f.coalesce(f.col("replay") == name, f.lit(False))
    done = rows.where(is_copy).select(f.col("replayed_from").alias("place")).distinct()
    place = f.concat(f.lit(f"{queue_manager}@"), "put_position", f.lit("/"), "put_index")
    originals = rows.where(meant & ~is_copy).withColumn("place", place)
    marked = originals.join(done.withColumn("found", f.lit(True)), "place", how="left")
    return marked.withColumn("is_replayed", f.coalesce("found", f.lit(False)))
