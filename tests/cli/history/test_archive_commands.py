"""`ledgermq archive`, and what is asked of an archive, on a real log by Spark."""

import json
import os
import shutil
import subprocess
import sys
import uuid
from datetime import UTC, datetime

import pytest

from ledgermq.cli.printing.exits import OK, REFUSED, USAGE

pytestmark = [pytest.mark.long, pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

NOBODY = "localhost:1"


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """What the tests of this module share: an archive, and a queue's name."""
    return {
        "directory": tmp_path_factory.mktemp("archive") / "kept",
        "queue": f"archived.{uuid.uuid4().hex[:8]}",
    }


@pytest.fixture
def archived(cli, connection, shared):
    """An archive of a log on which three messages were put and one of them consumed."""
    if "update" not in shared:
        with connection.session(transacted=True) as session:
            with session.producer(f"queue:{shared['queue']}") as producer:
                shared["ids"] = [producer.send(body).message_id for body in "abc"]
            session.commit()
            with session.consumer(f"queue:{shared['queue']}") as consumer:
                consumer.receive(timeout=20)
                session.commit()
        shared["update"] = cli("archive", "update", shared["directory"], "--json").document
    return shared


def test_update_says_what_it_added_and_nothing_is_added_twice(cli, archived):
    """The second run begins where the first one ended."""
    update = archived["update"]
    assert update["from"] == 0
    assert update["stretches"] == 1
    again = cli("archive", "update", archived["directory"], "--at", update["to"], "--json")
    assert again.code == OK
    assert again.document["stretches"] == 0
    told = cli("archive", "update", archived["directory"], "--at", 2).out
    assert told == f"{archived['directory']} has all that is on the log of QM1 up to QM1@2\n"


def test_an_archive_is_asked_without_a_broker(cli, archived):
    """Tables, a rebuild and a difference are those of the log, though nothing listens there."""
    given = ("--archive", archived["directory"], "--bootstrap", NOBODY, "--json")
    query = f"SELECT fate FROM messages WHERE destination = 'queue:{archived['queue']}'"
    rows = cli("sql", query, *given).document
    assert sorted(str(row["fate"]) for row in rows) == ["None", "None", "consumed"]
    rebuilt = cli("rebuild", *given).document
    (found,) = [one for one in rebuilt["queues"] if one["name"] == archived["queue"]]
    assert found["current"] == 2
    changes = cli("diff", "--from", 0, *given).document
    (place,) = [
        one for one in changes["places"] if one["destination"] == f"queue:{archived['queue']}"
    ]
    assert (place["came"], place["went"], place["after"]) == (3, 1, 2)
    assert changes["since"][-1:] == changes["time"][-1:] == rebuilt["time"][-1:] == "Z"
    assert changes["time"] == rebuilt["time"]


def test_sql_tells_columns_of_one_name_apart(cli, archived):
    """As a table both are there; JSON cannot have both, and says so."""
    given = ("--archive", archived["directory"], "--bootstrap", NOBODY)
    query = "SELECT 1 AS x, 2 AS x, array(double('NaN')) AS y"
    assert cli("sql", query, *given).lines == ["X\tX\tY", '1\t2\t["NaN"]']
    answer = cli("sql", query, *given, "--json")
    assert answer.code == REFUSED
    assert "name them apart with AS" in answer.error["message"]


def test_a_query_that_cannot_be_worked_out_is_told_in_one_line(cli, archived):
    """Found out while it runs, without a word of Java."""
    answer = cli("sql", "SELECT 1/0", "--archive", archived["directory"], "--bootstrap", NOBODY)
    assert answer.code == REFUSED
    (line,) = answer.err.splitlines()
    assert line.startswith("error: the query cannot be answered (line 1, position 8): Division by")


def test_the_life_of_a_message_is_traced_in_an_archive(cli, archived, tmp_path):
    """As far as the archive goes, though nothing listens there; a page of it, too."""
    given = ("--archive", archived["directory"], "--bootstrap", NOBODY)
    page = tmp_path / "life.html"
    life = cli("trace", archived["ids"][0], *given, "--html", page, "--json").document
    assert (life["queue"], life["fate"]) == (archived["queue"], "consumed")
    steps = [step["what"] for step in life["steps"]]
    assert steps == ["put", "numbered", "delivered", "consumed"]
    # As `log tail`, `rebuild` and `sql` write theirs.
    assert all(datetime.fromisoformat(step["time"]).tzinfo == UTC for step in life["steps"])
    assert archived["ids"][0] in page.read_text()


def test_a_trace_in_an_archive_tells_where_it_ends(cli, connection, archived):
    """What happened after that is not told, neither to a message there nor of one put since."""
    with connection.session() as session:
        with session.consumer(f"queue:{archived['queue']}") as consumer:
            assert consumer.receive(timeout=20).message_id == archived["ids"][1]
        later = session.producer(f"queue:{archived['queue']}").send("d").message_id
    given = ("--archive", archived["directory"], "--bootstrap", NOBODY)
    until = f"up to QM1@{archived['update']['to']}; `ledgermq archive update`"
    answer = cli("trace", archived["ids"][1], *given)
    assert answer.code == OK
    assert "Now\tavailable" in answer.lines
    assert f"as the archive has it, {until}" in answer.err
    answer = cli("trace", later, *given)
    assert answer.code == REFUSED
    assert f"no message {later} is in the archive, which has the log {until}" in answer.err


def test_an_archive_is_proven_and_listed(cli, archived):
    """Every stretch of it, with the digest that it ends with."""
    answer = cli("archive", "prove", archived["directory"], "--bootstrap", NOBODY, "--json")
    assert answer.code == OK
    assert [row["problem"] for row in answer.document["stretches"]] == [None]
    assert answer.document["findings"] == []
    (listed,) = cli("archive", "list", archived["directory"], "--json").document
    assert listed["last"] == archived["update"]["to"]
    assert len(listed["digest"]) == len(listed["seal"]) == 64
    shown = cli("chain", "show", "--at", listed["last"], "--json").document
    assert listed["anchor"] == shown["anchor"]


def test_a_damaged_archive_is_told_by_its_file_and_not_asked_for_laws(cli, archived, tmp_path):
    """They would read it: whatever Spark says of a damaged file is no answer."""
    copy = tmp_path / "copy"
    shutil.copytree(archived["directory"], copy)
    (told,) = copy.glob("QM1/*/fold/*.parquet")
    content = bytearray(told.read_bytes())
    content[len(content) // 2] ^= 1
    told.write_bytes(content)
    answer = cli("archive", "prove", copy, "--bootstrap", NOBODY)
    assert answer.code == REFUSED
    assert f"{told} is not as it was written" in answer.out
    assert "not proven: 1 stretch of 1; laws are asked once" in answer.err


@pytest.mark.parametrize(
    "command", [("archive", "list"), ("archive", "prove"), ("trace", "0" * 32, "--archive")]
)
def test_an_archive_that_is_not_there_is_told(cli, tmp_path, command):
    """With what begins one."""
    answer = cli(*command, tmp_path / "none")
    assert answer.code == REFUSED
    assert "ledgermq archive update" in answer.err


def test_a_moment_that_the_archive_has_not_is_refused(cli, archived):
    """Above its end, and before its first record."""
    for at in ("999999999", "1999-01-01T00:00:00Z"):
        answer = cli("rebuild", "--archive", archived["directory"], "--at", at)
        assert answer.code == REFUSED
        assert "archive" in answer.err


def test_an_archive_has_states_of_its_own(cli, archived):
    """A checkpoint of the broker is not asked for beside them."""
    given = ("--archive", archived["directory"], "--from-checkpoint")
    assert cli("rebuild", *given).code == USAGE


def test_a_directory_may_be_called_like_an_address(cli, archived, tmp_path):
    """Spark takes `kept:1` for a place of a file system that is called `kept`."""
    where = tmp_path / "here"
    where.mkdir()
    shutil.copytree(archived["directory"], where / "kept:1")
    environment = {**os.environ, "LEDGERMQ_BOOTSTRAP": NOBODY}
    for given in (
        ("archive", "prove", "kept:1"),
        ("tables", "write", "tables:1", "--archive", "kept:1", "--format", "delta"),
    ):
        command = [sys.executable, "-m", "ledgermq", *given]
        ended = subprocess.run(
            command, cwd=where, env=environment, capture_output=True, text=True, check=False
        )
        assert ended.returncode == OK, ended.stderr
    assert list(where.glob("tables:1/messages/queue_manager=QM1/*.parquet"))


def test_tables_grow_as_delta_tables(cli, archived, tmp_path):
    """Written twice, each row is there once; in a process of its own, whose Spark knows Delta.

    The first run is as if it was killed before it could note two tables.
    """
    tables = tmp_path / "tables"
    written = [sys.executable, "-m", "ledgermq", "tables", "write", tables]
    given = ["--archive", archived["directory"], "--format", "delta", "--bootstrap", NOBODY]
    for said in ("1 stretch more", "message_events, messages lacked what others had"):
        ended = subprocess.run([*written, *given], capture_output=True, text=True, check=True)
        assert said in ended.stdout
        for name in ("message_events", "messages"):
            (tables / name / "_written-delta" / "QM1.json").unlink()
    log = sorted((tables / "message_events" / "_delta_log").glob("*.json"))
    actions = [json.loads(line) for one in log for line in one.read_text().splitlines()]
    rows = sum(json.loads(one["add"]["stats"])["numRecords"] for one in actions if "add" in one)
    query = "SELECT count(*) AS rows FROM message_events"
    told = cli("sql", query, "--archive", archived["directory"], "--json").document
    assert [{"rows": rows}] == told
    refused = subprocess.run([*written, *given[:2]], capture_output=True, text=True, check=False)
    assert refused.returncode == REFUSED
    assert "another way" in refused.stderr
