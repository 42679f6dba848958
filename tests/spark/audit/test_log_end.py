"""Tests that what is recorded above the end of a log is an anomaly, whatever the log holds."""

import json

import pytest
from confluent_kafka import TopicPartition

from ledgermq.protocol.operations import Tick
from ledgermq.wire.framing.codec import encode_record
from ledgermq.wire.topics.log_topics import Topics, ensure_topics
from ledgermq.wire.topics.registry import claim_queue_manager
from ledgermq_spark.audit.anchors import ARCHIVE, CHECKPOINT, Anchor
from ledgermq_spark.audit.witnesses import archive_anchors, recorded_above
from ledgermq_spark.jobs.run import run_audit
from ledgermq_spark.log.other_partitions import records_elsewhere
from support.audits.engines import duck_engine
from support.audits.frames import recorded_frame
from support.brokers.broker_logs import trim, write
from support.brokers.log_writer import LANES, Script, append_operations, append_records
from support.planted.planting import conversation

pytestmark = [pytest.mark.spark]

END = 12
WRONG = Anchor(3, bytes(32))


def above(*, positions=(), answers=(), anchors=(), live=None, end=END):
    """What is told above the end if the lanes have these outcomes and answers."""
    return recorded_above(recorded_frame(duck_engine(), positions, answers), end, anchors, live)


def test_what_is_told_below_the_end_is_not_above_it(spark):
    """The last record of the log may be answered, checkpointed and noted."""
    anchors = [Anchor(END - 1, bytes(32)), Anchor(END - 1, bytes(32), CHECKPOINT)]
    last = END - 1
    assert above(positions=[3, last], answers=[last], anchors=anchors, live=last) is None
    assert above(answers=[-1], end=0) is None


@pytest.mark.parametrize(
    ("told", "who"),
    [
        ({"positions": [3, END]}, "the chunk of outcomes"),
        ({"answers": [3, END]}, "the answer to a question"),
        ({"anchors": [Anchor(END, bytes(32))]}, "the anchor that was given"),
        ({"anchors": [Anchor(END, bytes(32), CHECKPOINT)]}, "the checkpoint"),
        ({"live": END}, "the live state"),
    ],
)
def test_whoever_tells_of_a_record_above_the_end_tells_of_a_cut(spark, told, who):
    """One of them is enough; the finding says who, where the log ends, and what was there."""
    found = above(**told)
    assert (found.end, found.lowest) == (END, END)
    evidence = found.evidence()
    assert (evidence.kind, evidence.position) == ("altered operations", END)
    assert evidence.summary.startswith(f"the log was cut at its end: {who} at position {END} ")
    assert evidence.found == f"the last one at position {END - 1}"


def test_all_that_is_told_above_the_end_is_one_finding(spark):
    """It has the lowest position with who tells it, and how many tell of how much."""
    anchors = [Anchor(END + 5, bytes(32)), Anchor(END + 1, bytes(32), CHECKPOINT)]
    found = above(positions=[END + 2, END + 3], anchors=anchors, live=END + 4)
    assert found.lowest == END + 1
    evidence = found.evidence()
    assert "the checkpoint at position 13 " in evidence.summary
    assert "(2 outcomes, 1 given, 1 checkpoint, 1 live state above its end)" in evidence.summary
    assert evidence.expected == "records up to position 17"


def test_an_empty_log_that_somebody_tells_of_held_something(spark):
    """Nothing is left, so the first record that is told of is one too many."""
    evidence = above(positions=[0], end=0).evidence()
    assert evidence.summary.startswith("the log holds nothing, but did: ")
    assert evidence.found == "no record"


def test_a_backup_of_the_journal_is_an_anchor_at_its_end(spark, tmp_path):
    """It noted the digest chain below its `through`; an archive of nothing notes nothing."""
    manifests = tmp_path / "manifests"
    manifests.mkdir()
    told = {
        "format": 1,
        "queue_manager": "QM1",
        "from": 0,
        "chain": "ab" * 32,
        "digest": "cd" * 32,
        "files": [],
    }
    for through in (0, END, END + 1):
        path = manifests / f"QM1-{through}.json"
        path.write_text(json.dumps({**told, "through": through}), encoding="utf-8")
    found = archive_anchors(tmp_path, "QM1")
    digest = bytes.fromhex("ab" * 32)
    assert found == [Anchor(END - 1, digest, ARCHIVE), Anchor(END, digest, ARCHIVE)]
    assert archive_anchors(tmp_path, "QM2") == archive_anchors(None, "QM1") == []
    assert above(anchors=found[:1]) is None
    assert "the backup of the journal at position 12" in above(anchors=found).evidence().summary


@pytest.fixture(scope="module")
def script():
    """A short conversation, and an entry that nobody answers."""
    found = Script()
    conversation(found, "q")
    found.add(Tick(worker="w"))
    return found


@pytest.mark.kafka
@pytest.mark.slow
def test_a_log_that_lost_its_tail_is_found_out_once(spark, broker, script):
    """The messages that went with it are named, and where it ends is where it differs."""
    cut = len(script.entries) - 3
    log = write(broker.bootstrap, script.entries, cut=cut)
    report = run_audit(log.bootstrap, "QM1", spark=spark, **log.where)
    (found,) = report.anomalies
    assert (found.kind, found.position, report.exit_code) == ("altered operations", cut, 1)
    assert found.summary.startswith("the log was cut at its end: the chunk of outcomes at ")
    assert found.message_id
    proof = report.chain_proof
    assert (proof["differs_from"], proof["differs_to"]) == (cut, cut)


@pytest.mark.kafka
@pytest.mark.long
def test_an_audit_of_an_earlier_position_tells_of_a_lost_tail_too(spark, broker, script):
    """What stands between that position and the end is not above the end, and no anomaly."""
    cut = len(script.entries) - 3
    log = write(broker.bootstrap, script.entries, cut=cut)
    report = run_audit(log.bootstrap, "QM1", 3, spark=spark, **log.where)
    assert [(one.kind, one.position) for one in report.anomalies] == [("altered operations", cut)]
    log = write(broker.bootstrap, script.entries)
    report = run_audit(log.bootstrap, "QM1", 3, spark=spark, **log.where)
    assert (report.verdict, report.anomalies) == ("agrees", [])


@pytest.mark.kafka
@pytest.mark.slow
def test_an_empty_log_agrees_only_where_nobody_tells_of_a_record(spark, broker, script):
    """Outcomes, checkpoints, an anchor, the worker's answer: each is one too many."""
    log = write(broker.bootstrap, script.entries, cut=0)
    log.write_checkpoint(5)
    report = run_audit(log.bootstrap, "QM1", spark=spark, anchors=[WRONG], **log.where)
    (found,) = report.anomalies
    assert (found.kind, found.position, report.exit_code) == ("altered operations", 0, 1)
    assert " outcomes, 1 given, 1 checkpoint above its end)" in found.summary
    fresh = write(broker.bootstrap, [])
    for told in ({"anchors": [WRONG]}, {"live_position": 3}):
        report = run_audit(fresh.bootstrap, "QM1", spark=spark, **told, **fresh.where)
        assert (len(report.anomalies), report.exit_code) == (1, 1)
    report = run_audit(fresh.bootstrap, "QM1", spark=spark, **fresh.where)
    assert (report.verdict, report.exit_code, report.anomalies) == ("agrees", 0, [])
    assert report.notes == ["the log is empty: there was nothing to audit"]


@pytest.mark.kafka
@pytest.mark.slow
def test_a_claim_that_points_at_an_unused_partition_is_found_out(spark, broker, script):
    """The records of QM1 stand elsewhere; those of QM2 may, where it has claimed a partition."""
    log = write(broker.bootstrap, script.entries, partitions=2)
    topics = Topics(log.prefix)
    other = claim_queue_manager(log.bootstrap, topics, "QM2", lanes=LANES)
    assert records_elsewhere(log.bootstrap, topics, other) == []
    append_operations(log.bootstrap, topics, "QM2", other.partition, script.entries[:1])
    own = claim_queue_manager(log.bootstrap, topics, "QM1")
    assert records_elsewhere(log.bootstrap, topics, own) == []
    moved = own._replace(partition=1)
    assert [one.source for one in records_elsewhere(log.bootstrap, topics, moved)] == [
        "registry",
        "registry",
    ]


@pytest.mark.kafka
@pytest.mark.slow
def test_the_audit_of_an_unused_partition_names_the_used_one(spark, broker, script):
    """The registry was written anew: what is there agrees with everything, being nothing."""
    log = write(broker.bootstrap, script.entries, partitions=2)
    topics = Topics("anew-" + log.prefix)
    ensure_topics(log.bootstrap, topics, partitions=2, lanes=LANES)
    append_operations(log.bootstrap, topics, "QM1", 0, script.entries)
    claim = {"queue_manager": "QM1", "partition": 1, "lanes": LANES}
    record = encode_record("ledgermq.registry.Claim", claim)
    append_records(log.bootstrap, topics.registry, [(0, b"QM1", record)])
    report = run_audit(log.bootstrap, "QM1", topic_prefix=topics.prefix, spark=spark)
    (found,) = report.anomalies
    assert (found.kind, found.source, report.exit_code) == ("altered operations", "registry", 1)
    assert f"partition 0 of {topics.operations}" in found.summary


@pytest.mark.kafka
@pytest.mark.slow
def test_a_trimmed_log_is_unproven_and_one_that_was_cut_too_is_not(spark, broker, script):
    """What stood before the beginning proves nothing (H25); what is told above the end does."""
    log = write(broker.bootstrap, script.entries)
    trim(log.bootstrap, TopicPartition(Topics(log.prefix).operations, 0, 3))
    report = run_audit(log.bootstrap, "QM1", spark=spark, **log.where)
    assert (report.verdict, report.exit_code, report.anomalies) == ("unproven", 5, [])
    above_end = Anchor(len(script.entries), bytes(32))
    report = run_audit(log.bootstrap, "QM1", spark=spark, anchors=[above_end], **log.where)
    assert (report.verdict, report.exit_code, len(report.anomalies)) == ("anomalies", 1, 1)
