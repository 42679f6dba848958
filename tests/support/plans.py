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
from ledgermq_spark.laws.engines.spark_engine import SparkEngine
from ledgermq_spark.laws.facts import DERIVED, RAW, Facts
from ledgermq_spark.log.rows import spark_schema
from ledgermq_spark.log.session import spark_session
from ledgermq_spark.tables.all_tables import TABLES
from support.audits.testimonies import COLUMNS
from support.checkout import ROOT

# Of a line of a plan what stands behind its branches.
LINE: Final = re.compile(r"^[\s:|+\-]*(?:\*\(\d+\) )?(.+)$")
SHUFFLE: Final = re.compile(r"^Exchange (\w+)(?:\((.*), \d+\))?, ")
# Of these one row leaves each task, or as many as are asked for, however many came in.
FEW_ROWS: Final = re.compile(
    r"^(\w*Aggregate\(keys=\[\], functions=\[(partial|merge)_|LocalLimit |TakeOrderedAndProject\()"
)
OF_MANAGER: Final = re.compile(r"^Window .*\], \[queue_manager\](, \[[^\[\]]*\])?$")
JOIN_BY_MANAGER: Final = re.compile(r"^SortMergeJoin \[queue_manager\], \[queue_manager\], ")
NOTED: Final = ("in_one_task", "sent_to_all", "in_manager_order", "joined_by_manager")
NODE_CHARACTERS: Final = 160
SETTINGS: Final = {
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.enabled": "false",
    # All of a plan is told, not the beginning of each line.
    "spark.sql.debug.maxToStringFields": "1000",
    "spark.sql.maxPlanStringLength": "100000000",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The plan of a query, and what to see in it; nodes are told as the plan has them.

    Attributes:
        shuffles: How often rows are shuffled, by which keys.
        in_one_task: What one task is given all rows of, and of how many there are is not known.
        sent_to_all: What every task is sent all rows of, or each row meets each.
        in_manager_order: Windows in which a queue manager's rows are all in one task.
        joined_by_manager: Joins that have no other key than the queue manager.
    """

    text: str
    shuffles: Counter[str] = field(default_factory=Counter)
    in_one_task: list[str] = field(default_factory=list)
    sent_to_all: list[str] = field(default_factory=list)
    in_manager_order: list[str] = field(default_factory=list)
    joined_by_manager: list[str] = field(default_factory=list)


def plan_of(frame: Any) -> Plan:
    """The plan of a frame, which is not run."""
    return read_plan(frame._jdf.queryExecution().executedPlan().toString())


def read_plan(text: str) -> Plan:
    """What a plan, one line a node, says of shuffles."""
    plan = Plan(text=text)
    nodes = [re.sub(r"#\d+L?", "", one[1]) for one in map(LINE.match, text.splitlines()) if one]
    for node, below in zip(nodes, [*nodes[1:], ""], strict=True):
        if found := SHUFFLE.match(node):
            plan.shuffles[found[1] + (f"({found[2]})" if found[2] else "")] += 1
        if node.startswith("Exchange SinglePartition") and not FEW_ROWS.match(below):
            plan.in_one_task.append(below)
        if node.startswith("BroadcastExchange") and not FEW_ROWS.match(below):
            plan.sent_to_all.append(below)
        if node.startswith("CartesianProduct"):
            plan.sent_to_all.append(node)
        if OF_MANAGER.search(node):
            plan.in_manager_order.append(node)
        if JOIN_BY_MANAGER.match(node):
            plan.joined_by_manager.append(node)
    return plan


@contextmanager
def as_for_a_long_log(spark: Any) -> Iterator[None]:
    """Spark plans as where nothing is small, and tells all of it."""
    before = {name: spark.conf.get(name) for name in SETTINGS}
    for name, value in SETTINGS.items():
        spark.conf.set(name, value)
    yield
    for name, value in before.items():
        spark.conf.set(name, value)


def executed_by(spark: Any, job: Callable[[], object]) -> list[Plan]:
    """The plans of all that a job runs, in their order."""
    store = spark._jsparkSession.sharedState().statusStore()
    # Of very many, Spark forgets the first: they are told apart by their numbers.
    before = max((one.executionId() for one in _listed(store)), default=-1)
    spark.conf.set("spark.sql.ui.explainMode", "simple")
    with as_for_a_long_log(spark):
        job()
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    spark.conf.unset("spark.sql.ui.explainMode")
    ran = sorted(_listed(store), key=lambda one: one.executionId())
    return [read_plan(one.physicalPlanDescription()) for one in ran if one.executionId() > before]


def _listed(store: Any) -> list[Any]:
    """The executions that Spark remembers."""
    found = store.executionsList()
    return [found.apply(at) for at in range(found.size())]


def plans(spark: Any, directory: Path, *, laws: bool = True) -> dict[str, Plan]:
    """The plans of tables, of the queries of laws, and of what these rest on, by name."""
    found: dict[str, Plan] = {}

    def unread(name: str, schema: Any) -> Any:
        place = str(directory / name)
        spark.createDataFrame([], schema).write.mode("overwrite").parquet(place)
        return spark.read.schema(schema).parquet(place)

    def keep(name: str, frame: Any) -> Any:
        found[f"frame {name}"] = plan_of(frame)
        return unread(name, frame.schema)

    with as_for_a_long_log(spark):
        given = {name: unread(name, spark_schema(COLUMNS[name])) for name in RAW}
        facts = Facts(SparkEngine(spark, keep), given)
        for name, text in TABLES.items():
            found[f"table {name}"] = plan_of(facts.query(text))
        for law in LAWS if laws else ():
            for number, breach in enumerate(law.breaches, 1):
                found[f"law {law.letter} {number}, {breach.kind}"] = plan_of(
                    facts.finding(law, breach)
                )
        for name in DERIVED if laws else ():
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
        for what in NOTED:
            told = what.replace("_", " ")
            parts += [f"- **{told}**: `{node[:NODE_CHARACTERS]}`" for node in getattr(plan, what)]
        parts.append(f"\n```\n{plan.text.strip()}\n```\n")
    target = ROOT / "build/plans.md"
    target.parent.mkdir(exist_ok=True)
    target.write_text("\n".join(parts), encoding="utf-8")
    write(f"{len(found)} plans are in {target.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
