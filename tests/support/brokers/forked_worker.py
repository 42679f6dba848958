"""A worker's process forked from one that has done what all workers begin with (`prepared`).

A worker computes for a second before it does anything: imports, above all. A few hundred workers
are started in a run of all tests, most of them for what they do afterwards.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import sys
import threading
from multiprocessing import connection
from pathlib import Path

from ledgermq.processor.__main__ import main
from ledgermq.processor.worker import crash_points
from ledgermq.processor.worker.process import PARENT_VARIABLE

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload([__name__, "support.brokers.prepared"])


class ForkedWorker:
    """A running worker, with what `subprocess.Popen` has of a process."""

    def __init__(self, environment: dict[str, str], log: Path) -> None:
        # A daemon: it ends with the tests, and is not waited for.
        self._process = CONTEXT.Process(target=_work, args=(environment, str(log)), daemon=True)
        self._process.start()
        # Its exit code can be read once, by one thread.
        self._reading = threading.Lock()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid or 0

    def poll(self) -> int | None:
        """Its exit code, or None while it runs."""
        with self._reading:
            return self._process.exitcode

    def wait(self, seconds: float | None = None) -> int | None:
        """Waits for its end; the exit code, or None if it runs on."""
        connection.wait([self._process.sentinel], seconds)
        return self.poll()

    def send_signal(self, number: int) -> None:
        """Sends it a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)


def _work(environment: dict[str, str], log: str) -> None:
    os.environ.clear()
    # The process that forks ends with the tests, and the worker with that.
    os.environ.update(environment | {PARENT_VARIABLE: str(os.getppid())})
    importlib.reload(crash_points)  # it reads the environment
    opened = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(opened, 1)
    os.dup2(opened, 2)
    sys.exit(main())
