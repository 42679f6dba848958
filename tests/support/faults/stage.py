"""The stage of a fault run: a broker, workers and clients, each a child that can be hurt."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from ledgermq.embedded import EmbeddedBroker
from ledgermq.processor.worker.process import PARENT_VARIABLE
from support.brokers.far_broker import networks
from support.brokers.raw_client import RawClient
from support.brokers.worker_process import Place, WorkerProcess, new_place
from support.checkout import ROOT, SERVICES
from support.faults.history import Recorder

# One of two takes from the queue that delivers to one consumer at a time.
ROLES = ("auto", "client", "individual", "single", "single", "moving", "groups", "aio")
# The network that all workers are behind; clients of one role have one.
WORKERS = "workers"
CHECKPOINT_SECONDS = 2.0
START_SECONDS = 90.0
ANSWER_SECONDS = 60.0


class ClientProcess:
    """A client of a run."""

    def __init__(
        self, place: Place, role: str, name: str, directory: Path, seed: int, lose: float = 0.0
    ) -> None:
        self.role, self.name = role, name
        self.log_path = directory / f"{name}.log"
        command = [sys.executable, "-m", "support.faults.roles", role, "--name", name]
        command += ["--address", place.address, "--topic-prefix", place.topics.prefix]
        command += ["--directory", str(directory), "--seed", str(seed), "--lose", str(lose)]
        path = os.pathsep.join([str(SERVICES), str(ROOT / "tests")])
        with self.log_path.open("wb") as output:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=os.environ | {"PYTHONPATH": path, PARENT_VARIABLE: str(os.getpid())},
            )

    def signal(self, number: signal.Signals) -> None:
        """Sends it a signal."""
        self.process.send_signal(number)

    def wait(self, seconds: float) -> int:
        """Waits for its end; the exit code."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} did not end in {seconds} s:\n{self.said}") from None

    @property
    def said(self) -> str:
        """The last of what it said."""
        return self.log_path.read_text(errors="replace")[-3000:]

    def kill(self) -> None:
        """Kills it as a crash would."""
        self.process.kill()
        self.process.wait()


class Stage:
    """Everything of a run, on a broker of its own in a directory.

    Args:
        directory: Where broker, workers and histories have their files.
        seed: Of all that is left to chance.
        workers: How many there are.
    """

    def __init__(self, directory: Path, seed: int, workers: int = 2) -> None:
        self.directory = directory
        self.histories = directory / "histories"
        self.histories.mkdir()
        self.random = random.Random(seed)
        self.history = Recorder(self.histories, "nemesis")
        self._open = contextlib.ExitStack()
        self.networks = self._open.enter_context(networks(*set(ROLES), WORKERS))
        home = directory / "disk" / "broker"
        self.broker = EmbeddedBroker(home, ready_timeout_seconds=300.0, brief=True)
        self.broker.start()
        self.place = new_place(self.broker.bootstrap, directory)
        self.workers: dict[str, WorkerProcess] = {}
        self.clients: dict[str, ClientProcess] = {}
        self._numbers = itertools.count(1)
        for number in range(workers):
            self.start_worker(f"w{number}")
        self.place.wait_for_worker(START_SECONDS)

    # Workers ------------------------------------------------------------------------------------

    def start_worker(self, name: str, **environment: Any) -> WorkerProcess:
        """Starts a worker, in the place of one of the same name that ended."""
        given = {"CHECKPOINT_SECONDS": CHECKPOINT_SECONDS} | environment
        place = replace(self.place, bootstrap=self.networks[WORKERS].address)
        worker = place.worker(name, ready=False, **given)
        self.workers[name] = worker
        return worker

    def owner(self) -> str:
        """The name of the worker that answers for the queue manager."""
        asker = RawClient(self.broker.bootstrap, self.place.topics, self.place.claim)
        try:
            answer = asker.ask("QUEUE_MANAGER", wait_seconds=ANSWER_SECONDS)
            return str(json.loads(answer["document"])["worker"])
        finally:
            asker.close()

    def mend_workers(self) -> None:
        """Starts again, without crash points, whatever worker is not there."""
        for name, worker in list(self.workers.items()):
            if worker.code is not None:
                self.start_worker(name)

    # Clients ------------------------------------------------------------------------------------

    def start_client(self, role: str, lose: float = 0.0) -> ClientProcess:
        """Starts a client; no two of a run have one name."""
        name = f"{role}-{next(self._numbers)}"
        seed = self.random.randrange(2**32)
        place = self.place
        if role in self.networks:
            place = replace(place, bootstrap=self.networks[role].address)
        client = ClientProcess(place, role, name, self.histories, seed, lose)
        self.clients[name] = client
        return client

    def stop_clients(self, seconds: float) -> None:
        """Has all clients end what they are doing; AssertionError if one cannot (I12)."""
        for client in self.clients.values():
            client.signal(signal.SIGTERM)
        limit = time.monotonic() + seconds
        for client in self.clients.values():
            code = client.wait(max(1.0, limit - time.monotonic()))
            assert code == 0, f"{client.name} ended with {code}: {client.said}"
        self.clients.clear()

    def drain(self, seconds: float) -> None:
        """Takes all that is left, by a client of its own."""
        client = self.start_client("draining")
        assert client.wait(seconds) == 0, client.said
        del self.clients[client.name]

    # Resources ----------------------------------------------------------------------------------

    def resources(self) -> dict[str, dict[str, int]]:
        """Memory in MiB, open files and threads of every worker that runs."""
        found = {}
        for name, worker in self.workers.items():
            with contextlib.suppress(OSError):
                found[name] = _resources_of(worker.pid)
        return found

    def close(self) -> None:
        """Ends everything."""
        for client in self.clients.values():
            client.kill()
        for worker in self.workers.values():
            with contextlib.suppress(ProcessLookupError):
                worker.signal(signal.SIGCONT)
        self.place.close()
        self.broker.stop()
        self._open.close()


def _resources_of(pid: int) -> dict[str, int]:
    status = Path(f"/proc/{pid}/status").read_text()
    named = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    return {
        "memory MiB": int(named["VmRSS"].split()[0]) // 1024,
        "files": len(list(Path(f"/proc/{pid}/fd").iterdir())),
        "threads": int(named["Threads"]),
    }
