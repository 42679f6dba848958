"""A process forked from one that has done what all workers and commands begin with (`prepared`).

A worker computes for a second before it does anything, a command for half of that: imports, above
all. Hundreds of them are started in a run of all tests, most of them for what they do afterwards.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import threading
from collections.abc import Callable
from multiprocessing import connection
from pathlib import Path
from typing import Any

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["support.brokers.prepared"])


class Forked:
    """A running process of a function, with what `subprocess.Popen` has of one."""

    def __init__(self, function: Callable[..., None], *arguments: Any) -> None:
        # A daemon: it ends with the tests, and is not waited for.
        self._process = CONTEXT.Process(target=function, args=arguments, daemon=True)
        self._process.start()
        # Its exit code can be read once, by one thread.
        self._reading = threading.Lock()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid or 0

    @property
    def returncode(self) -> int | None:
        """Its exit code, or None while it runs."""
        return self.poll()

    def poll(self) -> int | None:
        """Its exit code, or None while it runs."""
        with self._reading:
            return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Waits for its end; the exit code, or TimeoutExpired if it runs on."""
        connection.wait([self._process.sentinel], timeout)
        code = self.poll()
        if code is None:
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0.0)
        return code

    def send_signal(self, number: int) -> None:
        """Sends it a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Asks it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Kills it as a crash would."""
        self.send_signal(signal.SIGKILL)


def become(environment: dict[str, str], out: str, errors: str) -> None:
    """Gives the process that was forked an environment, files to write to, and nothing to read."""
    os.environ.clear()
    os.environ.update(environment)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number, path in ((1, out), (2, errors)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644), number)


def emptied(path: Path) -> str:
    """The name of a file in which nothing stands."""
    path.write_bytes(b"")
    return str(path)
