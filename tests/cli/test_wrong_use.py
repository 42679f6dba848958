"""Errors for people: one clear sentence, an exit code that means something, never a traceback."""

import fcntl
import json
import socket
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta

import click
import pytest

from ledgermq.cli.commands import doctor as doctor_module
from ledgermq.cli.commands.doctor import (
    durability,
    expiry_circle,
    log_time,
    unrouted_messages,
    waiting_queues,
)
from ledgermq.cli.main import cli as cli_group
from ledgermq.cli.options.bodies import properties_from
from ledgermq.cli.options.once import OnceCommand, OnceGroup
from ledgermq.cli.options.running import UpRunningError, announce, running_bootstrap
from ledgermq.cli.options.target import Target
from ledgermq.cli.printing import exits
from ledgermq.errors import LedgerMQError, OutcomeUnknownError, TransactionInDoubtError
from ledgermq.processor.worker.supervisor import running_installation


def free_port() -> int:
    """A port at which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.mark.parametrize(
    "command",
    [
        ("queue", "list"),
        ("put", "q", "x"),
        ("browse", "q"),
        ("session", "list"),
        ("topic", "list"),
        ("subscription", "delete", "s", "--client-id", "c"),
        ("journal", "backup"),
        ("rebuild",),
        ("trace", "0" * 32),
        ("audit",),
        ("checkpoint", "discard", "--yes"),
    ],
    ids=lambda command: command[0],
)
def test_an_unreachable_broker_is_named_and_has_its_own_exit_code(plain, command):
    """Where no broker listens, every command ends with 3 and names the address."""
    address = f"127.0.0.1:{free_port()}"
    answer = plain(*command, "--bootstrap", address, "--json")
    assert answer.code == exits.UNREACHABLE
    assert answer.error["code"] == "broker-unavailable"
    assert address in answer.error["message"]


def test_a_data_directory_on_which_nothing_runs_is_named(plain, tmp_path):
    """A directory that was asked for is not passed over for whatever listens elsewhere."""
    answer = plain("queue", "list", "--data-dir", tmp_path / "idle", "--json")
    assert answer.code == exits.UNREACHABLE
    assert str(tmp_path / "idle") in answer.error["message"]


@pytest.mark.parametrize(
    ("hidden", "said"),
    [("nothing", "is no address"), ("schema_registry", "pip install 'ledgermq[registry]'")],
)
def test_a_registry_that_cannot_be_asked_is_wrong_use(plain, monkeypatch, hidden, said):
    """An address that is none, or packages that are not installed."""
    monkeypatch.setitem(sys.modules, f"confluent_kafka.{hidden}", None)
    answer = plain("schema", "list", "--registry", "host:1", "--json")
    assert (answer.code, answer.error["code"]) == (exits.USAGE, "setting-invalid")
    assert said in answer.error["message"]


@pytest.mark.parametrize(
    "command",
    [
        ("archive", "list"),
        ("archive", "prove"),
        ("rebuild", "--archive"),
        ("sql", "SELECT 1", "--archive"),
        ("diff", "--from", "0", "--archive"),
        ("trace", "0" * 32, "--archive"),
        ("tables", "write", "tables", "--archive"),
    ],
    ids=" ".join,
)
def test_what_is_asked_of_an_archive_needs_nothing_that_runs(plain, tmp_path, command):
    """Where a data directory is named and idle, it is the archive that is missed, no broker."""
    answer = plain(*command, tmp_path / "none", "--data-dir", tmp_path / "idle", "--json")
    assert answer.error["code"] == "archive-missing"


@pytest.mark.kafka
def test_an_unknown_queue_manager_is_refused_and_the_known_ones_are_named(cli):
    """A wrong name is answered with those there are."""
    answer = cli("queue", "list", "--queue-manager", "QX")
    assert answer.code == exits.REFUSED
    assert "QX" in answer.err
    assert "QM1" in answer.err


@pytest.mark.kafka
def test_topics_of_another_prefix_are_missed(cli):
    """A wrong topic prefix is told as missing topics, with what to do."""
    answer = cli("queue", "list", "--topic-prefix", "elsewhere")
    assert answer.code == exits.REFUSED
    assert "elsewhere.outcomes" in answer.err


@pytest.mark.parametrize(
    "command",
    [
        ("nonsense",),
        ("queue", "nonsense"),
        ("queue", "stat"),
        ("put",),
        ("get", "q", "--count", "0"),
        ("get", "topic:prices"),
        ("topic", "nonsense"),
        ("topic", "create"),
        ("subscription", "delete", "s"),
        ("queue", "create", "q", "--unacknowledged-max", "-1"),
        ("put", "q", "x", "--priority", "10"),
        ("rebuild", "--at", "yesterday"),
        ("rebuild", "--at", "QM2@10"),
        ("diff", "--from", "0", "--to", "QM2@10", "--archive", "kept"),
        ("trace", "xyz"),
        ("trace", "0" * 32, "--correlation-id", "x"),
        ("trace", "0" * 32, "--html", "no-such-directory/lives.html"),
        ("trace", "0" * 32, "--html", "."),
        ("trace", "0" * 32, "--html", ""),
        ("trace", "0" * 32, "--html", "/proc/lives.html"),
        ("trace", "0" * 32, "--html", "n" * 300),
        ("bench", "--output", "/proc/figures.json"),
        ("bench", "--output", "n" * 300),
        ("tables", "write", "/proc/tables"),
        ("tables", "write", ""),
        ("archive", "update", ""),
        ("audit", "--report", ""),
        ("rebuild", "--archive", ""),
        ("queue", "list", "--data-dir", ""),
        ("queue", "list", "--bootstrap", "host:port"),
        ("queue", "list", "--queue-manager", "a b"),
        ("queue", "list", "--timeout", "0"),
        ("queue", "list", "--timeout", "nan"),
        ("bridge", "--from-topic", "t", "--to", "q", "--timeout", "3601"),
        ("doctor", "--timeout", "3601"),
        ("bridge", "--from", "q", "--to-topic", "t", "--timeout", "inf"),
        ("get", "q", "--wait", "nan"),
        ("check", "cluster", "--work-age-max", "nan"),
        ("queue", "list", "--bootstrap", "x" * 64 + ":9092"),
        ("queue", "list", "--bootstrap", "\udcff:9092"),
        ("doctor", "--bootstrap", "localhost:9092/QM2"),
        ("queue", "purge", "q", "--reason", "r", "--yes", "--queue-manager", ""),
        ("queue", "list", "--topic-prefix", ""),
        ("queue", "list", "--bootstrap", ""),
        ("worker", "--bootstrap", ""),
        ("worker", "--bootstrap", "localhost:99999"),
        ("bridge", "--from-topic", "t", "--to", "queue:q", "--kafka", "localhost:99999"),
        ("rebuild", "--at", "0001-01-01T00:00:00+14:00"),
        ("journal", "list", "--since", "9999-12-31T23:59:59-14:00"),
        ("audit", "--bootstrap", "kafka://localhost:9092"),
        ("checkpoint", "discard", "--bootstrap", "nowhere:x", "--yes"),
        ("queue", "purge", "q", "--reason", "r", "--limit", "-1"),
        ("queue", "purge", "q", "--reason", "r", "--limit", "1e9"),
        ("msg", "delete", "q", "--reason", "r", "--sequence", f"1..{2**63}"),
        ("msg", "show", "q", str(2**63)),
        ("dlq", "show", "q", str(2**64)),
        ("session", "show", str(2**63)),
        ("txn", "show", str(2**63)),
        ("queue", "create", "q", "--unacknowledged-max", str(2**63)),
        ("queue", "create", "q", "--message-bytes-max", str(2**64)),
        ("manager", "alter", "--bytes-max", str(2**63)),
        ("log", "skip", str(2**63), "--reason", "r", "--yes"),
    ],
    ids=" ".join,
)
def test_wrong_use_ends_with_two(plain, command):
    """What the caller got wrong is said on standard error, with exit code 2."""
    answer = plain(*command)
    assert (answer.code, answer.out) == (exits.USAGE, "")
    assert answer.err.startswith("error: ")


@pytest.mark.parametrize(
    "command",
    [
        ("put", "q", "x", "--priority"),
        ("get", "q", "--count"),
        ("get", "q", "--wait"),
        ("up", "--port"),
        ("worker", "--lanes"),
        ("check", "cluster", "--lag-max"),
    ],
    ids=lambda command: command[-1],
)
def test_what_is_no_number_is_called_no_number(plain, command):
    """Whoever types does not know of ranges of floats."""
    answer = plain(*command, "high")
    assert answer.code == exits.USAGE
    assert f"Invalid value for '{command[-1]}': 'high' is not a valid number" in answer.err


@pytest.mark.parametrize(
    "command",
    [
        ("queue", "list", "--bootstrap"),
        ("bridge", "--from-topic", "t", "--to", "queue:q", "--kafka"),
    ],
    ids=lambda command: command[0],
)
def test_a_wrong_address_is_told_with_its_option(plain, command):
    """A command may have two addresses."""
    answer = plain(*command, "h:1/QM2")
    assert answer.code == exits.USAGE
    assert f"{command[-1]} 'h:1/QM2' is no HOST:PORT, as localhost:9092 is" in answer.err


@pytest.mark.parametrize(
    "command",
    [
        ("queue", "list", "--bootstrap"),
        ("worker", "--bootstrap"),
        ("bridge", "--from-topic", "t", "--to", "queue:q", "--kafka"),
        ("relay", "create", "--from", "queue:q", "--to", "queue:q@QM2", "--to-bootstrap"),
    ],
    ids=lambda command: command[0],
)
@pytest.mark.parametrize("address", ["till:hunter2@h:1", "kafka://till:hunter2@h:1/QM1"])
def test_a_password_in_an_address_is_refused_and_not_shown(plain, command, address):
    """Whoever writes it so is told where it belongs; it is in no error and no log."""
    answer = plain(*command, address)
    assert (answer.code, answer.out) == (exits.USAGE, "")
    assert "an address has no user and no password" in answer.err
    assert "hunter2" not in answer.err


@pytest.mark.parametrize(
    ("command", "option"),
    [
        (("up", "--queue-manager", "A", "--queue-manager", "B"), "--queue-manager"),
        (("put", "q", "x", "--priority", "1", "--priority=2"), "--priority"),
        (("queue", "list", "--bootstrap", "a:1", "--bootstrap", "b:1"), "--bootstrap"),
        (
            ("queue", "purge", "q", "--durable", "--not-durable", "--reason", "r"),
            "--durable/--not-durable",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else value[0],
)
def test_no_value_is_taken_of_two(plain, command, option):
    """An option that has one value and is given two is wrong use, in every command."""
    answer = plain(*command)
    assert answer.code == exits.USAGE
    assert f"{option} is given 2 times, and takes one value" in answer.err


def test_every_command_refuses_options_given_twice(plain):
    """None is made without the class that does; flags that can only be set may be repeated."""
    context = click.Context(cli_group)
    waiting = [cli_group.get_command(context, name) for name in cli_group.list_commands(context)]
    while waiting:
        command = waiting.pop()
        assert isinstance(command, (OnceCommand, OnceGroup)), command.name
        waiting += getattr(command, "commands", {}).values()
    answer = plain("queue", "list", "--json", "--json", "--timeout", "0")
    assert "--timeout" in answer.error["message"]


def test_tables_from_an_archive_are_not_written_over(plain, tmp_path):
    """Before anything is read, with what to do."""
    (tmp_path / "tables" / "messages" / "_written-parquet").mkdir(parents=True)
    answer = plain("tables", "write", tmp_path / "tables")
    assert answer.code == exits.REFUSED
    assert "go on with --archive, or choose another directory" in answer.err


def test_a_mistyped_command_gets_a_suggestion(plain):
    """A name that is nearly right is offered."""
    assert "did you mean queue?" in plain("qeue").err


def test_an_example_in_a_help_text_stands_in_a_line_of_its_own(plain):
    """Whoever copies it has all of it, and no control characters that are not printed."""
    told = plain("sql", "--help").out
    example = 'ledgermq sql "SELECT destination, count(*) FROM messages GROUP BY destination"'
    assert example in map(str.strip, told.splitlines())
    assert "\\b" not in told


def test_help_lists_every_command(plain):
    """--help names all commands, whatever they need to run."""
    answer = plain("--help")
    assert answer.code == exits.OK
    for name in (
        "up",
        "worker",
        "queue",
        "topic",
        "subscription",
        "put",
        "get",
        "trace",
        "rebuild",
        "audit",
        "doctor",
    ):
        assert f"\n  {name} " in answer.out


def test_doctor_without_a_broker_fails_and_skips_the_rest(plain):
    """A check that cannot be made is skipped, not failed, and the exit code is 4."""
    answer = plain("doctor", "--bootstrap", f"127.0.0.1:{free_port()}", "--json")
    assert answer.code == exits.CHECK_FAILED
    verdicts = {one["check"]: one["verdict"] for one in answer.document["checks"]}
    assert verdicts["broker"] == "failed"
    assert verdicts["worker"] == "skipped"
    assert answer.document["healthy"] is False


def test_each_host_of_an_address_has_a_port():
    """Spark takes none without, and every other client of Kafka does."""
    target = Target(
        broker="localhost, [::1],h:7",
        queue_manager="QM1",
        topic_prefix="ledgermq",
        timeout_seconds=1.0,
    )
    assert target.bootstrap == "localhost:9092,[::1]:9092,h:7"
    assert target.address == "kafka://localhost:9092,[::1]:9092,h:7/QM1"


@pytest.mark.kafka
def test_doctor_finds_a_running_installation_healthy(cli, broker):
    """On the embedded broker with a worker every check holds, and durability is by flushing."""
    answer = cli("doctor", "--json")
    checks = {one["check"]: one for one in answer.document["checks"]}
    assert answer.code == exits.OK, checks
    assert list(checks) == [
        *("Java", "broker", "topics", "durability", "clock", "queue manager"),
        *("checkpoints", "worker", "log time", "queues", "expiry", "unrouted"),
    ]
    assert "flushed" in checks["durability"]["found"]
    assert "QM1@" in checks["worker"]["found"]


@pytest.mark.parametrize(
    ("replicas", "in_sync", "settings", "verdict", "word"),
    [
        (1, 1, {"flush.messages": "1"}, "ok", "flushed"),
        (3, 3, {"min.insync.replicas": "2"}, "ok", "replicated"),
        (3, 2, {"min.insync.replicas": "2"}, "warning", "2 in sync"),
        (3, 1, {"min.insync.replicas": "2"}, "failed", "1 in sync now, so it takes none"),
        (1, 1, {}, "failed", "neither"),
        (3, 3, {"min.insync.replicas": "1"}, "failed", "neither"),
        (
            *(1, 1, {"flush.messages": "1", "unclean.leader.election.enable": "true"}),
            *("failed", "unclean"),
        ),
    ],
)
def test_doctor_tells_the_two_durabilities_apart(replicas, in_sync, settings, verdict, word):
    """D13: flushed on one broker, or two of three replicas; anything else is a failure."""
    found = durability(replicas, in_sync, settings)
    assert found[0] == verdict
    assert word in found[1]


@pytest.mark.parametrize(
    ("ahead", "moving", "verdict", "words"),
    [
        (-86_400, False, "ok", ["not ahead"]),
        (60, False, "ok", ["not ahead"]),
        (61, False, "warning", ["0:01:01 ahead", "stands still"]),
        (86_400, False, "warning", ["1 day, 0:00:00 ahead", "stands still"]),
        (86_400, True, "warning", ["1 day, 0:00:00 ahead", "7/8", "in 8 days, 0:00:00;"]),
        (-5, True, "warning", ["0:00:00 ahead", "7/8"]),
    ],
)
def test_doctor_says_how_far_log_time_is_ahead(ahead, moving, verdict, words):
    """H6: by how much, that it goes on at 7/8 until when, or that it stands and why."""
    clock = datetime(2026, 11, 1, tzinfo=UTC)
    found = log_time(clock + timedelta(seconds=ahead), clock, moving=moving)
    assert found[0] == verdict
    assert [word for word in words if word not in found[1]] == []
    assert log_time(None, clock, moving=False)[0] == "ok"


def test_doctor_warns_of_queues_that_keep_what_could_be_delivered():
    """Those whose first message came more than ten minutes ago; five of them by name."""
    now = datetime(2026, 11, 1, tzinfo=UTC)
    old, young = now - timedelta(minutes=11), now - timedelta(minutes=10)
    assert waiting_queues({"a": young, "b": None}, now)[0] == "ok"
    assert waiting_queues({"a": old}, None)[0] == "ok"
    verdict, found = waiting_queues({"a": young, **{f"q{n}": old for n in range(7)}}, now)
    assert verdict == "warning"
    assert "wait in q0, q1, q2, q3, q4 and 2 more: `ledgermq queue why q0`" in found


def test_doctor_warns_of_messages_that_multiply_as_they_expire():
    """A circle of queues only moves them; a topic in it makes one for each subscription."""
    queues = {"queue:a": "queue:b", "queue:b": "queue:a", "queue:c": ""}
    assert expiry_circle(queues)[0] == "ok"
    assert expiry_circle(queues | {"topic:t": "queue:a"})[0] == "ok"
    assert expiry_circle({"topic:t": "queue:gone"})[0] == "ok"
    verdict, found = expiry_circle(
        {"queue:a": "topic:t", "topic:t": "queue:b", "queue:b": "queue:a"}
    )
    assert verdict == "warning"
    assert "round in topic:t -> queue:b -> queue:a -> topic:t" in found
    assert expiry_circle({"topic:t": "topic:t"})[0] == "warning"


def test_doctor_warns_of_a_topic_that_moves_what_nobody_wants_to_nowhere():
    """Such messages are dropped all the same."""
    assert unrouted_messages({})[0] == "ok"
    assert unrouted_messages({"t": "queue:dead"})[0] == "ok"
    verdict, found = unrouted_messages({"t": "queue:dead", "v": None, "u": ""})
    assert verdict == "warning"
    assert "ledgermq topic alter u --error-destination" in found


def test_a_check_that_is_not_answered_in_time_fails_and_ends_no_other(monkeypatch, plain):
    """What doctor found before and after it is told all the same."""

    def never(_target: object) -> tuple[str, str]:
        raise TimeoutError

    checks = {"Java": lambda _: ("ok", "x"), "durability": never, "queues": lambda _: ("ok", "y")}
    monkeypatch.setattr(doctor_module, "_CHECKS", checks)
    found = plain("doctor", "--json", "--bootstrap", "127.0.0.1:1")
    assert found.code == exits.CHECK_FAILED
    assert [one["verdict"] for one in found.document["checks"]] == ["ok", "failed", "ok"]
    told = "Kafka gives no answer in time, as where most of its nodes are down"
    assert found.document["checks"][1]["found"] == told


@pytest.mark.kafka
def test_checkpoints_are_discarded_only_when_told_yes(cli):
    """Without --yes nothing happens, and an unknown queue manager is named."""
    asked = cli("checkpoint", "discard")
    assert asked.code == exits.USAGE
    assert "--yes" in asked.err
    told = cli("checkpoint", "discard", typed="n\n")
    assert told.code == exits.REFUSED
    assert "this would discard all checkpoints and all outcomes of QM1 at " in told.err
    assert "the next worker folds the log again" in told.err
    alone = cli("checkpoint", "discard", "--outcomes", typed="n\n")
    assert "this would discard all outcomes of QM1 at " in alone.err
    unknown = cli("checkpoint", "discard", "--yes", "--queue-manager", "QX")
    assert unknown.code == exits.REFUSED
    assert "QX" in unknown.err


@pytest.mark.kafka
def test_checkpoints_are_discarded_and_counted_once_no_worker_runs(
    plain, directory, connected, monkeypatch
):
    """A worker that runs would leave out of its next ones what it stored; it is named.

    One that was killed with its broker is counted anew when that is started, and waited for.
    """
    discard = ("checkpoint", "discard", "--yes", "--json")
    with running_installation(directory) as bootstrap, connected(bootstrap) as connection:
        connection.admin.checkpoint()
        refused = plain(*discard, "--bootstrap", bootstrap)
        assert (refused.code, refused.error["code"]) == (exits.REFUSED, "discard-refused")
        assert "): stop all workers first" in refused.error["message"]
        with announce(directory) as tell:
            tell(bootstrap=bootstrap)
            refused = plain(*discard, "--data-dir", directory)
        assert (refused.code, refused.error["code"]) == (exits.REFUSED, "discard-refused")
        assert f"`ledgermq up` runs on {directory}" in refused.error["message"]
        monkeypatch.setattr(subprocess.Popen, "terminate", subprocess.Popen.kill)
    done = plain(*discard, "--data-dir", directory)
    assert done.code == exits.OK, done.err
    assert done.document["discarded"] >= 1


def test_an_unknown_outcome_has_an_exit_code_of_its_own():
    """5 is neither success nor failure: nobody knows."""
    assert exits.exit_code_of(OutcomeUnknownError("?")) == exits.UNPROVEN
    assert exits.exit_code_of(TransactionInDoubtError("?")) == exits.UNPROVEN
    assert exits.exit_code_of(LedgerMQError("no")) == exits.REFUSED


def test_what_a_killed_up_left_behind_is_not_believed(tmp_path):
    """An address counts only while the command that wrote it lives."""
    with announce(tmp_path) as tell:
        assert running_bootstrap(tmp_path) is None
        tell(bootstrap="127.0.0.1:1")
        assert running_bootstrap(tmp_path) == "127.0.0.1:1"
        with pytest.raises(UpRunningError, match=r"127\.0\.0\.1:1"), announce(tmp_path):
            pass
    (tmp_path / "up.json").write_text('{"pid": 1, "bootstrap": "127.0.0.1:1"}')
    assert running_bootstrap(tmp_path) is None


def test_a_command_that_looks_whether_up_runs_does_not_keep_it_from_starting(tmp_path):
    """To look takes the lock for a moment; a start meanwhile waits for that."""
    with announce(tmp_path):
        pass
    with (tmp_path / "up.json").open() as looking:
        fcntl.flock(looking, fcntl.LOCK_SH)
        threading.Timer(0.2, fcntl.flock, (looking.fileno(), fcntl.LOCK_UN)).start()
        with announce(tmp_path) as tell:
            tell(bootstrap="127.0.0.1:1")
            assert running_bootstrap(tmp_path) == "127.0.0.1:1"


def test_properties_keep_text_that_only_looks_like_a_number():
    """A value becomes a number only where it prints the same again."""
    given = ("a=1", "b=-2", "c=0.5", "d=007", "e=1e3", "f=true", "g=", "h=x=y", "i=nan")
    assert properties_from(given) == {
        "a": 1,
        "b": -2,
        "c": 0.5,
        "d": "007",
        "e": "1e3",
        "f": True,
        "g": "",
        "h": "x=y",
        "i": "nan",
    }


def test_a_directory_of_backups_that_is_not_there_is_not_passed_over(plain, tmp_path, monkeypatch):
    """An audit would agree without what they noted; that of the settings may come later."""
    where = ("--bootstrap", f"127.0.0.1:{free_port()}", "--json")
    answer = plain("audit", "--directory", tmp_path / "no", *where)
    assert answer.code == exits.USAGE
    assert f"there is no directory '{tmp_path / 'no'}'" in answer.error["message"]
    monkeypatch.setenv("LEDGERMQ_JOURNAL_DIRECTORY", str(tmp_path / "no"))
    assert plain("audit", *where).code == exits.UNREACHABLE


@pytest.mark.parametrize(
    ("place", "told"),
    [
        ("file/data", "Not a directory; name another place: a part"),
        ("n" * 300, "choose a shorter"),
        ("up", "up/up.json: Is a directory; name another place"),
    ],
)
def test_a_place_where_no_data_can_be_is_told_with_what_to_do(tmp_path, place, told):
    """Where it is, why the system refuses it, and what would be taken."""
    (tmp_path / "file").touch()
    (tmp_path / "up" / "up.json").mkdir(parents=True)
    directory = str(tmp_path / place)
    command = (sys.executable, "-m", "ledgermq", "up", "--json", "--data-dir", directory)
    answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert answer.returncode == exits.USAGE
    error = json.loads(answer.stderr)["error"]
    assert error["code"] == "directory-unwritable"
    assert f"data cannot be written in {directory}: " in error["message"]
    assert told in error["message"]
