"""Proves an archive: every stretch is folded again from the state before it, all of them at once.

A stretch is accepted only if its records have the digest chain that the next one begins with, and
their fold ends with the state that the next one begins with and gives, row by row, what the archive
has of it. So stretches that were each proven by themselves prove the whole.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ledgermq.garbage import seldom_looked_for_cycles
from ledgermq_spark.archive.folding import plan_of
from ledgermq_spark.archive.stretch import FOLD, ArchiveBrokenError, Stretch
from ledgermq_spark.log.rows import LONG, TEXT, arrow_batch, arrow_type, spark_schema
from ledgermq_spark.rebuild.checkpoints import state_digest
from ledgermq_spark.rebuild.fold import TOLD, Fold

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

PROVEN_COLUMNS = (
    ("first", LONG),
    ("last", LONG),
    ("records", LONG),
    ("rows", LONG),
    ("milliseconds", LONG),
    ("problem", TEXT),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvenStretch:
    """A stretch that was folded again.

    Attributes:
        first: Its first position.
        last: Its last position.
        records: How many records of it were folded.
        rows: How many rows of their fold agree with those in the archive.
        milliseconds: How long that took.
        problem: What is wrong with it, in words; None: nothing.
    """

    first: int
    last: int
    records: int
    rows: int
    milliseconds: int
    problem: str | None


def prove_stretches(spark: SparkSession, stretches: Sequence[Stretch]) -> list[ProvenStretch]:
    """Fold stretches again, as many at once as Spark has cores; they are all of an archive."""
    tasks = [
        (str(one.path), None if previous is None else str(previous.path))
        for one, previous in zip(stretches, [None, *stretches[:-1]], strict=True)
    ]
    each_by_itself = spark.sparkContext.parallelize(tasks, len(tasks))
    frame = spark.createDataFrame(each_by_itself, "path string, before string")
    rows = frame.mapInArrow(_prove_all, spark_schema(PROVEN_COLUMNS)).collect()
    return sorted((ProvenStretch(**row.asDict()) for row in rows), key=lambda one: one.first)


def _prove_all(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for row in batch.to_pylist():
            with seldom_looked_for_cycles():
                proven = _prove(row["path"], row["before"])
            yield arrow_batch(PROVEN_COLUMNS, [proven])


def _prove(path: str, before: str | None) -> tuple[Any, ...]:
    started = time.monotonic()
    stretch = Stretch.at(Path(path))
    again = _Again(stretch)
    try:
        problem = stretch.damage() or again.problem(None if before is None else Path(before))
    except ArchiveBrokenError as error:
        problem = str(error)
    took = round((time.monotonic() - started) * 1000)
    return (stretch.first, stretch.last, again.records, again.rows, took, problem)


class _Again:
    """A stretch that is folded once more, and compared with its rows in the archive."""

    def __init__(self, stretch: Stretch) -> None:
        self._stretch = stretch
        self._archived = {name: _Archived(stretch, name) for name in TOLD}
        self._state: list[bytes] = []
        self.records = self.rows = 0

    def problem(self, before: Path | None) -> str | None:
        """What does not agree, if anything does not."""
        stretch = self._stretch
        previous = None if before is None else Stretch.at(before)
        plan = plan_of(stretch, previous, tuple(TOLD))
        if stretch.begins_with != (previous and previous.digest):
            return "it begins with another state than the stretch before it ends with"
        fold = Fold(plan)
        for columns in stretch.records():
            self.records += len(columns[0])
            fold.take(*columns)
            problem = self._compare(fold)
            if problem:
                return problem
        fold.end()
        problem = self._compare(fold)
        left = [name for name, rows in self._archived.items() if rows.next_rows(1)]
        if problem is None and left:
            problem = f"the archive has more rows of {left[0]} than the fold gives"
        return problem or self._end(fold)

    def _compare(self, fold: Fold) -> str | None:
        for batch in fold.told():
            name = batch.column(0)[0].as_py()
            if name not in TOLD:
                self._state += _state_chunks(batch)
                continue
            rows = batch.column(batch.schema.get_field_index(name))
            archived = self._archived[name].next_rows(len(rows))
            if archived is None or not rows.equals(archived):
                return f"the fold gives other rows of {name} than the archive, {self._where(rows)}"
            self.rows += len(rows)
        return None

    def _where(self, rows: Any) -> str:
        row = rows[0].as_py()
        return f"from position {row['position']} on" if "position" in row else "at the end"

    def _end(self, fold: Fold) -> str | None:
        stretch = self._stretch
        if fold.state.position != stretch.last:
            return f"its records end at position {fold.state.position}"
        if fold.chain != stretch.chain:
            return "its records have another digest chain: one was altered, left out or put in"
        if state_digest(self._state) != stretch.digest:
            return "the fold of its records ends with another state"
        return None


def _state_chunks(batch: pa.RecordBatch) -> list[bytes]:
    """The chunks of the state after the stretch, in the order of their digest."""
    parts = batch.select(["part", "payload"]).to_pylist()
    return [row["payload"] for row in parts if row["part"] in ("root", "block")]


class _Archived:
    """The rows of one kind that the archive has of a fold, in their order, so many at a time."""

    def __init__(self, stretch: Stretch, name: str) -> None:
        self._name = name
        self._rows = self._read(sorted((stretch.path / FOLD).glob("*.parquet")))
        self._left: Any = None

    def next_rows(self, count: int) -> Any:
        """The next rows as an array of structs; None if there are not so many."""
        import pyarrow as pa

        parts = [] if self._left is None else [self._left]
        have = sum(map(len, parts))
        while have < count:
            part = next(self._rows, None)
            if part is None:
                self._left = pa.concat_arrays(parts) if parts else None
                return None
            parts.append(part)
            have += len(part)
        whole = pa.concat_arrays(parts)
        self._left = whole.slice(count)
        return whole.slice(0, count)

    def _read(self, files: list[Path]) -> Iterator[Any]:
        import pyarrow.compute as pc
        import pyarrow.parquet as pq

        kind = arrow_type(spark_schema(TOLD[self._name]))
        for path in files:
            for batch in pq.ParquetFile(path).iter_batches(columns=["part", self._name]):
                chosen = batch.filter(pc.equal(batch.column(0), self._name))
                if len(chosen):
                    yield chosen.column(1).cast(kind)
