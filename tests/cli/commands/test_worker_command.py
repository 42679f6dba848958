"""`ledgermq worker` as a process of its own, and the wiring of `ledgermq bench`."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

from ledgermq.cli import main
from ledgermq.cli.printing.exits import CHECK_FAILED, OK, UNREACHABLE, USAGE

PATIENCE_SECONDS = 120


def start(bootstrap: str, directory: Path, *more: str) -> tuple[subprocess.Popen[bytes], Path]:
    """A worker and the file that it logs to."""
    log = directory / "log"
    command = [sys.executable, "-m", "ledgermq", "worker", "--bootstrap", bootstrap]
    command += ["--data-dir", str(directory), "--web-port", "-1", *more]
    kept = {name: text for name, text in os.environ.items() if not name.startswith("LEDGERMQ_")}
    with log.open("w") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=kept
        )
    return process, log


def wait_for(log: Path, text: str, process: subprocess.Popen[bytes]) -> None:
    """Wait until the worker has said something."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while text not in log.read_text():
        alive = process.poll() is None and time.monotonic() < deadline
        assert alive, f"{text!r} is not in: {log.read_text()}"
        time.sleep(0.1)


@pytest.mark.kafka
@pytest.mark.slow
def test_a_worker_claims_what_it_is_told_and_a_second_one_says_what_it_took(
    plain, broker, tmp_path
):
    """The first owns the queue manager, a second stands by or takes over, both stop on SIGTERM."""
    options = ("--topic-prefix", "workers", "--queue-manager", "EAST", "--partitions", "2")
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    first, log = start(broker.bootstrap, tmp_path / "one", "--name", "one", *options)
    try:
        wait_for(log, "owns EAST", first)
        created = plain(
            *("queue", "create", "q", "--bootstrap", broker.bootstrap),
            *("--topic-prefix", "workers", "--queue-manager", "EAST"),
        )
        assert created.code == OK, created.err
        second, other = start(broker.bootstrap, tmp_path / "two", "--name", "two", *options)
        try:
            deadline = time.monotonic() + PATIENCE_SECONDS
            while "stands by" not in other.read_text() and "owns EAST" not in other.read_text():
                assert time.monotonic() < deadline, other.read_text()
                time.sleep(0.1)
        finally:
            second.send_signal(signal.SIGTERM)
            assert second.wait(timeout=PATIENCE_SECONDS) == OK
    finally:
        first.send_signal(signal.SIGTERM)
        assert first.wait(timeout=PATIENCE_SECONDS) == OK


@pytest.mark.long
def test_a_worker_without_a_broker_ends_with_three(tmp_path):
    """No broker at the address is told in the log and by the exit code."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    process, log = start(address, tmp_path)
    assert process.wait(timeout=PATIENCE_SECONDS) == UNREACHABLE
    assert address in log.read_text()
    assert "Traceback" not in log.read_text()


@pytest.mark.parametrize(
    ("command", "package"), [("bench", "ledgermq_benchmarks"), ("demo", "ledgermq_demo")]
)
def test_an_installed_package_says_where_bench_and_demo_are(plain, monkeypatch, command, package):
    """A wheel has neither: the command ends with one sentence that names the checkout."""
    for name in [one for one in sys.modules if one.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    roots = [one for one in sys.path if not (Path(one) / package).is_dir()]
    monkeypatch.setattr(sys, "path", roots)
    answer = plain(command)
    assert answer.code == USAGE
    assert f"`ledgermq {command}` is not part of the installed package" in answer.err
    assert f"`make {command}`" in answer.err
    assert f"  {command} " not in plain("--help").out


def test_help_of_an_installed_package_lists_no_command_of_a_checkout(plain, monkeypatch):
    """Nor the title above both of them, which broke the whole of it."""
    packages = ("ledgermq_benchmarks", "ledgermq_demo")
    monkeypatch.setattr(
        main, "find_spec", lambda name: None if name in packages else find_spec(name)
    )
    answer = plain("--help")
    assert answer.code == 0
    assert "In a checkout" not in answer.out
    assert "  acl " in answer.out


def test_bench_hands_its_options_over_and_returns_the_verdict(plain, monkeypatch):
    """Rows, runs and the installation to measure reach the benchmark; below a minimum it is 4."""
    given = {}

    def run(**options):
        given.update(options)
        return CHECK_FAILED

    monkeypatch.setattr("ledgermq_benchmarks.main.run", run)
    answer = plain("bench", "--row", "fold", "--runs", 2, "--bootstrap", "b:1", "--json")
    assert answer.code == CHECK_FAILED
    assert given == {
        "bootstrap": "b:1",
        "queue_manager": "QM1",
        "runs": 2,
        "names": ("fold",),
        "against": None,
        "with_growth": False,
        "with_managers": False,
        "as_json": True,
        "output": None,
    }


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (("--row", "folds"), "there is no row 'folds'; rows are fold, transacted"),
        (("--row", ""), "there is no row ''"),
        (("--growth", "--row", "fold"), "measure no rows"),
        (("--managers", "--against", "rabbitmq"), "measure no rows"),
        (("--growth", "--output", "curves.svg"), "their picture is put beside it"),
        (("--output", "nowhere/figures.json"), "there is no directory 'nowhere'"),
        (("--runs", "0"), "0 is not in the range"),
    ],
)
def test_bench_says_what_cannot_be_measured_before_it_begins(plain, monkeypatch, given, told):
    """Unknown rows, what does not go together, no directory to write to: usage errors."""
    monkeypatch.setattr("ledgermq_benchmarks.main.run", lambda **_: pytest.fail("it began"))
    answer = plain("bench", *given)
    assert answer.code == USAGE
    assert told in answer.err
