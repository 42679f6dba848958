"""`ledgermq rebuild`, `trace`, `diff`, `sql` and `audit` on a real log, by Spark."""

from __future__ import annotations

import errno
import json
import os
import uuid
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pyarrow.parquet
import pytest
from pyspark.sql import SparkSession

from ledgermq.cli.printing.exits import INTERRUPTED, OK, REFUSED, UNPROVEN, USAGE
from ledgermq.errors import LedgerMQError
from ledgermq_spark.log.machine import CORES_VARIABLE
from ledgermq_spark.log.session import spark_session
from support.pages.reports import life_of, report_of, step_of

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module", autouse=True)
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One session for all commands, each would start its own.

    It has another number of processors than there are.
    """
    other = SparkSession.getActiveSession()
    if other is not None:
        other.stop()
    place = tmp_path_factory.mktemp("spark")
    with patch.dict(os.environ, {CORES_VARIABLE: "3"}):
        session = spark_session(directory=place, log_level="ERROR", brief=True)
        assert session.sparkContext.defaultParallelism == 3
        yield
    session.stop()


@pytest.fixture(scope="module")
def history() -> dict[str, object]:
    """What the tests of this module share: a queue's name, and what happened on it."""
    return {"queue": f"history.{uuid.uuid4().hex[:8]}"}


@pytest.fixture
def lived(connection, history) -> dict[str, object]:
    """A queue on which one of three messages was rolled back and then consumed."""
    if "message_id" in history:
        return history
    queue = history["queue"]
    with connection.session(transacted=True) as session:
        producer = session.producer(f"queue:{queue}")
        given = ({"region": "EU", "size": 7}, {"region": "EU", "size": 7}, {"region": "US"})
        receipts = [
            producer.send(body, properties=properties, correlation_id=queue)
            for body, properties in zip("abc", given, strict=True)
        ]
        session.commit()
        status = connection.admin.queue_status(queue)
        consumer = session.consumer(f"queue:{queue}", prefetch=1)
        consumer.receive(timeout=20)
        session.rollback()
        consumer.receive(timeout=20)
        session.commit()
    connection.admin.bind(f"{queue}.*", f"queue:{queue}", selector="size > 7")
    history["before"] = status
    history["message_id"] = receipts[0].message_id
    return history


def test_rebuild_gives_the_state_that_is_live_now(cli, lived):
    """Without --at the rebuilt statuses are those that the worker answers."""
    rebuilt = cli("rebuild", "--json").document
    live = {one["name"]: one for one in cli("queue", "list", "--json").document}
    wanted = {key: value for key, value in live[lived["queue"]].items() if key != "position"}
    (found,) = [one for one in rebuilt["queues"] if one["name"] == lived["queue"]]
    assert found == wanted
    (bound,) = [one for one in rebuilt["bindings"] if one["topics"] == f"{lived['queue']}.*"]
    assert bound in [
        {key: value for key, value in one.items() if key != "position"}
        for one in cli("binding", "list", "--json").document
    ]
    assert len(rebuilt["digest"]) == 64


def test_rebuild_gives_the_screen_of_a_queue_as_it_was(cli, lived):
    """SEQ-13 in the past: at the position of an earlier status the screen says what that said."""
    before = lived["before"]
    answer = cli("rebuild", "--at", before.position, "--queue", lived["queue"])
    assert answer.code == OK
    screen = dict(line.split(": ", 1) for line in answer.lines)
    assert screen["Queue Name"] == lived["queue"]
    assert screen["Message count"] == "3"
    assert screen["Messages sent and committed"] == "0"
    assert screen["First enqueue time"] == before.first_enqueued_at.strftime("%m%d%Y:%H:%M:%S")


@pytest.mark.parametrize("at", ["999999999", "QM1@999999999", "2999-01-01", "1999-01-01T00:00:00Z"])
def test_rebuild_refuses_a_moment_outside_the_log(cli, lived, at):
    """Before its start and after its end the log tells nothing, and the error names it."""
    answer = cli("rebuild", "--at", at, "--json")
    assert answer.code == REFUSED
    assert answer.out == ""
    assert "operations" in answer.error["message"]


def test_rebuild_refuses_a_queue_that_was_not_there_then(cli, lived):
    """A queue is looked for at the moment asked for."""
    answer = cli("rebuild", "--at", 0, "--queue", lived["queue"])
    assert answer.code == REFUSED
    assert lived["queue"] in answer.err


def test_a_rebuild_of_an_empty_log_has_no_time(plain, place):
    """Not one before 1970: there is no entry that says what time it is."""
    where = ("--bootstrap", place.bootstrap, "--topic-prefix", place.topics.prefix)
    rebuilt = plain("rebuild", "--json", *where).document
    assert (rebuilt["position"], rebuilt["time"], rebuilt["queues"]) == (-1, None, [])
    answer = plain("rebuild", "--queue", "orders", *where)
    assert "no queue orders at the beginning of QM1, whose log is empty" in answer.err


def test_trace_tells_the_life_of_a_message(cli, lived):
    """Rolled back once and consumed then: each step with its place and reason."""
    life = cli("trace", lived["message_id"], "--json").document
    assert (life["queue"], life["sequence"], life["backout_count"]) == (lived["queue"], 0, 1)
    steps = [step["what"] for step in life["steps"]]
    assert steps == ["put", "numbered", "delivered", "returned", "delivered", "consumed"]


def test_trace_writes_a_timeline_for_a_browser(cli, lived, tmp_path):
    """Of all that is meant, beside what it prints; the steps have what is drawn."""
    page = tmp_path / "lives.html"
    answer = cli("trace", "--correlation-id", lived["queue"], "--html", page, "--json")
    assert answer.code == OK, answer.err
    html = page.read_text()
    assert html.startswith("<!doctype html>")
    assert all(life["message_id"] in html for life in answer.document)
    states = [(step["before"], step["after"]) for step in answer.document[0]["steps"]]
    assert states[:2] == [("new", "uncommitted put"), ("uncommitted put", "available")]
    assert answer.document[0]["correlation_id"] == lived["queue"]


def test_a_timeline_that_the_disk_has_no_room_for_takes_no_lives_away(cli, monkeypatch):
    """They may have taken hours; the error names the file."""
    lives = [life_of(step_of(0, "put", "new -> available"))]
    monkeypatch.setattr("ledgermq.cli.commands.trace.facts_at", lambda *_: nullcontext())
    monkeypatch.setattr("ledgermq_spark.tables.life.lives_meant", lambda *_: lives)
    answer = cli("trace", lives[0].message_id, "--html", "/dev/full", "--json")
    assert (answer.code, answer.document) == (REFUSED, lives[0].as_dict())
    assert "/dev/full: No space left on device; make room there" in answer.err


def test_trace_shows_all_that_was_put_with_one_id(cli, monkeypatch, tmp_path):
    """A client gives each message an id of its own; whoever writes by himself may not."""
    first, second = (
        replace(life_of(step_of(at, "put", "new -> available")), put_position=at) for at in (0, 7)
    )
    monkeypatch.setattr("ledgermq.cli.commands.trace.facts_at", lambda *_: nullcontext())
    monkeypatch.setattr("ledgermq_spark.tables.life.lives_meant", lambda *_: [first, second])
    told = cli("trace", first.message_id, "--html", tmp_path / "page")
    assert told.out.count(f"Message\t{first.message_id}") == 2
    assert "2 messages were put with this id" in told.err
    assert (tmp_path / "page").read_text().count(first.message_id) >= 2
    document = cli("trace", first.message_id, "--json").document
    assert (document.pop("others"), document) == ([second.as_dict()], first.as_dict())
    some = cli("trace", first.message_id, "--limit", "1", "--json")
    assert (some.document, "more are meant" in some.err) == (first.as_dict(), True)


def test_trace_tells_the_lives_of_all_that_options_mean(cli, lived):
    """By correlation id and property together, the first that were put; more are told of."""
    queue = lived["queue"]
    lives = cli("trace", "--correlation-id", queue, "--property", "region=EU", "--json").document
    assert [(one["queue"], one["sequence"]) for one in lives] == [(queue, 0), (queue, 1)]
    assert lives[0]["message_id"] == lived["message_id"]
    answer = cli("trace", "--correlation-id", queue, "--property", "size=7", "--limit", "1")
    assert answer.code == OK
    assert "1 message shown; more are meant" in answer.err
    some = cli("trace", "--property", "size=7", "--limit", "1", "--json")
    assert json.loads(some.err)["remark"].startswith("1 message shown; more are meant")


def test_sql_says_that_rows_were_left_out_to_programs_too(cli, lived):
    """Of a thousand rows nothing shows that they are not all."""
    for query, said in (("VALUES (1), (2), (3)", "2 rows shown; there are more"), ("VALUES 1", "")):
        answer = cli("sql", query, "--limit", "2", "--json")
        assert (answer.code, said in answer.err, bool(answer.err)) == (OK, True, bool(said))


@pytest.mark.parametrize(
    "options",
    [(), ("--group", "12"), ("--property", "region"), ("--limit", "0")],
)
def test_trace_wants_to_know_which_messages(cli, options):
    """Without a choice, and with one that can mean nothing, Spark is not even started."""
    answer = cli("trace", *options)
    assert answer.code == USAGE
    assert answer.out == ""


def test_diff_tells_what_changed_and_through_which_operations(cli, lived):
    """Since an earlier status, one message was rolled back, then consumed."""
    answer = cli("diff", "--from", lived["before"].position, "--json")
    assert answer.code == OK
    document = answer.document
    (place,) = [
        one for one in document["places"] if one["destination"] == f"queue:{lived['queue']}"
    ]
    assert (place["before"], place["came"], place["went"], place["after"]) == (3, 0, 1, 2)
    assert place["events"] == {"delivered": 2, "returned": 1, "consumed": 1}
    assert place["operations"]["Commit"] == 1
    assert document["operations"]["Rollback"] >= 1


def test_diff_is_a_table_when_piped(cli, lived):
    """A line for each queue in which something happened."""
    answer = cli("diff", "--from", lived["before"].position)
    assert answer.code == OK, answer.err
    heading, *rows = [line.split("\t") for line in answer.lines]
    assert heading[0] == "QUEUE, TOPIC OR SUBSCRIPTION"
    (row,) = [row for row in rows if row[0] == f"queue:{lived['queue']}"]
    assert row[1:5] == ["3", "0", "1", "2"]
    assert "Rollback 1" in row[6]


def test_diff_refuses_moments_in_the_wrong_order(cli, lived):
    """The error names both, and says what to do."""
    answer = cli("diff", "--from", "5", "--to", "2")
    assert answer.code == USAGE
    assert "QM1@5" in answer.err
    assert "turn them round" in answer.err


@pytest.mark.long
def test_trace_is_a_table_when_piped(cli, lived):
    """A line for each step, with its place."""
    lines = cli("trace", lived["message_id"]).lines
    assert any(line.startswith("QM1@") and "\treturned\t" in line for line in lines)


@pytest.mark.long
def test_trace_refuses_a_message_that_never_was(cli, lived):
    """An id that no put bears is refused with the id."""
    answer = cli("trace", "0" * 32)
    assert answer.code == REFUSED
    assert "0" * 32 in answer.err


def test_audit_agrees_and_writes_its_report(cli, lived, tmp_path):
    """A log that nobody touched agrees, every queue balances, and a report is written."""
    answer = cli("audit", "--report", tmp_path / "report", "--json")
    assert answer.code == OK, answer.out
    document = answer.document
    assert (document["verdict"], document["anomalies"], document["unproven"]) == ("agrees", [], [])
    name = f"queue:{lived['queue']}"
    (total,) = [one for one in document["totals"] if one["destination"] == name]
    assert (total["put"], total["consumed"], total["resident"]) == (3, 1, 2)
    assert all(one["balances"] for one in document["totals"])
    assert document["conservation"]["holds"]
    page = Path(document["report"])
    assert page.read_text().startswith("<!")
    assert json.loads(page.with_suffix(".json").read_text())["verdict"] == "agrees"


@pytest.fixture
def audited(monkeypatch):
    """Commands find what is put here, and ask no log."""
    made = [report_of()]
    monkeypatch.setattr("ledgermq.cli.commands.audit.spark_job", lambda *_: nullcontext({}))
    monkeypatch.setattr("ledgermq_spark.jobs.run.run_audit", lambda **_: made[-1])
    return made


def full(*_):
    """What the system says where the disk is full."""
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("as_json", [False, True])
def test_a_report_that_the_disk_has_no_room_for_takes_no_verdict_away(
    cli, audited, tmp_path, monkeypatch, as_json
):
    """It may have taken hours; 1 is the code of anomalies, and the report of before is there."""
    before = cli("audit", "--without-live", "--report", tmp_path)
    assert before.code == OK, before.err
    old = (tmp_path / "audit.html").read_text()
    monkeypatch.setattr("ledgermq_spark.log.durable_files.os.fsync", full)
    more = ["--json"] if as_json else []
    answer = cli("audit", "--without-live", "--report", tmp_path, *more)
    assert answer.code == USAGE
    told = f"the report was not written: {tmp_path}/audit.html: No space left on device; make room"
    assert told in (answer.error["message"] if as_json else answer.err)
    assert '"verdict": "agrees"' in answer.out if as_json else "verdict: agrees" in answer.err
    assert (tmp_path / "audit.html").read_text() == old
    assert {one.name for one in tmp_path.iterdir()} == {
        "audit.html",
        "audit.json",
        "audit_findings",
    }
    audited.append(report_of(verdict="unproven"))
    assert cli("audit", "--without-live", "--report", tmp_path).code == UNPROVEN


def test_page_and_data_of_a_report_never_tell_of_two_audits(cli, audited, tmp_path, monkeypatch):
    """Where only one of them has room, none is written; killed in between, one is there alone."""
    assert cli("audit", "--without-live", "--report", tmp_path).code == OK
    page, data = tmp_path / "audit.html", tmp_path / "audit.json"
    before = page.read_text(), data.read_text()
    audited.append(report_of(position=100))
    synced, fsync = [], os.fsync

    def fills(descriptor):
        synced.append(descriptor)
        return fsync(descriptor) if len(synced) < 2 else full()

    with monkeypatch.context() as patched:
        patched.setattr("ledgermq_spark.log.durable_files.os.fsync", fills)
        assert cli("audit", "--without-live", "--report", tmp_path).code == USAGE
    assert (page.read_text(), data.read_text()) == before
    put_in_place = Path.replace

    def killed(path, target):
        if target == data:
            raise KeyboardInterrupt
        return put_in_place(path, target)

    monkeypatch.setattr(Path, "replace", killed)
    assert cli("audit", "--without-live", "--report", tmp_path).code == INTERRUPTED
    assert ("QM1 at 100" in page.read_text(), data.exists()) == (True, False)


@pytest.mark.parametrize(
    "error", [LedgerMQError("no"), OSError(errno.ENOSPC, "full"), RuntimeError("ours")]
)
def test_an_audit_that_fails_has_found_no_anomaly(cli, monkeypatch, error):
    """Code 5: 1 says that something does not agree."""

    def fail(*_):
        raise error

    monkeypatch.setattr("ledgermq.cli.commands.audit.spark_job", fail)
    assert cli("audit", "--without-live").code == UNPROVEN


@pytest.mark.long
def test_audit_of_the_past_prints_totals_and_a_verdict(cli, lived):
    """Up to an earlier position: a row a queue, no live state, and the verdict beside it."""
    answer = cli("audit", "--at", lived["before"].position)
    assert answer.code == OK, answer.err
    heading, *rows = [line.split("\t") for line in answer.lines]
    assert (heading[0], heading[-1]) == ("QUEUE OR TOPIC", "BALANCES")
    (row,) = [row for row in rows if row[0] == f"queue:{lived['queue']}"]
    assert (row[1], row[-1]) == ("3", "yes")
    assert f"QM1@{lived['before'].position}" in answer.err
    assert "the live state was not compared" in answer.err
    assert "INF-19 conservation holds: queues: " in answer.err
    assert "verdict: agrees" in answer.err


def test_sql_answers_from_the_tables(cli, lived):
    """A query over the fate of messages, with its columns in the order asked for."""
    query = (
        "SELECT fate, count(*) AS messages, max(enqueued_at) AS newest FROM messages "
        f"WHERE destination = 'queue:{lived['queue']}' GROUP BY fate ORDER BY fate"
    )
    rows = cli("sql", query, "--json").document
    assert [(row["fate"], row["messages"]) for row in rows] == [(None, 2), ("consumed", 1)]
    assert rows[0]["newest"].endswith("Z")


def test_sql_refuses_what_is_no_query_and_writes_nothing(cli, lived):
    """The error says what it does not understand."""
    answer = cli("sql", "SELECT nothing FROM nowhere")
    assert answer.code == REFUSED
    (line,) = answer.err.splitlines()
    assert "`nowhere` cannot be found; there are message_events" in line


@pytest.mark.long
def test_sql_runs_nothing_but_queries(cli, lived, tmp_path):
    """What writes is wrong use, and is not run."""
    answer = cli("sql", f"INSERT OVERWRITE DIRECTORY '{tmp_path / 'x'}' USING parquet SELECT 1")
    assert answer.code == USAGE
    assert "this is no query, and was not run" in answer.err
    assert not (tmp_path / "x").exists()


def test_tables_are_written_for_other_programs(cli, lived, tmp_path):
    """Parquet that anything reads, a directory for each table."""
    assert cli("tables", "write", tmp_path / "tables").code == OK
    found = pyarrow.parquet.read_table(tmp_path / "tables" / "message_events").to_pylist()
    mine = [one for one in found if one["message_id"] == lived["message_id"]]
    mine.sort(key=lambda one: (one["position"], one["step"]))
    assert [one["event"] for one in mine][:2] == ["put", "numbered"]
