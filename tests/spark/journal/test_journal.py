"""Tests of the journal that is derived from a log on a real broker, and of its archive."""

import json
import shutil
import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from ledgermq.protocol import administration
from ledgermq.protocol import operations as op
from ledgermq.protocol.settings import given_settings
from ledgermq.wire.content.content import decode_content
from ledgermq.wire.topics.log_topics import Topics, ensure_topics
from ledgermq.wire.topics.registry import claim_queue_manager
from ledgermq_spark.journal.archive import Archive, JournalArchiveError
from ledgermq_spark.journal.choice import EPOCH, Choice, chosen
from ledgermq_spark.journal.journal import journal_of
from ledgermq_spark.journal.summary import summary_of
from support.brokers.log_writer import LANES, Script, append_operations, color_header
from support.messages.selections import of_queue

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.slow]
JOURNALED = ["plain 1", "plain 2", "waited", "topic", "committed", "late commit"]


def story() -> Script:
    """A log in which journaling is on for a while; what comes in then says so in its body."""
    script = Script(step_us=0)
    session, unit = script.session(), script.session("TRANSACTED")
    session.put("q", "before")
    unit.put("q", "put before, committed later")
    session.send(op.AlterQueueManager, journaling=True, journal_lifetime_ms=1_000)
    unit.commit()
    session.put("q", "plain 1")
    session.consumer("q", credit=9)
    session.acknowledge((1, 3))
    settings = given_settings({"messages_max": 1, "expiry_destination": "queue:q"})
    session.send(op.CreateQueue, queue="full", settings=settings)
    session.put("full", "plain 2")
    number = session.number
    again = script.entries[-1].value
    script.add_value(again)
    assert session.number == number
    message = script.message("waited", header=color_header("red"))
    session.send(op.Put, destination="queue:full", messages=[message], blocking_ms=60_000)
    never = [script.message("never fits")]
    session.send(op.Put, destination="queue:full", messages=never, blocking_ms=0)
    session.send(
        administration.MoveMessages,
        selection=of_queue("full"),
        target="queue:q",
        actor="a",
        reason="r",
    )
    session.publish("t", "topic", color="blue")
    session.send(op.Put, destination="queue:temporary/00/x", messages=[script.message("refused")])
    unit.put("q", "committed")
    unit.commit()
    unit.put("q", "rolled back")
    unit.rollback()
    script.wait(1.5)
    unit.put("r", "late commit")
    session.send(op.AlterQueueManager, journaling=False)
    session.put("q", "after")
    unit.commit()
    unit.send(op.Get, consumer=9, credit=1)
    return script


@pytest.fixture(scope="module")
def log(broker, spark, tmp_path_factory):
    """The story on a broker: where it is, and how its journal is had."""
    prefix = f"journal-{uuid.uuid4().hex[:8]}"
    topics = Topics(prefix)
    ensure_topics(broker.bootstrap, topics, partitions=1, lanes=LANES)
    claim = claim_queue_manager(broker.bootstrap, topics, "QM1", lanes=LANES)
    script = story()
    archive = tmp_path_factory.mktemp("archive")

    def append(entries):
        append_operations(broker.bootstrap, topics, "QM1", claim.partition, entries)

    def journal(**given):
        return journal_of(broker.bootstrap, "QM1", topic_prefix=prefix, spark=spark, **given)

    append(script.entries)
    return SimpleNamespace(
        bootstrap=broker.bootstrap,
        place=TopicPartition(topics.operations, claim.partition),
        script=script,
        append=append,
        journal=journal,
        archive=Archive(archive),
    )


@pytest.fixture(scope="module")
def journal(log):
    """The journal of the story."""
    return log.journal()


def told(rows):
    """Rows of a journal, in the order in which they came in."""
    return sorted(rows.collect(), key=lambda one: (one["position"], one["put_position"]))


def bodies(rows):
    """What the messages of rows say."""
    return [decode_content(bytes(one["content"])).body for one in rows]


def bodies_of(messages):
    """What archived messages say."""
    return [decode_content(one.content).body for one in messages]


def test_the_journal_has_what_came_in_while_it_was_on_and_nothing_else(journal):
    """Consumed or not, committed later or blocked first; never what was put before it was on, or
    was refused, rolled back, retried or moved by administration (DB-17, DB-19, decision 22).
    """
    rows = told(journal.rows)
    assert bodies(rows) == JOURNALED
    assert (journal.is_on, journal.lifetime_ms, journal.waiting) == (False, 1_000, [])
    assert [(one["destination"], one["sequence"]) for one in rows] == [
        *(("queue:q", 2), ("queue:full", 0), ("queue:full", 1), ("topic:t", 0)),
        *(("queue:q", 4), ("queue:r", 0)),
    ]
    blocked = rows[2]
    assert blocked["position"] > blocked["put_position"]
    assert json.loads(blocked["properties"]) == {"color": "red", "size": 3}
    for one in rows:
        lived = (one["expires_at"] - one["enqueued_at"]).total_seconds()
        assert 1 <= lived < 1.05
        assert one["expires_at"].timestamp() * 20 % 1 == 0


def test_times_of_the_journal_are_utc_whatever_the_time_zone(journal, live_in):
    """Spark hands times over in the zone of the machine, and no word of it."""
    live_in("America/New_York")
    micros = journal.rows.selectExpr("position", "unix_micros(enqueued_at)").collect()
    expected = dict(map(tuple, micros))
    found = {one.position: one.enqueued_at for one in journal.messages()}
    assert {at: EPOCH + timedelta(microseconds=one) for at, one in expected.items()} == found
    assert {one.tzinfo for one in found.values()} == {UTC}


@pytest.mark.parametrize("name", ["007", "/" * 128])
def test_a_backup_can_be_made_whatever_the_queue_manager_is_called(journal, spark, tmp_path, name):
    """As a number, or longer than a file's name may be; what has a manifest is left alone."""
    archive, named = Archive(tmp_path), replace(journal, queue_manager=name)
    with archive.adding():
        written = archive.write(named, summary_of(named))
    assert bodies_of(archive.messages(name)) == JOURNALED
    assert archive.backups(name)[0].manifest == written.manifest
    assert list(archive.messages("QM1")) == []
    if len(name) < 128:
        rows = spark.read.parquet(str(tmp_path / "messages"))
        assert {one["queue_manager"] for one in rows.collect()} == {name}


def test_a_backup_archives_all_and_keeps_what_has_not_expired(log, journal):
    """The lifetime is the journal's own (DB-18, DB-19): the first ones are over, the last is not.

    After it, and a cut of the log, the journal goes on from the archive.
    """
    summary = summary_of(journal)
    assert (summary.counts["messages"], summary.counts["expired"]) == (6, 5)
    written = log.archive.write(journal, summary)
    manifest = written.manifest
    assert (manifest["messages"], manifest["through"]) == (6, len(log.script.entries))
    archived = list(log.archive.messages("QM1"))
    assert bodies_of(archived) == JOURNALED
    assert [one.expired for one in archived] == [True] * 5 + [False]
    assert (summary.kept_from, summary.needed_from) == (
        archived[-1].position,
        archived[-1].put_position,
    )
    check_choices(archived)
    check_other_logs(log)
    check_cut(log, summary, archived)


def check_choices(archived):
    """Messages are chosen by id, destination, time and selector, and no more than wanted."""

    def taken(**given):
        return [one.sequence for one in chosen(archived, Choice(**given))]

    assert taken(message_ids=(archived[1].message_id,)) == [0]
    assert taken(destination="queue:q") == [2, 4]
    assert taken(destination="queue:q", limit=1) == [2]
    assert taken(selector="color = 'red' AND size > 2") == [1]
    assert taken(since=archived[-1].enqueued_at) == [0]
    assert taken(until=archived[0].enqueued_at) == []
    assert taken(since=datetime(2100, 1, 1, tzinfo=UTC)) == []


def check_other_logs(log):
    """Backups of another log of that name are told by their digest chain, or by where they end."""
    (written,) = log.archive.backups("QM1")
    for changes in ({"chain": bytes(32).hex()}, {"through": written.through + 100}):
        manifest = written.manifest | changes
        path = log.archive.path / "other" / "manifests" / f"QM1-{manifest['through']}.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(manifest))
        with pytest.raises(JournalArchiveError, match="backups of another log of that name"):
            log.journal(archive=log.archive.path / "other")
        assert bodies(told(log.journal(archive=path.parents[1], apart=True).rows)) == JOURNALED
        shutil.rmtree(log.archive.path / "other")
    assert log.journal(archive=log.archive.path).through == written.through


def check_cut(log, summary, archived):
    """A second backup on a log that begins where the first one needed it from."""
    script = log.script
    before = len(script.entries)
    session = script.session()
    session.send(
        administration.BackUpJournal,
        actor="a",
        reason="r",
        through=before,
        kept_from=summary.kept_from,
        needed_from=summary.needed_from,
    )
    assert script.state.journal.needs_from == summary.needed_from
    session.send(op.AlterQueueManager, journaling=True, journal_lifetime_ms=0)
    session.put("q", "second time")
    log.append(script.entries[before:])
    cut = TopicPartition(log.place.topic, log.place.partition, summary.needed_from)
    admin = AdminClient({"bootstrap.servers": log.bootstrap})
    for future in admin.delete_records([cut]).values():
        future.result(timeout=20)
    with pytest.raises(JournalArchiveError, match="begins at position"):
        log.journal()
    with pytest.raises(JournalArchiveError, match="has no backup of it"):
        log.journal(archive=log.archive.path / "elsewhere")
    journal = log.journal(archive=log.archive.path)
    assert bodies(told(journal.rows)) == ["late commit", "second time"]
    second = summary_of(journal)
    assert (second.counts["expired"], second.kept_from) == (0, archived[-1].position)
    log.archive.write(journal, second)
    assert bodies_of(log.archive.messages("QM1")) == [*JOURNALED, "second time"]
    with pytest.raises(JournalArchiveError, match="was made before"):
        log.archive.write(journal, second)
    check_damage(log.archive)


def check_damage(archive):
    """A file that is not as it was written is never read."""
    first = archive.backups("QM1")[0]
    (path,) = first.files("messages")[:1]
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    with pytest.raises(JournalArchiveError, match="is not as it was written"):
        list(archive.messages("QM1"))
    path.unlink()
    with pytest.raises(JournalArchiveError, match="is missing"):
        list(archive.messages("QM1"))
    path.write_bytes(whole)
    manifest = archive.path / "manifests" / f"QM1-{first.through}.json"
    manifest.write_text("{}")
    with pytest.raises(JournalArchiveError, match="is no manifest"):
        archive.backups("QM1")
