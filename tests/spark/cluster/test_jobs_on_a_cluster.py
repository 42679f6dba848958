"""Tests of the jobs as they are submitted to a cluster, with the artifact alone."""

import json
import os
import signal
import subprocess

import pyarrow.parquet as pq
import pytest

from ledgermq_spark.audit.report.report import json_report
from ledgermq_spark.jobs.run import rebuild_at, run_audit, run_tables
from ledgermq_spark.tables.all_tables import TABLES
from ledgermq_spark.tables.writing import UNFINISHED

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.long]

BUSY = "QM1"


def given(cluster, log, queue_manager):
    """What each job is told: where the log is, and where intermediate results go."""
    where = ["--bootstrap", log.bootstrap, "--topic-prefix", log.prefix]
    return [*where, "--queue-manager", queue_manager, "--work", str(cluster.shared / "work")]


def told(text):
    """A report without what differs from run to run."""
    report = json.loads(text)
    del report["seconds"]
    return report


def audited(output):
    """What an audit wrote below a directory."""
    return told((output / "audit.json").read_text())


@pytest.fixture(scope="module")
def verdict(spark, logs):
    """The local audit of the busy queue manager."""
    report = run_audit(logs[BUSY].bootstrap, BUSY, spark=spark, **logs[BUSY].where)
    return told(json_report(report))


def rows_of(directory):
    """All rows of all tables, each table's in an order of their own."""
    return {name: sorted(map(repr, pq.read_table(directory / name).to_pylist())) for name in TABLES}


@pytest.fixture(scope="module")
def local_rows(spark, logs, tmp_path_factory):
    """The tables of the busy queue manager, as a local job writes them."""
    output = tmp_path_factory.mktemp("tables")
    log = logs[BUSY]
    run_tables(log.bootstrap, BUSY, spark=spark, output=output, **log.where)
    return rows_of(output)


@pytest.mark.parametrize(
    "package", ["ledgermq", "ledgermq_spark", "fastavro", "pyarrow", "pyspark"]
)
def test_the_python_of_the_cluster_has_none_of_what_jobs_import(cluster, package):
    """So that what works below works because of the artifact."""
    asked = [str(cluster.python), "-c", f"import {package}"]
    answer = subprocess.run(
        asked, env=cluster.environment(), capture_output=True, text=True, check=False
    )
    assert "ModuleNotFoundError" in answer.stderr


def test_an_audit_of_most_of_the_traffic_agrees_with_the_local_one(
    cluster, logs, verdict, tmp_path
):
    """One queue manager has nine tenths of the operations of four."""
    share = len(logs[BUSY].entries) / sum(len(log.entries) for log in logs.values())
    assert share > 0.89
    job = cluster.submit("audit", *given(cluster, logs[BUSY], BUSY), "--output", str(tmp_path))
    assert job.wait() == 0, job.said
    assert audited(tmp_path) == verdict
    assert verdict["verdict"] == "agrees"
    assert list((cluster.shared / "work").iterdir()) == []


@pytest.mark.parametrize("queue_manager", ["QM2", "QM3", "QM4"])
def test_an_audit_beside_a_busy_queue_manager_agrees_with_the_local_one(
    cluster, logs, spark, queue_manager, tmp_path
):
    """Each queue manager is audited by itself, from the same topics."""
    log = logs[queue_manager]
    local = run_audit(log.bootstrap, queue_manager, spark=spark, **log.where)
    job = cluster.submit("audit", *given(cluster, log, queue_manager), "--output", str(tmp_path))
    assert job.wait() == local.exit_code == 0, job.said
    assert audited(tmp_path) == told(json_report(local))


def test_a_rebuild_agrees_with_the_local_one(cluster, logs, spark, tmp_path):
    """Digest, chain and statuses are the same."""
    log = logs[BUSY]
    local = rebuild_at(log.bootstrap, BUSY, spark=spark, **log.where)
    job = cluster.submit("rebuild", *given(cluster, log, BUSY), "--output", str(tmp_path))
    assert job.wait() == 0, job.said
    found = json.loads((tmp_path / "rebuild.json").read_text())
    assert (found["digest"], found["chain"]) == (local.digest, local.chain.hex())
    assert (found["position"], found["queues"]) == (local.position, local.statuses)


def test_a_job_needs_no_cluster(cluster, logs):
    """With a local master nothing is unpacked for executors: workers see what the driver has."""
    job = cluster.submit("rebuild", *given(cluster, logs["QM2"], "QM2"), master="local[1]")
    assert job.wait() == 0, job.said


def test_an_audit_outlives_an_executor_that_is_killed(cluster, logs, verdict, tmp_path):
    """Its tasks run again on another, and the verdict is the same."""
    before = cluster.executors_in_all()
    job = cluster.submit("audit", *given(cluster, logs[BUSY], BUSY), "--output", str(tmp_path))
    job.wait_until(lambda: "folding and reading the log" in job.out)
    victim = job.wait_until(lambda: len(cluster.executors()) == 2 and cluster.executors()[0])
    os.kill(victim, signal.SIGKILL)
    assert job.wait() == 0, job.said
    assert audited(tmp_path) == verdict
    assert cluster.executors_in_all() - before > 2


def test_tables_are_whole_when_a_job_that_was_killed_runs_again(
    cluster, logs, local_rows, tmp_path
):
    """The driver dies when some tables are written, and none is in its place; nothing is lost or
    there twice then, and nothing unfinished is left.
    """
    output = tmp_path / "tables"
    arguments = ["tables", *given(cluster, logs[BUSY], BUSY), "--output", str(output)]
    first = cluster.submit(*arguments)
    unfinished = output / UNFINISHED
    first.wait_until(lambda: len(list(unfinished.glob("*/_SUCCESS"))) > 1)
    first.kill()
    assert 1 < len(list(unfinished.glob("*/_SUCCESS"))) < len(TABLES)
    assert not list(output.glob("*/*.parquet"))
    again = cluster.submit(*arguments)
    assert again.wait() == 0, again.said
    assert not unfinished.exists()
    assert rows_of(output) == local_rows


def test_a_job_that_is_submitted_must_be_told_where_all_of_spark_sees_files(cluster, logs):
    """A temporary directory of the driver is one that executors elsewhere do not see."""
    where = given(cluster, logs[BUSY], BUSY)
    job = cluster.submit("audit", *where[: where.index("--work")])
    assert job.wait() == 2
    assert "required: --work" in job.out
