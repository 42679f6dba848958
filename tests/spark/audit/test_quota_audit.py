"""Tests of tables and audit where quotas hold puts up (INF-03, INF-04, INF-18, INF-20)."""

import random
from dataclasses import replace

import pytest
from pyspark.sql import functions as f

from ledgermq.protocol import operations as op
from ledgermq.protocol.settings import given_settings
from ledgermq_spark.audit.audit import audit
from ledgermq_spark.audit.quotas import check_quotas
from support.audits.audits import subject_of
from support.brokers.log_writer import Script
from support.random_logs.random_log import RandomLog

pytestmark = [pytest.mark.spark, pytest.mark.slow]


class Story:
    """Puts and a commit that wait, are let in by what others do, or wait in vain."""

    def __init__(self):
        self.script = script = Script()
        script.blocking_ms = lambda: 2_000
        first, second, unit = script.session(), script.session(), script.session("TRANSACTED")
        first.send(op.CreateQueue, queue="q", settings=given_settings({"messages_max": 2}))
        first.put("q", "one", "two")
        self.let_in = second.put("q", "three")
        self.in_unit = unit.put("q", "four")
        self.commit = unit.commit()
        first.consumer("q", 1, credit=1)
        self.acknowledged = first.acknowledge(1)
        first.get(1)
        first.acknowledge(2)
        self.in_vain = second.put("q", "five")
        script.wait(3)
        script.add(op.Tick(worker="w"))
        first.send(op.AlterQueueManager, messages_max=3)
        second.put("r", "six")
        self.held_by_all = second.put("r", "seven")
        first.send(op.AlterQueueManager, messages_max=0)
        self.at_the_end = second.put("q", "eight")


@pytest.fixture(scope="module")
def told(spark, tmp_path_factory):
    """The story and what an audit sees of it."""
    story = Story()
    return subject_of(spark, tmp_path_factory.mktemp("quotas"), story.script.entries), story


def test_the_audit_agrees_where_puts_and_commits_were_held_up(told):
    """What waited is where it was let in; what waited in vain left no trace (INF-05, INF-20)."""
    subject, story = told
    report = audit(subject)
    assert report.anomalies == []
    applied = {row["position"]: row["applied_position"] for row in subject.tables.puts.collect()}
    assert applied[story.let_in] == story.acknowledged
    assert applied[story.in_unit] > story.commit
    assert applied[story.held_by_all] > story.held_by_all
    assert story.in_vain not in applied
    assert story.at_the_end not in applied


def test_a_put_that_exceeds_a_quota_is_named(told):
    """Of its destination, or of all: what was there is summed up without the fold (INF-04)."""
    subject, story = told
    tables = subject.tables
    assert check_quotas(tables) == []
    early = tables.puts.withColumn(
        "applied_position",
        f.when(f.col("position") == story.let_in, f.col("position")).otherwise(
            f.col("applied_position")
        ),
    )
    (found,) = check_quotas(replace(tables, puts=early))
    assert (found.queue, found.position, found.field) == ("q", story.let_in, "quota")
    assert found.found.startswith("3 messages")
    early = tables.puts.withColumn(
        "applied_position",
        f.when(f.col("position") == story.held_by_all, f.col("position")).otherwise(
            f.col("applied_position")
        ),
    )
    (found,) = check_quotas(replace(tables, puts=early))
    assert (found.position, "of the queue manager" in found.summary) == (story.held_by_all, True)


@pytest.mark.long
def test_the_audit_agrees_on_a_random_log_with_quotas(spark, tmp_path):
    """Topics, expiries and lost sessions among it."""
    script = Script(random=random.Random(23))
    RandomLog(script, quotas=True, topics=True, ends=True).grow(200)
    subject = subject_of(spark, tmp_path, script.entries)
    assert len(subject.tables.facts.directory.waiting) > 5
    assert audit(subject).anomalies == []
