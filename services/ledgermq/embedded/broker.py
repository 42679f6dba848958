"""A single-node Kafka broker and controller that runs beside its owner and dies with it.

The broker is a Java process behind a guard process (see guard.py). Its directory is locked for as
long as either lives; what the directory holds is told in directory.py. Storage is prepared once;
every later start, after a stop or a crash, recovers the data and keeps the cluster's id and, if it
is free and no other is asked for, the port.
"""

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from ledgermq.embedded import guard
from ledgermq.embedded.class_archive import archive_options
from ledgermq.embedded.directory import PORT_MAX, BrokerDirectory, BrokerRecord
from ledgermq.embedded.errors import BrokerStartError, ForeignClusterError, PortTakenError
from ledgermq.embedded.jars import BROKER, broker_jars
from ledgermq.embedded.java import QUICK_START, find_java
from ledgermq.embedded.ports import choose_port, port_is_free
from ledgermq.embedded.settings import AFTER_CRASH, HOST, java_options, server_properties
from ledgermq.errors.shown import shown

START_ATTEMPTS_MAX = 3
# Above this, an exit status is that of a signal.
SIGNALLED = 128
FORMAT_TIMEOUT_SECONDS = 120
STOP_TIMEOUT_SECONDS = 30
SPAWN_TIMEOUT_SECONDS = 30
PROBE_PAUSE_SECONDS = 0.05
PROBE_TIMEOUT_SECONDS = 2
LOG_LINES_MAX = 10_000
ERRORS_SHOWN = 3
FREE_BYTES_LOW = 256 * 1024 * 1024


class EmbeddedBroker:
    """A Kafka broker in a directory; a context manager that starts and stops it.

    Not to be shared by threads without a lock of their own. It must be started by the process that
    is to own it: it is killed when that process ends, however it ends.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        port: int = 0,
        heap: str = "512m",
        *,
        ready_timeout_seconds: float = 120.0,
        brief: bool = False,
    ) -> None:
        """Describe a broker; nothing is touched until `start()`.

        Args:
            directory: Where data, log and identity are kept; created if it is missing.
            port: The loopback port for clients; 0 keeps the last one, or chooses one.
            heap: The Java heap's limit, as Java writes it.
            ready_timeout_seconds: How long a start may take, recovery of the data included.
            brief: Whether it lives too short for Java's optimising compiler to pay, as for a test;
                it starts sooner, and needs nearly twice the processor time in the long run.

        Raises:
            BrokerStartError: No port has that number.
        """
        if type(port) is not int or not 0 <= port <= PORT_MAX:
            raise BrokerStartError(f"{shown(port)} is no port: give a number from 0 to {PORT_MAX}")
        self.files = BrokerDirectory(Path(directory))
        self._wanted_port = port
        self._heap = heap
        self._ready_timeout_seconds = ready_timeout_seconds
        self._brief = brief
        self._record: BrokerRecord | None = None
        self._guard: subprocess.Popen[bytes] | None = None
        self._pid: int | None = None
        self._log_size = 0

    def __repr__(self) -> str:
        state = f"pid {self._pid}" if self.running else "stopped"
        return f"EmbeddedBroker({str(self.files.path)!r}, {state})"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()

    @property
    def directory(self) -> Path:
        return self.files.path

    def log_tail(self, lines: int) -> str:
        """The last lines of the log, none from before the last start; OSError if unreadable."""
        return self.files.log_tail(since=self._log_size, lines=lines)

    @property
    def killed_by(self) -> int | None:
        """The number of the signal that ended it; None if none did, or it runs."""
        status = None if self._guard is None else self._guard.poll()
        if status is None or 0 <= status <= SIGNALLED:
            return None
        # The guard says what ended the broker in the way of a shell.
        return status - SIGNALLED if status > 0 else -status

    @property
    def running(self) -> bool:
        return self._guard is not None and self._guard.poll() is None

    @property
    def pid(self) -> int | None:
        """The process id of the broker's Java, or None when it is not running."""
        return self._pid if self.running else None

    @property
    def port(self) -> int:
        """The client port of the last start.

        Raises:
            BrokerStartError: It was never started.
        """
        return self._started().port

    @property
    def bootstrap(self) -> str:
        """The bootstrap address of the last start, such as "127.0.0.1:20123".

        Raises:
            BrokerStartError: It was never started.
        """
        return f"{HOST}:{self.port}"

    def start(self) -> Self:
        """Start the broker and wait until it answers; does nothing if it is running.

        Raises:
            BrokerStartError: It ended or did not answer in time; the text has what its log says.
            DirectoryInUseError: Another live broker works in the directory.
            ForeignClusterError: The directory holds the data of another cluster.
            JarsUnavailableError: The broker's jars could not be fetched.
            JavaMissingError: No Java was found.
            JavaTooOldError: No Java found is new enough.
            PortTakenError: The port asked for is in use.
        """
        if self.running:
            return self
        java = find_java()
        jars = broker_jars()
        command = [str(java), *archive_options(BROKER.name, java, jars), *java_options(self._heap)]
        command += [QUICK_START] if self._brief else []
        command += ["-cp", os.pathsep.join(str(jar) for jar in jars)]
        try:
            with self.files.locked() as lock:
                return self._start_locked(command, lock)
        except OSError as cause:
            where = f"{cause.filename}: " if cause.filename else ""
            raise BrokerStartError(
                f"The broker in {self.directory} did not start, as the system refused: "
                f"{where}{cause.strerror or cause}. See to it that there is room and that this "
                "user may write there, and start it again."
            ) from cause

    def stop(self) -> None:
        """Stop the broker in good order, or by force if that takes too long."""
        if self._guard is None:
            return
        if self.running:
            self._guard.terminate()
            try:
                self._guard.wait(timeout=STOP_TIMEOUT_SECONDS)
            except subprocess.TimeoutExpired:
                self.kill()
        self._forget_processes()

    def kill(self) -> None:
        """Kill the broker as a crash would (SIGKILL), and wait until it is gone."""
        if self._guard is None:
            return
        # While the guard lives it has not reaped the broker, so the id cannot be another's.
        if self._pid is not None and self.running:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)
        elif self.running:
            self._guard.kill()
        self._guard.wait()
        self._forget_processes()

    def _started(self) -> BrokerRecord:
        if self._record is None:
            raise BrokerStartError(
                f"The broker in {self.directory} was never started, so it has no address; call "
                "start() first."
            )
        return self._record

    def _start_locked(self, command: list[str], lock: int) -> Self:
        record = self.files.load()
        for attempt in range(1, START_ATTEMPTS_MAX + 1):
            record = self._prepare(record, command)
            self._log_size = self.files.log_size()
            try:
                self._spawn([*command, "kafka.Kafka", str(self.files.properties)], lock)
                self._record = record
                self._wait_until_ready(record)
            except BrokerStartError:
                self.kill()
                # Between the choice of a port and its use another process may have taken it.
                if attempt == START_ATTEMPTS_MAX or not self._lost_a_port(record):
                    raise
            except BaseException:
                self.kill()
                raise
            else:
                return self
        raise AssertionError("every attempt returns or raises")

    def _prepare(self, record: BrokerRecord, command: list[str]) -> BrokerRecord:
        port = self._choose_client_port(record)
        controller_port = choose_port(preferred=record.controller_port, avoid=port)
        crashed = record.formatted and not self.files.ended_in_order
        self.files.properties.write_text(
            server_properties(data=self.files.data, port=port, controller_port=controller_port)
            + (AFTER_CRASH if crashed else ""),
            encoding="ascii",
        )
        if record.formatted:
            self.files.refuse_incomplete()
        else:
            self._format(record, command)
        record = replace(
            record,
            formatted=True,
            port=port,
            controller_port=controller_port,
            owner_pid=os.getpid(),
        )
        self.files.save(record)
        return record

    def _choose_client_port(self, record: BrokerRecord) -> int:
        if not self._wanted_port:
            return choose_port(preferred=record.port)
        if not port_is_free(self._wanted_port):
            raise PortTakenError(
                f"Port {self._wanted_port} on {HOST} is used by another process. Stop it, choose "
                "another port, or give 0 to have one chosen."
            )
        return self._wanted_port

    def _format(self, record: BrokerRecord, command: list[str]) -> None:
        # What lies there is from a preparation that was cut short; no broker ever ran on it.
        self.files.remove_data()
        log = self.files.open_log()
        self._log_size = self.files.log_size()
        arguments = ["kafka.tools.StorageTool", "format", "--standalone"]
        arguments += ["--config", str(self.files.properties)]
        arguments += [f"--cluster-id={record.cluster_id}"]
        try:
            answer = subprocess.run(
                [command[0], QUICK_START, *command[1:], *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                timeout=FORMAT_TIMEOUT_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as cause:
            raise self._failure("preparing its storage took too long") from cause
        finally:
            os.close(log)
        if answer.returncode != 0:
            raise self._failure("its storage could not be prepared")

    def _spawn(self, command: list[str], lock: int) -> None:
        log = self.files.open_log()
        # Isolated and without site packages: the guard needs the standard library alone.
        guarded = [sys.executable, "-I", "-S", str(Path(guard.__file__))]
        guarded += [str(os.getpid()), str(lock), *command]
        try:
            self._guard = subprocess.Popen(
                guarded,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=self.directory,
                pass_fds=[lock],
                # Ctrl-C in a terminal goes to the owner, which stops the broker in its turn.
                start_new_session=True,
            )
        finally:
            os.close(log)
        assert self._guard.stdout is not None
        with self._guard.stdout as answer:
            ready, _, _ = select.select([answer], [], [], SPAWN_TIMEOUT_SECONDS)
            line = answer.readline() if ready else b""
        if not line.strip().isdigit():
            raise self._failure("its process could not be started")
        self._pid = int(line)

    def _wait_until_ready(self, record: BrokerRecord) -> None:
        deadline = time.monotonic() + self._ready_timeout_seconds
        admin: AdminClient | None = None
        while True:
            if not self.running:
                raise self._failure("it ended while starting")
            if time.monotonic() > deadline:
                seconds = f"{self._ready_timeout_seconds:g} seconds"
                raise self._failure(f"it did not answer within {seconds}")
            if admin is None and _accepts_connections(record.port):
                admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
            if admin is not None and self._answers(admin, record):
                return
            time.sleep(PROBE_PAUSE_SECONDS)

    def _answers(self, admin: AdminClient, record: BrokerRecord) -> bool:
        try:
            metadata = admin.list_topics(timeout=PROBE_TIMEOUT_SECONDS)
        except KafkaException:
            return False
        # A broker that the controller has not let in yet answers, but lists no broker.
        if not metadata.brokers:
            return False
        answering = str(metadata.cluster_id)
        if answering != record.cluster_id:
            raise ForeignClusterError(
                f"Port {record.port} is answered by Kafka cluster {answering}, not by "
                f"{record.cluster_id} of {self.directory}. Stop the other one and start again."
            )
        return True

    def _lost_a_port(self, record: BrokerRecord) -> bool:
        lost = "Address already in use" in self.log_tail(200)
        if lost and self._wanted_port and not port_is_free(self._wanted_port):
            raise PortTakenError(
                f"Port {record.port} on {HOST} was taken by another process just now. Stop it, or "
                "choose another port."
            )
        return lost

    def _failure(self, what: str) -> BrokerStartError:
        free_bytes = self.files.free_bytes()
        hint = ""
        if free_bytes < FREE_BYTES_LOW:
            hint = f" Only {free_bytes // 1_000_000} MB are free there: make room first."
        errors = self._first_errors()
        said = f"it says:\n{errors}"
        if not errors:
            said = f"it ends with:\n{self.log_tail(25)}"
        return BrokerStartError(
            f"The embedded broker in {self.directory} did not start: {what}.{hint} Its log is "
            f"{self.files.log}; {said}"
        )

    def _first_errors(self) -> str:
        """What Kafka calls an error, and the exception behind it; how it shuts down follows."""
        lines = self.log_tail(LOG_LINES_MAX).splitlines()
        errors = [pair for pair in pairwise([*lines, ""]) if " ERROR " in pair[0]]
        return "\n".join(line for pair in errors[:ERRORS_SHOWN] for line in pair if line)

    def _forget_processes(self) -> None:
        self._guard = None
        self._pid = None


def _accepts_connections(port: int) -> bool:
    try:
        with socket.create_connection((HOST, port), timeout=PROBE_TIMEOUT_SECONDS):
            return True
    except OSError:
        return False
