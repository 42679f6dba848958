"""Tests of audits behind an archive: each looks at what came since the last, and at all of it."""

import shutil
from dataclasses import replace

import pytest
from confluent_kafka import TopicPartition

from ledgermq.protocol.administration import PurgeQueue
from ledgermq.wire.topics.log_topics import Topics
from ledgermq_spark.archive.log_archive import LogArchive
from ledgermq_spark.archive.stretch import ArchiveBrokenError
from ledgermq_spark.archive.updating import update_archive
from ledgermq_spark.jobs.run import run_audit, run_proof
from ledgermq_spark.log.positions import PositionOutOfRangeError
from support.brokers.broker_logs import trim, write
from support.brokers.log_writer import Script
from support.planted.planting import PLANTS, conversation
from support.random_logs.random_log import RandomLog

pytestmark = [pytest.mark.long, pytest.mark.spark, pytest.mark.kafka, pytest.mark.slow]

FIRST = 120


def purge(session, actor):
    """Puts two messages and has somebody take them away."""
    session.put("orders", "a", "b")
    purged = {"source": "queue:orders", "subscription": "", "client_id": "", "durable": False}
    chosen = {"selector": "", "sequences": [], "after_sequence": -1, "limit": 0}
    session.send(PurgeQueue, selection=purged | chosen, actor=actor, reason="as agreed")


@pytest.fixture(scope="module")
def entries():
    """A conversation, then whatever comes at random; before and after it somebody purges."""
    script = Script(step_us=0)
    session = script.session()
    purge(session, "ann")
    conversation(script, "talk")
    RandomLog(script, topics=True).grow(160)
    purge(session, "bob")
    return [replace(one, stamp=1, wait_seconds=0.0) for one in script.entries]


@pytest.fixture(scope="module")
def log(broker, entries):
    """It on the broker, with the outcomes of a worker."""
    return write(broker.bootstrap, entries)


@pytest.fixture(scope="module")
def path(spark, log, tmp_path_factory):
    """An archive that was audited up to a position in the middle."""
    path = tmp_path_factory.mktemp("audited")
    report = run_audit(log.bootstrap, "QM1", FIRST, archive=path, spark=spark, **log.where)
    assert report.verdict == "agrees", (report.anomalies, report.unproven)
    assert report.compared["operations"] == FIRST + 1
    assert [one["actor"] for one in report.by_hand] == ["ann"]
    return path


def test_an_audit_looks_at_what_is_new_and_says_what_was_proven_before(spark, log, path):
    """Also if the archive was added to in between; after a trim it proves all the same (H25)."""
    update_archive(log.bootstrap, "QM1", path, FIRST + 30, spark=spark, **log.where)
    trim(log.bootstrap, TopicPartition(Topics(log.prefix).operations, 0, FIRST - 20))
    report = run_audit(log.bootstrap, "QM1", archive=path, spark=spark, **log.where)
    assert report.verdict == "agrees", (report.anomalies, report.unproven)
    assert report.compared["operations"] == len(log.entries) - FIRST - 1
    assert any(f"positions 0 to {FIRST} were proven" in note for note in report.notes)
    assert [(one["done"], one["actor"], one["messages"]) for one in report.by_hand] == [
        ("purged", "bob", 2)
    ]
    assert LogArchive(path, "QM1").proven()["last"] == len(log.entries) - 1
    stretches, findings = run_proof(path, "QM1", spark=spark)
    assert (findings, [one.problem for one in stretches]) == ([], [None, None, None])


@pytest.mark.long
@pytest.mark.parametrize(
    ("queue", "plant", "kind"),
    [one for one in PLANTS if one[0] in ("altered", "content", "duplicated")],
)
def test_what_is_wrong_above_the_proven_position_is_found(
    spark, broker, tmp_path, queue, plant, kind
):
    """It is not noted as proven, so that the next audit finds it again."""
    script = Script(step_us=0)
    RandomLog(script, topics=True).grow(60)
    proven = len(script.entries) - 1
    conversation(script, queue)
    plain = [replace(one, stamp=1, wait_seconds=0.0) for one in script.entries]
    log = write(broker.bootstrap, plain, alter=lambda outcomes: plant(outcomes, queue))
    given = {"archive": tmp_path, "spark": spark, **log.where}
    assert run_audit(log.bootstrap, "QM1", proven, **given).verdict == "agrees"
    for _ in range(2):
        report = run_audit(log.bootstrap, "QM1", **given)
        assert [one.kind for one in report.anomalies] == [kind]
        assert LogArchive(tmp_path, "QM1").proven()["last"] == proven


def test_an_audit_does_not_go_back_behind_its_archive(spark, log, path):
    """What was archived is proven by `archive prove`, or audited without an archive."""
    with pytest.raises(PositionOutOfRangeError, match="in the archive"):
        run_audit(log.bootstrap, "QM1", FIRST - 1, archive=path, spark=spark, **log.where)


@pytest.mark.long
def test_lanes_that_are_shorter_than_at_the_last_audit_are_read_whole(spark, broker, tmp_path):
    """They were made anew: the offsets that were noted mean nothing any more."""
    script = Script(step_us=0)
    RandomLog(script, topics=True).grow(60)
    plain = [replace(one, stamp=1, wait_seconds=0.0) for one in script.entries]
    log = write(broker.bootstrap, plain)
    given = {"archive": tmp_path, "spark": spark, **log.where}
    assert run_audit(log.bootstrap, "QM1", 40, **given).verdict == "agrees"
    archive = LogArchive(tmp_path, "QM1")
    archive.note_proven(archive.proven() | {"lane_ends": [10_000] * 4})
    report = run_audit(log.bootstrap, "QM1", **given)
    assert report.verdict == "agrees"
    assert report.compared["outcomes"] > 0
    assert any("they were cut or made anew" in note for note in report.notes)


def test_an_archive_other_than_the_proven_one_is_refused(spark, log, path, tmp_path):
    """Whoever puts another state in its place is asked for the one that was proven."""
    shutil.copytree(path, tmp_path / "copy")
    archive = LogArchive(tmp_path / "copy", "QM1")
    archive.note_proven(archive.proven() | {"digest": "0" * 64})
    with pytest.raises(ArchiveBrokenError, match="is not the one of the last audit"):
        run_audit(log.bootstrap, "QM1", archive=archive.path, spark=spark, **log.where)
