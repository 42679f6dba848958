"""What the demo plays on: a broker and a supervised worker of its own, or what runs already.

Its own lie in a directory as `ledgermq up` has it, so that what the demo leaves can be looked at
with `ledgermq up --data-dir` afterwards. A directory that the demo did not make is left alone.
"""

from __future__ import annotations

import contextlib
import json
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, Self

from ledgermq.cli.options.running import announce, running
from ledgermq.errors import LedgerMQError
from ledgermq.processor.worker.supervisor import Supervisor
from ledgermq.wire.topics.log_topics import Topics

MARK: Final = "demo.json"
PATIENCE_SECONDS: Final = 120.0
LOOK_SECONDS: Final = 0.01


class DirectoryNotOursError(LedgerMQError):
    """The directory holds something that the demo did not make."""

    code = "directory-in-use"


class Stage:
    """A directory for the demo's files, and the address of what it plays on.

    Attributes:
        kills: Whether a worker can be killed here, and is replaced.
    """

    queue_manager = "QM1"
    topic_prefix = "ledgermq"
    bootstrap: str
    kills = True

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def kill_worker(self, name: str) -> str:
        """Kill the worker of that name; what was killed, in words."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        self._clear()
        return self

    def __exit__(self, *_error: object) -> None:
        pass

    @property
    def address(self) -> str:
        return f"kafka://{self.bootstrap}/{self.queue_manager}"

    @property
    def topics(self) -> Topics:
        return Topics(self.topic_prefix)

    def named(self, position: int) -> str:
        return f"{self.queue_manager}@{position}"

    def _clear(self) -> None:
        """Make the directory, or empty what the demo made; else DirectoryNotOursError."""
        found = running(self.directory)
        if found is not None:
            raise DirectoryNotOursError(
                f"{self.directory} is in use by process {found['pid']}: stop that first"
            )
        if self.directory.exists() and any(self.directory.iterdir()):
            if not (self.directory / MARK).is_file():
                raise DirectoryNotOursError(
                    f"{self.directory} is not empty and was not made by the demo; nothing was "
                    "changed. Give another --data-dir"
                )
            shutil.rmtree(self.directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        mark = {"made by": "ledgermq demo", "may be": "deleted"}
        (self.directory / MARK).write_text(json.dumps(mark) + "\n", encoding="utf-8")


class OwnStage(Stage):
    """Broker and worker of the demo's own; a context manager that stops both, whatever happens."""

    def __init__(self, directory: Path, *, tell: Callable[[str], None]) -> None:
        super().__init__(directory)
        self._supervisor = Supervisor(directory, tell=tell)
        self._running = contextlib.ExitStack()

    def kill_worker(self, name: str) -> str:
        del name
        killed = self._worker_pid
        self._supervisor.kill_worker()
        while self._supervisor.worker_pid == killed:
            time.sleep(LOOK_SECONDS)
        return f"process {killed}"

    @property
    def _worker_pid(self) -> int:
        """The process id of the worker that runs now; waits for one."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self._supervisor.worker_pid is None and time.monotonic() < deadline:
            time.sleep(LOOK_SECONDS)
        return self._supervisor.worker_pid or 0

    def __enter__(self) -> Self:
        super().__enter__()
        with contextlib.ExitStack() as stack:
            tell_others = stack.enter_context(announce(self.directory))
            stack.callback(self._supervisor.stop)
            self._supervisor.start(PATIENCE_SECONDS)
            self.bootstrap = self._supervisor.bootstrap
            tell_others(bootstrap=self.bootstrap, queue_manager=self.queue_manager)
            self._running = stack.pop_all()
        return self

    def __exit__(self, *_error: object) -> None:
        self._running.close()


class GuestStage(Stage):
    """An installation that runs already, where the demo only brings its queues.

    A worker is killed by a command, in which `{worker}` is its name; without one, none is killed.
    """

    def __init__(self, directory: Path, bootstrap: str, kill_command: str | None) -> None:
        super().__init__(directory)
        self.bootstrap = bootstrap
        self.kills = kill_command is not None
        self._kill_command = kill_command or ""

    def kill_worker(self, name: str) -> str:
        command = [part.replace("{worker}", name) for part in shlex.split(self._kill_command)]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        if ended.returncode != 0:
            raise LedgerMQError(
                f"{shlex.join(command)} ended with {ended.returncode}: "
                f"{ended.stderr.strip()[-500:]}"
            )
        return name
