"""Which engine answers: DuckDB where Spark is on this machine alone, Spark on a cluster."""

from __future__ import annotations

from collections.abc import Callable

from ledgermq_spark.laws.engines.engine import Engine
from ledgermq_spark.laws.engines.spark_engine import SparkEngine
from ledgermq_spark.log.session import Spark, is_on_this_machine, session_of
from ledgermq_spark.log.store import Store

# One of these two.
Choice = Callable[..., Engine]


def quickest_engine(spark: Spark, store: Store, *, is_long: bool) -> Engine:
    """What has answers soonest, as rows or files.

    Of what is not long, the rows and all that follows from them fit the memory.
    """
    if is_on_this_machine(spark):
        # On a cluster nobody needs it.
        from ledgermq_spark.laws.engines.duck_engine import DuckEngine

        return DuckEngine(spark, store, is_long=is_long)
    return dataframe_engine(spark, store, is_long=is_long)


def dataframe_engine(spark: Spark, store: Store, *, is_long: bool) -> SparkEngine:
    """Spark, of whose answers it can make more."""
    if is_long:
        return SparkEngine(session_of(spark), store.keep)
    return SparkEngine(session_of(spark), store.hold, holds_given=True)
