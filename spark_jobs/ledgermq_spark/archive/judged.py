"""Stretches of an archive as laws judge them: each a log of its own, behind what it needs to know.

What laws need to know of all that stood before a stretch (`laws.stretches`) is kept with the one
before it. So any stretches can be judged in one run, in any order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as f

from ledgermq_spark.archive.archived import frames_of
from ledgermq_spark.archive.stretch import CARRIED, Stretch
from ledgermq_spark.laws.law import Facts, Keep
from ledgermq_spark.laws.stretches import carried as laws_need

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

# The directory of a stretch, in the path of a file.
STRETCH: Final = r"/(\d{19})/"


def judged_facts(
    spark: SparkSession,
    stretches: Sequence[tuple[Stretch, Stretch | None]],
    keep: Keep,
) -> Facts:
    """Facts of stretches, each a queue manager that has the name of its directory.

    With each comes the stretch before it, None at the beginning of the log.
    """
    here = f.regexp_extract("_metadata.file_path", STRETCH, 1)
    chosen = [one for one, _ in stretches]
    facts = Facts(spark, frames_of(spark, chosen, here, ends=chosen), keep)
    behind = {before.name: one.name for one, before in stretches if before is not None}
    if not behind:
        return facts
    places = [before.part(CARRIED) for _, before in stretches if before is not None]
    known = {}
    for name in laws_need.CARRIED:
        frame = spark.read.parquet(*(f"{place}/{name}" for place in places))
        known[name] = frame.withColumn("queue_manager", _behind(here, behind))
    return facts.behind(known)


def _behind(before: Column, names: dict[str, str]) -> Column:
    """The stretch behind another."""
    pairs = (f.lit(name) for pair in names.items() for name in pair)
    return f.create_map(*pairs)[before]


def carry(spark: SparkSession, stretch: Stretch, before: Stretch | None, keep: Keep) -> None:
    """Write what laws need to know of everything up to the end of a stretch."""
    facts = judged_facts(spark, [(stretch, before)], keep)
    for name, frame in laws_need.carried(facts).items():
        frame.coalesce(1).write.mode("overwrite").parquet(f"{stretch.part(CARRIED)}/{name}")
