"""Tests that jobs on a short log give what Spark gives for it, and begin no Java for that."""

import json
from collections import Counter

import pytest

from ledgermq_spark.archive.archived import archived_facts
from ledgermq_spark.archive.folding import rebuild_archived
from ledgermq_spark.archive.log_archive import LogArchive
from ledgermq_spark.archive.updating import update_archive
from ledgermq_spark.archive.written_tables import write_new
from ledgermq_spark.jobs.proven_rebuild import proven_rebuild
from ledgermq_spark.jobs.run import rebuild_at, run_audit, run_proof, run_tables
from ledgermq_spark.log import session
from ledgermq_spark.log.session import LazySession
from ledgermq_spark.tables.all_tables import TABLES
from support.audits.archives import PER_STRETCH, archive
from support.brokers.broker_logs import write
from support.random_logs.talk_and_chance import talk_and_chance

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.slow]


@pytest.fixture(scope="module")
def log(broker):
    """A conversation, then whatever comes at random, with a checkpoint at its end."""
    log = write(broker.bootstrap, talk_and_chance())
    log.write_checkpoint(len(log.entries) - 1)
    return log


@pytest.fixture
def spared():
    """A session that must not begin."""

    def begin():
        raise AssertionError("a short log begins no Spark")

    return LazySession(begin)


@pytest.fixture(scope="module")
def kept(log, tmp_path_factory):
    """The archive of the log, made without Spark."""
    path = tmp_path_factory.mktemp("kept")
    archive(LazySession(lambda: pytest.fail("an update of a few begins no Spark")), log, path)
    return path


def rows_of(facts):
    """The rows of all tables, each as text."""
    return {name: Counter(map(str, facts.rows(text))) for name, text in TABLES.items()}


def test_a_rebuild_is_the_same(spark, spared, log):
    """In the middle of the log, and from a checkpoint."""
    for at, from_checkpoint in ((len(log.entries) // 2, False), (None, True)):
        there, here = (
            rebuild_at(
                log.bootstrap, "QM1", at, from_checkpoint=from_checkpoint, spark=one, **log.where
            )
            for one in (spark, spared)
        )
        assert (here.digest, here.chain, here.position) == (
            there.digest,
            there.chain,
            there.position,
        )
        assert here.statuses == there.statuses
        assert here.operations == there.operations


def test_a_rebuild_that_others_bear_witness_of_is_the_same(spark, spared, log):
    """State, digests of checkpoints, and how much was compared."""
    at = len(log.entries) - 1
    there, here = (
        proven_rebuild(log.bootstrap, "QM1", at, spark=one, **log.where) for one in (spark, spared)
    )
    assert here.rebuilt.digest == there.rebuilt.digest
    assert (here.compared, here.notes) == (there.compared, there.notes)
    assert here.compared > 0


def test_tables_are_the_same(spark, spared, log):
    """All rows of all of them."""
    there, here = (
        rows_of(run_tables(log.bootstrap, "QM1", spark=one, **log.where)) for one in (spark, spared)
    )
    assert here == there
    assert sum(map(len, here.values())) > len(log.entries)


def test_an_audit_is_the_same(spark, spared, log):
    """All that it reports, but for how long it took."""
    at = len(log.entries) - 1
    there, here = (
        json.loads(
            json.dumps(
                run_audit(log.bootstrap, "QM1", live_position=at, spark=one, **log.where).as_dict()
                | {"seconds": None},
                default=str,
            )
        )
        for one in (spark, spared)
    )
    assert here == there
    assert here["verdict"] == "agrees"


def test_an_archive_has_what_one_has_that_spark_made(spark, log, kept, tmp_path):
    """The same stretches, states and digest chains, the same rows in all files."""
    archive(spark, log, tmp_path)
    there, here = (LogArchive(one, "QM1").stretches() for one in (tmp_path, kept))
    told = [
        [(one.first, one.last, one.digest, one.chain, one.newest_ms, one.skipped) for one in some]
        for some in (there, here)
    ]
    assert told[0] == told[1]
    for mine, other in zip(here, there, strict=True):
        assert list(mine.records()) == list(other.records())
    rows = [
        [
            spark.read.parquet(one.part(part)).toArrow().sort_by(by).to_pylist()
            for one in some
            for part, by in (("records", "offset"), ("operations", "position"))
        ]
        for some in (there, here)
    ]
    assert rows[0] == rows[1]


def test_an_archive_is_asked_and_proven_without_spark(spark, spared, log, kept, tmp_path):
    """Its tables, its proof, a state within a stretch, tables that grow with it, an audit of it."""
    facts = archived_facts(kept, "QM1", spark=spared, directory=tmp_path / "facts")
    assert rows_of(facts) == rows_of(run_tables(log.bootstrap, "QM1", spark=spark, **log.where))
    found, findings = run_proof(kept, "QM1", spark=spared, directory=tmp_path / "proof")
    assert [one.problem for one in found] == [None] * len(found)
    assert sum(one.records for one in found) == len(log.entries)
    assert findings == []
    at = PER_STRETCH + 30
    rebuilt = rebuild_archived(kept, "QM1", at, spark=spared, directory=tmp_path / "state")
    assert rebuilt.digest == rebuild_at(log.bootstrap, "QM1", at, spark=spark, **log.where).digest
    written = write_new(kept, "QM1", tmp_path / "tables", spark=spared)
    assert written.stretches == len(found)
    report = run_audit(log.bootstrap, "QM1", archive=kept, spark=spared, **log.where)
    assert (report.anomalies, report.verdict) == ([], "agrees")


def test_an_archive_that_has_all_is_found_so_without_spark(spared, log, kept):
    """The record at its end is compared with that of the log, whatever was read before."""
    assert update_archive(log.bootstrap, "QM1", kept, spark=spared, **log.where) == []


def test_a_long_log_is_read_by_spark(spark, log, monkeypatch):
    """From so many records on its processes are worth their start, but for a fold: that is one."""
    monkeypatch.setattr(session, "BRIEF_OPERATIONS_MAX", len(log.entries) - 1)
    lazy, at = LazySession(lambda: spark), len(log.entries) - 1
    digest = rebuild_at(log.bootstrap, "QM1", spark=lazy, **log.where).digest
    assert lazy.begun is None
    report = run_audit(log.bootstrap, "QM1", live_position=at, spark=lazy, **log.where)
    assert lazy.begun is spark
    assert (report.verdict, report.digest) == ("agrees", digest)
