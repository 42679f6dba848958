"""The journal on the command line: turned on, backed up, listed, republished (DB-17 to DB-19)."""

from __future__ import annotations

import json
import time

import pytest

import ledgermq
from ledgermq.processor.worker.supervisor import running_installation

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.slow]


@pytest.fixture(autouse=True)
def spark(tmp_path):
    """One session for all commands: each would start its own."""
    from ledgermq_spark.log.session import spark_session

    session = spark_session(directory=tmp_path / "spark", log_level="ERROR", brief=True)
    yield session
    session.stop()


def consume(connection: ledgermq.Connection, queue: str, count: int = 1) -> list[ledgermq.Message]:
    """Gets messages and acknowledges them."""
    with connection.session() as session:
        consumer = session.consumer(f"queue:{queue}")
        found = [consumer.receive(timeout=30) for _ in range(count)]
        assert all(found), "a message is missing"
        found[-1].acknowledge()
    return found


def furthest(run) -> int:
    """How far the log may be trimmed."""
    return run("log", "trim", "--json", "--before", 1, "--dry-run").document["furthest"]


def test_what_was_consumed_is_backed_up_and_put_again_at_a_later_date(plain, tmp_path, monkeypatch):
    """Journaling is off by default; on, it pins the log until a backup; what has expired leaves
    the journal with that and is republished from the archive (DB-17, DB-18, DB-19); its
    directory appears with that backup (decision 35).
    """
    data = tmp_path / "installation"
    with (
        running_installation(data) as bootstrap,
        ledgermq.connect(f"kafka://{bootstrap}/QM1") as connection,
        connection.session() as session,
    ):
        monkeypatch.setenv("LEDGERMQ_BOOTSTRAP", bootstrap)
        monkeypatch.setenv("LEDGERMQ_JOURNAL_DIRECTORY", str(tmp_path / "journal"))
        producer = session.producer("queue:orders")
        producer.send("before")
        refused = plain("journal", "backup", "--json")
        assert (refused.code, refused.error["code"]) == (1, "journal-empty")
        nothing = plain("journal", "list", "--json")
        assert (nothing.code, nothing.documents) == (0, [])
        assert plain("manager", "show", "--json").document["journaling"] is False

        assert plain("manager", "alter", "--journaling", "--journal-lifetime", "1s").code == 0
        producer.send({"number": 7}, properties={"color": "red"}, correlation_id="c", priority=6)
        consume(connection, "orders", 2)
        shown = plain("manager", "show", "--json").document
        assert (shown["journaling"], shown["journal_lifetime_ms"]) == (True, 1_000)
        for _ in range(4):
            consume(connection, "busy") if session.producer("queue:busy").send("x") else None
            connection.admin.checkpoint()
        begins = shown["journal_from"]
        assert furthest(plain) == begins, "a journal that was not backed up pins the log"
        check_refusal(plain, begins)
        time.sleep(1.1)
        producer.send("last", time_to_live=600)
        check_backup(plain, tmp_path, connection)
        check_republishing(plain, connection)
        check_loss(plain, tmp_path / "journal")


def check_refusal(plain, begins):
    """The refusal to trim names the journal."""
    refused = plain("log", "trim", "--json", "--before", begins + 1, "--yes")
    assert (refused.code, refused.error["code"]) == (1, "trim-refused")
    named = f"the journal from position {begins} on (`ledgermq journal backup`) needs"
    assert named in refused.error["message"]


def check_backup(plain, tmp_path, connection):
    """Six messages came in and one has not expired; the log is free up to its Put then."""
    looked = plain("journal", "backup", "--json", "--dry-run").document
    assert (looked["messages"], looked["dry_run"], looked["position"]) == (6, True, None)
    assert not (tmp_path / "journal").exists()
    done = plain("journal", "backup", "--json", "--reason", "monthly", "--actor", "ops")
    assert done.code == 0, done.err
    told = done.document
    assert (told["messages"], told["directory"]) == (6, str(tmp_path / "journal"))
    assert told["expired"] >= 5
    status = connection.admin.queue_manager_status()
    assert status.journal_from == told["kept_from"]
    assert status.journal_backup is not None
    assert status.journal_backup.through == told["through"]
    pins = connection.admin.log_pins()
    assert pins.journal_position == told["needed_from"]
    for _ in range(4):
        connection.admin.checkpoint()
        with connection.session() as session:
            session.producer("queue:busy").send("y")
    cut = min(told["needed_from"], furthest(plain))
    done = plain("log", "trim", "--json", "--before", cut, "--yes")
    assert done.code == 0, done.err
    assert done.document["trimmed"] is True


def check_republishing(plain, connection):
    """From the archive, chosen by selector; the copy names its original, as does a second one."""
    listed = plain("journal", "list", "--from", "archive", "--json", "--queue", "orders")
    first, second = listed.documents
    assert (first["body"], first["properties"]) == ({"number": 7}, {"color": "red"})
    assert (first["expired"], second["body"]) == (True, "last")
    chosen = ["--from", "archive", "--selector", "color = 'red'"]
    looked = plain("journal", "republish", *chosen, "--to", "again", "--json", "--dry-run")
    assert (looked.document["republished"], looked.document["dry_run"]) == (1, True)
    assert plain("journal", "republish", *chosen, "--to", "again").code == 2
    for _ in range(2):
        done = plain("journal", "republish", *chosen, "--to", "again", "--yes", "--json")
        told = {"republished": 1, "left_out": 0, "unreadable": [], "to": "queue:again"}
        assert done.document == told | {"dry_run": False}
    for message in consume(connection, "again", 2):
        assert message.body == {"number": 7}
        assert (message.correlation_id, message.priority, message.persistent) == ("c", 6, True)
        assert message.expires_at is None
        assert message.message_id != first["message_id"]
        assert dict(message.properties) == {
            "color": "red",
            "LedgerMQ_JournalMessageId": first["message_id"],
            "LedgerMQ_JournalDestination": "queue:orders",
            "LedgerMQ_JournalPosition": first["position"],
        }
    # The log is cut: its journal goes on from the archive. The copies came into it as well.
    everything = plain("journal", "list", "--json", "--limit", "0")
    assert everything.code == 0, everything.err
    names = [json.dumps(one["body"]) for one in everything.documents]
    assert names.count('{"number": 7}') == 3
    assert {one["in_journal"] for one in everything.documents} == {True, False}
    again = plain("journal", "republish", "--from", "archive", "--id", first["message_id"], "--yes")
    assert "1 message republished to where each was put to" in again.out
    assert [one.body for one in consume(connection, "orders", 2)] == [{"number": 7}, "last"]


def check_loss(plain, directory):
    """Without the archive of a trimmed log only what its checkpoints go on from is told."""
    directory.rename(directory.with_name("lost"))
    refused = plain("journal", "backup", "--json")
    assert (refused.code, refused.error["code"]) == (1, "journal-archive")
    assert "--from-checkpoint" in refused.error["message"]
    told = plain("journal", "backup", "--from-checkpoint")
    assert told.code == 0, told.err
    assert "is given up" in told.err
    assert plain("journal", "backup", "--json", "--dry-run").code == 0
