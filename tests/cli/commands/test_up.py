"""`ledgermq up`: broker and worker on a data directory, as a process of its own."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ledgermq.cli.printing.exits import OK, REFUSED

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

PATIENCE_SECONDS = 180


def command(*arguments: object) -> list[str]:
    """The command line of a process of its own."""
    return [sys.executable, "-m", "ledgermq", *(str(one) for one in arguments)]


def environment(**changes: str) -> dict[str, str]:
    """Our environment without LEDGERMQ settings."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith("LEDGERMQ_")}
    return kept | changes


@contextlib.contextmanager
def running(directory: Path) -> Iterator[tuple[subprocess.Popen[str], dict[str, object]]]:
    """`ledgermq up` on a directory, and what it says once it is up."""
    # Whoever runs these tests may have the end of the terminal ignored.
    heard = ["env", "--default-signal=HUP"]
    process = subprocess.Popen(
        heard + command("up", "--data-dir", directory, "--port", 0, "--json"),
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, f"it ended with {process.wait()}"
        yield process, json.loads(line)
    finally:
        if process.poll() is None:
            process.terminate()
        process.wait(timeout=PATIENCE_SECONDS)


def call(*arguments: object, **changes: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(
        command(*arguments),
        capture_output=True,
        text=True,
        env=environment(**changes),
        timeout=PATIENCE_SECONDS,
        check=False,
    )


@pytest.fixture(scope="module")
def directory(tmp_path_factory) -> Path:
    """A data directory that is new at the start of the module."""
    return tmp_path_factory.mktemp("up") / "data"


@pytest.mark.long
def test_data_stay_from_one_start_to_the_next(directory):
    """What was put is there after SIGTERM and another start; others find the address themselves.

    All of it lies in the data directory, which may be moved as a whole (DB-16).
    """
    with running(directory) as (process, said):
        assert said["queue_manager"] == "QM1"
        assert said["pid"] == process.pid
        assert call("put", "kept", "hello", "--data-dir", directory).returncode == OK
        second = call("up", "--data-dir", directory)
        assert second.returncode == REFUSED
        assert str(process.pid) in second.stderr
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=PATIENCE_SECONDS) == OK
    assert list((directory / "broker" / "data").glob("ledgermq.operations-*"))
    directory = directory.rename(directory.with_name("moved"))
    with running(directory) as (process, _):
        got = call("get", "kept", "--body-only", "--data-dir", directory)
        assert got.stdout == "hello\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=PATIENCE_SECONDS) == OK
    after = call("queue", "list", "--data-dir", directory, "--bootstrap", "127.0.0.1:1")
    assert after.returncode != OK
    directory.rename(directory.with_name("data"))


def test_a_worker_that_dies_is_started_again(directory):
    """After SIGKILL to the worker commands work again, without anybody's help."""
    with running(directory) as (_, _said):
        shown = call("doctor", "--json", "--data-dir", directory)
        assert shown.returncode == OK, shown.stdout
        os.kill(worker_of(directory), signal.SIGKILL)
        assert call("put", "after", "x", "--data-dir", directory, "--timeout", 60).returncode == OK


def test_the_end_of_its_terminal_stops_all_as_ctrl_c_does(directory):
    """SIGHUP lets the worker write its last checkpoint; it ended `up` alone, as a crash."""
    with running(directory) as (process, _):
        process.send_signal(signal.SIGHUP)
        assert process.wait(timeout=PATIENCE_SECONDS) == OK


def test_a_stop_that_nobody_can_be_told_of_is_in_order(directory):
    """Of the end of a terminal, that terminal cannot be told; it counted as a failure."""
    line = command("up", "--data-dir", directory, "--port", 0)
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    with subprocess.Popen(line, text=True, env=environment(), **pipes) as process:
        assert any("LedgerMQ is up" in said for said in iter(process.stderr.readline, ""))
        process.stderr.close()
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=PATIENCE_SECONDS) == OK


def worker_of(directory: Path) -> int:
    """The process id of the worker on a directory."""
    found = [
        int(entry.name)
        for entry in Path("/proc").iterdir()
        if entry.name.isdigit()
        and f"LEDGERMQ_DATA_DIRECTORY={directory / 'worker'}".encode() in _variables(entry)
    ]
    (pid,) = found
    return pid


def _variables(process: Path) -> list[bytes]:
    try:
        return (process / "environ").read_bytes().split(b"\0")
    except OSError:
        return []


def test_a_taken_port_is_named(tmp_path):
    """A port that another process holds is refused with its number and what to do."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        answer = call("up", "--data-dir", tmp_path / "data", "--port", port)
    assert answer.returncode == REFUSED
    assert str(port) in answer.stderr
    assert "Traceback" not in answer.stderr


def test_without_java_the_command_says_how_to_get_it(tmp_path):
    """No Java is a sentence with the package to install."""
    answer = call("up", "--data-dir", tmp_path / "data", PATH=str(tmp_path), JAVA_HOME="")
    assert answer.returncode == REFUSED
    assert "openjdk" in answer.stderr
    assert "Traceback" not in answer.stderr


def test_the_directory_of_another_cluster_is_left_alone(tmp_path):
    """A directory with another Kafka's data is refused, and stays as it is."""
    foreign = tmp_path / "data" / "broker" / "data"
    foreign.mkdir(parents=True)
    meta = foreign / "meta.properties"
    meta.write_text("version=1\ncluster.id=somebody-elses\nnode.id=1\n")
    answer = call("up", "--data-dir", tmp_path / "data", "--json")
    assert answer.returncode == REFUSED
    error = json.loads(answer.stderr)["error"]
    assert error["code"] == "foreign-cluster"
    assert "somebody-elses" in error["message"]
    assert meta.read_text().endswith("node.id=1\n")
