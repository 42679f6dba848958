"""How many files a worker may have open."""

import resource
import subprocess
import sys
from pathlib import Path

import pytest

from ledgermq.cli.printing.exits import USAGE
from ledgermq.processor.worker import process
from ledgermq.processor.worker.process import allow_many_files


@pytest.fixture
def few_files():
    """What this process may have open is few until the test ends; the most it may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 1_000), hard))
    yield hard
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_worker_may_open_as_many_files_as_the_system_lets_it(few_files):
    """With a dozen for each queue manager, the usual 1,024 were used up by a hundred of them."""
    allow_many_files()
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (few_files, few_files)


def test_a_system_that_lets_nobody_have_its_limit_stops_no_worker(few_files, monkeypatch):
    """It goes on with what it has."""

    def refuse(*_):
        raise ValueError("not allowed to raise maximum limit")

    monkeypatch.setattr(process.resource, "setrlimit", refuse)
    allow_many_files()
    monkeypatch.undo()
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] <= 1_000


@pytest.mark.parametrize(
    ("most", "warned"), [(64, True), (1_024, False), (resource.RLIM_INFINITY, False)]
)
def test_a_worker_that_may_open_few_files_says_so(monkeypatch, caplog, most, warned):
    """It may be given a queue manager for which it lacks files, and then only is silent."""
    monkeypatch.setattr(process.resource, "getrlimit", lambda _: (most, most))
    monkeypatch.setattr(process.resource, "setrlimit", lambda *_: None)
    allow_many_files()
    assert ("may have 64 files open" in caplog.text) == warned


@pytest.mark.parametrize(
    "command", [("worker", "--bootstrap", "127.0.0.1:1"), ("up", "--port", "0", "--data-dir")]
)
def test_a_worker_that_may_open_too_few_files_is_told_so_before_anything_else(tmp_path, command):
    """In one sentence: its libraries, and Java, ended with tracebacks where they lacked one."""
    place = [str(tmp_path / "data")] if command[0] == "up" else []
    told = subprocess.run(
        [sys.executable, "-m", "ledgermq", *command, *place],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (24, 24)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == USAGE
    (line,) = told.stderr.splitlines()
    assert line.startswith("error: this process may have 24 files open, a worker needs 54")


@pytest.mark.kafka
def test_a_worker_that_is_is_started_with_few_files_gets_more(place, few_files):
    """As from a shell, whose limit it inherits."""
    worker = place.worker(clock_seconds=1)
    limits = Path(f"/proc/{worker.pid}/limits").read_text().splitlines()
    (line,) = [one for one in limits if one.startswith("Max open files")]
    assert line.split()[3:5] == [str(few_files)] * 2
