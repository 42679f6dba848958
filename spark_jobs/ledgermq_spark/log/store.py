"""Where a job keeps what several of its steps read, and rows in files for others to read."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias
from urllib.parse import unquote
from uuid import uuid4

import pyarrow as pa
from pyarrow.parquet import ParquetFile, ParquetWriter
from pyspark.sql import DataFrame, Observation
from pyspark.sql.functions import col, count

from ledgermq.garbage import seldom_looked_for_cycles
from ledgermq_spark.log.rows import LONG, TEXT, Columns, arrow_batch, arrow_schema, spark_schema
from ledgermq_spark.log.session import Spark, session_of

# What a task makes of the rows that it reads.
Make: TypeAlias = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
FILE_COLUMNS: Final[Columns] = (("name", TEXT), ("rows", LONG))
ROW_GROUP_ROWS: Final = 100_000
ROW_GROUP_BYTES: Final = 32 * 1024 * 1024
# What Spark takes for a part of a pattern.
_OF_PATTERNS: Final = re.compile(r"[\\\[\]{}*?]")
FIRST_FILE: Final = "part-00000.parquet"
ALL: Final = "SELECT * EXCEPT (file) FROM {rows}"


def write_made(frame: DataFrame, make: Make, columns: Columns, directory: Path) -> int:
    """Writes what tasks make of a frame as Parquet, in place of what is there; returns how many
    rows that is.

    Tasks write their files themselves: rows that Python made would else go through Java one by one,
    which takes longer than to fold them. A task that Spark began twice leaves one file: those that
    count get their names at the end. Spark's workers must see the directory, too.
    """
    _emptied(directory)

    def written(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        name = f".{uuid4().hex}"
        with seldom_looked_for_cycles():
            rows = write_rows(directory / name, columns, make(batches))
        yield arrow_batch(FILE_COLUMNS, [(name, rows)])

    told = frame.mapInArrow(written, spark_schema(FILE_COLUMNS)).collect()
    files: list[tuple[str, int]] = [(row["name"], row["rows"]) for row in told]
    rows_in_all = sum(rows for _, rows in files)
    if not rows_in_all:
        # Readers want the columns also where there is nothing else.
        write_rows(directory / FIRST_FILE, columns, [])
    for number, (name, rows) in enumerate(files):
        if rows:
            (directory / name).replace(directory / f"part-{number:05}.parquet")
    for left in directory.glob(".*"):
        left.unlink()
    return rows_in_all


def write_made_here(
    batches: Iterable[pa.RecordBatch],
    make: Make,
    columns: Columns,
    directory: Path,
    compression: str = "snappy",
) -> int:
    """Writes the same of rows that this process has, as one task would."""
    _emptied(directory)
    with seldom_looked_for_cycles():
        return write_rows(directory / FIRST_FILE, columns, make(batches), compression)


def _emptied(directory: Path) -> None:
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)


def write_rows(
    path: Path,
    columns: Columns,
    batches: Iterable[pa.RecordBatch],
    compression: str = "snappy",
) -> int:
    """Writes a Parquet file of some columns that batches have; returns how many rows it has.

    A group of rows is written while the next one is made: Parquet takes a core of its own.
    """
    schema, rows = arrow_schema(columns), 0
    with (
        ParquetWriter(path, schema, compression=compression) as writer,
        ThreadPoolExecutor(max_workers=1) as beside,
    ):
        written: Future[None] | None = None
        for group in _row_groups(batches):
            rows += sum(batch.num_rows for batch in group)
            if written is not None:
                written.result()
            table = pa.Table.from_batches(group).select(schema.names)
            written = beside.submit(writer.write_table, table)
        if written is not None:
            written.result()
    return rows


def _row_groups(batches: Iterable[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    """As many batches at a time as are read together."""
    group: list[pa.RecordBatch] = []
    rows = size_bytes = 0
    for batch in batches:
        group.append(batch)
        rows += batch.num_rows
        size_bytes += batch.nbytes
        if rows >= ROW_GROUP_ROWS or size_bytes >= ROW_GROUP_BYTES:
            yield group
            group, rows, size_bytes = [], 0, 0
    if group:
        yield group


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetRows:
    """What a query makes of the rows of Parquet files, which it names `{rows}`.

    They have `columns` (None: whatever the files have), and `file`, the path of each row's file. Of
    columns that some of the files lack, there are nulls.
    """

    paths: Sequence[str]
    query: str = ALL
    columns: Columns | None = None

    def rows_in_files(self) -> int:
        """How many rows the files have."""
        return sum(ParquetFile(one).metadata.num_rows for one in files_of(self.paths))

    def frame(self, given: Spark) -> DataFrame:
        """As Spark reads them."""
        spark = session_of(given)
        reader = (
            spark.read if self.columns is None else spark.read.schema(spark_schema(self.columns))
        )
        # Spark tells of its files by address, where a space is %20, and takes no address back.
        paths = [
            f"file:{local_path(one)}" if one.startswith("file:") else one for one in self.paths
        ]
        found = reader.parquet(*map(as_it_is, paths))
        rows = found.select("*", col("_metadata.file_path").alias("file"))
        return spark.sql(self.query, rows=rows)


def as_it_is(path: str | Path) -> str:
    """A path for Spark to read, which takes it for a pattern, and reads all that this fits."""
    return _OF_PATTERNS.sub(r"\\\g<0>", str(path))


def local_path(path: str) -> Path:
    """A path as Spark tells it."""
    return Path(unquote(path.removeprefix("file:"))) if path.startswith("file:") else Path(path)


def files_of(paths: Sequence[str]) -> list[Path]:
    """The files that are meant by paths of files and directories."""
    return [
        file
        for path in map(local_path, paths)
        for file in (sorted(path.glob("*.parquet")) if path.is_dir() else [path])
    ]


@dataclass(frozen=True, slots=True)
class Store:
    """A directory of intermediate results, each written once and read back."""

    spark: Spark
    path: Path

    def keep(self, name: str, frame: DataFrame) -> DataFrame:
        """Write a DataFrame as Parquet and return it as read back.

        Of an empty one Spark is told so (`limit`): whatever is joined with it is planned away.
        """
        place = str(self.path / name)
        seen = Observation()
        frame.observe(seen, count("*").alias("rows")).write.mode("overwrite").parquet(place)
        kept = session_of(self.spark).read.schema(frame.schema).parquet(as_it_is(place))
        return kept if seen.get["rows"] else kept.limit(0)

    def hold(self, name: str, frame: DataFrame) -> DataFrame:
        """The same for what is small: in memory, which is done in half the time."""
        del name
        rows = frame.toArrow()
        held = session_of(self.spark).createDataFrame(rows)
        return held if rows.num_rows else held.limit(0)
