"""What answers queries over frames, makes frames that follow from others, and rows beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from ledgermq_spark.log.rows import Columns, arrow_table
from ledgermq_spark.log.store import ParquetRows

Rows = list[dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """A frame made by going through the rows of a query in order, in Python.

    Rows that have the same `keys` come together, by `order`. `take` is given batches of rows, and
    yields batches of `columns`.
    """

    query: str
    keys: tuple[str, ...]
    order: tuple[str, ...]
    take: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
    columns: Columns


# What an engine can be given.
Given: TypeAlias = DataFrame | pa.Table | ParquetRows


class Engine(Protocol):
    """What answers queries, which are Spark SQL. Frames and answers are the engine's own kind."""

    @property
    def spark(self) -> SparkSession:
        """The session that it works beside."""

    @property
    def at_once(self) -> int:
        """How many queries it is asked side by side."""

    def taken(self, frames: Mapping[str, Given]) -> Mapping[str, Any]:
        """Frames of what there is, under their names."""

    def together(self, name: str, one: Any, other: Any) -> Any:
        """A frame of the rows of two, which have the same columns in some order."""

    def ask(self, text: str, frames: dict[str, Any]) -> Any:
        """The answer to a query over frames and answers, which it names in braces."""

    def keep(self, name: str, answer: Any) -> Any:
        """A frame of an answer, worked out once."""

    def passed(self, name: str, answer: Any, one: Pass) -> Any:
        """A frame of what a pass makes of the answer to its query."""

    def rows(self, answer: Any) -> Rows:
        """The rows of an answer, in its order."""

    def frame(self, answer: Any) -> DataFrame:
        """An answer for Spark to go on with."""

    def write(self, answer: Any, directory: str, by: Sequence[str] = ()) -> None:
        """Write an answer as Parquet with Spark's types, below a directory for each value of `by`.

        There is nothing yet at that place.
        """


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame of an engine, or an answer: `held` is of the engine's own kind.

    Queries are Spark SQL, and name these rows `{rows}` and those of others as these are called.
    """

    engine: Engine
    held: Any

    @classmethod
    def taken(cls, engine: Engine, name: str, given: Given) -> Frame:
        """What there is, as a frame of the engine."""
        return cls(engine, engine.taken({name: given})[name])

    def ask(self, query: str, **others: Frame) -> Frame:
        """The answer to a query, which is worked out whenever it is asked."""
        held = {name: one.held for name, one in others.items()}
        return Frame(self.engine, self.engine.ask(query, {"rows": self.held, **held}))

    def where(self, condition: str) -> Frame:
        """The rows that meet a condition."""
        return self.ask(f"SELECT * FROM {{rows}} WHERE {condition}")

    def rows(self, query: str, **others: Frame) -> Rows:
        """The rows of the answer to a query, in its order."""
        return self.engine.rows(self.ask(query, **others).held)

    def beside(self, name: str, columns: Columns, rows: Iterable[tuple[Any, ...]]) -> Frame:
        """Rows of this process as a frame of the same engine."""
        return Frame.taken(self.engine, name, arrow_table(columns, rows))
