"""A worker in a process and on topics of its own, for tests that stop, kill and start it."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ledgermq
from ledgermq.cli.main import main
from ledgermq.processor.worker.process import PARENT_VARIABLE
from ledgermq.processor.worker.readiness import wait_for_worker
from ledgermq.wire.topics.ledger import Ledger
from ledgermq.wire.topics.log_topics import Topics, ensure_topics
from ledgermq.wire.topics.registry import Claim, claim_queue_manager
from support.brokers.forked_worker import ForkedWorker
from support.brokers.raw_client import RawClient
from support.checkout import SERVICES

PREFIXES = itertools.count()
PROGRAM = """
import sys, time
from ledgermq.protocol import limits
clock = time.time
time.time = lambda: clock() + {clock_seconds}
limits.PROTOCOL_VERSION = {version}
from ledgermq.processor.__main__ import main
sys.exit(main())
"""


@dataclass(kw_only=True)
class Place:
    """Topics that no other test uses, with one queue manager, and the workers on them."""

    bootstrap: str
    topics: Topics
    claim: Claim
    directory: Path
    lanes: int = 2
    partitions: int = 1
    workers: list[WorkerProcess] = field(default_factory=list)
    clients: list[RawClient] = field(default_factory=list)

    @property
    def address(self) -> str:
        """What `ledgermq.connect` is given."""
        return f"kafka://{self.bootstrap}/{self.claim.queue_manager}"

    @property
    def ledger(self) -> Ledger:
        """Where its log is."""
        return Ledger(self.bootstrap, self.topics, self.claim, 30.0)

    def connect(self, **settings: Any) -> ledgermq.Connection:
        """A connection with a time-out that lets a failing test end soon."""
        given = {"timeout": 20.0, "topic_prefix": self.topics.prefix, **settings}
        return ledgermq.connect(self.address, **given)

    def command(self, *words: str) -> int:
        """The exit code of a command that speaks to it."""
        where = ("--bootstrap", self.bootstrap, "--topic-prefix", self.topics.prefix)
        return main([*words, *where, "--timeout", "5"])

    def worker(
        self,
        name: str = "",
        *,
        ready: bool = True,
        version: int = 1,
        clock_seconds: int = 0,
        **environment: Any,
    ) -> WorkerProcess:
        """Starts a worker with LEDGERMQ_<NAME> set; waits until it answers if `ready`.

        It knows the protocol up to a version, and takes those above 1 for the same as that; its
        clock is ahead by so much.
        """
        program = ""
        if version != 1 or clock_seconds:
            # What is imported already would not see either.
            program = PROGRAM.format(version=version, clock_seconds=clock_seconds)
        worker = WorkerProcess(self, name or f"w{len(self.workers)}", environment, program)
        self.workers.append(worker)
        if ready:
            self.wait_for_worker()
        return worker

    def wait_for_worker(self, seconds: float = 40.0) -> None:
        """Waits until a worker answers."""
        ended = all(worker.code is not None for worker in self.workers)
        answered = wait_for_worker(self.bootstrap, self.topics.prefix, seconds)
        logs = "\n".join(worker.log for worker in self.workers)
        assert answered, f"no worker answers (all ended before: {ended}); logs:\n{logs}"

    @contextmanager
    def program(self, text: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
        """A client in a process: its program is given address, topic prefix and arguments.

        At the end it is killed.
        """
        started = subprocess.Popen(
            [sys.executable, "-c", text, self.address, self.topics.prefix, *arguments],
            env=os.environ | {"PYTHONPATH": str(SERVICES)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            yield started
        finally:
            started.kill()
            started.wait(20)

    def client(self, lane: int = 0) -> RawClient:
        """A new connection on a lane."""
        client = RawClient(self.bootstrap, self.topics, self.claim, lane)
        self.clients.append(client)
        return client

    def close(self) -> None:
        """Ends everything."""
        for worker in self.workers:
            worker.kill()
        for client in self.clients:
            client.close()


def new_place(bootstrap: str, directory: Path, **sizes: int) -> Place:
    """Makes the topics and claims QM1."""
    topics = Topics(f"test-{os.getpid()}-{next(PREFIXES)}")
    sizes = {"partitions": 1, "lanes": 2} | sizes
    ensure_topics(bootstrap, topics, **sizes)
    claim = claim_queue_manager(bootstrap, topics, "QM1", lanes=sizes["lanes"])
    return Place(bootstrap=bootstrap, topics=topics, claim=claim, directory=directory, **sizes)


class WorkerProcess:
    """A running worker: of a program of its own, or forked where all of that is imported."""

    def __init__(self, place: Place, name: str, environment: dict[str, Any], program: str) -> None:
        self.name = name
        self._log = place.directory / f"{name}-{len(place.workers)}.log"
        given = {
            "BOOTSTRAP": place.bootstrap,
            "TOPIC_PREFIX": place.topics.prefix,
            "DATA_DIRECTORY": place.directory / name,
            "NAME": name,
            "PARTITIONS": place.partitions,
            "LANES": place.lanes,
            "WEB_PORT": -1,
        }
        variables = {f"LEDGERMQ_{key}": str(value) for key, value in (given | environment).items()}
        variables = {**os.environ, "PYTHONPATH": str(SERVICES)} | variables
        self._log.touch()
        self._process: ForkedWorker | subprocess.Popen[bytes]
        if not program:
            self._process = ForkedWorker(variables, self._log)
            return
        with self._log.open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-c", program],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=variables | {PARENT_VARIABLE: str(os.getpid())},
            )

    @property
    def log(self) -> str:
        """What it said so far."""
        return self._log.read_text(errors="replace")

    @property
    def code(self) -> int | None:
        """Its exit code, or None while it runs."""
        return self._process.poll()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def wait(self, seconds: float = 40.0) -> int:
        """Waits for its end; the exit code."""
        with suppress(subprocess.TimeoutExpired):
            return self._process.wait(seconds)
        raise AssertionError(f"the worker did not end; its log:\n{self.log}")

    def wait_for_log(self, text: str, seconds: float = 40.0) -> None:
        """Waits until it says something."""
        self.wait_for_count(text, 1, seconds)

    def wait_for_count(self, text: str, count: int, seconds: float = 40.0) -> None:
        """Waits until it has said something so often."""
        limit = time.monotonic() + seconds
        while self.log.count(text) < count:
            assert time.monotonic() < limit, f"{text!r} was not said; log:\n{self.log}"
            time.sleep(0.05)

    def kill(self) -> None:
        """Kills it as a crash would."""
        if self.code is None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()

    def signal(self, number: signal.Signals) -> None:
        """Sends it a signal."""
        self._process.send_signal(number)

    def stop(self) -> int:
        """Stops it in order; the exit code."""
        self._process.send_signal(signal.SIGTERM)
        return self.wait()
