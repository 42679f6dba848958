"""Tests of rebuild, audit, tables and trace on logs that stand on a real broker."""

import json
from datetime import UTC, datetime

import pytest
from confluent_kafka import TopicPartition

from ledgermq.core.snapshot.state_records import blocks, root_of
from ledgermq.errors import QueueManagerNotFoundError
from ledgermq.wire.framing.checkpoint_chunks import encode_root
from ledgermq.wire.topics.log_topics import Topics
from ledgermq_spark.audit.findings.evidence import hexadecimal
from ledgermq_spark.jobs import audit as audit_job
from ledgermq_spark.jobs import rebuild as rebuild_job
from ledgermq_spark.jobs import tables as tables_job
from ledgermq_spark.jobs.run import rebuild_at, run_audit, run_tables
from ledgermq_spark.log.positions import PositionOutOfRangeError
from ledgermq_spark.rebuild.rebuild import LogTrimmedError
from ledgermq_spark.tables.life import lives_meant, meant
from support.brokers.broker_logs import trim, write
from support.brokers.log_writer import Script, chain_of
from support.planted.planting import conversation
from support.random_logs.talk_and_chance import talk_and_chance

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.slow]


@pytest.fixture(scope="module")
def log(broker):
    """A conversation, then whatever comes at random."""
    return write(broker.bootstrap, talk_and_chance())


def test_a_rebuild_is_the_fold_at_any_position(spark, log):
    """Root, blocks, digest chain and statuses, in the middle and at the end."""
    for position in (len(log.entries) // 2, len(log.entries) - 1):
        rebuilt = rebuild_at(log.bootstrap, "QM1", position, spark=spark, **log.where)
        state = log.state_at(position)
        assert rebuilt.position == position
        assert rebuilt.root_bytes == encode_root(root_of(state))
        assert rebuilt.blocks() == list(blocks(state))
        assert rebuilt.chain == chain_of(log.entries)[position]
        assert [one["name"] for one in rebuilt.statuses] == sorted(state.queues)


def test_a_rebuild_from_a_checkpoint_is_the_one_from_zero(spark, log):
    """Also where nothing follows the checkpoint."""
    middle = len(log.entries) // 2
    digest = log.write_checkpoint(middle)
    again = rebuild_at(log.bootstrap, "QM1", middle, from_checkpoint=True, spark=spark, **log.where)
    assert (again.digest, again.operations) == (digest, 0)
    whole = rebuild_at(log.bootstrap, "QM1", spark=spark, **log.where)
    rest = rebuild_at(log.bootstrap, "QM1", from_checkpoint=True, spark=spark, **log.where)
    assert rest.digest == whole.digest
    assert rest.chain == whole.chain
    assert rest.operations == len(log.entries) - 1 - middle


def test_a_time_means_the_last_entry_at_or_before_it(spark, log):
    """The time of the last entry gives the end; one before the first is refused."""
    last = datetime.fromtimestamp(log.entries[-1].time_us / 1_000_000, UTC)
    rebuilt = rebuild_at(log.bootstrap, "QM1", last, spark=spark, **log.where)
    assert rebuilt.position == len(log.entries) - 1
    with pytest.raises(
        PositionOutOfRangeError,
        match=r"before the first record of .*: name position 0, or a later time$",
    ):
        rebuild_at(log.bootstrap, "QM1", "2001-01-01", spark=spark, **log.where)


def test_an_unknown_queue_manager_is_told(spark, log):
    """The error names it and where it was looked for."""
    told = r"no queue manager QM9 .*known: QM1\): check the name"
    with pytest.raises(QueueManagerNotFoundError, match=told):
        rebuild_at(log.bootstrap, "QM9", spark=spark, **log.where)


def test_a_clean_log_agrees_with_its_live_state(spark, log):
    """The checkpoint that a worker answered with is compared at its position."""
    position = len(log.entries) - 1
    digest = log.write_checkpoint(position)
    report = run_audit(log.bootstrap, "QM1", live_position=position, spark=spark, **log.where)
    assert report.anomalies == []
    assert (report.verdict, report.exit_code, report.digest) == ("agrees", 0, digest)
    assert not any("live state" in note for note in report.notes)


@pytest.mark.long
def test_the_life_of_a_message_is_told_step_by_step(spark, log):
    """Put, commit with its number, delivery, commit of the get."""
    session = next(
        one.outcome
        for entry in log.outcomes
        for one in entry
        if getattr(one.outcome, "destination", "") == "queue:talk"
    )
    message = session.messages[0]
    chosen = meant(message_id=message["message_id"])
    facts = run_tables(log.bootstrap, "QM1", spark=spark, **log.where)
    (life,) = lives_meant(facts, "QM1", chosen, 2)
    assert [one.what for one in life.steps] == ["put", "numbered", "delivered", "consumed"]
    assert (life.queue, life.sequence, life.fate) == ("talk", 0, "consumed")
    assert lives_meant(facts, "QM1", meant(message_id=bytes(16)), 2) == []


def test_a_missing_operation_is_found_once_and_names_its_messages(spark, broker):
    """Written anew without one put, all positions above move down; the lanes still answer it."""
    script = Script()
    for queue in ("a", "b", "c"):
        conversation(script, queue)
    position, outcome = next(
        (one.outcome.messages[0]["put_position"], one.outcome)
        for entry in script.outcomes
        for one in entry
        if getattr(one.outcome, "destination", "") == "queue:b"
    )
    log = write(broker.bootstrap, script.entries, without=position)
    report = run_audit(log.bootstrap, "QM1", spark=spark, **log.where)
    altered, found = report.anomalies
    assert (altered.kind, altered.source) == ("altered operations", "chain")
    assert altered.position <= position
    assert (found.kind, found.position, found.queue) == ("gap", position, "b")
    for message in outcome.messages:
        assert hexadecimal(message["message_id"]) in found.message_id
    assert report.exit_code == 1


@pytest.mark.usefixtures("without_laws")
def test_a_missing_worker_entry_is_found_by_the_positions_that_moved(spark, broker):
    """A Tick is answered by nothing; what follows it stands elsewhere."""
    script = Script()
    conversation(script, "a")
    from ledgermq.protocol.operations import Tick

    tick = script.add(Tick(worker="w"))
    conversation(script, "b")
    log = write(broker.bootstrap, script.entries, without=tick)
    _, found = run_audit(log.bootstrap, "QM1", spark=spark, **log.where).anomalies
    assert (found.kind, found.position) == ("gap", tick)


@pytest.mark.usefixtures("without_laws")
def test_a_trimmed_log_and_an_expired_lane_are_unproven(spark, broker):
    """Nothing is said to agree, nothing to be lost; a rebuild says what is gone."""
    script = Script()
    conversation(script, "a")
    conversation(script, "b")
    log = write(broker.bootstrap, script.entries)
    topics = Topics(log.prefix)
    trim(log.bootstrap, TopicPartition(topics.outcomes, 0, 1))
    expired = run_audit(log.bootstrap, "QM1", spark=spark, **log.where)
    assert (expired.verdict, expired.exit_code, expired.anomalies) == ("unproven", 5, [])
    trim(log.bootstrap, TopicPartition(topics.operations, 0, 3))
    trimmed = run_audit(log.bootstrap, "QM1", spark=spark, **log.where)
    assert (trimmed.verdict, trimmed.exit_code) == ("unproven", 5)
    with pytest.raises(PositionOutOfRangeError, match="begins at 3"):
        rebuild_at(log.bootstrap, "QM1", 1, spark=spark, **log.where)
    with pytest.raises(LogTrimmedError, match=r"begins at position 3: .* an archive of it"):
        rebuild_at(log.bootstrap, "QM1", spark=spark, **log.where)


@pytest.mark.long
def test_the_jobs_write_what_they_found(spark, log, tmp_path, capsys):
    """Rebuild and audit print JSON and end with the verdict's code; tables are Parquet."""
    common = ["--bootstrap", log.bootstrap, "--topic-prefix", log.prefix, "--json"]
    assert rebuild_job.main([*common, "--output", str(tmp_path / "r")]) == 0
    position = json.loads(capsys.readouterr().out)["position"]
    assert position == len(log.entries) - 1
    assert audit_job.main([*common, "--output", str(tmp_path / "a")]) == 0
    assert json.loads(capsys.readouterr().out)["verdict"] == "agrees"
    page = (tmp_path / "a" / "audit.html").read_text(encoding="utf-8")
    assert "Agrees" in page
    assert "<svg" in page
    assert tables_job.main([*common, "--output", str(tmp_path / "t")]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert spark.read.parquet(str(tmp_path / "t" / "messages")).count() == rows["messages"]
    assert rebuild_job.main([*common, "--at", "999999"]) == 2
    assert "after the end of the log" in capsys.readouterr().err
