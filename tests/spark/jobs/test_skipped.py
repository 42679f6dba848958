"""Logs with holes and foreign versions: rebuild and audit agree with the worker (§8; H3, H9)."""

import subprocess
import sys

import pytest
from confluent_kafka import Producer

from ledgermq.processor.log.chain import read_chain
from ledgermq.protocol import operations as op
from ledgermq.protocol.administration import PositionsSkipped, VersionOffered
from ledgermq.wire.framing.codec import encode_operation
from ledgermq.wire.topics.reading import LogUnreadableError
from ledgermq_spark.archive.archived import archived_facts
from ledgermq_spark.archive.folding import rebuild_archived
from ledgermq_spark.archive.updating import update_archive
from ledgermq_spark.jobs.run import run_audit, run_proof
from ledgermq_spark.rebuild.rebuild import rebuild_at
from ledgermq_spark.rebuild.rebuilt import FoldStoppedError
from support.brokers import topic_surgery as surgery
from support.checks.history import check_history

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.slow]


def in_transaction(place, value=None):
    """Writes a record in a Kafka transaction."""
    producer = Producer({"bootstrap.servers": place.bootstrap, "transactional.id": "intruder"})
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce(place.topics.operations, value=value, partition=0)
    producer.commit_transaction(20)


def skip(place, *arguments):
    """`ledgermq log skip` as an operator calls it."""
    command = [sys.executable, "-m", "ledgermq", "log", "skip", *map(str, arguments)]
    command += ["--bootstrap", place.bootstrap, "--topic-prefix", place.topics.prefix]
    command += ["--reason", "a test", "--timeout", "5"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_rebuild_audit_and_chain_agree_with_the_worker_on_what_was_skipped(spark, place):
    """An undeclared hole is an error that names the command; a declared one is audited (§8)."""
    worker = place.worker("first")
    client = place.client()
    session = client.open()
    session.put("queue:a", 2)
    session.do(op.Commit, deliveries=[], puts=2)
    in_transaction(place, b"rubbish")
    where = {"topic_prefix": place.topics.prefix, "spark": spark}
    with pytest.raises(FoldStoppedError, match="`ledgermq log skip 4`"):
        rebuild_at(place.bootstrap, "QM1", **where)
    with pytest.raises(LogUnreadableError, match="`ledgermq log skip 4 "):
        read_chain(place.ledger, 4)
    refused = skip(place, 2, "--through", 4, "--yes")
    assert (refused.returncode, "an entry (Commit)" in refused.stderr) == (1, True), refused.stderr
    assert skip(place, 4).returncode == 2
    assert skip(place, 4, "--yes").returncode == 0
    upgrading = place.client(1).open()
    # One that names nothing below it counts for nothing, and is no note.
    wrong = PositionsSkipped(first=2**31, last=0, actor="ops", reason="x" * 5_000)
    client.write_raw(encode_operation(wrong))
    client.write_raw(encode_operation(VersionOffered(worker="w", version=3)))
    client.flush()
    upgrade = upgrading.write(op.Upgrade, version=3)
    upgrading.reply(upgrade)
    position = upgrading.positions[upgrade][0]
    session.write(op.Alive)
    client.flush()
    assert worker.wait() == 4
    done = skip(place, position, "--yes")
    assert done.returncode == 0, done.stderr
    place.worker("second")
    session.put("queue:a", 1)
    session.do(op.Commit, deliveries=[], puts=1)
    answer = client.ask("CHECKPOINT")
    fold, _ = check_history(place)
    report = run_audit(place.bootstrap, "QM1", live_position=answer["position"], **where)
    assert report.anomalies == []
    assert report.verdict == "agrees"
    told = [one for one in report.notes if "were declared skipped" in one]
    assert [one.partition(" were")[0] for one in told] == [
        "positions 4 to 4",
        f"positions {position} to {position}",
    ]
    assert report.position == answer["position"] <= fold.state.position
    link = read_chain(place.ledger, report.position)
    assert link.digest.hex() == report.chain


def test_a_declaration_that_counts_for_nothing_is_no_note(spark, place):
    """A writer's own time stamp is not trusted: every fold refuses the record (§8, H29)."""
    place.worker("first")
    client = place.client()
    session = client.open()
    session.put("queue:a", 1)
    session.do(op.Commit, deliveries=[], puts=1)
    operations = place.topics.operations
    surgery.alter_topic(place, operations, message_timestamp_type="CreateTime")
    forged = PositionsSkipped(first=0, last=0, actor="somebody", reason="forged")
    surgery.write(place, operations, "QM1", encode_operation(forged), timestamp=1)
    surgery.alter_topic(place, operations, message_timestamp_type="LogAppendTime")
    answer = client.ask("CHECKPOINT")
    check_history(place)
    report = run_audit(
        place.bootstrap,
        "QM1",
        live_position=answer["position"],
        topic_prefix=place.topics.prefix,
        spark=spark,
    )
    assert report.anomalies == []
    assert [one for one in report.notes if "were declared skipped" in one] == []


def test_an_archive_goes_on_over_a_hole_once_it_is_declared(spark, place, tmp_path):
    """What stands below it is kept and proven before, and all of it behind."""
    place.worker("first")
    client = place.client()
    session = client.open()
    session.put("queue:a", 2)
    session.do(op.Commit, deliveries=[], puts=2)
    in_transaction(place, b"rubbish")
    where = {"topic_prefix": place.topics.prefix, "spark": spark}
    archive = tmp_path / "archive"

    def archived():
        """The last position, if all is proven and a rebuild comes to what the log comes to."""
        found, findings = run_proof(archive, "QM1", spark=spark)
        assert ([one.problem for one in found if one.problem], findings) == ([], [])
        rebuilt = rebuild_archived(archive, "QM1", spark=spark)
        last = found[-1].last
        assert rebuilt.position == last
        assert rebuilt.digest == rebuild_at(place.bootstrap, "QM1", last, **where).digest
        return last

    with pytest.raises(FoldStoppedError, match="has a hole") as told:
        update_archive(place.bootstrap, "QM1", archive, **where)
    hole = int(str(told.value).rpartition("log skip ")[2].rstrip("`"))
    assert archived() == hole - 1
    assert skip(place, hole, "--yes").returncode == 0
    session.put("queue:a", 1)
    update_archive(place.bootstrap, "QM1", archive, **where)
    last = archived()
    facts = archived_facts(archive, "QM1", spark=spark)
    (row,) = facts.rows("SELECT count(DISTINCT position) AS positions FROM {operations}")
    assert row["positions"] == last + 1
