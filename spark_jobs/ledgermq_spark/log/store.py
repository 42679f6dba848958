"""Where a job keeps what several of its steps read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class Store:
    """A directory of intermediate results, each written once and read back."""

    spark: SparkSession
    path: Path

    def keep(self, name: str, frame: DataFrame) -> DataFrame:
        """Write a DataFrame as Parquet and return it as read back."""
        place = str(self.path / name)
        frame.write.mode("overwrite").parquet(place)
        return self.spark.read.schema(frame.schema).parquet(place)

    def hold(self, name: str, frame: DataFrame) -> DataFrame:
        """The same for what is small: in memory, which is done in half the time."""
        del name
        return self.spark.createDataFrame(frame.toArrow())
