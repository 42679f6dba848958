"""Logs that are cut into stretches, each of which is judged with what was carried into it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from ledgermq_spark.laws.law import Facts
from ledgermq_spark.laws.stretches.carried import carried
from support.audits.testimonies import Logs, folded_stretches
from support.brokers.log_writer import Entry


class Stretches:
    """Stretches of many logs; the name of each is that of its log with the number of the stretch.

    What is carried goes from stretch to stretch, all logs at once.
    """

    def __init__(self) -> None:
        self._stretches: defaultdict[int, Logs] = defaultdict(Logs)

    def cut(self, name: str, entries: Sequence[Entry], ends: Sequence[int]) -> None:
        """Folds a log that is cut behind some of its positions."""
        _, _, logs = folded_stretches(name, entries, [*ends, len(entries) - 1])
        for number, one in enumerate(logs):
            self._stretches[number].add(one)

    def facts(self, spark: Any) -> list[Facts]:
        """The facts of the first stretches, of the second ones and so on."""
        found: list[Facts] = []
        for number in sorted(self._stretches):
            one = self._stretches[number].facts(spark)
            if found:
                one = one.behind(_here(spark, carried(found[-1])))
            found.append(one)
        return found


def _here(spark: Any, frames: dict[str, Any]) -> dict[str, Any]:
    return {name: spark.createDataFrame(frame.toArrow()).cache() for name, frame in frames.items()}
