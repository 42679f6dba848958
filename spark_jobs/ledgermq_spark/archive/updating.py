"""Adds to an archive what came onto the log since: each position once, also if it is killed."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any, Final, Unpack

import pyarrow.compute as pc

from ledgermq_spark.archive.log_archive import LogArchive, check_seals
from ledgermq_spark.archive.stretch import (
    FORMAT,
    MANIFEST,
    NO_SEAL,
    OPERATIONS,
    RECORDS,
    ArchiveBrokenError,
    Stretch,
    batches_in,
    last_rows,
)
from ledgermq_spark.jobs.work import EVERYTHING, Work, begin
from ledgermq_spark.log.durable_files import settled_digests, write_durably
from ledgermq_spark.log.positions import PositionOutOfRangeError, resolve_at
from ledgermq_spark.log.read_log import (
    OPERATION_PARTS,
    RAW_COLUMNS,
    HeadersTornError,
    decoding,
    read_here,
    read_raw,
    write_holes,
)
from ledgermq_spark.log.rows import OPERATION_COLUMNS
from ledgermq_spark.log.session import is_spared, session_of, thread_beside
from ledgermq_spark.log.store import as_it_is, files_of, write_made, write_made_here
from ledgermq_spark.rebuild.rebuild import fold_log
from ledgermq_spark.rebuild.rebuilt import FoldStoppedError, Rebuilt, why_stopped
from ledgermq_spark.rebuild.running import LogJobOptions

RECORD_COLUMNS: Final = [one for one in RAW_COLUMNS if one[0] in OPERATION_PARTS]
COMPRESSION: Final = "zstd"
OPERATIONS_PER_STRETCH: Final = 50_000


def update_archive(
    bootstrap: str,
    queue_manager: str,
    path: Path,
    at: int | str | datetime | None = None,
    *,
    operations_per_stretch: int = OPERATIONS_PER_STRETCH,
    **options: Unpack[LogJobOptions],
) -> list[Stretch]:
    """Add what the log has up to a position, time, or its end; returns the stretches added.

    Args:
        bootstrap: Address of the Kafka cluster.
        queue_manager: Its name.
        path: The archive's directory; Spark's workers must see it, too.
        at: Up to which position or time; the end of the log if not given.
        operations_per_stretch: So many positions a stretch has at most.
        **options: How it runs, as `LogJobOptions` says.

    Raises:
        ArchiveBrokenError: The archive is not whole, or is of another log than this.
        ArchiveBusyError: Somebody else adds to it at this moment.
        FoldStoppedError: The log has a hole, or an entry of an unknown protocol version; what
            stands below it was added.
        PositionOutOfRangeError: `at` lies after the log's end, or what is to be added is gone.
        QueueManagerNotFoundError: Nobody claimed that name.
        LogUnreachableError: The cluster does not answer, or lacks the topics.
    """
    work = begin(bootstrap, queue_manager, **options)
    return extend(work, LogArchive(path, queue_manager), at, operations_per_stretch)


def extend(
    work: Work,
    archive: LogArchive,
    at: int | str | datetime | None,
    operations_per_stretch: int = OPERATIONS_PER_STRETCH,
) -> list[Stretch]:
    """Add to an archive up to a position or time, as `update_archive` says."""
    with archive.adding():
        held = archive.stretches()
        check_seals(held)
        before = held[-1] if held else None
        first = next_first = 0 if before is None else before.last + 1
        _check_same_log(work, archive, before)
        last = resolve_at(work.bootstrap, work.log, at) if work.log.end > first else first - 1
        added: list[Stretch] = []
        while next_first <= last:
            work.tell(f"archiving from position {next_first}", next_first - first, last + 1 - first)
            upper = min(next_first + operations_per_stretch - 1, last)
            made, stopped = _make(work, archive, before, next_first, upper)
            if made is None:
                raise FoldStoppedError(why_stopped(archive.queue_manager, stopped))
            added.append(made)
            before, next_first = made, made.last + 1
        return added


def _check_same_log(work: Work, archive: LogArchive, before: Stretch | None) -> None:
    """The log must go on from where the archive ends, and be the one that was archived."""
    end = -1 if before is None else before.last
    name = archive.queue_manager
    if work.log.start > end + 1:
        raise PositionOutOfRangeError(
            f"the log of {name} begins at position {work.log.start}, and the archive "
            f"{archive.path} ends at {end}: what stood between is gone. An archive begins while "
            "the log has its beginning, and is added to before the log is trimmed"
        )
    if work.log.end <= end:
        raise ArchiveBrokenError(
            f"the archive {archive.path} ends at position {end}, the log of {name} before it, at "
            f"{work.log.end - 1}: it lost its end, or is another log of that name"
        )
    if before is not None:
        before.check()
    if before is not None and work.log.start <= end and not _is_same_record(work, before):
        raise ArchiveBrokenError(
            f"the record at position {end} of {name} is not the one that was archived in "
            f"{archive.path}: it was altered, or this is another log of that name"
        )


def _is_same_record(work: Work, before: Stretch) -> bool:
    """Whether the last record of a stretch is the one that the log has there."""
    place = replace(work.log, start=before.last, end=before.last + 1)
    columns = ["offset", "append_time_ms", "timestamp_type", "key", "value"]
    (here,) = read_here(work.bootstrap, [place], columns)
    kept = last_rows(before.part(RECORDS), columns)
    at_its_end = kept.filter(pc.equal(kept.column("offset"), before.last))
    return bool(here.to_pylist() == at_its_end.to_pylist())


def _make(
    work: Work, archive: LogArchive, before: Stretch | None, first: int, last: int
) -> tuple[Stretch | None, dict[str, Any]]:
    """The stretch of some positions, shorter if the fold stops; None if it stops at once."""
    place = archive.unfinished(first)
    with thread_beside(work.spark) as pool:
        copying = pool.submit(_copy_records, work, place, first, last)
        rebuilt = fold_log(
            work.spark,
            work.bootstrap,
            work.claim,
            work.log,
            last,
            checkpoint=None if before is None else before.state(),
            tells=EVERYTHING,
            directory=place,
        )
        copying.result()
    if rebuilt.position < first:
        return None, rebuilt.stopped or {}
    if rebuilt.position < last:
        _copy_records(work, place, first, rebuilt.position)
    newest_ms = _decode(work, place, rebuilt)
    manifest = {
        "format": FORMAT,
        "queue_manager": rebuilt.queue_manager,
        "first": first,
        "last": rebuilt.position,
        "newest_ms": newest_ms,
        "begins_with": None if before is None else before.digest,
        "digest": rebuilt.digest,
        "chain": rebuilt.chain.hex(),
        "skipped": [[one.first, one.last] for one in rebuilt.skipped],
        "fold_seconds": round(rebuilt.seconds, 3),
        "follows": NO_SEAL if before is None else before.seal,
    }
    write_durably(
        place / MANIFEST, json.dumps(manifest | {"files": settled_digests(place)}, indent=2)
    )
    return archive.commit(place), {}


def _copy_records(work: Work, place: Path, first: int, last: int) -> None:
    """The records as they are, by one task, which sees them in order."""
    wanted = replace(work.log, start=first, end=last + 1)
    if is_spared(work.spark, last + 1 - first):
        with suppress(HeadersTornError):
            batches = read_here(work.bootstrap, [wanted], OPERATION_PARTS, work.spark)
            write_made_here(batches, iter, RECORD_COLUMNS, place / RECORDS, COMPRESSION)
            return
    raw = read_raw(session_of(work.spark), work.bootstrap, [wanted], headers=True)
    raw.drop("partition").write.mode("overwrite").parquet(
        str(place / RECORDS), compression=COMPRESSION
    )


def _decode(work: Work, place: Path, rebuilt: Rebuilt) -> int:
    """Writes the operations; returns the newest append time."""
    decode = decoding(rebuilt.queue_manager, rebuilt.skipped)
    made = (decode, OPERATION_COLUMNS, place / OPERATIONS)
    if is_spared(work.spark, rebuilt.operations):
        batches = chain.from_iterable(
            batches_in(file, OPERATION_PARTS) for file in files_of([str(place / RECORDS)])
        )
        write_made_here(batches, *made)
    else:
        records = session_of(work.spark).read.parquet(as_it_is(place / RECORDS))
        write_made(records.select(*OPERATION_PARTS), *made)
    write_holes(place / OPERATIONS, OPERATION_COLUMNS, rebuilt.skipped)
    return max(
        int(pc.max(batch.column(0)).as_py())
        for file in files_of([str(place / RECORDS)])
        for batch in batches_in(file, ["append_time_ms"])
    )
