"""Logs that are cut into stretches, each of which is judged with what was carried into it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from pyspark.sql import functions as f

from ledgermq_spark.laws.law import BEFORE, RAW, Facts
from ledgermq_spark.laws.stretches.carried import carried
from support.audits.testimonies import Logs, folded_stretches, here
from support.brokers.log_writer import Entry


class Stretches:
    """Stretches of many logs; each is called as its log, with the number of the stretch behind it.

    What is carried goes from stretch to stretch, all logs at once.
    """

    def __init__(self) -> None:
        self._stretches: defaultdict[int, Logs] = defaultdict(Logs)

    def cut(self, name: str, entries: Sequence[Entry], ends: Sequence[int]) -> None:
        """Folds a log that is cut behind some of its positions."""
        _, _, logs = folded_stretches(name, entries, [*ends, len(entries) - 1])
        for number, one in enumerate(logs):
            self._stretches[number].add(one)

    def facts(self, spark: Any) -> Facts:
        """The facts of all stretches, each a queue manager of its own."""
        found = self._stretches[0].facts(spark)
        frames = _numbered(found, 0)
        for number in range(1, len(self._stretches)):
            stretch = self._stretches[number]
            goes_on = f.col("queue_manager").isin({row[0] for row in stretch.rows["clock"]})
            before = {
                name: here(spark, frame.where(goes_on)) for name, frame in carried(found).items()
            }
            found = stretch.facts(spark).behind(before)
            frames = {
                name: frames[name].unionByName(frame)
                for name, frame in _numbered(found, number).items()
            }
        kept = {name: here(spark, frame) for name, frame in frames.items()}
        return Facts(spark, kept, lambda _, frame: here(spark, frame))


def _numbered(facts: Facts, number: int) -> dict[str, Any]:
    name = f.concat("queue_manager", f.lit(f" {number}"))
    return {one: facts.frame(one).withColumn("queue_manager", name) for one in (*RAW, *BEFORE)}
