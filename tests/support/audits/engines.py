"""What tests ask laws and tables by: DuckDB, which needs no Spark, or Spark itself."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from ledgermq_spark.laws.engines.duck_engine import DuckEngine
from ledgermq_spark.laws.engines.spark_engine import SparkEngine
from ledgermq_spark.log.store import Store


def duck_engine(spark: Any = None) -> DuckEngine:
    """DuckDB with everything in memory; with Spark it can also be given frames of that."""
    place = Path(tempfile.gettempdir()) / "ledgermq-spilled"
    return DuckEngine(spark, Store(spark, place), is_long=False)


def spark_engine(spark: Any) -> SparkEngine:
    """Spark, whose frames are held as their rows: it fails to checkpoint some ("key not found")."""
    return SparkEngine(
        spark, lambda _, frame: spark.createDataFrame(frame.toArrow()), holds_given=True
    )
