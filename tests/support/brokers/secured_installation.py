"""A secured installation: a broker that lets nobody in, users of each role, a worker among them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ledgermq
from ledgermq.errors import LogError, QueueManagerNotFoundError, WorkerUnavailableError
from ledgermq.wire.kafka.rights import Right, rights_of
from ledgermq.wire.topics.log_topics import TOPIC_PREFIX_DEFAULT
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
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

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
        found = subprocess.run(
            self._command(*arguments),
            env=self._environment(variables),
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            cwd=self.directory,
            check=False,
        )
        self.said.append(found.stdout + found.stderr)
        return Ended(code=found.returncode, out=found.stdout, err=found.stderr)

    def worker(self, variables: Mapping[str, str], name: str) -> subprocess.Popen[bytes]:
        """Starts a worker; what it says goes to the file of its name."""
        with (self.directory / f"{name}.log").open("ab") as output:
            running = subprocess.Popen(
                self._command("worker", "--name", name, "--data-dir", str(self.directory / name)),
                env=self._environment(variables),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=self.directory,
            )
        self.workers.append(running)
        return running

    def wait_for_worker(self, running: subprocess.Popen[bytes], **more: Any) -> None:
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

    def _command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "ledgermq", *arguments]

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
        running = installation.worker(variables, "worker")
        try:
            installation.wait_for_worker(running)
            yield installation
        finally:
            running.terminate()
            running.wait(60)
            for worker in installation.workers:
                worker.kill()
                worker.wait()
