"""Rows together with the engine that answers questions about them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ledgermq_spark.laws.engines.engine import Engine, Given, Rows
from ledgermq_spark.log.rows import Columns, arrow_table


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
