"""What an archive of the journal holds is listed, chosen and republished without Spark, and listed
and chosen without a log.
"""

from __future__ import annotations

import hashlib
import json
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ledgermq.cli.printing.exits import OK, REFUSED
from ledgermq.wire.content.content import encode_content
from ledgermq.wire.content.message_header import make_header
from ledgermq.wire.framing.codec import encode_record
from ledgermq_spark.journal.archive import Archive, JournalArchiveError, JournalBusyError
from ledgermq_spark.journal.arrivals import HEADER

START = datetime(2026, 3, 1, tzinfo=UTC)


def row(position, body, queue="orders", **properties):
    """A message that came in at a position, so many hours after the start."""
    header = make_header(properties, None, None) if properties else None
    moment = START + timedelta(hours=position)
    return {
        "position": position,
        "put_position": position,
        "put_index": 0,
        "destination": f"queue:{queue}",
        "sequence": position,
        "message_id": f"{position:032x}",
        "enqueued_at": moment,
        "expires_at": moment + timedelta(days=7),
        "expired": False,
        "priority": 4,
        "persistent": True,
        "properties": json.dumps(properties),
        "header": None if header is None else encode_record(HEADER, header),
        "content": encode_content(body, client_time=0),
    }


def back_up(directory, through, rows, queue_manager="QM1"):
    """A backup of these rows, as Spark leaves it."""
    path = (
        directory
        / "messages"
        / f"queue_manager={queue_manager}"
        / f"backup={through}"
        / "0.parquet"
    )
    path.parent.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows), path)
    manifest = {
        "format": 1,
        "queue_manager": queue_manager,
        "from": 0,
        "through": through,
        "digest": "",
        "chain": "",
        "files": [
            {
                "part": "messages",
                "path": str(path.relative_to(directory)),
                "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
            }
        ],
    }
    (directory / "manifests").mkdir(exist_ok=True)
    written = directory / "manifests" / f"{queue_manager}-{through}.json"
    written.write_text(json.dumps(manifest), encoding="utf-8")
    return path


@pytest.fixture
def directory(tmp_path):
    """Two backups of QM1, of which the second has what the first kept, and one of another."""
    kept = row(3, "three", queue="bills", color="blue")
    back_up(tmp_path, 5, [row(1, "one", color="red", size=3), row(2, {"two": 2}), kept])
    back_up(tmp_path, 10, [kept, row(7, "seven", color="red")])
    back_up(tmp_path, 4, [row(1, "foreign")], "QM2")
    return tmp_path


@pytest.fixture
def listed(plain, directory):
    """Lists the archive; the bodies, in the order in which they came in."""

    def bodies(*options):
        told = ("journal", "list", "--from", "archive", "--directory", directory, "--json")
        answer = plain(*told, *options)
        assert answer.code == 0, answer.err
        return [one["body"] for one in answer.documents]

    return bodies


def test_a_message_of_several_backups_is_listed_once(listed):
    """All that was ever archived of the queue manager, as it came in (DB-19)."""
    assert listed() == ["one", {"two": 2}, "three", "seven"]
    assert listed("--queue-manager", "QM2") == ["foreign"]
    assert listed("--queue-manager", "QM3") == []


def test_a_message_that_cannot_be_read_hides_no_other(directory, plain):
    """It was put all the same, by whatever client; it is listed with why it is not shown."""
    back_up(directory, 30, [row(21, "x") | {"content": b"garbage"}, row(22, "after")])
    told = ("journal", "list", "--from", "archive", "--directory", directory)
    first, second = plain(*told, "--json").documents[-2:]
    assert (first["message_id"], second["body"]) == (f"{21:032x}", "after")
    assert "cannot be read" in first["undecodable"]
    assert "cannot be read" in plain(*told).lines[-2]


def test_messages_are_listed_by_queue_time_and_selector(listed):
    """Each option alone and together; the end of the time is left out."""
    assert listed("--queue", "bills") == ["three"]
    assert listed("--queue", "topic:bills") == []
    assert listed("--selector", "color = 'red'") == ["one", "seven"]
    assert listed("--selector", "color = 'red'", "--until", "2026-03-01T07:00:00Z") == ["one"]
    assert listed("--since", "2026-03-01T03:00", "--until", "2026-03-02") == ["three", "seven"]
    assert listed("--limit", "2") == ["one", {"two": 2}]
    assert listed("--limit", "0") == ["one", {"two": 2}, "three", "seven"]


def test_a_list_for_people_says_that_there_are_more(plain, directory):
    """And in which backup each is."""
    told = ("journal", "list", "--from", "archive", "--directory", directory)
    answer = plain(*told, "--limit", "1")
    heading, line = answer.lines
    assert heading.split("\t")[:3] == ["POSITION", "PUT TO", "SEQ"]
    assert line.split("\t")[-2:] == ["backup 5", "one"]
    assert "there are more" in answer.err
    answer = plain(*told, "--limit", "1", "--json")
    assert [one["body"] for one in answer.documents] == ["one"]
    assert "there are more" in json.loads(answer.err)["remark"]
    answer = plain("journal", "list", "--from", "archive", "--directory", directory / "none")
    assert "no message of the journal is meant" in answer.err


def test_what_would_be_left_out_is_told_before_anything_is_done(plain, directory):
    """No copy can be made of what cannot be read: it is named and counted, as by a replay."""
    back_up(directory, 30, [row(21, "x") | {"content": b"garbage"}, row(22, "after")])
    told = ("journal", "republish", "--from", "archive", "--directory", directory)
    looked = plain(*told, "--dry-run", "--json").document
    assert (looked["republished"], looked["left_out"]) == (5, 1)
    assert "cannot be read" in looked["unreadable"][0]
    answer = plain(*told, "--dry-run")
    assert "put to, 1 left out because it cannot be put again" in answer.out
    assert "whether they can be put to where each was put to was not looked at" in answer.err
    assert "this would put 5 messages" in plain(*told).err


def test_what_would_be_republished_is_told_and_nothing_done_without_a_yes(plain, directory):
    """`--id` and `--skip` choose beside the others; no broker is asked for a look."""
    told = ("journal", "republish", "--from", "archive", "--directory", directory, "--to", "again")
    answer = plain(*told, "--dry-run", "--json", "--skip", 1, "--limit", 2)
    assert answer.document["republished"] == 2
    assert [one["body"] for one in answer.document["messages"]] == ['{"two": 2}', "three"]
    answer = plain(*told, "--dry-run", "--json", "--id", f"ID:{7:032X}")
    assert [one["body"] for one in answer.document["messages"]] == ["seven"]
    refused = plain(*told, "--json")
    assert refused.code == 2
    assert "this would put 4 messages to queue:again again: add --yes" in refused.error["message"]


def test_what_takes_no_copies_is_told_by_a_look_and_before_the_question(
    memory, broker_in_memory, directory
):
    """It is not there, or takes no puts: the command in earnest found out."""
    told = ("journal", "republish", "--from", "archive", "--directory", directory, "--json")
    with broker_in_memory.connect() as connection:
        connection.admin.create_queue("closed", puts_disabled=True)
        connection.admin.create_topic("shut", puts_disabled=True)
        connection.admin.alter_queue_manager(automatic_creation=False)
        lacking = "is not there, and automatic creation is off: create it"
        for to, why in (
            ("nowhere", f"queue:nowhere {lacking}"),
            ("topic:nowhere", f"topic:nowhere {lacking}"),
            ("closed", "puts to queue:closed are disabled"),
            ("topic:shut", "puts to topic:shut are disabled"),
        ):
            for more in (["--dry-run"], []):
                refused = memory(*told, "--to", to, *more)
                assert (refused.code, refused.error["code"]) == (REFUSED, "republish-stopped")
                assert refused.error["message"] == f"no message is republished: {why}"
            assert memory(*told, "--to", to, "--yes").code == REFUSED
        # To where each was put to, of which one is there.
        connection.admin.create_queue("orders")
        assert lacking in memory(*told, "--dry-run").error["message"]
        connection.admin.alter_queue_manager(automatic_creation=True)
        looked = memory(*told, "--to", "nowhere", "--dry-run")
        assert (looked.code, looked.document["republished"]) == (OK, 4)


@pytest.mark.parametrize(
    "wrong",
    [
        ("--since", "soon"),
        ("--selector", "color ="),
        ("--from", "nowhere"),
        ("--queue", "no name"),
        ("--since", "2027-01-01", "--until", "2026-01-01"),
    ],
    ids=" ".join,
)
def test_a_choice_that_cannot_be_read_is_wrong_use(plain, directory, wrong):
    """One sentence, and exit code 2."""
    assert plain("journal", "list", "--directory", directory, *wrong).code == 2


def test_nothing_is_republished_by_an_id_that_is_none(plain, directory):
    """It is not taken for one that no message has."""
    told = ("journal", "republish", "--from", "archive", "--directory", directory, "--yes")
    wrong = plain(*told, "--id", "zz", "--json")
    assert (wrong.code, "'zz' is no message id" in wrong.error["message"]) == (2, True)


def test_an_archive_that_is_not_there_is_not_taken_for_an_empty_one(plain, tmp_path):
    """The directory is named, and what to do."""
    missing = tmp_path / "none"
    told = ("journal", "republish", "--from", "archive", "--directory", missing, "--yes", "--json")
    answer = plain(*told)
    assert answer.code == 2
    assert f"no backup of QM1 in {missing}" in answer.error["message"]


def test_an_archive_that_was_altered_is_never_read(directory, listed, plain):
    """A manifest holds the digests of its files; what has no manifest is no backup (DB-19)."""
    path = back_up(directory, 20, [row(12, "twelve")])
    assert listed()[-1] == "twelve"
    path.write_bytes(path.read_bytes() + b"x")
    answer = plain("journal", "list", "--from", "archive", "--directory", directory, "--json")
    assert (answer.code, answer.error["code"]) == (1, "journal-archive")
    assert "is not as it was written" in answer.error["message"]
    manifest = directory / "manifests" / "QM1-20.json"
    manifest.rename(manifest.with_suffix(".part"))
    assert listed()[-1] == "seven"
    manifest.write_text(json.dumps({"format": 2}), encoding="utf-8")
    with pytest.raises(JournalArchiveError, match="knows 1: upgrade"):
        Archive(directory).backups("QM1")


@pytest.mark.parametrize(
    "changed",
    [
        {"queue_manager": None},
        {"through": "many"},
        {"through": 6},
        {"digest": None},
        {"chain": "no number"},
        {"files": None},
        {"files": [{"part": "messages"}]},
    ],
)
def test_a_manifest_that_says_something_else_than_was_written_is_told(directory, plain, changed):
    """Whatever it lacks or changed, the answer names the file; nothing of it is listed."""
    manifest = directory / "manifests" / "QM1-5.json"
    told = json.loads(manifest.read_text(encoding="utf-8")) | changed
    kept = {name: value for name, value in told.items() if value is not None}
    manifest.write_text(json.dumps(kept), encoding="utf-8")
    answer = plain("journal", "list", "--from", "archive", "--directory", directory, "--json")
    assert (answer.code, answer.error["code"], answer.documents) == (1, "journal-archive", [])
    assert str(manifest) in answer.error["message"]


def test_what_another_queue_manager_lost_harms_no_archive_beside_it(directory, listed):
    """`QM1` reads on where the backup of `QM1-2`, whose name begins alike, was cut."""
    whole = listed()
    (directory / "manifests" / "QM1-2-5.json").write_text("{", encoding="utf-8")
    assert listed() == whole


@pytest.mark.parametrize("text", [None, "[" * 100_000, b"\xff"], ids=["directory", "deep", "bytes"])
def test_a_manifest_that_cannot_be_read_is_told_in_a_sentence(directory, plain, text):
    """Whatever stands in its place, also a directory."""
    manifest = directory / "manifests" / "QM1-5.json"
    manifest.unlink()
    if text is None:
        manifest.mkdir()
    else:
        manifest.write_bytes(text if isinstance(text, bytes) else text.encode())
    answer = plain("journal", "list", "--from", "archive", "--directory", directory, "--json")
    assert (answer.code, answer.error["code"], answer.documents) == (1, "journal-archive", [])
    assert str(manifest) in answer.error["message"]
    assert "bring it back from a copy" in answer.error["message"]


def test_manifests_that_cannot_be_looked_at_are_not_taken_for_none(directory, plain):
    """As those of a user who may not read them: no journal is empty for that."""
    (directory / "manifests").rename(directory / "elsewhere")
    (directory / "manifests").write_text("in its place")
    answer = plain("journal", "list", "--from", "archive", "--directory", directory, "--json")
    assert (answer.code, answer.error["code"], answer.documents) == (1, "journal-archive", [])


def test_what_a_killed_backup_left_goes_with_the_next_one(directory):
    """Its files, wherever they are; what has a manifest stays, also if it was not tidied up."""
    for number in (5, 20):
        (directory / ".unfinished" / "queue_manager=QM1" / f"backup={number}").mkdir(parents=True)
    moved = directory / "messages" / "queue_manager=QM1" / "backup=20" / "0.parquet"
    moved.parent.mkdir()
    moved.write_bytes(b"x")
    with Archive(directory).adding():
        assert not moved.parent.exists()
        assert not (directory / ".unfinished").exists()
        assert len(list(Archive(directory).messages("QM1"))) == 4
        with pytest.raises(JournalBusyError, match="wait until"), Archive(directory).adding():
            pass
        (directory / ".unfinished" / "queue_manager=QM1").mkdir(parents=True)
    assert not (directory / ".unfinished").exists()


@pytest.fixture
def many(tmp_path):
    """A directory with one backup of 130 messages, more than a unit of work."""
    path = tmp_path / "many"
    back_up(path, 200, [row(number, f"body {number}") for number in range(130)])
    return path


@pytest.fixture
def narrow(connection, queue):
    """A queue with room for the first unit of work, and not for the second."""
    connection.admin.alter_queue(queue, messages_max=110)
    return queue


@pytest.mark.kafka
@pytest.mark.slow
def test_a_republishing_that_cannot_go_on_says_how_to_go_on_behind(cli, connection, many, narrow):
    """What was left out counts; called as it says, it puts each message once."""
    told = ("journal", "republish", "--from", "archive", "--directory", many, "--to", narrow)
    stopped = cli(*told, "--yes", "--json", "--skip", 5)
    assert stopped.code == 1
    assert "100 messages were republished, then it stopped" in stopped.error["message"]
    assert stopped.error["message"].endswith("--skip 105 goes on behind them")
    connection.admin.alter_queue(narrow, messages_max=0)
    assert cli(*told, "--yes", "--json", "--skip", 105).document["republished"] == 25
    bodies = [one.body for one in connection.browser(f"queue:{narrow}")]
    assert bodies == [f"body {number}" for number in range(5, 130)]


@pytest.mark.kafka
@pytest.mark.slow
def test_ctrl_c_while_republishing_says_how_far_it_came(
    connection, worker, topic_prefix, many, narrow
):
    """Somebody who stops it must not put the first ones twice."""
    told = ("journal", "republish", "--from", "archive", "--directory", many, "--to", narrow)
    where = ("--bootstrap", worker, "--topic-prefix", topic_prefix)
    process = subprocess.Popen(
        [sys.executable, "-m", "ledgermq", *told, *where, "--yes", "--json"],
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    while connection.admin.queue_status(narrow).blocked.puts == 0:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    message = json.loads(err)["error"]["message"]
    assert "stopped by Ctrl-C; 100 messages had been republished by then" in message
    assert "--skip 100 goes on" in message
