"""A secured installation: a broker that lets nobody in, users of each role, a worker among them."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ledgermq
from ledgermq.errors import LogError, QueueManagerNotFoundError, WorkerUnavailableError
from ledgermq.wire.kafka.rights import Right, rights_of
from ledgermq.wire.topics.log_topics import TOPIC_PREFIX_DEFAULT
from support.brokers.forked_command import ForkedCommand
from support.brokers.secured_broker import SecuredBroker, as_variables
from support.checkout import ROOT, SERVICES

PATIENCE_SECONDS = 120


@dataclass(frozen=True, kw_only=True)
class Ended:
    """What a command said and how it ended."""

    code: int
    out: str
    err: str


@dataclass(kw_only=True)
class Installation:
    """Users with the rights that `ledgermq acl` prints, and what was said by all that ran."""

    broker: SecuredBroker
    directory: Path
    passwords: dict[str, str] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)
    workers: list[ForkedCommand] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def options(self, user: str) -> dict[str, str]:
        """Kafka options of a user with a password."""
        return self.broker.by_password(user, self.passwords[user])

    def add_user(self, user: str, role: str) -> list[Right]:
        """Makes a user with the rights of a role; returns them."""
        self.passwords[user] = f"secret-of-{user}"
        self.broker.add_user(user, self.passwords[user])
        rights = rights_of(role, TOPIC_PREFIX_DEFAULT)
        self.broker.allow(user, rights)
        return rights

    def variables(self, options: Mapping[str, str]) -> dict[str, str]:
        """An environment in which Kafka is reached by these options."""
        by_password = options["security.protocol"] == "SASL_SSL"
        where = self.broker.scram_bootstrap if by_password else self.broker.tls_bootstrap
        # The first address is nobody's, as when a broker of several is down.
        return {**as_variables(options), "LEDGERMQ_BOOTSTRAP": f"127.0.0.1:9,{where}"}

    def run(self, variables: Mapping[str, str], *arguments: str) -> Ended:
        """Runs a command as a user would."""
        number = next(self._numbers)
        out, errors = (self.directory / f"command-{number}.{kind}" for kind in ("out", "err"))
        found = self._start(variables, arguments, out, errors)
        try:
            code = found.wait(PATIENCE_SECONDS)
        finally:
            found.kill()
        ended = Ended(code=code, out=out.read_text(), err=errors.read_text())
        self.said.append(ended.out + ended.err)
        return ended

    def worker(self, variables: Mapping[str, str], name: str) -> ForkedCommand:
        """Starts a worker; what it says goes to the file of its name."""
        arguments = ("worker", "--name", name, "--data-dir", str(self.directory / name))
        log = self.directory / f"{name}.log"
        running = self._start(variables, arguments, log, log)
        self.workers.append(running)
        return running

    def first_worker(self, variables: Mapping[str, str]) -> subprocess.Popen[bytes]:
        """Starts one as people start it, so that anybody may read its arguments."""
        arguments = ("worker", "--name", "worker", "--data-dir", str(self.directory / "worker"))
        with (self.directory / "worker.log").open("ab") as output:
            return subprocess.Popen(
                [sys.executable, "-m", "ledgermq", *arguments],
                env=self._environment(variables),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=self.directory,
            )

    def _start(
        self, variables: Mapping[str, str], arguments: Sequence[str], out: Path, errors: Path
    ) -> ForkedCommand:
        given = self._environment(variables)
        return ForkedCommand(arguments, given, out, errors, directory=self.directory)

    def wait_for_worker(
        self, running: ForkedCommand | subprocess.Popen[bytes], **more: Any
    ) -> None:
        """Waits until the worker answers a client, who connects with these settings too."""
        limit = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                self.connect("client", timeout=10.0, **more).close()
            except (LogError, QueueManagerNotFoundError, WorkerUnavailableError):
                ended = running.poll() is not None or time.monotonic() > limit
                assert not ended, self.log_of("worker")
                time.sleep(0.2)
            else:
                return

    def log_of(self, worker: str) -> str:
        """What a worker said."""
        return (self.directory / f"{worker}.log").read_text()

    def connect(self, user: str, **more: Any) -> ledgermq.Connection:
        """A connection of a user, by options that the program gives."""
        address = f"kafka://127.0.0.1:9,{self.broker.scram_bootstrap}/QM1"
        given = {"kafka": self.options(user), "timeout": 60.0} | more
        return ledgermq.connect(address, **given)

    def _environment(self, variables: Mapping[str, str]) -> dict[str, str]:
        own = {
            "PYTHONPATH": f"{SERVICES}{os.pathsep}{ROOT / 'spark_jobs'}",
            "LEDGERMQ_WEB_PORT": "-1",
        }
        return {**os.environ, **own, **variables}


@contextmanager
def secured_installation(directory: Path) -> Iterator[Installation]:
    """A secured broker with a user of each role, and a worker that runs as user `worker`."""
    with SecuredBroker(directory) as broker:
        installation = Installation(broker=broker, directory=directory)
        for role in ("client", "worker", "auditor", "administrator"):
            installation.add_user(role, role)
        variables = installation.variables(installation.options("worker"))
        running = installation.first_worker(variables)
        try:
            installation.wait_for_worker(running)
            yield installation
        finally:
            running.terminate()
            running.wait(60)
            for worker in installation.workers:
                worker.kill()
                worker.wait()
