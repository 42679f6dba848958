"""The archive of a journal: a directory of backups as Parquet, each with a manifest (§21, DB-17).

- messages/queue_manager=QM1/backup=N/: the messages of backup N, in the order in which they came in
- state/queue_manager=QM1/backup=N/: the state below position N, which a later backup begins with
- manifests/QM1-N.json: what is in both; written last, so that what has none is no backup

N is the backup's `through`. Every backup has the whole journal of its time, so a message may be in
several; whoever reads them in turn skips what the one before has. Files are read without Spark.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow.dataset as ds
from pyspark.sql import DataFrame, SparkSession

from ledgermq.errors import LedgerMQError
from ledgermq.wire.content.journaled import JournaledMessage
from ledgermq_spark.journal.summary import Journal, Summary, counted
from ledgermq_spark.log.durable_files import (
    alone_in,
    bounded_name,
    file_digest,
    partition_of,
    settled,
    sync,
    unreadable,
    write_durably,
)
from ledgermq_spark.log.store import ParquetRows, as_it_is
from ledgermq_spark.rebuild.checkpoints import Checkpoint, state_digest
from ledgermq_spark.rebuild.rebuilt import chunks_in

FORMAT: Final = 1
PARTS: Final = ("messages", "state")
TIMESTAMPS: Final = "spark.sql.parquet.outputTimestampType"
UNFINISHED: Final = ".unfinished"
REMEDY: Final = "bring it back from a copy"
# What stands beside a queue manager's name while a manifest is written, with the longest number.
BESIDE: Final = "..-9223372036854775807.json.part"
CHUNKS: Final = """
SELECT part, created_position, block, number, payload FROM {rows} WHERE part IN ('root', 'block')
"""


class JournalArchiveError(LedgerMQError):
    """The archive of a journal lacks what is asked of it, or is not what its manifest says."""

    code = "journal-archive"


class JournalBusyError(LedgerMQError):
    """Somebody else writes backups to the directory at this moment."""

    code = "journal-busy"


@dataclass(frozen=True, slots=True, kw_only=True)
class Archived:
    """One backup in an archive."""

    archive: Archive
    manifest: dict[str, Any]

    @property
    def through(self) -> int:
        """Its number: everything that came in below this position is in it, or was before."""
        return int(self.manifest["through"])

    def files(self, part: str) -> list[Path]:
        """Its files, `messages` or `state`, in order; what they hold is checked first.

        Raises:
            JournalArchiveError: One is missing, or is not as it was written.
        """
        found = []
        name = self.manifest["queue_manager"]
        manifest = self.archive.manifest(bounded_name(name, BESIDE), self.through)
        remedy = f"{REMEDY}, or take {manifest} away to do without its messages"
        for told in self.manifest["files"]:
            if told["part"] != part:
                continue
            path, problem = self.archive.path / told["path"], None
            try:
                if file_digest(path) != told["sha256"]:
                    problem = f"is not as it was written; {remedy}"
            except FileNotFoundError:
                problem = f"is missing; {remedy}"
            except OSError as error:
                problem = unreadable(error, remedy)
            if problem is not None:
                raise JournalArchiveError(
                    f"backup {self.through} of {name} cannot be read: {path} {problem}"
                )
            found.append(path)
        return found

    def rows(self, spark: SparkSession, *columns: str) -> DataFrame:
        """Its messages, for Spark."""
        return spark.read.parquet(*map(as_it_is, self.files("messages"))).select(*columns)

    def messages(self, first: int = 0) -> Iterator[JournaledMessage]:
        """Its messages that came in at a position or above, in that order."""
        for path in self.files("messages"):
            found = ds.dataset(path, format="parquet").to_batches(
                filter=ds.field("position") >= first
            )
            for batch in found:
                for row in batch.to_pylist():
                    yield JournaledMessage.from_row(row, is_live=None, backup=self.through)

    def checkpoint(self) -> Checkpoint:
        """The state that a later backup begins with.

        Raises:
            JournalArchiveError: It is not whole.
        """
        files = [str(one) for one in self.files("state")]
        chunks = [one["payload"] for one in chunks_in(files)] if files else []
        if not chunks or state_digest(chunks) != self.manifest["digest"]:
            raise JournalArchiveError(
                f"the state of backup {self.through} in {self.archive.path} does not add up to "
                "its digest"
            )
        told = {"position": self.through - 1, "chain": bytes.fromhex(self.manifest["chain"])}
        return Checkpoint(manifest=told, root=chunks[0], blocks=chunks[1:])


@dataclass(frozen=True, slots=True)
class Archive:
    """A directory of backups; it need not be there until one is written."""

    path: Path

    def backups(self, queue_manager: str) -> list[Archived]:
        """The backups of a queue manager, oldest first.

        Raises:
            JournalArchiveError: A manifest cannot be read.
        """
        found = []
        place = self.path / "manifests"
        try:
            there = list(place.iterdir())
        except FileNotFoundError:
            return []
        except OSError as error:
            raise JournalArchiveError(f"{place} {unreadable(error, REMEDY)}") from error
        for path in there:
            name, _, number = path.stem.rpartition("-")
            mine = bounded_name(queue_manager, BESIDE)
            if path.suffix != ".json" or name != mine or not number.isdigit():
                continue
            try:
                manifest = json.loads(path.read_text(encoding="utf-8"))
                known = manifest["format"] == FORMAT
                if known:
                    _check(path, manifest)
            except OSError as error:
                raise JournalArchiveError(f"{path} {unreadable(error, REMEDY)}") from error
            except (ValueError, KeyError, TypeError, RecursionError) as error:
                raise JournalArchiveError(
                    f"{path} is no manifest of a backup ({error}): it was cut or changed; {REMEDY}"
                ) from error
            if not known:
                raise JournalArchiveError(
                    f"{path} is of format {manifest['format']}, this program knows {FORMAT}: "
                    "upgrade it"
                )
            if manifest["queue_manager"] == queue_manager:
                found.append(Archived(archive=self, manifest=manifest))
        return sorted(found, key=lambda one: one.through)

    def messages(self, queue_manager: str) -> Iterator[JournaledMessage]:
        """All messages that were ever archived here, each once, as they came in."""
        told = 0
        for one in self.backups(queue_manager):
            yield from one.messages(told)
            told = one.through

    @contextmanager
    def adding(self) -> Iterator[None]:
        """Nobody else writes backups meanwhile; what is left of one that came to nothing goes.

        Raises:
            JournalBusyError: Somebody else does.
            DirectoryUnwritableError: Nothing can be written there.
        """
        busy = (
            f"somebody else writes backups to {self.path} at this moment; wait until that is over"
        )
        with alone_in(self.path, "backups", JournalBusyError(busy)):
            self._tidy()
            try:
                yield
            finally:
                self._tidy()

    def _tidy(self) -> None:
        """Takes away what was written of backups that have no manifest."""
        named = (one.stem.rpartition("-") for one in (self.path / "manifests").glob("*.json"))
        whole = {_place(name, number) for name, _, number in named if name}
        for work in (self.path / UNFINISHED).glob("queue_manager=*/backup=*"):
            place = work.relative_to(self.path / UNFINISHED)
            for part in () if place in whole else PARTS:
                shutil.rmtree(self.path / part / place, ignore_errors=True)
        shutil.rmtree(self.path / UNFINISHED, ignore_errors=True)

    def manifest(self, name: str, through: int | str) -> Path:
        """Where the manifest of a backup is, by the queue manager's bounded name and its number."""
        return self.path / "manifests" / f"{name}-{through}.json"

    def write(self, journal: Journal, summary: Summary) -> Archived:
        """Writes a backup of the whole journal, reads it back and counts it; `summary` is its.

        Nobody else may write one meanwhile (`adding`).

        Raises:
            JournalArchiveError: What was read back is not what was written, or there is a backup
                of this number.
        """
        name = bounded_name(journal.queue_manager, BESIDE)
        place = _place(name, journal.through)
        taken = self.manifest(name, journal.through)
        if taken.exists():
            raise JournalArchiveError(f"{taken} is there: this backup was made before")
        work = self.path / UNFINISHED / place
        shutil.rmtree(work, ignore_errors=True)
        _write_messages(journal, work / "messages", summary.counts)
        chunks = ParquetRows(paths=journal.rebuilt.ends, query=CHUNKS)
        state = chunks.frame(journal.rows.sparkSession)
        state.coalesce(1).write.parquet(str(work / "state"))
        files = []
        for part in PARTS:
            target = self.path / part / place
            shutil.rmtree(target, ignore_errors=True)
            target.parent.mkdir(parents=True, exist_ok=True)
            (work / part).rename(target)
            files += [
                {"part": part, "path": str(one.relative_to(self.path)), "sha256": file_digest(one)}
                for one in settled(target)
            ]
            for directory in (target, *target.parents[:3]):
                sync(directory)
        manifest = {**_told(journal, summary), "files": files}
        found = Archived(archive=self, manifest=manifest)
        found.checkpoint()
        write_durably(taken, json.dumps(manifest, indent=2) + "\n")
        return found


def _place(name: str, through: int | str) -> Path:
    """Where a backup's files lie beneath each part, by the queue manager's bounded name."""
    return Path(partition_of(name)) / f"backup={through}"


def _check(path: Path, manifest: dict[str, Any]) -> None:
    """Raises ValueError, KeyError or TypeError where a manifest is not as it was written."""
    name, through = bounded_name(manifest["queue_manager"], BESIDE), int(manifest["through"])
    if path.name != f"{name}-{through}.json":
        raise ValueError(f"it tells of backup {through} of {manifest['queue_manager']}")
    bytes.fromhex(manifest["chain"])
    for name in ("from", "digest"):
        _ = manifest[name]
    for told in manifest["files"]:
        _ = Path(told["path"]), told["part"], told["sha256"]


def _told(journal: Journal, summary: Summary) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "queue_manager": journal.queue_manager,
        "from": journal.kept_from,
        "through": journal.through,
        "kept_from": summary.kept_from,
        "needed_from": summary.needed_from,
        "log_time_us": journal.time,
        "lifetime_ms": journal.lifetime_ms,
        "digest": journal.rebuilt.digest,
        "chain": journal.rebuilt.chain.hex(),
        **summary.counts,
    }


def _write_messages(journal: Journal, place: Path, expected: dict[str, int]) -> None:
    """Writes the messages, and holds what is read back against what was counted before."""
    spark = journal.rows.sparkSession
    before = spark.conf.get(TIMESTAMPS)
    spark.conf.set(TIMESTAMPS, "TIMESTAMP_MICROS")
    try:
        ordered = journal.rows.orderBy("position", "put_position", "put_index")
        ordered.write.parquet(str(place))
    finally:
        spark.conf.set(TIMESTAMPS, str(before))
    found = counted(spark.read.parquet(as_it_is(place)))
    if found != expected:
        raise JournalArchiveError(
            f"what was written to {place} reads back otherwise: {found} for {expected}; nothing "
            "was taken out of the journal"
        )
