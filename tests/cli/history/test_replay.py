"""`ledgermq replay` on a real log: a stretch of history is put again, each message once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from datetime import UTC, datetime

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

import ledgermq
from ledgermq.cli.printing.exits import OK, REFUSED, USAGE
from ledgermq.wire.topics.log_topics import Topics
from ledgermq.wire.topics.registry import find_queue_manager

pytestmark = [pytest.mark.long, pytest.mark.spark, pytest.mark.kafka, pytest.mark.slow]
PATIENCE_SECONDS = 240
GROUP = b"g" * 24


@pytest.fixture
def spark(tmp_path):
    """One session for all commands of a test: each would start its own."""
    from ledgermq_spark.log.session import spark_session

    session = spark_session(directory=tmp_path / "spark", log_level="ERROR", brief=True)
    yield session
    session.stop()


@pytest.fixture
def run(plain, installation, monkeypatch):
    """Calls a command that speaks to the installation of the test."""
    monkeypatch.setenv("LEDGERMQ_BOOTSTRAP", installation)
    return plain


@pytest.fixture
def connection(installation, connected):
    """A connection of an application."""
    with connected(installation) as opened:
        yield opened


def replay(run, first, last, into, *more):
    """A replay, without being asked."""
    stretch = ("--from", first, "--to", last, "--into", into)
    return run("replay", *stretch, "--yes", "--json", *more)


def end(connection):
    """The position of an operation of now."""
    return connection.admin.queue_manager_status().position


def copies(connection, queue):
    """What is on a queue, in the order in which it came, whatever its priority."""
    return sorted(connection.browser(f"queue:{queue}"), key=lambda one: one.sequence)


def originals(connection, queue):
    """Which messages the copies on a queue are of, in its order."""
    return [one.properties["LedgerMQ_ReplayedMessageId"] for one in copies(connection, queue)]


def put_orders(connection):
    """What is replayed: transacted, rolled back and grouped puts; ids of those that came in."""
    with connection.session(transacted=True) as session:
        producer = session.producer("queue:orders")
        receipts = [
            producer.send(
                {"number": number},
                properties={"region": "EU" if number % 2 else "US", "price": float("nan")},
                priority=number,
                correlation_id="c",
            )
            for number in range(4)
        ]
        session.commit()
        producer.send("rolled back")
        session.rollback()
        with session.producer("queue:grouped").group(GROUP) as group:
            receipts += [group.send("first"), group.send("second", last=True)]
        session.commit()
        producer.send("uncommitted")
        session.flush()
        with connection.session() as other:
            receipts.append(other.producer("topic:news").send("to nobody"))
        last = end(connection)
        session.commit()
    return [one.message_id for one in receipts], last


def test_a_stretch_is_put_again_once_by_each_replay(run, installation, connection, spark):
    """Counted first; in its order, with what its messages had, and the place of each in its group;
    run again, nothing is put; a selector, sources and another name make other replays.
    """
    ids, last = put_orders(connection)
    looked = run("replay", "--from", 0, "--to", last, "--into", "again", "--dry-run", "--json")
    assert looked.code == OK, looked.err
    document = looked.document
    assert (document["messages"], document["replayed"], document["dry_run"]) == (7, 0, True)
    assert [one["message_id"] for one in document["first"]] == ids
    assert document["into_exists"] is False
    asked = run("replay", "--from", 0, "--to", last, "--into", "queue:again")
    assert (asked.code, "this would put 7 messages to queue:again again" in asked.err) == (2, True)
    assert "again" not in [one.name for one in connection.admin.list_queues()]

    done = replay(run, 0, last, "again")
    assert done.code == OK, done.err
    assert (done.document["replayed"], done.document["name"]) == (7, document["name"])
    assert originals(connection, "again") == ids
    found = copies(connection, "again")
    assert [one.body for one in found[:4]] == [{"number": number} for number in range(4)]
    second = found[1]
    assert (second.priority, second.correlation_id, second.properties["region"]) == (1, "c", "EU")
    assert second.properties["LedgerMQ_Replay"] == document["name"]
    assert second.properties["LedgerMQ_ReplayedFrom"].startswith("QM1@")
    assert second.message_id not in ids
    assert [(one.group_id, one.group_sequence) for one in found[4:6]] == [(GROUP, 1), (GROUP, 2)]

    again = run("replay", "--from", 0, "--to", last, "--into", "again", "--yes")
    assert again.code == OK, again.err
    assert again.out.startswith(f"all 7 messages of QM1@0 to QM1@{last} were replayed already")
    assert len(copies(connection, "again")) == 7
    # The copies are in this stretch, and no part of it.
    named = ("--name", document["name"])
    later = replay(run, 0, end(connection), "again", *named).document
    assert (later["messages"], later["replayed"], later["replayed_before"]) == (8, 1, 7)
    check_choices(run, connection, ids, last)


def check_choices(run, connection, ids, last):
    """By selector and source, to where each was put to; by id, no more than wanted."""
    chosen = ("--source", "orders", "--selector", "region = 'EU'")
    done = replay(run, 0, last, "same", *chosen).document
    assert (done["messages"], done["replayed"]) == (2, 2)
    marked = [
        one.properties["LedgerMQ_ReplayedMessageId"]
        for one in copies(connection, "orders")
        if one.properties.get("LedgerMQ_Replay") == done["name"]
    ]
    assert marked == [ids[1], ids[3]]
    two = ("--id", ids[2], "--id", ids[0])
    assert replay(run, 0, last, "few", *two, "--limit", "1").document["replayed"] == 1
    assert originals(connection, "few") == [ids[0]]
    assert replay(run, 0, last, "few", *two).document["replayed"] == 1
    assert originals(connection, "few") == [ids[0], ids[2]]


@pytest.mark.long
def test_a_replay_stops_at_what_cannot_be_put_and_goes_on_there(
    run, connection, spark, monkeypatch
):
    """The error names the original; what has no readable body is told of, counted, left out."""
    with connection.session() as session:
        producer = session.producer("queue:orders")
        ids = [producer.send("small").message_id, producer.send("x" * 5_000).message_id]
        with monkeypatch.context() as broken:
            broken.setattr("ledgermq.client.sending.making.encode_content", lambda *_: b"garbage")
            garbage = producer.send("no").message_id
        # Records are stamped by the millisecond.
        time.sleep(0.05)
        since = datetime.now(UTC).isoformat()
        time.sleep(0.05)
        ids.append(producer.send("last").message_id)
    last = end(connection)
    late = run("replay", "--from", since, "--to", last, "--into", "same", "--dry-run", "--json")
    assert [one["message_id"] for one in late.document["first"]] == ids[-1:]
    connection.admin.create_queue("narrow", message_bytes_max=1_000)
    stopped = replay(run, 0, last, "narrow")
    assert (stopped.code, stopped.error["code"]) == (REFUSED, "replay-stopped")
    assert f"message {ids[1]} of queue:orders, put at QM1@" in stopped.error["message"]
    assert "messages that were put before that: 1;" in stopped.error["message"]
    assert originals(connection, "narrow") == ids[:1]
    connection.admin.alter_queue("narrow", message_bytes_max=100_000)
    done = replay(run, 0, last, "narrow").document
    assert (done["replayed"], done["replayed_before"], done["left_out"]) == (2, 1, 1)
    assert garbage in done["unreadable"][0]
    assert originals(connection, "narrow") == ids
    told = run("replay", "--from", 0, "--to", last, "--into", "narrow", "--yes")
    assert (told.code, garbage in told.err) == (OK, True)

    looked = run("replay", "--from", 0, "--to", last, "--into", "nowhere", "--dry-run")
    told = "queue:nowhere is not there yet: the first copy creates it" in looked.err
    assert (looked.code, told) == (OK, True)
    connection.admin.alter_queue_manager(automatic_creation=False)
    looked = run("replay", "--from", 0, "--to", last, "--into", "nowhere", "--dry-run")
    told = "automatic creation is off, so nothing would be put" in looked.err
    assert (looked.code, told) == (REFUSED, True)
    unknown = replay(run, 0, last, "nowhere")
    assert (unknown.code, unknown.error["code"]) == (REFUSED, "replay-stopped")
    assert ids[0] in unknown.error["message"]
    assert "nowhere" in unknown.error["message"]


def test_a_killed_replay_goes_on_and_nobody_else_replays_meanwhile(
    run, installation, connection, monkeypatch
):
    """After kill -9 in mid-course, the second run puts what is missing: each message is there
    exactly once, in its order. While the first ran, another one was refused.
    """
    ids = []
    with connection.session() as session:
        for number in range(30):
            ids.append(session.producer("queue:orders").send(str(number)).message_id)
            time.sleep(0.02)
    last = end(connection)
    words = ("replay", "--from", "0", "--to", str(last), "--into", "again", "--yes")
    # A message every few seconds.
    slow = [sys.executable, "-m", "ledgermq", *words, "--pace", "0.005x"]
    process = subprocess.Popen(slow, stdin=subprocess.DEVNULL, env=dict(os.environ))
    try:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not is_begun(connection):
            assert process.poll() is None, "the replay ended by itself"
            assert time.monotonic() < deadline, "the replay put nothing"
            time.sleep(0.2)
        monkeypatch.setattr("ledgermq.cli.commands.replay.TAKEN_SECONDS_MAX", 2.0)
        refused = run(*words, "--json")
        assert (refused.code, refused.error["code"]) == (REFUSED, "replay-running")
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=30)
    monkeypatch.setattr("ledgermq.cli.commands.replay.TAKEN_SECONDS_MAX", 120.0)
    done = run(*words, "--json")
    assert done.code == OK, done.err
    document = done.document
    assert 3 <= document["replayed_before"] < 30
    assert document["replayed"] + document["replayed_before"] == 30
    found = originals(connection, "again")
    assert Counter(found) == Counter(ids)
    assert found == ids
    again = run(*words)
    assert again.out.startswith("all 30 messages of ")
    assert len(originals(connection, "again")) == 30


def is_begun(connection: ledgermq.Connection) -> bool:
    """Whether some copies are on their queue."""
    if "again" not in [one.name for one in connection.admin.list_queues()]:
        return False
    return len(originals(connection, "again")) >= 3


def cut(bootstrap: str, position: int) -> None:
    """Cuts the log before a position, as nobody should: what is live there is needed."""
    partition = find_queue_manager(bootstrap, Topics(), "QM1").partition
    place = TopicPartition(Topics().operations, partition, position)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.delete_records([place]).values():
        future.result(timeout=20)


@pytest.mark.long
def test_of_a_log_that_was_cut_what_is_gone_is_told(run, installation, connection, spark):
    """From where on there are bodies, which message's is not; the rest is put again."""
    with connection.session(transacted=True) as unit, connection.session() as session:
        unit.producer("queue:orders").send("put before the cut")
        unit.flush()
        for _ in range(4):
            session.producer("queue:busy").send("x")
            connection.admin.checkpoint()
        before = end(connection)
        unit.commit()
        session.producer("queue:orders").send("put after")
        consumer = session.consumer("queue:orders")
        for _ in range(2):
            consumer.receive(timeout=30)
    last = end(connection)
    cut(installation, before)
    early = replay(run, 0, last, "again")
    assert (early.code, early.error["code"]) == (REFUSED, "position-out-of-range")
    assert "begins at" in early.error["message"]
    done = replay(run, before + 1, last, "again")
    assert done.code == OK, done.err
    document = done.document
    assert (document["messages"], document["replayed"], document["left_out"]) == (2, 1, 1)
    assert "cut off the log" in document["unreadable"][0]
    assert [one.body for one in copies(connection, "again")] == ["put after"]


@pytest.mark.long
def test_what_was_cut_off_the_log_is_put_again_from_an_archive(
    run, installation, connection, spark, tmp_path
):
    """Once: which copies are there it knows by what it adds to the archive before."""
    ids, last = put_orders(connection)
    kept = tmp_path / "kept"
    assert run("archive", "update", kept).code == OK
    connection.admin.checkpoint()
    cut(installation, last + 1)
    done = replay(run, 0, last, "again", "--archive", kept)
    assert done.code == OK, done.err
    assert (done.document["replayed"], done.document["left_out"]) == (7, 0)
    assert originals(connection, "again") == ids
    assert [one.body for one in copies(connection, "again")[:2]] == [{"number": 0}, {"number": 1}]
    again = replay(run, "1970-01-01T00:00:00Z", last, "again", "--archive", kept)
    assert (again.document["from"], again.document["replayed"]) == (0, 0), again.err
    assert again.document["replayed_before"] == 7
    late = replay(run, 0, last + 1_000, "again", "--archive", kept)
    assert "`ledgermq archive update` adds what came since" in late.error["message"]


@pytest.mark.parametrize(
    ("first", "last", "more", "said"),
    [
        (1, 0, (), "--from QM1@1 lies after --to QM1@0"),
        (0, 0, ("--selector", "price >"), "--selector"),
        (0, 0, ("--id", "12"), "is no message id"),
        (0, 0, ("--pace", "fast"), "is no pace"),
        (0, 0, ("--pace", "0x"), "is no pace"),
        (0, 0, ("--pace", "0.0009x"), "0.001x at the slowest"),
        (0, 0, ("--name", "two words"), "is no name"),
        (0, 0, ("--source", "queue:two words"), "two words"),
        (0, "someday", (), "neither a log position"),
    ],
)
def test_wrong_use_is_refused_before_anything_is_read(cli, first, last, more, said):
    """Spark is not even started."""
    answer = replay(cli, first, last, "again", *more)
    assert (answer.code, answer.out) == (USAGE, "")
    assert said in answer.error["message"]


@pytest.mark.parametrize(("first", "last"), [(0, 999_999_999), (999_999_998, 999_999_999)])
def test_a_stretch_outside_the_log_is_refused(cli, first, last):
    """The error says where the log ends."""
    answer = replay(cli, first, last, "again")
    assert (answer.code, answer.error["code"]) == (REFUSED, "position-out-of-range")
    assert "after the end of the log" in answer.error["message"]
