"""Spark as what answers queries: frames and answers are its DataFrames."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from ledgermq_spark.laws.engines.engine import Given, Pass, Rows
from ledgermq_spark.laws.refusals import text_checks
from ledgermq_spark.log.rows import spark_schema
from ledgermq_spark.log.store import ParquetRows

# What one driver plans side by side; a cluster may have any number of cores.
QUERIES_AT_ONCE_MAX = 16


@dataclass(frozen=True, slots=True)
class SparkEngine:
    """Answers by Spark; `hold` keeps a DataFrame under a name, worked out once.

    Whether it `holds_given` ones, too, which are else read whenever they are asked.
    """

    spark: SparkSession
    hold: Callable[[str, DataFrame], DataFrame]
    holds_given: bool = False

    @property
    def at_once(self) -> int:
        """Where logs are short, planning takes longer than running, and keeps one core busy."""
        return min(max(self.spark.sparkContext.defaultParallelism, 2), QUERIES_AT_ONCE_MAX)

    def taken(self, frames: Mapping[str, Given]) -> dict[str, DataFrame]:
        """Themselves, or what is held of them."""
        return {name: self._taken(name, frame) for name, frame in frames.items()}

    def _taken(self, name: str, given: Given) -> DataFrame:
        if isinstance(given, pa.Table):
            return self.spark.createDataFrame(given)
        frame = given.frame(self.spark) if isinstance(given, ParquetRows) else given
        return self.hold(name, frame) if self.holds_given else frame

    def together(self, name: str, one: DataFrame, other: DataFrame) -> DataFrame:
        """The union."""
        del name
        return one.unionByName(other)

    def ask(self, text: str, frames: dict[str, Any]) -> DataFrame:
        """Not run yet."""
        text_checks.register(self.spark, text)
        return self.spark.sql(text, **frames)

    def keep(self, name: str, answer: DataFrame) -> DataFrame:
        """As `hold` does."""
        return self.hold(name, answer)

    def passed(self, name: str, answer: DataFrame, one: Pass) -> DataFrame:
        """Rows that have the same keys are in one task."""
        number = int(self.spark.conf.get("spark.sql.shuffle.partitions") or "2")
        ordered = answer.repartition(number, *one.keys).sortWithinPartitions(*one.keys, *one.order)
        return self.hold(name, ordered.mapInArrow(one.take, spark_schema(one.columns)))

    def rows(self, answer: DataFrame) -> Rows:
        """Run now."""
        return [row.asDict(recursive=True) for row in answer.collect()]

    def frame(self, answer: DataFrame) -> DataFrame:
        """Itself."""
        return answer

    def write(self, answer: DataFrame, directory: str, by: Sequence[str] = ()) -> None:
        """By as many tasks as the answer has parts."""
        answer.write.partitionBy(*by).parquet(directory)
