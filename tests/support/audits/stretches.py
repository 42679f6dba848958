"""Logs that are cut into stretches, each of which is judged with what was carried into it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from ledgermq_spark.laws.engines.engine import Engine
from ledgermq_spark.laws.facts import BEFORE, RAW, Facts
from ledgermq_spark.laws.stretches.carried import carried
from support.audits.testimonies import Logs, folded_stretches
from support.brokers.log_writer import Entry

# Of a stretch, which is the one of that number.
NUMBERED = (
    "SELECT * EXCEPT (queue_manager), concat(queue_manager, ' %d') AS queue_manager FROM {%s}"
)
# What is carried into those that there are.
GOES_ON = "SELECT * FROM {carried} WHERE queue_manager IN ({logs})"


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

    def facts(self, engine: Engine) -> Facts:
        """The facts of all stretches, each a queue manager of its own."""
        found = self._stretches[0].facts(engine)
        frames = _numbered(found, 0)
        for number in range(1, len(self._stretches)):
            stretch = self._stretches[number]
            logs = ", ".join(sorted({repr(row[0]) for row in stretch.rows["clock"]}))
            before = {
                name: engine.keep(name, engine.ask(GOES_ON, {"carried": answer, "logs": logs}))
                for name, answer in carried(found).items()
            }
            found = stretch.facts(engine).behind(before)
            frames = {
                name: engine.together(name, frames[name], frame)
                for name, frame in _numbered(found, number).items()
            }
        return Facts(engine, frames)


def _numbered(facts: Facts, number: int) -> dict[str, Any]:
    return {
        name: facts.engine.keep(name, facts.query(NUMBERED % (number, name)))
        for name in (*RAW, *BEFORE)
    }
