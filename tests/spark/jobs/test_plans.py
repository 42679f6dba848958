"""What docs/plans.md says of Spark's plans: where they shuffle, and what no one task does."""

import re
from collections import Counter
from dataclasses import replace

import pytest

from ledgermq.wire.topics.log_topics import Topics
from ledgermq_spark.archive.log_archive import LogArchive
from ledgermq_spark.archive.proving import prove_stretches
from ledgermq_spark.archive.updating import update_archive
from ledgermq_spark.jobs.run import rebuild_at
from ledgermq_spark.log.positions import locate
from ledgermq_spark.log.read_log import read_raw
from ledgermq_spark.tables.all_tables import DERIVED, TABLES
from support.brokers.broker_logs import write
from support.brokers.log_writer import Script
from support.checkout import ROOT
from support.plans import as_for_a_long_log, executed_by, plan_of, plans
from support.planted.planting import conversation

pytestmark = [pytest.mark.spark, pytest.mark.slow]

# Windows over what a queue manager has few rows of: its settings, or one for each stretch.
IN_ORDER = {
    f"frame {one}"
    for one in (
        "manager_settings",
        "settings",
        "entries",
        "appended",
        "segments_used",
    )
}
# Joins of everything with what has a row for each change of the queue manager's settings, each
# segment, each binding, or the log's end.
BY_MANAGER = {
    *(
        "frame bound",
        "frame brought",
        "frame disorder",
        "frame stores_left",
        "frame remembered_puts",
        "frame room",
        "frame room_changes",
        "frame stays",
        "law G",
        "law K",
        "law L",
        "law O",
    ),
    *(f"frame {one}_reasons" for one in ("managing", "opening", "putting", "upgrading")),
}


@pytest.fixture(scope="module")
def tables(spark, tmp_path_factory):
    """The plans of the tables, and of what they rest on."""
    return plans(spark, tmp_path_factory.mktemp("frames"), laws=False)


@pytest.fixture(scope="module")
def everything(spark, tmp_path_factory):
    """Those of the laws, too."""
    return plans(spark, tmp_path_factory.mktemp("frames"))


def named(found, what):
    """The queries whose plans have something, without the number of a law's query."""
    return {
        re.sub(r"^(law \w).*", r"\1", name) for name, one in found.items() if getattr(one, what)
    }


@pytest.mark.parametrize(
    ("query", "what"),
    [
        ("SELECT row_number() OVER (ORDER BY position) FROM {rows}", "in_one_task"),
        ("SELECT * FROM {rows} ORDER BY position LIMIT 5 OFFSET 2", None),
        ("SELECT max(position), count(DISTINCT queue_manager) FROM {rows}", None),
        ("SELECT one.* FROM {rows} AS one JOIN {rows} AS b ON one.step > b.step", "sent_to_all"),
        ("SELECT * FROM {rows} WHERE step NOT IN (SELECT position FROM {rows})", "sent_to_all"),
        (
            "SELECT lag(step) OVER (PARTITION BY queue_manager ORDER BY position) FROM {rows}",
            "in_manager_order",
        ),
        ("SELECT lag(step) OVER (PARTITION BY queue_manager, step ORDER BY 1) FROM {rows}", None),
        ("SELECT one.* FROM {rows} AS one JOIN {rows} USING (queue_manager)", "joined_by_manager"),
    ],
)
def test_a_plan_tells_what_is_done_in_one_place(spark, tmp_path, query, what):
    """And nothing of what has few rows by then."""
    rows = "queue_manager string, position long, step long"
    spark.createDataFrame([], rows).write.parquet(str(tmp_path / "rows"))
    with as_for_a_long_log(spark):
        plan = plan_of(spark.sql(query, rows=spark.read.schema(rows).parquet(str(tmp_path))))
    found = {
        one
        for one in ("in_one_task", "sent_to_all", "in_manager_order", "joined_by_manager")
        if getattr(plan, one)
    }
    assert found == ({what} if what else set())


def test_no_table_is_made_by_one_task(tables):
    """Nor needs all rows of a queue manager in one place, or sends a frame to every task."""
    assert {name for name in tables if name.startswith("table ")} == {f"table {n}" for n in TABLES}
    for name, plan in tables.items():
        alone = (plan.in_one_task, plan.sent_to_all, plan.in_manager_order)
        assert alone == ([], [], []), name


def test_tables_shuffle_by_what_the_page_says(tables):
    """Its table has each of them, and each frame that only tables have, with keys and counts."""
    text = (ROOT / "docs/plans.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (table|frame) `(\w+)` \| (.*) \|$", text, flags=re.M)
    told = {f"{kind} {name}": set(shuffles.split("; ")) for kind, name, shuffles in rows}
    names = [f"table {one}" for one in TABLES] + [f"frame {one}" for one in DERIVED]
    assert told == {one: shuffles_of(tables[one]) for one in names}


def shuffles_of(plan):
    """The shuffles of a plan as the page tells them."""
    bare = {re.sub(r"^hash\w+\((.*)\)$", r"\1", keys): n for keys, n in plan.shuffles.items()}
    return {f"{count} × {keys}" for keys, count in bare.items()} or {"none"}


@pytest.mark.long
def test_no_law_is_asked_by_one_task(everything):
    """What needs a queue manager's rows in one place is what the page lists, and no more."""
    assert {name for name, plan in everything.items() if plan.in_one_task} == set()
    assert named(everything, "sent_to_all") == set()
    assert named(everything, "in_manager_order") <= IN_ORDER
    assert named(everything, "joined_by_manager") <= BY_MANAGER


@pytest.fixture(scope="module")
def log(broker):
    """A short conversation."""
    script = Script(step_us=0)
    conversation(script, "talk")
    return write(
        broker.bootstrap, [replace(one, stamp=1, wait_seconds=0) for one in script.entries]
    )


def test_the_log_is_folded_in_one_task_and_decoded_in_more(spark, log):
    """One sees all records in their order; the others each a part of them."""
    _, wanted = locate(log.bootstrap, Topics(log.prefix), "QM1")
    in_order = read_raw(spark, log.bootstrap, [wanted])
    in_any_order = read_raw(spark, log.bootstrap, [wanted], in_order=False)
    tasks = [one._jdf.rdd().getNumPartitions() for one in (in_order, in_any_order)]
    assert tasks[0] == 1
    assert tasks[1] >= 2


def test_a_rebuild_is_one_task(spark, log):
    """The fold goes over the log in it; what the fold told is read where it stands."""
    ran = executed_by(spark, lambda: rebuild_at(log.bootstrap, "QM1", spark=spark, **log.where))
    folds = [plan for plan in ran if "written" in plan.text and "MapInArrow" in plan.text]
    assert len(folds) == 1
    assert not sum((plan.shuffles for plan in ran), Counter())


def test_an_archive_is_written_and_proven_without_a_shuffle(spark, log, tmp_path):
    """Each stretch is a task of its own; of all records only the newest time is asked for."""

    def update():
        update_archive(log.bootstrap, "QM1", tmp_path, spark=spark, **log.where)

    for plan in executed_by(spark, update):
        assert {keys.partition("(")[0] for keys in plan.shuffles} <= {
            "rangepartitioning",
            "SinglePartition",
        }
        assert plan.in_one_task == []
    stretches = LogArchive(tmp_path, "QM1").there()
    (proof,) = executed_by(spark, lambda: prove_stretches(spark, stretches))
    assert (proof.shuffles, proof.in_one_task) == (Counter(), [])
