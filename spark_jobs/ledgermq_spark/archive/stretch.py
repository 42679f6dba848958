"""A stretch of a log in an archive: records as they were, what the fold told, the state after.

The directory of a stretch is there whole or not at all, and does not change:

- `records/`: the Kafka records in their order, byte for byte, in one Parquet file
- `operations/`: the same decoded, as rows of `OPERATION_COLUMNS`
- `fold/`: what the fold told from the state before the stretch on, rows of `FOLD_COLUMNS`, with the
  state after it
- `manifest.json`: where it begins and ends, the digests there, and the digest of each file
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ledgermq.errors import LedgerMQError
from ledgermq_spark.log.durable_files import file_digest
from ledgermq_spark.rebuild.checkpoints import Checkpoint, state_digest

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT: Final = 1
MANIFEST: Final = "manifest.json"
RECORDS, OPERATIONS, FOLD = "records", "operations", "fold"
RECORD_COLUMNS: Final = ("offset", "append_time_ms", "timestamp_type", "value")
# Records are read in batches of about so many bytes, whatever their size.
BATCH_BYTES: Final = 32 * 1024 * 1024
BATCH_RECORDS_MAX: Final = 2_000


class ArchiveBrokenError(LedgerMQError):
    """An archive of a log is not as it was written, or its stretches do not follow each other."""

    code = "archive-broken"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """The positions `first` to `last` of a queue manager's log, in a directory."""

    path: Path
    manifest: dict[str, Any]

    @classmethod
    def at(cls, path: Path) -> Stretch:
        """The stretch in a directory.

        Raises:
            ArchiveBrokenError: Its manifest cannot be read, or is of a format from later on.
        """
        try:
            manifest = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
            known = manifest["format"] == FORMAT
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ArchiveBrokenError(
                f"{path / MANIFEST} cannot be read: {error}; take the stretch from a copy of the "
                "archive"
            ) from error
        if not known:
            raise ArchiveBrokenError(
                f"{path} is of format {manifest['format']}, this program knows {FORMAT}: upgrade it"
            )
        return cls(path=path, manifest=manifest)

    @property
    def name(self) -> str:
        """Its first position as its directory is called by it."""
        return self.path.name

    @property
    def first(self) -> int:
        """Its first position."""
        return int(self.manifest["first"])

    @property
    def last(self) -> int:
        """Its last position: that of the state it ends with."""
        return int(self.manifest["last"])

    @property
    def digest(self) -> str:
        """The digest of the state after it."""
        return str(self.manifest["digest"])

    @property
    def chain(self) -> bytes:
        """The digest chain after it."""
        return bytes.fromhex(self.manifest["chain"])

    @property
    def newest_ms(self) -> int:
        """The newest append time of its records, in ms since 1970 UTC."""
        return int(self.manifest["newest_ms"])

    def part(self, name: str) -> str:
        """The directory of a part, for Spark."""
        return str(self.path / name)

    def rows_told(self) -> int:
        """How many rows the fold told of it."""
        import pyarrow.parquet as pq

        files = (self.path / FOLD).glob("*.parquet")
        return sum(pq.ParquetFile(path).metadata.num_rows for path in files)

    def damage(self) -> str | None:
        """Which of its files is missing or not as it was written, if one is."""
        for name, digest in self.manifest["files"].items():
            path = self.path / name
            if not path.is_file():
                return f"{path} is missing"
            if file_digest(path) != digest:
                return f"{path} is not as it was written"
        return None

    def records(self, last: int | None = None) -> Iterator[list[list[Any]]]:
        """Its records in order, up to a position: columns as `RECORD_COLUMNS` names them."""
        import pyarrow.parquet as pq

        for path in sorted((self.path / RECORDS).glob("*.parquet")):
            file = pq.ParquetFile(path)
            rows = max(1, file.metadata.num_rows)
            size = sum(
                file.metadata.row_group(at).total_byte_size
                for at in range(file.metadata.num_row_groups)
            )
            records = max(1, min(BATCH_RECORDS_MAX, BATCH_BYTES * rows // max(1, size)))
            for batch in file.iter_batches(batch_size=records, columns=list(RECORD_COLUMNS)):
                if last is not None:
                    batch = _up_to(batch, last)
                yield [column.to_pylist() for column in batch.columns]

    def state(self) -> Checkpoint:
        """The state after it, as a checkpoint to go on from.

        Raises:
            ArchiveBrokenError: It is not the one that was written.
        """
        import pyarrow.compute as pc
        import pyarrow.dataset as ds

        files = [str(path) for path in sorted((self.path / FOLD).glob("*.parquet"))]
        columns = ["part", "created_position", "block", "number", "payload"]
        chosen = pc.field("part").isin(["root", "block"])
        rows = ds.dataset(files, format="parquet").to_table(columns=columns, filter=chosen)
        ordered = sorted(
            rows.to_pylist(),
            key=lambda row: (
                row["part"] != "root",
                row["created_position"] or 0,
                row["block"] or 0,
                row["number"] or 0,
            ),
        )
        chunks = [row["payload"] for row in ordered]
        if not chunks or state_digest(chunks) != self.digest:
            raise ArchiveBrokenError(
                f"the state at position {self.last} in {self.path} does not add up to its digest; "
                "take the stretch from a copy of the archive"
            )
        told = {"position": self.last, "chain": self.chain, "digest": self.digest}
        return Checkpoint(manifest=told, root=chunks[0], blocks=chunks[1:])


def _up_to(batch: pa.RecordBatch, last: int) -> pa.RecordBatch:
    import pyarrow.compute as pc

    return batch.filter(pc.less_equal(batch.column(0), last))
