"""Old messages are written again, then the log is trimmed, and they are delivered whole (H24)."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

import ledgermq
from ledgermq.client.reasons import error_of_reason
from ledgermq.processor.worker.supervisor import running_installation

pytestmark = pytest.mark.kafka

NEWER = 300
BODY = "old, but whole: " + "x" * 5_000
WORK_BYTES = 100


def run_through(connection: ledgermq.Connection) -> None:
    """Many messages that come and go, with checkpoints above them."""
    for _ in range(4):
        with connection.session() as session:
            producer, consumer = session.producer("queue:busy"), session.consumer("queue:busy")
            for number in range(NEWER // 4):
                producer.send(f"{number}".ljust(WORK_BYTES))
            for _ in range(NEWER // 4):
                message = consumer.receive(timeout=30)
                assert message is not None
                message.acknowledge()
        connection.admin.checkpoint()


def put_old_ones(connection: ledgermq.Connection) -> None:
    """One message that stays, one that a rolled back delivery knows, one of a subscription."""
    with connection.session() as session:
        session.consumer("topic:news", subscription="reader", durable=True).close()
        session.producer("queue:orders").send(BODY, properties={"color": "red"}, priority=7)
        session.producer("topic:news").send("news " + BODY)


@pytest.mark.long
def test_an_old_message_is_written_again_and_delivered_whole_after_a_trim(plain, directory):
    """It pins the log; relocated it does not, keeps all it had, and the audit knows (H24, H25)."""
    with running_installation(directory) as bootstrap:
        with ledgermq.connect(f"kafka://{bootstrap}/QM1", client_id="c") as connection:
            put_old_ones(connection)
            run_through(connection)
            needed = connection.admin.log_pins().needed_position
            assert needed is not None
            before = needed + 200
            refused = trim(plain, bootstrap, before)
            assert (refused.code, refused.error["code"]) == (1, "trim-refused")
            assert (
                f"message 0 of queue:orders, put at position {needed}" in refused.error["message"]
            )
            check_relocation(plain, bootstrap, connection, before)
            pins = connection.admin.log_pins().pins
            assert [one.put_position for one in pins] == [needed, needed + 1]
            assert min(one.body_position for one in pins) > before
        done = trim(plain, bootstrap, before)
        assert (done.code, done.err) == (0, "")
        assert done.document["trimmed"] is True
    forget_all_but_the_broker(directory)
    with running_installation(directory) as bootstrap:
        with ledgermq.connect(f"kafka://{bootstrap}/QM1", client_id="c") as connection:
            check_delivery(connection, needed)
        audit = plain("audit", "--json", "--bootstrap", bootstrap)
        assert audit.code == 5, audit.out + audit.err
        report = audit.document
        assert (report["verdict"], report["anomalies"]) == ("unproven", [])
        assert f"begins at position {before}" in report["unproven"][0]


def trim(plain, bootstrap, before):
    """The trim command with --json."""
    return plain(
        *("log", "trim", "--json", "--bootstrap", bootstrap, "--before", before, "--yes"),
    )


def relocate(plain, bootstrap, *more):
    """The relocate command with --json."""
    return plain("log", "relocate", "--json", "--bootstrap", bootstrap, *more)


def check_relocation(plain, bootstrap, connection, before) -> None:
    """What would be written again is told, then it is; nothing else changes."""
    looked = relocate(plain, bootstrap, "--before", before, "--dry-run")
    assert (looked.code, looked.document["messages"], looked.document["entries"]) == (0, 2, 0)
    assert relocate(plain, bootstrap, "--before", before).code == 2
    assert relocate(plain, bootstrap, "--reason", "r").code == 2
    earlier = connection.admin.queue_status("orders")
    done = relocate(plain, bootstrap, "--before", before, "--reason", "the disk is full")
    assert done.code == 0, done.err
    assert (done.document["messages"], done.document["skipped"]) == (2, 0)
    assert done.document["bytes"] > 2 * len(BODY)
    later = connection.admin.queue_status("orders")
    told = ("message_count", "current", "min_sequence", "next_sequence", "first_enqueued_at")
    assert [getattr(later, one) for one in told] == [getattr(earlier, one) for one in told]
    again = relocate(plain, bootstrap, "--before", before, "--reason", "the disk is full")
    assert (again.code, again.document["messages"], again.document["entries"]) == (0, 0, 0)


def forget_all_but_the_broker(directory) -> None:
    """What the worker keeps beside Kafka is gone."""
    for found in directory.iterdir():
        if found.name != "broker":
            shutil.rmtree(found) if found.is_dir() else found.unlink()


def check_delivery(connection, needed) -> None:
    """Both messages come as they were put."""
    with connection.session() as session:
        message = session.consumer("queue:orders").receive(timeout=30)
        assert message is not None
        assert (message.body, message.properties["color"]) == (BODY, "red")
        assert (message.priority, message.sequence) == (7, 0)
        assert message.put_position == needed
        message.acknowledge()
        consumer = session.consumer("topic:news", subscription="reader", durable=True)
        news = consumer.receive(timeout=30)
        assert news is not None
        assert news.body == "news " + BODY
        news.acknowledge()


def test_a_trim_waits_for_the_checkpoints_that_know_what_was_written_again(
    plain, installation, connected
):
    """A worker that starts from an older one delivers again, and needs the old body (H24)."""
    with connected(installation) as connection:
        with connection.session() as session:
            session.producer("queue:orders").send("old")
        run_through(connection)
        needed = connection.admin.log_pins().needed_position
        with connection.session() as session:
            message = session.consumer("queue:orders").receive(timeout=30)
            assert message is not None
            message.acknowledge()
        assert connection.admin.log_pins().needed_position is None
        refused = trim(plain, installation, needed + 1)
        assert (refused.code, refused.error["code"]) == (1, "trim-refused")
        assert "message 0 of queue:orders, live in the checkpoint" in refused.error["message"]
        done = relocate(plain, installation, "--all", "--reason", "r")
        assert (done.code, done.document["messages"]) == (0, 0)
        assert trim(plain, installation, needed + 1).code == 0


def test_uncommitted_puts_stay_where_they_are_and_are_named(plain, installation, connected):
    """Their unit of work has to end first; the others are written again (H24)."""
    with (
        connected(installation) as connection,
        connection.session(ack=ledgermq.AckMode.TRANSACTED) as open_one,
    ):
        open_one.producer("queue:later").send("x")
        open_one.flush()
        with connection.session() as session:
            session.producer("queue:orders").send("old")
        done = relocate(plain, installation, "--all", "--reason", "r")
        assert (done.code, done.document["messages"]) == (0, 1)
        assert [one.sequence for one in connection.admin.log_pins().pins] == [-1, 0]
        (staying,) = done.document["staying"]
        assert staying["state"] == "uncommitted put"
        assert "uncommitted put to queue:later" in staying["what"]
        open_one.rollback()


def test_of_a_broker_that_is_down_no_answer_speaks_while_others_are_there(installation, connected):
    """Kafka's library told standard error of it, in words for those who write such libraries."""
    with connected(installation) as connection, connection.session() as session:
        session.producer("queue:orders").send("old")
    # The library begins with any of them.
    where = ",".join([*(f"127.0.0.1:{port}" for port in range(1, 8)), installation])
    command = ["log", "relocate", "--all", "--reason", "r", "--bootstrap", where]
    asked = [sys.executable, "-m", "ledgermq", *command]
    answer = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert (answer.returncode, answer.stderr) == (0, "")
    assert answer.stdout.startswith("1 message of QM1 below position")


def test_a_copy_that_differs_is_refused_by_name():
    """The code of the refusal is known to clients."""
    error = error_of_reason("message-differs", "d", queue_manager="QM1")
    assert isinstance(error, ledgermq.RefusedError)
