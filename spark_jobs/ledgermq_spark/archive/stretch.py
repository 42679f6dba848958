"""A stretch of a log in an archive: its records, the rows of their fold, the state after it.

The directory of a stretch is there whole or not at all, and does not change:

- `records/`: the Kafka records in their order, byte for byte, in one Parquet file
- `operations/`: the same decoded, as rows of `OPERATION_COLUMNS`
- `fold/`: what the fold of these operations gave, from the state before the stretch on, as rows of
  `FOLD_COLUMNS`, with the state after it
- `manifest.json`: where it begins and ends, the digests there, the digest of each file, and the
  seal of the stretch before it

The seal of a stretch is the SHA-256 of its manifest. So it covers each byte of all files up to
there, keys and headers of records among them, of which no other digest knows.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ledgermq.errors import LedgerMQError
from ledgermq_spark.log.durable_files import damage_of, unreadable
from ledgermq_spark.log.store import ParquetRows, files_of
from ledgermq_spark.rebuild.checkpoints import Checkpoint, state_digest
from ledgermq_spark.rebuild.rebuilt import chunks_in

FORMAT: Final = 1
MANIFEST: Final = "manifest.json"
REMEDY: Final = "take the stretch from a copy of the archive"
RECORDS, OPERATIONS, FOLD = "records", "operations", "fold"
RECORD_COLUMNS: Final = ("offset", "append_time_ms", "timestamp_type", "value")
NO_SEAL: Final = bytes(32).hex()
# Records are read in batches of about so many bytes, whatever their size.
BATCH_BYTES: Final = 32 * 1024 * 1024
BATCH_RECORDS_MAX: Final = 2_000


class ArchiveBrokenError(LedgerMQError):
    """An archive of a log is not as it was written, or its stretches do not follow each other."""

    code = "archive-broken"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """The positions `first` to `last` of a queue manager's log, in a directory.

    `begins_with` and `digest` are the digests of the states before it (None: nothing) and after it,
    `chain` is the digest chain after it, `newest_ms` the newest append time of its records, in ms
    since 1970 UTC; `skipped` has ranges of positions, `files` the digest of each file;
    `fold_seconds` is how long the fold took when the stretch was made. `follows` is the seal of the
    stretch before it (`NO_SEAL`: it is the first; None: older programs wrote none), `seal` its own.
    """

    path: Path
    queue_manager: str
    first: int
    last: int
    newest_ms: int
    begins_with: str | None
    digest: str
    chain: bytes
    skipped: tuple[tuple[int, int], ...]
    fold_seconds: float
    files: dict[str, str]
    follows: str | None
    seal: str

    @classmethod
    def at(cls, path: Path) -> Stretch:
        """The stretch in a directory.

        Raises:
            ArchiveBrokenError: Its manifest cannot be read, or is of a format from later on.
        """
        try:
            content = (path / MANIFEST).read_bytes()
            manifest = json.loads(content)
            if manifest["format"] != FORMAT:
                raise ArchiveBrokenError(
                    f"{path} is of format {manifest['format']}, this program knows {FORMAT}: "
                    "upgrade it"
                )
            # A time that nobody can print is none that was written.
            datetime.fromtimestamp(manifest["newest_ms"] / 1000, UTC)
            return cls(
                path=path,
                queue_manager=str(manifest["queue_manager"]),
                first=int(manifest["first"]),
                last=int(manifest["last"]),
                newest_ms=int(manifest["newest_ms"]),
                begins_with=manifest["begins_with"],
                digest=str(manifest["digest"]),
                chain=bytes.fromhex(manifest["chain"]),
                skipped=tuple((int(first), int(last)) for first, last in manifest["skipped"]),
                fold_seconds=float(manifest["fold_seconds"]),
                files=dict(manifest["files"]),
                follows=manifest.get("follows"),
                seal=hashlib.sha256(content).hexdigest(),
            )
        except OSError as error:
            raise ArchiveBrokenError(f"{path / MANIFEST} {unreadable(error, REMEDY)}") from error
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
            raise ArchiveBrokenError(
                f"{path / MANIFEST} cannot be read: it is not as it was written; {REMEDY}"
            ) from error

    @property
    def name(self) -> str:
        """Its first position as its directory is called by it."""
        return self.path.name

    @property
    def newest_at(self) -> datetime:
        """The newest append time of its records."""
        return datetime.fromtimestamp(self.newest_ms / 1000, UTC)

    def is_behind(self, before: Stretch | None) -> bool:
        """Whether it was added behind what stands before it now."""
        return self.follows in (None, NO_SEAL if before is None else before.seal)

    def part(self, name: str) -> str:
        """The directory of a part, for Spark."""
        return str(self.path / name)

    def fold_rows(self) -> int:
        """How many rows its fold gave."""
        try:
            return ParquetRows(paths=[self.part(FOLD)]).rows_in_files()
        except (pa.ArrowException, OSError) as error:
            raise ArchiveBrokenError(
                f"the rows of the fold in {self.path} cannot be read: {error}; {REMEDY}"
            ) from error

    def damage(self) -> str | None:
        """Which file is missing, not as it was written, or not of the stretch, if one is."""
        return damage_of(self.path, self.files)

    def check(self) -> None:
        """See that what is read of it is what was written.

        Raises:
            ArchiveBrokenError: A file is missing, changed, or none of it.
        """
        problem = self.damage()
        if problem is not None:
            raise ArchiveBrokenError(f"{problem}; {REMEDY}")

    def records(self, last: int | None = None) -> Iterator[list[list[Any]]]:
        """Its records in order, up to a position: columns as `RECORD_COLUMNS` names them.

        Raises:
            ArchiveBrokenError: One has no position or time.
        """
        for path in sorted((self.path / RECORDS).glob("*.parquet")):
            for batch in batches_in(path, RECORD_COLUMNS):
                if any(batch.column(name).null_count for name in RECORD_COLUMNS[:-1]):
                    raise ArchiveBrokenError(f"{path} has records without a position or time")
                if last is not None:
                    batch = _up_to(batch, last)
                yield [column.to_pylist() for column in batch.columns]

    def state(self) -> Checkpoint:
        """The state after it, as a checkpoint to go on from.

        Raises:
            ArchiveBrokenError: It is not the one that was written.
        """
        if not files_of([self.part(FOLD)]):
            raise ArchiveBrokenError(f"{self.part(FOLD)} has no files; {REMEDY}")
        try:
            chunks = [one["payload"] for one in chunks_in([self.part(FOLD)])]
        except (pa.ArrowException, OSError) as error:
            raise ArchiveBrokenError(
                f"the state at position {self.last} in {self.path} cannot be read: {error}; "
                f"{REMEDY}"
            ) from error
        if not chunks or state_digest(chunks) != self.digest:
            raise ArchiveBrokenError(
                f"the state at position {self.last} in {self.path} does not add up to its digest; "
                f"{REMEDY}"
            )
        manifest = {"position": self.last, "chain": self.chain, "digest": self.digest}
        return Checkpoint(manifest=manifest, root=chunks[0], blocks=chunks[1:])


def batches_in(path: Path, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Some columns of a file of records, so many rows at a time as fit the memory."""
    file = pq.ParquetFile(path)
    rows = max(1, file.metadata.num_rows)
    size = sum(
        file.metadata.row_group(at).total_byte_size for at in range(file.metadata.num_row_groups)
    )
    records = max(1, min(BATCH_RECORDS_MAX, BATCH_BYTES * rows // max(1, size)))
    yield from file.iter_batches(batch_size=records, columns=list(columns))


def last_rows(part: str, columns: Sequence[str]) -> pa.Table:
    """Some columns of the last rows in a directory of records."""
    file = pq.ParquetFile(files_of([part])[-1])
    return file.read_row_group(file.metadata.num_row_groups - 1, columns=list(columns))


def _up_to(batch: pa.RecordBatch, last: int) -> pa.RecordBatch:
    return batch.filter(pc.less_equal(batch.column(0), last))
