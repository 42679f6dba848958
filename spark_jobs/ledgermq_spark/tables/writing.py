"""Writes all tables as Parquet."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ledgermq_spark.tables.all_tables import TABLES

if TYPE_CHECKING:
    from ledgermq_spark.laws.law import Facts


def write_tables(facts: Facts, directory: Path) -> None:
    """Write all tables, each below its name, in place of those there."""
    for name, text in TABLES.items():
        facts.query(text).write.mode("overwrite").parquet(str(directory / name))
