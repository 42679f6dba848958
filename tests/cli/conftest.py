"""What the tests of the command line share: an installation, and a way to call commands."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import ledgermq
from ledgermq.cli.main import main
from ledgermq.cli.options.target import Target
from ledgermq.processor.worker.supervisor import running_installation
from ledgermq.testing import MemoryBroker
from support.brokers.brief_brokers import brief_brokers
from support.brokers.lent_connection import LentConnection
from support.terminal import Terminal

PATIENCE_SECONDS = 60


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a command printed and how it ended."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """Standard output, line by line."""
        return self.out.splitlines()

    @property
    def document(self) -> Any:
        """Standard output as one JSON document."""
        return json.loads(self.out)

    @property
    def documents(self) -> list[Any]:
        """Standard output as a JSON document a line."""
        return [json.loads(line) for line in self.lines]

    @property
    def error(self) -> dict[str, str]:
        """What --json says of an error."""
        return json.loads(self.err)["error"]


Run = Callable[..., Answer]


@pytest.fixture(autouse=True, scope="session")
def supervisors_are_brief() -> Iterator[None]:
    """Installations of tests live for seconds."""
    with brief_brokers():
        yield


@pytest.fixture(scope="session")
def topic_prefix() -> str:
    """What topics of the worker are called by; of this process alone: others share the broker."""
    return f"cli-{os.getpid()}"


@pytest.fixture(scope="session")
def worker(broker, topic_prefix, tmp_path_factory) -> Iterator[str]:
    """A worker on topics of its own; the address of its broker."""
    directory = tmp_path_factory.mktemp("cli-worker")
    with (directory / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "ledgermq.processor"],
            stdin=subprocess.DEVNULL,
            stderr=log,
            env={
                **os.environ,
                "LEDGERMQ_BOOTSTRAP": broker.bootstrap,
                "LEDGERMQ_TOPIC_PREFIX": topic_prefix,
                "LEDGERMQ_DATA_DIRECTORY": str(directory),
                "LEDGERMQ_WEB_PORT": "-1",
            },
        )
    try:
        _wait_for(broker.bootstrap, topic_prefix, process, directory / "log")
        yield broker.bootstrap
    finally:
        process.terminate()
        process.wait(timeout=30)


def _wait_for(
    bootstrap: str, topic_prefix: str, process: subprocess.Popen[bytes], log: Path
) -> None:
    """Wait until the worker answers."""
    address = f"kafka://{bootstrap}/QM1"
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            ledgermq.connect(address, topic_prefix=topic_prefix, timeout=5).close()
        except ledgermq.LedgerMQError:
            alive = process.poll() is None and time.monotonic() < deadline
            assert alive, f"the worker did not answer: {log.read_text()}"
            time.sleep(0.2)
        else:
            return


@pytest.fixture
def plain(capsys, monkeypatch, tmp_path) -> Run:
    """Calls a command in this process, in a directory where nothing runs."""
    monkeypatch.chdir(tmp_path)
    for name in ("BOOTSTRAP", "DATA_DIRECTORY", "QUEUE_MANAGER", "TOPIC_PREFIX"):
        monkeypatch.delenv(f"LEDGERMQ_{name}", raising=False)

    def run(*arguments: object, stdin: bytes = b"", typed: str | None = None) -> Answer:
        given = io.TextIOWrapper(io.BytesIO(stdin)) if typed is None else Terminal(typed)
        monkeypatch.setattr(sys, "stdin", given)
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return Answer(code=code, out=out, err=err)

    return run


@pytest.fixture
def broker_in_memory() -> MemoryBroker:
    """A queue manager in memory."""
    return MemoryBroker()


@pytest.fixture
def memory(plain, monkeypatch, broker_in_memory) -> Run:
    """Calls a command that speaks to a queue manager in memory."""

    @contextlib.contextmanager
    def connect(_: Target, *, client_id: str | None = None) -> Iterator[ledgermq.Connection]:
        with broker_in_memory.connect(client_id=client_id) as connection:
            yield connection

    monkeypatch.setattr(Target, "connect", connect)
    return plain


@pytest.fixture
def cli(plain, worker, topic_prefix, monkeypatch) -> Run:
    """Calls a command that speaks to the worker."""
    monkeypatch.setenv("LEDGERMQ_BOOTSTRAP", worker)
    monkeypatch.setenv("LEDGERMQ_TOPIC_PREFIX", topic_prefix)
    return plain


@pytest.fixture(scope="session")
def connect(worker, topic_prefix) -> Callable[[], ledgermq.Connection]:
    """Connects an application."""
    return partial(ledgermq.connect, f"kafka://{worker}/QM1", topic_prefix=topic_prefix)


@pytest.fixture(scope="session")
def lent_connection(connect) -> Iterator[LentConnection]:
    """What `connection` takes its connection from."""
    lent = LentConnection(connect)
    yield lent
    lent.close()


@pytest.fixture
def own_connection(connect) -> Iterator[ledgermq.Connection]:
    """A connection of an application that only this test uses."""
    with connect() as opened:
        yield opened


@pytest.fixture
def connection(lent_connection) -> Iterator[ledgermq.Connection]:
    """A connection of an application, in which no session is open."""
    yield lent_connection.take()
    lent_connection.give_back()


@pytest.fixture
def queue(connection) -> str:
    """A queue that no other test uses."""
    name = f"test.{uuid.uuid4().hex[:12]}"
    connection.admin.create_queue(name)
    return name


@pytest.fixture
def directory(tmp_path) -> Path:
    """Where the installation of a test keeps its data."""
    return tmp_path / "installation"


@pytest.fixture
def installation(directory) -> Iterator[str]:
    """The address of an installation that makes no checkpoints by itself."""
    with running_installation(directory) as found:
        yield found


@pytest.fixture
def connected() -> Callable[[str], ledgermq.Connection]:
    """Connects an application to an installation."""
    return lambda bootstrap: ledgermq.connect(f"kafka://{bootstrap}/QM1")
