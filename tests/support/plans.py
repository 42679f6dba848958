"""How Spark does each query over the log: where it shuffles, by which keys, and what one task does.

The frames are as large as one likes to think: files that Spark has not looked into. So plans are
those of a long log, in which nothing is small enough to be sent to every task.

`make plans` writes them to build/plans.md.
"""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ledgermq_spark.laws.all_laws import LAWS
from ledgermq_spark.laws.law import DERIVED, RAW, Facts
from ledgermq_spark.laws.refusals import text_checks
from ledgermq_spark.log.rows import spark_schema
from ledgermq_spark.log.session import spark_session
from ledgermq_spark.tables.all_tables import TABLES
from support.audits.testimonies import COLUMNS
from support.checkout import ROOT

# Of a line of a plan: how deep it is, and what stands there.
LINE: Final = re.compile(r"^([\s:|+\-]*)(?:\*\(\d+\) )?(.+)$")
SHUFFLE: Final = re.compile(r"^Exchange (\w+)(?:\((.*), \d+\))?, ")
# An aggregate over everything, a part at a time: one row leaves each task, however much came in.
PARTIAL: Final = re.compile(r"^(Hash|Object|Sort)\w*Aggregate\(keys=\[\], functions=\[partial_")
LOCAL_LIMIT: Final = re.compile(r"^(LocalLimit|TakeOrderedAndProject)\b")
SETTINGS: Final = {
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.enabled": "false",
    # All of a plan is told, not the beginning of each line.
    "spark.sql.debug.maxToStringFields": "1000",
    "spark.sql.maxPlanStringLength": "100000000",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The plan of a query: how often it shuffles by which keys, and what it does in one place."""

    text: str
    shuffles: Counter[str] = field(default_factory=Counter)
    # What one task sees all rows of, and what every task is sent all rows of: the lines below.
    in_one_task: tuple[str, ...] = ()
    sent_to_all: tuple[str, ...] = ()


def plan_of(frame: Any) -> Plan:
    """The plan of a frame, which is not run."""
    return read_plan(frame._jdf.queryExecution().executedPlan().toString())


def read_plan(text: str) -> Plan:
    """What a plan says of shuffles."""
    shuffles: Counter[str] = Counter()
    in_one_task, sent_to_all = [], []
    nodes = [match[2] for match in map(LINE.match, text.splitlines()) if match]
    for node, below in zip(nodes, [*nodes[1:], ""], strict=True):
        if node.startswith("BroadcastExchange") and not is_small(below):
            sent_to_all.append(below)
        found = SHUFFLE.match(node)
        if not found:
            continue
        kind, keys = found[1], re.sub(r"#\d+L?", "", found[2] or "")
        if kind == "SinglePartition":
            if not is_small(below):
                in_one_task.append(below)
            continue
        shuffles[f"{kind}({keys})"] += 1
    return Plan(
        text=text,
        shuffles=shuffles,
        in_one_task=tuple(in_one_task),
        sent_to_all=tuple(sent_to_all),
    )


def is_small(node: str) -> bool:
    """Whether as much comes out of it as there are tasks, not as there are entries."""
    return bool(PARTIAL.match(node) or LOCAL_LIMIT.match(node))


@contextmanager
def as_for_a_long_log(spark: Any) -> Iterator[None]:
    """Spark plans as where nothing is small, and tells all of it."""
    before = {name: spark.conf.get(name) for name in SETTINGS}
    for name, value in SETTINGS.items():
        spark.conf.set(name, value)
    yield
    for name, value in before.items():
        spark.conf.set(name, value)


def plans(spark: Any, directory: Path) -> dict[str, Plan]:
    """The plans of all tables, of the queries of all laws, and of what these rest on, by name."""
    found: dict[str, Plan] = {}

    def unread(name: str, schema: Any) -> Any:
        place = str(directory / name)
        spark.createDataFrame([], schema).write.mode("overwrite").parquet(place)
        return spark.read.schema(schema).parquet(place)

    def keep(name: str, frame: Any) -> Any:
        found[f"frame {name}"] = plan_of(frame)
        return unread(name, frame.schema)

    with as_for_a_long_log(spark):
        text_checks.register(spark)
        facts = Facts(
            spark, {name: unread(name, spark_schema(COLUMNS[name])) for name in RAW}, keep
        )
        for name, text in TABLES.items():
            found[f"table {name}"] = plan_of(facts.query(text))
        for law in LAWS:
            for number, breach in enumerate(law.breaches, 1):
                found[f"law {law.letter} {number}, {breach.kind}"] = plan_of(
                    facts.finding(law, breach)
                )
        for name in DERIVED:
            facts.frame(name)
    return found


def main(write: Callable[[str], object] = print) -> None:
    """Write all plans to build/plans.md, with the shuffles of each before it."""
    with tempfile.TemporaryDirectory() as scratch:
        spark = spark_session(directory=Path(scratch) / "spark", log_level="ERROR", brief=True)
        found = plans(spark, Path(scratch) / "frames")
        spark.stop()
    parts = [
        "# Plans of Spark\n\nWritten by `make plans`; docs/plans.md says what to see in them.\n"
    ]
    for name, plan in sorted(found.items()):
        parts.append(f"## {name}\n")
        parts += [f"- {count} × {keys}" for keys, count in sorted(plan.shuffles.items())]
        parts += [f"- one task sees all of: {node[:120]}" for node in plan.in_one_task]
        parts += [f"- every task is sent all of: {node[:120]}" for node in plan.sent_to_all]
        parts.append(f"\n```\n{plan.text.strip()}\n```\n")
    target = ROOT / "build/plans.md"
    target.parent.mkdir(exist_ok=True)
    target.write_text("\n".join(parts), encoding="utf-8")
    write(f"{len(found)} plans are in {target.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
