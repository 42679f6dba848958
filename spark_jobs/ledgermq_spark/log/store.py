"""Where a job keeps what several of its steps read, and rows in files for others to read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import Observation
from pyspark.sql.functions import col, count

from ledgermq_spark.log.rows import Columns, spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetRows:
    """What a query makes of the rows of Parquet files, which it names `{rows}`.

    They have `columns` (None: whatever the files have), and `file`, the path of each row's file. Of
    columns that some of the files lack, there are nulls.
    """

    paths: Sequence[str]
    query: str
    columns: Columns | None = None

    def frame(self, spark: SparkSession) -> DataFrame:
        """As Spark reads them."""
        reader = (
            spark.read if self.columns is None else spark.read.schema(spark_schema(self.columns))
        )
        rows = reader.parquet(*self.paths).select("*", col("_metadata.file_path").alias("file"))
        return spark.sql(self.query, rows=rows)


@dataclass(frozen=True, slots=True)
class Store:
    """A directory of intermediate results, each written once and read back."""

    spark: SparkSession
    path: Path

    def keep(self, name: str, frame: DataFrame) -> DataFrame:
        """Write a DataFrame as Parquet and return it as read back.

        Of an empty one Spark is told so (`limit`): whatever is joined with it is planned away.
        """
        place = str(self.path / name)
        seen = Observation()
        frame.observe(seen, count("*").alias("rows")).write.mode("overwrite").parquet(place)
        kept = self.spark.read.schema(frame.schema).parquet(place)
        return kept if seen.get["rows"] else kept.limit(0)

    def hold(self, name: str, frame: DataFrame) -> DataFrame:
        """The same for what is small: in memory, which is done in half the time."""
        del name
        rows = frame.toArrow()
        held = self.spark.createDataFrame(rows)
        return held if rows.num_rows else held.limit(0)
