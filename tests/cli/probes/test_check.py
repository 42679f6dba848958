"""`ledgermq check`: what it tells whoever watches a queue, a worker or all of an installation."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from types import SimpleNamespace

import pytest

from ledgermq.cli.commands import check
from ledgermq.cli.commands.check import _checkpoint_finding
from ledgermq.cli.main import main
from ledgermq.cli.printing.exits import CHECK_FAILED, OK, UNREACHABLE, USAGE
from ledgermq.cli.printing.findings import Finding
from ledgermq.wire.framing.checkpoint_keys import manifest_key
from ledgermq.wire.topics.registry import Claim


def verdicts(answer) -> dict[str, str]:
    """The verdict on each check."""
    return {one["check"]: one["verdict"] for one in answer.document["checks"]}


class Page(BaseHTTPRequestHandler):
    """What a web server says of its worker; `text` is set by each test."""

    text, status = "", 200

    def do_GET(self) -> None:
        """Answer with the text."""
        self.send_response(self.status)
        self.end_headers()
        self.wfile.write(self.text.encode())

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def page() -> Iterator[str]:
    """The address of a web server that serves a page."""
    server = HTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def health(ready: bool, **owned: object) -> str:
    """What a worker's `/health` says."""
    told = {"status": "up", "worker": "w", "ready": ready, "queue_managers": owned}
    return json.dumps(told)


@pytest.mark.parametrize(
    ("text", "options", "code", "told"),
    [
        (health(True, QM1=7), (), OK, "w answers"),
        (health(True, QM1=7), ("--ready",), OK, "it works on QM1"),
        (health(True), ("--ready",), OK, "stands by"),
        (health(False, QM1="loading", QM2=3), (), OK, "w answers"),
        (health(False, QM1="loading", QM2=3), ("--ready",), CHECK_FAILED, "it is loading QM1"),
        (health(False), ("--ready",), CHECK_FAILED, "has not joined its group"),
        (health(True, QM1=7, QM2="stopped"), (), OK, "QM2 is stopped"),
        (health(True, QM1=7, QM2="stopped"), ("--ready",), OK, "it works on QM1"),
        (health(False, QM2="stopped"), ("--ready",), CHECK_FAILED, "all that it owns is stopped"),
        ("<html>", (), UNREACHABLE, "does not answer"),
        ("[]", (), UNREACHABLE, "no worker"),
        ('{"status": "up"}', (), UNREACHABLE, "no worker"),
        (json.dumps({"worker": "w", "ready": 1, "queue_managers": [7]}), (), UNREACHABLE, "no w"),
        ("[" * 100_000, (), UNREACHABLE, "no worker"),
    ],
)
def test_a_worker_is_judged_by_what_its_web_server_says(page, capsys, text, options, code, told):
    """It lives if it answers, and is ready once it has joined and loaded; others are no workers."""
    Page.text = text
    assert main(["check", "worker", "--url", page, *options]) == code
    assert told in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"status": "waiting", "reason": "no registry", "queue_managers": {}}', "no registry"),
        ("[]", "HTTP Error 503"),
        ("[" * 100_000, "HTTP Error 503"),
        ("<html>", "HTTP Error 503"),
    ],
)
def test_a_worker_that_waits_is_told_with_what_for(page, capsys, monkeypatch, text, told):
    """It takes no part before its schema registry answers, and says so with status 503."""
    monkeypatch.setattr(Page, "status", 503)
    Page.text = text
    assert main(["check", "worker", "--url", page]) == UNREACHABLE
    assert told in capsys.readouterr().out


def test_a_worker_that_is_gone_is_unreachable(page, capsys, monkeypatch):
    """Nobody listens there: code 3; without a port or a right address, nobody is asked."""
    monkeypatch.delenv("LEDGERMQ_WEB_PORT", raising=False)
    assert main(["check", "worker", "--url", "http://127.0.0.1:1"]) == UNREACHABLE
    assert main(["check", "worker", "--url", "file:///etc/passwd"]) == USAGE
    for port in ("web", "9" * 20, "9" * 5_000):
        assert main(["check", "worker", "--url", f"http://127.0.0.1:{port}"]) == USAGE
    assert main(["check", "worker"]) == USAGE
    for port in ("0", "web", "9" * 20, "9" * 5_000):
        monkeypatch.setenv("LEDGERMQ_WEB_PORT", port)
        assert main(["check", "worker"]) == USAGE
    Page.text = health(True)
    monkeypatch.setenv("LEDGERMQ_WEB_PORT", page.rpartition(":")[2])
    assert main(["check", "worker", "--json"]) == OK
    out = capsys.readouterr().out
    assert json.loads(out[out.rindex('{\n  "url"') :])["healthy"] is True


def test_what_speaks_no_http_is_no_worker(capsys):
    """Another server's greeting on the port is told in a sentence, with code 3."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def greet() -> None:
            caller, _ = server.accept()
            with caller:
                caller.recv(4096)
                caller.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")

        threading.Thread(target=greet, daemon=True).start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        assert main(["check", "worker", "--url", url]) == UNREACHABLE
    assert "does not answer: SSH-2.0" in capsys.readouterr().out


@pytest.mark.parametrize("pause_seconds", [0.05, 0.0], ids=["slow", "fast"])
def test_a_page_without_end_is_no_worker(capsys, monkeypatch, pause_seconds):
    """A stream of events on the port, say: a probe ends, whatever it looks at."""
    monkeypatch.setattr(check, "HTTP_SECONDS_MAX", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def stream() -> None:
            caller, _ = server.accept()
            with caller, contextlib.suppress(OSError):
                caller.recv(4096)
                caller.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                ends_at = time.monotonic() + 10
                while time.monotonic() < ends_at:
                    caller.sendall(b" " * (1 if pause_seconds else 65_536))
                    time.sleep(pause_seconds)

        threading.Thread(target=stream, daemon=True).start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        assert main(["check", "worker", "--url", url]) == UNREACHABLE
    assert "does not answer: what it sends has no end" in capsys.readouterr().out


class Partitions:
    """Records of the log topics by offset, read as PartitionReader reads them."""

    def __init__(self, **topics: dict[int, tuple[bytes, bytes | None]]) -> None:
        self._topics = topics

    def ends(self, topic: str, _partition: int) -> tuple[int, int]:
        """First offset and end offset."""
        return 0, max(self._topics[topic], default=-1) + 1

    def records(self, topic: str, _partition: int, start: int, end: int) -> Iterator[object]:
        """The records that there are from one offset on up to another."""
        for offset, (key, value) in sorted(self._topics[topic].items()):
            if start <= offset < end:
                yield SimpleNamespace(
                    key=lambda key=key: key,
                    value=lambda value=value: value,
                    timestamp=lambda: (1, time.time_ns() // 1_000_000),
                    offset=lambda offset=offset: offset,
                )

    def record_at(self, topic: str, partition: int, offset: int) -> object | None:
        """The record at an offset, or None."""
        return next(self.records(topic, partition, offset, offset + 1), None)


def checkpoint_told(position: int, **topics: dict[int, tuple[bytes, bytes | None]]) -> Finding:
    """What is said of the checkpoints of a queue manager that is at a position."""
    names = SimpleNamespace(**{name: name for name in ("checkpoints", "operations")})
    target = SimpleNamespace(topics=names, named=lambda at: f"QM1@{at}")
    return _checkpoint_finding(Partitions(**topics), target, Claim("QM1", 0, 1), position, 60.0)


def test_a_checkpoint_that_was_taken_away_is_not_the_newest():
    """Its record is on the topic until Kafka compacts it; a restart has the others only."""
    operations = dict.fromkeys(range(8), (b"QM1", b"x"))
    written = {0: (manifest_key("QM1", 3), b"m"), 1: (manifest_key("QM1", 7), b"m")}
    retired = {2: (manifest_key("QM1", 7), None)}
    found = checkpoint_told(7, operations=operations, checkpoints=written | retired)
    assert found.found.startswith("the newest is at QM1@3; 4 operations came since")
    retired[3] = (manifest_key("QM1", 3), None)
    found = checkpoint_told(7, operations=operations, checkpoints=written | retired)
    assert found.found.startswith("there is none yet; 8 operations came since")


def test_a_position_without_a_record_does_not_make_a_checkpoint_old():
    """Where the first position that none covers is a skipped hole, the next record counts."""
    checkpoints = {0: (manifest_key("QM1", 3), b"m")}
    operations = dict.fromkeys((0, 1, 2, 3, 5), (b"QM1", b"x"))
    assert checkpoint_told(5, operations=operations, checkpoints=checkpoints).verdict == "ok"
    del operations[5]
    assert checkpoint_told(4, operations=operations, checkpoints=checkpoints).verdict == "ok"


def test_a_queue_is_checked_with_messages_of_its_own(cli, queue):
    """Test messages are put and got; what was there stays, and is what can be browsed."""
    cli("put", queue, "somebody's")
    found = cli("check", "queue", queue, "--browse", 1, "--put", 3, "--get", 3, "--json")
    assert found.code == OK, found.out
    assert verdicts(found) == {"up": "ok", "browse": "ok", "put": "ok", "get": "ok"}
    assert cli("queue", "show", queue, "--json").document["current"] == 1
    too_few = cli("check", "queue", queue, "--browse", 2, "--json")
    assert (too_few.code, verdicts(too_few)["browse"]) == (CHECK_FAILED, "failed")


def test_a_queue_that_cannot_be_used_fails_its_check(cli, queue):
    """Disabled puts or gets fail the check, as no queue at all does; `--get` wants puts."""
    cli("queue", "alter", queue, "--puts-disabled")
    assert cli("check", "queue", queue, "--up", "--put", 1).code == CHECK_FAILED
    cli("queue", "alter", queue, "--no-puts-disabled", "--gets-disabled")
    found = cli("check", "queue", queue, "--json")
    assert (found.code, found.document["checks"][0]["found"]) == (
        CHECK_FAILED,
        "gets are disabled",
    )
    found = cli("check", "queue", "nowhere.at.all", "--json")
    assert (found.code, verdicts(found)) == (CHECK_FAILED, {"up": "failed"})
    assert cli("check", "queue", queue, "--get", 1).code == USAGE
    assert cli("check", "queue", "topic:prices").code == USAGE


def test_test_messages_that_somebody_else_takes_fail_the_check(cli, queue, connect):
    """Whoever consumes everything gets the test messages too: the check says so."""
    with (
        connect() as connection,
        connection.session() as session,
        session.consumer(f"queue:{queue}", prefetch=10) as consumer,
    ):
        # From its first receive on it is given what comes.
        assert consumer.receive(timeout=0.1) is None
        found = cli(
            *("check", "queue", queue, "--put", 2, "--get", 2, "--timeout", 2, "--json"),
        )
    assert found.code == CHECK_FAILED
    assert found.document["checks"][-1]["found"].startswith("0 of 2 came within 2 s")


def test_the_cluster_is_judged_by_its_limits(cli, queue, connect):
    """Lag, checkpoint and units of work are within generous limits; below zero seconds none is."""
    found = cli("check", "cluster", "--json")
    assert found.code == OK, found.out
    assert set(verdicts(found)) == {"QM1 worker", "QM1 checkpoint", "QM1 units of work"}
    with (
        connect() as connection,
        connection.session(transacted=True) as session,
    ):
        session.producer(f"queue:{queue}").send("x")
        session.flush()
        time.sleep(0.01)
        limits = ("--work-age-max", 0, "--checkpoint-age-max", 0)
        found = cli("check", "cluster", *limits, "--json")
    assert found.code == CHECK_FAILED
    assert verdicts(found) == {
        "QM1 worker": "ok",
        "QM1 checkpoint": "failed",
        "QM1 units of work": "failed",
    }


def test_a_unit_of_work_ages_by_the_log_where_that_is_ahead_of_the_clock(
    cli, queue, connect, monkeypatch
):
    """As after a leap that was set back: nothing would be too old for as long as the leap was."""

    class YesterdaysClock(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.now(tz) - timedelta(days=1)

    with connect() as connection, connection.session(transacted=True) as session:
        for body in ("x", "y"):
            session.producer(f"queue:{queue}").send(body)
            session.flush()
            time.sleep(0.1)
        monkeypatch.setattr(check, "datetime", YesterdaysClock)
        found = cli("check", "cluster", "--work-age-max", 0, "--json")
    assert verdicts(found)["QM1 units of work"] == "failed"


def test_a_cluster_that_is_not_there_is_unreachable(plain):
    """No broker: code 3, for the cluster and for a queue."""
    for what in (("cluster",), ("queue", "q")):
        assert plain("check", *what, "--bootstrap", "127.0.0.1:1").code == UNREACHABLE
