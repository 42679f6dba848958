"""`ledgermq log tail`: entries of the log as they were asked for, and what follows on them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import pytest

from ledgermq.cli.printing.exits import INTERRUPTED, OK, REFUSED, USAGE
from ledgermq.wire.topics.appending import append_record

pytestmark = pytest.mark.kafka


@pytest.fixture
def at_work(connection, queue):
    """A session that put two messages and rolled one back."""
    with connection.session(transacted=True) as session:
        producer = session.producer(f"queue:{queue}")
        producer.send("kept")
        session.commit()
        producer.send("rolled back")
        session.flush()
        session.rollback()
        return session.handle


def test_entries_stand_as_they_were_asked_for(cli, queue, at_work):
    """Of one session all, in order; ids can be read, contents are left out."""
    told = cli("log", "tail", "--last", 1000, "--session", at_work, "--json")
    assert told.code == OK
    kinds = [entry["kind"] for entry in told.documents]
    assert (kinds[0], kinds[-1]) == ("Open", "Close")
    assert [kind for kind in kinds if kind in ("Put", "Commit", "Rollback")] == [
        *("Put", "Commit", "Put", "Rollback")
    ]
    assert [entry["position"] for entry in told.documents] == sorted(
        {entry["position"] for entry in told.documents}
    )
    put = next(entry for entry in told.documents if entry["kind"] == "Put")
    (message,) = put["messages"]
    assert put["destination"] == f"queue:{queue}"
    assert (len(message["message_id"]), message["content_bytes"] > 0) == (32, True)
    assert "kept" not in told.out


def test_entries_are_chosen_by_kind_text_and_place(cli, queue, at_work):
    """Each choice narrows; a line for people has what was set, and no field of every entry."""
    chosen = ("--last", 1000, "--kind", "put", "--kind", "CREATEQUEUE", "--grep", queue)
    lines = cli("log", "tail", *chosen).lines
    assert [line.split()[2] for line in lines] == ["CreateQueue", "Put", "Put"]
    assert f'destination="queue:{queue}"' in lines[1]
    assert "session_sequence" not in lines[1]
    at = int(lines[1].split()[0])
    assert cli("log", "tail", "--from", f"QM1@{at}", *chosen[2:]).lines == lines[1:]
    time = lines[2].split()[1]
    assert lines[-1] in cli("log", "tail", "--from", time, *chosen[2:]).lines
    assert cli("log", "tail", "--from", "2026-01-01", *chosen[2:]).lines == lines
    assert cli("log", "tail", "--last", 0).lines == []


def test_an_entry_that_is_looked_through_is_made_a_line_once(cli, at_work, monkeypatch):
    """The line that has the text is the line that is printed; it was made twice."""
    made, dumps = [], json.dumps
    monkeypatch.setattr(json, "dumps", lambda *given, **how: made.append(1) or dumps(*given, **how))
    told = cli("log", "tail", "--last", 5, "--grep", "kind", "--json")
    assert len(made) == len(told.lines) == 5


def test_what_is_no_operation_is_shown_with_its_reason(cli, worker, topic_prefix):
    """Whoever looks for what a foreign program wrote finds it."""
    at = append_record(
        worker, f"{topic_prefix}.operations", 0, "QM1", b"garbage", timeout_seconds=30
    )
    (entry,) = cli("log", "tail", "--from", at, "--kind", "Unreadable", "--json").documents
    assert (entry["position"], entry["reason"]) == (at, "schema-unknown")


def test_wrong_use_is_told(cli):
    """Two beginnings, an unknown kind, a position that the log does not hold."""
    assert cli("log", "tail", "--from", 0, "--last", 3).code == USAGE
    assert cli("log", "tail", "--kind", "Putt").code == USAGE
    assert cli("log", "tail", "--from", 10**9).code == REFUSED


def test_what_is_appended_follows_until_it_is_interrupted(cli, connection, queue):
    """As `tail -f`: each entry at once, also into a pipe; Ctrl-C ends it as it ends others."""
    command = [sys.executable, "-m", "ledgermq", "log", "tail", "--last", "1000", "--follow"]
    command += ["--kind", "Put", "--grep", queue, "--json"]
    with connection.session() as session:
        producer = session.producer(f"queue:{queue}")
        producer.send("before")
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        with process:
            before = json.loads(process.stdout.readline())
            producer.send("while it looks")
            behind = json.loads(process.stdout.readline())
            process.send_signal(signal.SIGINT)
            out, errors = process.communicate(timeout=60)
    assert before["position"] < behind["position"]
    assert (process.returncode, out) == (INTERRUPTED, b"")
    assert json.loads(errors)["error"]["code"] == "interrupted"
