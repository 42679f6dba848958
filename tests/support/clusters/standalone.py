"""A standalone Spark cluster on this machine: a master and workers of one core each, on loopback.

Its machines have Spark and a bare Python, and nothing of this checkout: what a job needs must come
with it. Every process that the cluster starts, or that one of those starts, carries its mark in its
environment, so that all of them can be found, and ended by their ids.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import signal
import subprocess
import sys
import tarfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pyspark

from ledgermq.embedded.java import find_java

MARK = "LEDGERMQ_TEST_CLUSTER"
SPARK_HOME = Path(pyspark.__file__).parent
PR_SET_PDEATHSIG = 1
PATIENCE_SECONDS = 120
JOB_SECONDS_MAX = 1_800
# What saves time where logs are short and cores are few.
QUICK = {
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.executor.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
}
Seen = TypeVar("Seen")


class Job:
    """A job that was submitted: its driver, and what it has said so far."""

    def __init__(self, process: subprocess.Popen[bytes], directory: Path) -> None:
        self._process = process
        self._directory = directory

    @property
    def out(self) -> str:
        """What the program printed; `spark-submit` puts its standard error there, too."""
        return (self._directory / "out").read_text()

    @property
    def said(self) -> str:
        """The last of what program and Spark said."""
        return self.out[-4_000:] + (self._directory / "err").read_text()[-4_000:]

    def wait(self) -> int:
        """Wait for the end; returns the exit code."""
        return self._process.wait(timeout=JOB_SECONDS_MAX)

    def wait_until(self, look: Callable[[], Seen]) -> Seen:
        """Wait until a look at the job sees something, and return that."""

        def look_again() -> Seen:
            assert self._process.poll() is None, f"the job has ended:\n{self.said}"
            return look()

        return wait_until(look_again, JOB_SECONDS_MAX)

    def kill(self) -> None:
        """Kill the driver: its Java, and its Python below it."""
        for pid in [self._process.pid, *_children(self._process.pid)]:
            os.kill(pid, signal.SIGKILL)
        self._process.wait()


class StandaloneCluster:
    """A master and its workers, which run from entry to exit."""

    def __init__(self, directory: Path, artifact: Path, *, workers: int = 2) -> None:
        self._directory = directory
        self._artifact = artifact
        self._workers = workers
        self._mark = uuid.uuid4().hex
        self._daemons: list[subprocess.Popen[bytes]] = []
        self.python = directory / "python" / "bin" / "python"
        self.master = ""
        # What each driver and executor sees: here it is but a directory.
        self.shared = directory / "shared"

    def __enter__(self) -> StandaloneCluster:
        self.shared.mkdir(parents=True)
        bare = ["-m", "venv", "--without-pip", str(self._directory / "python")]
        subprocess.run([sys.executable, *bare], check=True)
        with tarfile.open(self._artifact) as archive:
            # Pythons before 3.11.4 know no filter, and those from 3.12 on ask for one.
            filtered = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
            archive.extractall(self._directory / "artifact", **filtered)
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for daemon in self._daemons:
            daemon.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            for daemon in self._daemons:
                daemon.wait(timeout=20)
        # Drivers, and executors that lost their worker.
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for daemon in self._daemons:
            daemon.wait()
        wait_until(lambda: not self.processes(), PATIENCE_SECONDS)

    def _start(self) -> None:
        kind = "org.apache.spark.deploy"
        master = self._daemon("master", f"{kind}.master.Master", "--port", "0")
        self.master = wait_until(lambda: _address(master), PATIENCE_SECONDS)
        for number in range(self._workers):
            place = ["--work-dir", str(self._directory / f"work-{number}"), "--port", "0"]
            size = ["--cores", "1", "--memory", "1g", self.master]
            log = self._daemon(f"worker-{number}", f"{kind}.worker.Worker", *place, *size)
            wait_until(
                lambda log=log: "registered with master" in log.read_text(), PATIENCE_SECONDS
            )

    def _daemon(self, name: str, kind: str, *arguments: str) -> Path:
        command = [str(SPARK_HOME / "bin" / "spark-class"), kind, "--host", "127.0.0.1"]
        log = self._directory / f"{name}.log"
        command += ["--webui-port", "0", *arguments]
        self._daemons.append(self._process(command, log, log))
        return log

    def submit(
        self, *arguments: str, settings: dict[str, str] | None = None, master: str = ""
    ) -> Job:
        """Submit the artifact's job with some arguments, here or to another master."""
        artifact = self._directory / "artifact"
        command = [str(SPARK_HOME / "bin" / "spark-submit"), "--master", master or self.master]
        command += ["--driver-memory", "1g", "--executor-memory", "1g"]
        for name, value in (QUICK | (settings or {})).items():
            command += ["--conf", f"{name}={value}"]
        command += ["--archives", f"{self._artifact}#ledgermq-spark"]
        command += ["--jars", f"{artifact}/jars/*.jar", str(artifact / "job.py"), *arguments]
        place = self._directory / f"job-{uuid.uuid4().hex[:8]}"
        place.mkdir()
        return Job(self._process(command, place / "out", place / "err"), place)

    def executors(self) -> list[int]:
        """The process ids of the executors that run now."""
        return [
            pid
            for pid in self.processes()
            if b"CoarseGrainedExecutorBackend" in _read(pid, "cmdline")
        ]

    def executors_in_all(self) -> int:
        """How many executors there ever were, of all jobs."""
        return len(list(self._directory.glob("work-*/app-*/*/stderr")))

    def processes(self) -> list[int]:
        """All processes that carry this cluster's mark."""
        mark = f"{MARK}={self._mark}".encode()
        numbers = [int(one.name) for one in Path("/proc").iterdir() if one.name.isdigit()]
        return [pid for pid in numbers if mark in _read(pid, "environ").split(b"\0")]

    def environment(self) -> dict[str, str]:
        """What a machine of the cluster has: Java, Spark, and a Python without packages."""
        return {
            "HOME": str(self._directory),
            "JAVA_HOME": str(find_java().resolve().parents[1]),
            "PATH": "/usr/bin:/bin",
            "PYSPARK_PYTHON": str(self.python),
            "SPARK_HOME": str(SPARK_HOME),
            "SPARK_LOCAL_IP": "127.0.0.1",
            MARK: self._mark,
        }

    def _process(self, command: list[str], out: Path, err: Path) -> subprocess.Popen[bytes]:
        with out.open("ab") as to_out, err.open("ab") as to_err:
            return subprocess.Popen(
                command,
                cwd=self._directory,
                env=self.environment(),
                stdin=subprocess.DEVNULL,
                stdout=to_out,
                stderr=to_err,
                # So that it ends with the tests, whatever ends them.
                preexec_fn=_dies_with_the_tests,  # noqa: PLW1509 - one thread
            )


def wait_until(look: Callable[[], Seen], seconds: float) -> Seen:
    """Wait until a look sees something, and return that."""
    deadline = time.monotonic() + seconds
    while not (seen := look()):
        assert time.monotonic() < deadline, f"nothing was seen in {seconds} seconds"
        time.sleep(0.1)
    return seen


def _address(log: Path) -> str:
    found = re.search(r"Starting Spark master at (spark://127\.0\.0\.1:\d+)", log.read_text())
    return found[1] if found else ""


def _read(pid: int, name: str) -> bytes:
    try:
        return (Path("/proc") / str(pid) / name).read_bytes()
    except OSError:
        return b""


def _children(pid: int) -> list[int]:
    tasks = _read(pid, f"task/{pid}/children").split()
    threads = [one.name for one in Path(f"/proc/{pid}/task").iterdir()]
    for thread in threads:
        tasks += _read(pid, f"task/{thread}/children").split()
    return sorted({int(one) for one in tasks})


def _dies_with_the_tests() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
