"""DuckDB as what answers queries, in this process: frames are its tables, answers are queries.

On one machine it needs a tenth of the time that Spark takes for the same.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow as pa
from duckdb.func import FunctionNullHandling
from pyarrow.parquet import ParquetFile
from pyspark.sql import DataFrame, SparkSession

from ledgermq.errors import LedgerMQError
from ledgermq_spark.laws.engines.duck_dialect import translated, type_of
from ledgermq_spark.laws.engines.engine import Given, Pass, Rows
from ledgermq_spark.laws.refusals.text_checks import CHECKS
from ledgermq_spark.log.machine import MEMORY_VARIABLE, cores, query_memory
from ledgermq_spark.log.rows import arrow_batch
from ledgermq_spark.log.session import Spark, session_of
from ledgermq_spark.log.store import ParquetRows, Store, as_it_is, files_of, local_path


class QueryUnansweredError(LedgerMQError):
    """What was asked needs more memory than there is, or more room on the disk."""

    code = "query-unanswered"


# More rows than these a pass takes in Spark's processes, side by side.
ROWS_HERE_MAX: Final = 500_000
BATCH_ROWS: Final = 50_000
# Some, as keys have not all as many rows.
FILES_PER_CORE: Final = 4
# Types of answers, and what Spark has in their place.
AS_SPARK: Final = {"HUGEINT": "BIGINT", "TIMESTAMP": "TIMESTAMPTZ"}
# As DuckDB says it, within JSON where it writes beside other work.
FULL_DISK: Final = re.compile(
    r'file \\?"([^"\\]+)\\?": (No space left on device|Disk quota exceeded)'
)
# So many frames Spark is asked for side by side: of a short one it mostly plans, on one core.
FRAMES_AT_ONCE: Final = 4


class DuckEngine:
    """Answers by DuckDB. What is long is in a database on disk, what is short in memory."""

    at_once = 1

    def __init__(self, spark: Spark, store: Store, *, is_long: bool) -> None:
        self._spark = spark
        self._store = store
        self._is_long = is_long
        self._made: Counter[str] = Counter()
        self._database = duckdb.connect(
            str(self._place / "laws.duckdb") if is_long else ":memory:",
            config={
                "threads": cores(),
                "memory_limit": f"{query_memory(cores()).upper()}iB",
                "temp_directory": str(store.path / "spilled"),
                "autoinstall_known_extensions": False,
                "TimeZone": "UTC",
                "preserve_insertion_order": False,
            },
        )
        for name, (check, parameters, kind) in CHECKS.items():
            self._database.create_function(
                name,
                check,
                [duckdb.sqltype(type_of(one)) for one in parameters],
                duckdb.sqltype(type_of(kind)),
                null_handling=FunctionNullHandling.SPECIAL,
            )

    @property
    def spark(self) -> SparkSession:
        """It begins now, unless it has."""
        return session_of(self._spark)

    @cached_property
    def _place(self) -> Path:
        """A directory of its own, once it needs one."""
        self._store.path.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix="laws-", dir=self._store.path))

    def taken(self, frames: Mapping[str, Given]) -> dict[str, str]:
        """Tables of them. What is Spark's it prepares side by side."""
        places = {name: self._new(name) for name in frames}
        with ThreadPoolExecutor(max_workers=FRAMES_AT_ONCE) as pool:
            given = pool.map(self._given, places.values(), frames.values())
            for place, rows in zip(places.values(), given, strict=True):
                if isinstance(rows, ParquetRows):
                    self._of_parquet(place, rows)
                else:
                    self._of_arrow(place, rows)
        return places

    def _given(self, place: str, given: Given) -> pa.Table | ParquetRows:
        """What can be read here: long frames become Parquet."""
        if isinstance(given, pa.Table):
            return given
        if isinstance(given, ParquetRows):
            if self._are_as_said(given):
                return given
            given = given.frame(self._spark)
        if not self._is_long:
            return given.toArrow()
        Store(self._spark, self._place).keep(place, given)
        return ParquetRows(paths=[str(self._place / place)])

    def _are_as_said(self, rows: ParquetRows) -> bool:
        """Whether files are at hand and have the columns that they should have, as they should.

        Else Spark reads them. It does, too, what DuckDB finds by no name: one with a bracket as
        well as a backslash, which it takes for a slash there, or beside one that begins with that.
        """
        if not all(local_path(path).exists() for path in rows.paths):
            return False
        with self._database.cursor() as database:
            try:
                told = database.execute(f"DESCRIBE FROM {_parquet(rows.paths)}").fetchall()
            except (duckdb.InvalidInputException, duckdb.IOException):
                return False
            if rows.columns is None:
                return True
            nulls = ", ".join(
                f'CAST(NULL AS {type_of(kind.simpleString())}) AS "{name}"'
                for name, kind in rows.columns
            )
            wanted = database.execute(f"DESCRIBE SELECT {nulls}").fetchall()
        return {one[:2] for one in wanted} <= {one[:2] for one in told}

    def _of_parquet(self, place: str, rows: ParquetRows) -> None:
        names = [f'"{name}"' for name, _ in rows.columns or ()]
        chosen = ", ".join([*names, "file"]) if names else "*"
        files = f"{place}_files"
        self._run(f"CREATE VIEW {files} AS SELECT {chosen} FROM {_parquet(rows.paths)}")
        self._run(f"CREATE TABLE {place} AS {translated(rows.query.format(rows=files))}")

    def together(self, name: str, one: str, other: str) -> str:
        """A view of both."""
        place = self._new(name)
        self._run(f"CREATE VIEW {place} AS FROM {one} UNION ALL BY NAME FROM {other}")
        return place

    def ask(self, text: str, frames: dict[str, str]) -> str:
        """The query, over tables."""
        return f"({text.format(**frames)})"

    def keep(self, name: str, answer: str) -> str:
        """A table of it."""
        place = self._new(name)
        self._run(f"CREATE TABLE {place} AS {translated(answer)}")
        return place

    def passed(self, name: str, answer: str, one: Pass) -> str:
        """Here, if it is little."""
        asked = self.keep(f"{name}_asked", answer)
        (number,) = self._run(f"SELECT count(*) FROM {asked}").fetchall()[0]
        made = self._passed_here if number <= ROWS_HERE_MAX else self._passed_by_spark
        batches = made(asked, one) or [arrow_batch(one.columns, [])]
        self._run(f"DROP TABLE {asked}")
        return self._of_arrow(self._new(name), pa.Table.from_batches(batches))

    def _passed_here(self, asked: str, one: Pass) -> list[pa.RecordBatch]:
        with self._asking():
            rows = self._database.sql(f"FROM {asked} ORDER BY {_order(one)}")
            return list(one.take(rows.to_arrow_reader(BATCH_ROWS)))

    def _passed_by_spark(self, asked: str, one: Pass) -> list[pa.RecordBatch]:
        """Spark's processes take files, each of which has all rows of some keys, in order."""
        place = self._place / asked
        place.mkdir()
        number = cores() * FILES_PER_CORE
        files = [place / f"{at}.parquet" for at in range(number)]
        for at, file in enumerate(files):
            mine = f"hash({', '.join(one.keys)}) % {number} = {at}"
            text = f"FROM {asked} WHERE {mine} ORDER BY {_order(one)}"
            self._run(f"COPY ({text}) TO {_quoted(file)} (FORMAT parquet)")
        take = one.take

        def taken(paths: Iterable[str]) -> Iterator[pa.RecordBatch]:
            for path in paths:
                yield from take(ParquetFile(path).iter_batches(BATCH_ROWS))

        paths = self.spark.sparkContext.parallelize(map(str, files), number)
        found = paths.mapPartitions(taken).collect()
        shutil.rmtree(place)
        return found

    def rows(self, answer: str) -> Rows:
        """Run now."""
        asked = self._run(translated(answer))
        names = [column[0] for column in asked.description or ()]
        return [dict(zip(names, row, strict=True)) for row in asked.fetchall()]

    def frame(self, answer: str) -> DataFrame:
        """As Spark reads what is written of it."""
        place = str(self._place / self._new("answer"))
        self.write(answer, place)
        return self.spark.read.parquet(as_it_is(place))

    def write(self, answer: str, directory: str, by: Sequence[str] = ()) -> None:
        """Cast where DuckDB's types are wider than Spark's, or have no time zone."""
        text = translated(answer)
        described = self._run(f"DESCRIBE {text}").fetchall()
        cast = ", ".join(
            f'CAST("{name}" AS {AS_SPARK[kind]}) AS "{name}"'
            for name, kind, *_ in described
            if kind in AS_SPARK
        )
        chosen = f"SELECT * REPLACE ({cast}) FROM ({text})" if cast else text
        place = Path(directory)
        place.mkdir(parents=True)
        options = f"PARTITION_BY ({', '.join(by)})" if by else "FILE_SIZE_BYTES '512MB'"
        with _without_backslashes(place) as named:
            self._run(f"COPY ({chosen}) TO {_quoted(named)} (FORMAT parquet, {options})")

    def _run(self, text: str) -> duckdb.DuckDBPyConnection:
        with self._asking():
            return self._database.execute(text)

    @contextmanager
    def _asking(self) -> Iterator[None]:
        try:
            yield
        except (duckdb.OutOfMemoryException, duckdb.IOException) as problem:
            (first, *_) = str(problem).splitlines()
            raise QueryUnansweredError(self._explained(first)) from problem

    def _explained(self, problem: str) -> str:
        full = FULL_DISK.search(problem)
        if full is not None:
            file, why = full.groups()
            return f"{file} cannot be written: {why}; make room there, and call the command again"
        return (
            f"This cannot be worked out: {problem.rstrip('.')}. Give more memory with "
            f"{MEMORY_VARIABLE}, or make room in {self._store.path}"
        )

    def _of_arrow(self, place: str, rows: Any) -> str:
        self._database.register("given", rows)
        self._run(f"CREATE TABLE {place} AS FROM given")
        self._database.unregister("given")
        return place

    def _new(self, name: str) -> str:
        """A name that no table has: frames of several facts may be of one engine.

        Other engines give the same ones, so that queries are put into the dialect once.
        """
        self._made[name] += 1
        return f"frame_{name}_{self._made[name]}"


def _parquet(paths: Sequence[str]) -> str:
    """A function of DuckDB that reads all of some files or directories."""
    # It takes a path for a pattern, in which brackets hold what stands for itself.
    literal = (Path(re.sub(r"[*?[]", r"[\g<0>]", str(one))) for one in files_of(paths))
    read = ", ".join(map(_quoted, literal))
    return f"read_parquet([{read}], filename = 'file', union_by_name = true)"


@contextmanager
def _without_backslashes(place: Path) -> Iterator[Path]:
    """A directory by a name that has none: DuckDB takes them for slashes where it writes files."""
    if "\\" not in str(place):
        yield place
        return
    descriptor = os.open(place, os.O_RDONLY)
    try:
        yield Path(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)


def _order(one: Pass) -> str:
    return ", ".join(f'"{name}" NULLS FIRST' for name in (*one.keys, *one.order))


def _quoted(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"
