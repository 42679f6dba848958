"""A place of the benchmark's own: log topics that nobody else uses, and a worker that may die.

The rows at depth kill their worker, look at its memory and start it with other settings; none of
that is done to an installation that somebody works with. The topics are deleted at the end.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any, Self

import ledgermq
from ledgermq.processor.worker.parent import PARENT_VARIABLE
from ledgermq.processor.worker.readiness import wait_for_worker
from ledgermq.wire.topics.log_topics import Topics, ensure_topics
from ledgermq.wire.topics.reading import partition_reader
from ledgermq.wire.topics.registry import claim_queue_manager
from ledgermq_benchmarks.run import BenchError

LANES = 2
PATIENCE_SECONDS = 180.0
QUEUE_MANAGER = "QM1"


class BenchPlace:
    """Topics and a worker on a broker; a context manager that takes both away.

    Args:
        bootstrap: The broker.
        settings: Settings of the worker as `LEDGERMQ_<NAME>` has them, without the prefix.
    """

    def __init__(self, bootstrap: str, **settings: object) -> None:
        self.bootstrap = bootstrap
        self.topics = Topics(f"bench-{uuid.uuid4().hex[:8]}")
        self._settings = settings
        self._worker: subprocess.Popen[bytes] | None = None
        self._directory = tempfile.TemporaryDirectory(prefix="ledgermq-bench-worker-")
        self._log = Path(self._directory.name) / "worker.log"

    def __enter__(self) -> Self:
        try:
            ensure_topics(self.bootstrap, self.topics, partitions=1, lanes=LANES)
            claim_queue_manager(self.bootstrap, self.topics, QUEUE_MANAGER, lanes=LANES)
            self.start_worker(**self._settings)
            if not wait_for_worker(self.bootstrap, self.topics.prefix, PATIENCE_SECONDS):
                raise BenchError(f"the worker does not answer; its log ends with:\n{self.said}")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_error: object) -> None:
        self.kill_worker()
        self._delete_topics()
        self._directory.cleanup()

    def _delete_topics(self) -> None:
        from confluent_kafka.admin import AdminClient

        topics = self.topics
        names = [topics.registry, topics.operations, topics.outcomes, topics.questions]
        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        for gone in admin.delete_topics([*names, topics.checkpoints]).values():
            # What could not be deleted costs disk and nothing else.
            gone.exception(timeout=PATIENCE_SECONDS)

    def start_worker(self, **settings: object) -> float:
        """Starts a worker and does not wait for it; the moment, on the monotonic clock."""
        command = [sys.executable, "-m", "ledgermq.processor", "--bootstrap", self.bootstrap]
        command += ["--topic-prefix", self.topics.prefix, "--name", "bench", "--partitions", "1"]
        command += ["--lanes", str(LANES), "--web-port", "-1"]
        command += ["--data-dir", str(Path(self._directory.name) / "data")]
        variables = {f"LEDGERMQ_{name}": str(value) for name, value in settings.items()}
        with self._log.open("ab") as output:
            started = time.monotonic()
            self._worker = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=os.environ | {PARENT_VARIABLE: str(os.getpid())} | variables,
            )
        return started

    def kill_worker(self) -> None:
        """Kills the worker with SIGKILL, as a crash would, and waits until it is dead."""
        if self._worker is not None:
            self._worker.kill()
            self._worker.wait()
            self._worker = None

    def connect(self, **options: Any) -> ledgermq.Connection:
        given = {"timeout": PATIENCE_SECONDS, **options}
        address = f"kafka://{self.bootstrap}/{QUEUE_MANAGER}"
        return ledgermq.connect(address, topic_prefix=self.topics.prefix, **given)

    @property
    def said(self) -> str:
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-15:])

    def memory_bytes(self) -> dict[str, int]:
        """What the worker has in memory now (`resident`), and had at most (`peak`)."""
        lines = Path(f"/proc/{self._pid}/status").read_text(encoding="utf-8").splitlines()
        pairs = [line.split(":", 1) for line in lines if line.startswith("Vm")]
        found = {name: int(kib.split()[0]) for name, kib in pairs}
        return {"resident": found["VmRSS"] * 1024, "peak": found["VmHWM"] * 1024}

    def checkpoint_records(self) -> int:
        with partition_reader(self.bootstrap, PATIENCE_SECONDS) as reader:
            return reader.ends(self.topics.checkpoints, 0)[1]

    def processor_seconds(self) -> float:
        text = Path(f"/proc/{self._pid}/stat").read_text(encoding="utf-8")
        fields = text.rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def _pid(self) -> int:
        if self._worker is None or self._worker.poll() is not None:
            raise BenchError(f"the worker ended; its log ends with:\n{self.said}")
        return self._worker.pid
