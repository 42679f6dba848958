"""The supervisor of `ledgermq up`: an embedded broker and one worker, restarted when it dies (D16).

The worker is a process of its own, started from a thread that lives as long as the supervisor, and
told to die when that thread does; the broker looks after itself (ledgermq.embedded).
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Self

from ledgermq.embedded import EmbeddedBroker
from ledgermq.embedded.directory import open_log
from ledgermq.errors import LedgerMQError
from ledgermq.processor.worker.exit_codes import EXIT_FAULT, EXIT_REFUSED, EXIT_STOPPED, EXIT_USAGE
from ledgermq.processor.worker.process import PARENT_VARIABLE
from ledgermq.processor.worker.readiness import wait_for_worker
from ledgermq.wire.kafka.settings import forget_kafka_environment

log = logging.getLogger(__name__)

BACK_OFF_SECONDS = 0.2
BACK_OFF_SECONDS_MAX = 10.0
# A worker that ran for this long was well; its next death starts the back-off anew.
WELL_SECONDS = 10.0
BROKER_LINES = 3
BROKER_LOG_LINES = 2_000
# With less than this a disk is full: a broker writes no segment, and hardly its log.
FULL_DISK_BYTES = 1_000_000
STOP_SECONDS = 20.0
WORKER_NAME = "worker-1"


class WorkerNotRunningError(LedgerMQError):
    """The worker did not start, or ended for a reason that starting it again cannot mend."""

    code = "worker-not-running"


def stop_signals() -> list[signal.Signals]:
    """Ctrl-C, SIGTERM, and the end of the terminal unless that is ignored, as `nohup` has it."""
    is_heard = signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN
    return [signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if is_heard else [])]


class Supervisor:
    """Runs a broker and a worker on one data directory.

    Args:
        data_directory: Where everything is kept: the broker's data, the worker's log.
        broker_port: Port for clients; 0 keeps the last one, or chooses one.
        topic_prefix: Prefix of the log topics.
        queue_managers: Claimed if the registry is empty.
        broker: A broker to use in place of the embedded one in the data directory.
        tell: Gets a line for people whenever something happens.
    """

    def __init__(
        self,
        data_directory: Path,
        *,
        broker_port: int = 0,
        topic_prefix: str = "ledgermq",
        queue_managers: Sequence[str] = ("QM1",),
        broker: EmbeddedBroker | None = None,
        tell: Callable[[str], None] = log.info,
    ) -> None:
        self._directory = data_directory
        self.broker = broker or EmbeddedBroker(data_directory / "broker", broker_port)
        self._topic_prefix = topic_prefix
        self._queue_managers = tuple(queue_managers)
        self._tell = tell
        self._worker: subprocess.Popen[bytes] | None = None
        self._watch: threading.Thread | None = None
        self._stopping = threading.Event()
        self._code: int | None = None
        # How large the worker's log was: what it said before is not why it ended.
        self._log_begins = 0
        self.restarts = 0

    @property
    def bootstrap(self) -> str:
        return self.broker.bootstrap

    @property
    def worker_pid(self) -> int | None:
        worker = self._worker
        return worker.pid if worker is not None and worker.poll() is None else None

    @property
    def worker_log(self) -> Path:
        return self._directory / "worker.log"

    def start(self, timeout_seconds: float = 60.0) -> Self:
        """Starts broker and worker and waits until the worker answers.

        Raises:
            EmbeddedError: The broker did not start.
            WorkerNotRunningError: The worker did not answer in time.
        """
        self._directory.mkdir(parents=True, exist_ok=True)
        # This broker has no users; what the environment says is for another.
        forget_kafka_environment()
        self.broker.start()
        self._stopping.clear()
        self._code = None
        self._log_begins = self.worker_log.stat().st_size if self.worker_log.exists() else 0
        self._watch = threading.Thread(target=self._keep_running, name="supervisor", daemon=True)
        self._watch.start()
        try:
            self.wait_until_ready(timeout_seconds)
        except BaseException:
            self.stop()
            raise
        return self

    def wait_until_ready(self, timeout_seconds: float = 60.0) -> None:
        """Raises WorkerNotRunningError if the worker does not answer in time, or ended for good."""
        stopped: set[str] = set()
        ready = wait_for_worker(
            self.bootstrap,
            self._topic_prefix,
            timeout_seconds,
            lambda: self._code is not None,
            stopped,
        )
        if not ready:
            late = f"did not answer within {timeout_seconds:.0f} s"
            gone = late if self._code is None else "ended"
            raise WorkerNotRunningError(
                f"the worker {gone}; its log, {self.worker_log}, ends with:\n{self._log_tail()}"
            )
        for name in sorted(stopped):
            self._say(f"{name} is stopped; the worker's log, {self.worker_log}, says why")

    def kill_worker(self) -> None:
        if self._worker is not None:
            self._worker.kill()

    def run(self, ready: Callable[[], None] = lambda: None) -> int:
        """Waits for one of `stop_signals` or a worker that cannot be helped; stops all; exit code.

        `ready` is called once signals are taken care of.
        """
        previous = {number: signal.signal(number, self._signalled) for number in stop_signals()}
        try:
            ready()
            while not self._stopping.wait(0.5):
                if self._code is not None:
                    break
                if not self.broker.running:
                    self._say(f"{self._broker_ended()}; stopping. {self._broker_says()}")
                    self._code = EXIT_FAULT
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)
            self.stop()
        return EXIT_STOPPED if self._code is None else self._code

    def _signalled(self, _number: int, _frame: FrameType | None) -> None:
        self._stopping.set()

    def stop(self) -> None:
        """Stops the worker, then the broker."""
        self._stopping.set()
        if self._watch is not None:
            self._watch.join(STOP_SECONDS + 10.0)
            self._watch = None
        self.broker.stop()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_error: object) -> None:
        self.stop()

    # The thread that keeps the worker running -------------------------------------------------

    def _keep_running(self) -> None:
        pause = BACK_OFF_SECONDS
        try:
            while not self._stopping.is_set():
                started = time.monotonic()
                worker = self._worker = self._spawn()
                code = self._wait(worker)
                if code is None:
                    return
                if code in (EXIT_REFUSED, EXIT_USAGE):
                    self._say(f"the worker refuses to run:\n{self._log_tail()}")
                    self._code = code
                    return
                well = time.monotonic() - started > WELL_SECONDS
                pause = BACK_OFF_SECONDS if well else min(pause * 2, BACK_OFF_SECONDS_MAX)
                self.restarts += 1
                killed = f"was killed by {_signal_name(-code)}" if code < 0 else ""
                how = killed or f"ended with code {code}"
                self._say(f"the worker {how}; starting it again in {pause:.1f} s")
                self._stopping.wait(pause)
        except OSError as error:
            self._say(f"the worker cannot be started: {error}")
            self._code = EXIT_FAULT

    def _spawn(self) -> subprocess.Popen[bytes]:
        settings = {
            "LEDGERMQ_BOOTSTRAP": self.bootstrap,
            "LEDGERMQ_NAME": WORKER_NAME,
            "LEDGERMQ_DATA_DIRECTORY": str(self._directory / "worker"),
            "LEDGERMQ_TOPIC_PREFIX": self._topic_prefix,
            "LEDGERMQ_QUEUE_MANAGERS": ",".join(self._queue_managers),
            PARENT_VARIABLE: str(os.getpid()),
        }
        output = open_log(self.worker_log)
        try:
            return subprocess.Popen(
                [sys.executable, "-m", "ledgermq.processor"],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=os.environ | settings,
                # Ctrl-C in a terminal goes to the owner, which stops the worker in its turn.
                start_new_session=True,
            )
        finally:
            os.close(output)

    def _wait(self, worker: subprocess.Popen[bytes]) -> int | None:
        """Waits for the worker's end; its code, or None if it was stopped because all stops."""
        while not self._stopping.is_set():
            try:
                return worker.wait(0.1)
            except subprocess.TimeoutExpired:
                continue
        worker.terminate()
        try:
            worker.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            worker.kill()
            worker.wait()
        return None

    def _say(self, text: str) -> None:
        """Tells people, if anybody can be told: a terminal that was closed takes nothing more."""
        with suppress(OSError):
            self._tell(text)

    def _broker_ended(self) -> str:
        number = self.broker.killed_by
        if number is None:
            return "the broker ended by itself"
        perhaps = ", perhaps by a system without memory" if number == signal.SIGKILL else ""
        return f"the broker was killed by {_signal_name(number)}{perhaps}"

    def _broker_says(self) -> str:
        path = self.broker.files.log
        try:
            # What it said before it was started is not why it ended.
            lines = self.broker.log_tail(BROKER_LOG_LINES).splitlines()
        except OSError as error:
            return f"Its log cannot be read: {error}"
        if self.broker.killed_by is not None:
            return f"Its log is {path}."
        grave = [line for line in lines if " ERROR " in line or "No space left" in line]
        shown = "".join(f"\n  {line[:300]}" for line in grave[-BROKER_LINES:])
        # The log lies on the same disk: of a full one it may not hold the reason any more.
        if self.broker.files.free_bytes() < FULL_DISK_BYTES and "No space left" not in shown:
            shown += "\n  No space left on device"
        return f"Its log, {path}, has the reason{':' if shown else '.'}{shown}"

    def _log_tail(self) -> str:
        try:
            found = self.worker_log.read_bytes()
        except OSError as error:
            return f"({error})"
        # One that was put aside meanwhile begins anew.
        since = self._log_begins if self._log_begins <= len(found) else 0
        lines = found[since:].decode(errors="replace").splitlines()
        return "\n".join(lines[-15:])


def _signal_name(number: int) -> str:
    # Most real-time signals have none.
    return next((one.name for one in signal.Signals if one == number), f"signal {number}")


@contextmanager
def running_installation(directory: Path) -> Iterator[str]:
    """A broker and a worker for as long as the block runs; the broker's address."""
    with Supervisor(directory) as supervisor:
        yield supervisor.bootstrap
