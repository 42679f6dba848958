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
from ledgermq.processor.worker.process import PARENT_VARIABLE
from ledgermq.processor.worker.readiness import wait_for_another_worker, wait_for_worker
from ledgermq.wire.topics.ledger import Ledger
from ledgermq.wire.topics.log_topics import Topics, ensure_topics
from ledgermq.wire.topics.reading import PartitionReader
from ledgermq.wire.topics.registry import claim_queue_manager, list_queue_managers
from ledgermq_benchmarks.run import BenchError

LANES = 2
PATIENCE_SECONDS = 180.0
QUEUE_MANAGER = "QM1"
ASKING_SECONDS = 1.0


class BenchPlace:
    """Topics and a worker on a broker; a context manager that takes both away.

    Args:
        bootstrap: The broker.
        queue_managers: How many: QM1, QM2 and so on.
        settings: Settings of the worker as `LEDGERMQ_<NAME>` has them, without the prefix.
    """

    def __init__(self, bootstrap: str, queue_managers: int = 1, **settings: object) -> None:
        self.bootstrap = bootstrap
        self.queue_managers = [f"QM{number}" for number in range(1, queue_managers + 1)]
        self.topics = Topics(f"bench-{uuid.uuid4().hex[:8]}")
        self._settings = settings
        self._workers: list[subprocess.Popen[bytes]] = []
        self._directory = tempfile.TemporaryDirectory(prefix="ledgermq-bench-worker-")
        self._log = Path(self._directory.name) / "worker.log"

    def __enter__(self) -> Self:
        try:
            count = len(self.queue_managers)
            ensure_topics(self.bootstrap, self.topics, partitions=count, lanes=LANES)
            for name in self.queue_managers:
                claim_queue_manager(self.bootstrap, self.topics, name, lanes=LANES)
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
        given = {
            "bootstrap": self.bootstrap,
            "topic_prefix": self.topics.prefix,
            "name": self._name,
            "partitions": len(self.queue_managers),
            "lanes": LANES,
            "data_directory": Path(self._directory.name) / self._name,
            "web_port": -1,
            **settings,
        }
        variables = {f"LEDGERMQ_{name.upper()}": str(value) for name, value in given.items()}
        with self._log.open("ab") as output:
            started = time.monotonic()
            worker = subprocess.Popen(
                [sys.executable, "-m", "ledgermq.processor"],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=os.environ | {PARENT_VARIABLE: str(os.getpid())} | variables,
            )
        self._workers.append(worker)
        return started

    def share_with_another_worker(self) -> list[str]:
        """Starts a second worker and waits until it has half of the queue managers.

        They are returned so that neighbours are of different workers.

        Raises BenchError if it does not get them.
        """
        first = "bench-1"
        claims = list_queue_managers(self.bootstrap, self.topics)
        ledgers = [Ledger(self.bootstrap, self.topics, one, ASKING_SECONDS) for one in claims]
        self.start_worker()
        limit = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < limit:
            moved = [
                one.claim.queue_manager for one in ledgers if wait_for_another_worker(one, first)
            ]
            if len(moved) == len(claims) // 2:
                kept = [name for name in self.queue_managers if name not in moved]
                return [name for pair in zip(kept, moved, strict=True) for name in pair]
        raise BenchError(f"the workers do not share; their log ends with:\n{self.said}")

    def kill_worker(self) -> None:
        """Kills the worker with SIGKILL, as a crash would, and waits until it is dead."""
        for worker in self._workers:
            worker.kill()
            worker.wait()
        self._workers.clear()

    def address(self, queue_manager: str = QUEUE_MANAGER) -> dict[str, Any]:
        """What `connect` takes."""
        address = f"kafka://{self.bootstrap}/{queue_manager}"
        return {"address": address, "topic_prefix": self.topics.prefix}

    def connect(self, **options: Any) -> ledgermq.Connection:
        return ledgermq.connect(**self.address(), timeout=PATIENCE_SECONDS, **options)

    @property
    def said(self) -> str:
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-15:])

    def memory_bytes(self) -> dict[str, int]:
        """What the worker has in memory now (`resident`), and had at most (`peak`)."""
        lines = Path(f"/proc/{self._pids[0]}/status").read_text(encoding="utf-8").splitlines()
        pairs = [line.split(":", 1) for line in lines if line.startswith("Vm")]
        found = {name: int(kib.split()[0]) for name, kib in pairs}
        return {"resident": found["VmRSS"] * 1024, "peak": found["VmHWM"] * 1024}

    def checkpoint_records(self) -> int:
        with PartitionReader(self.bootstrap, PATIENCE_SECONDS) as reader:
            return reader.ends(self.topics.checkpoints, 0)[1]

    def processor_seconds(self) -> float:
        """Of all workers."""
        ticks = 0
        for pid in self._pids:
            text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
            fields = text.rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    @property
    def _name(self) -> str:
        """Of the worker that is started next."""
        return f"bench-{len(self._workers) + 1}"

    @property
    def _pids(self) -> list[int]:
        if not self._workers or any(one.poll() is not None for one in self._workers):
            raise BenchError(f"the worker ended; its log ends with:\n{self.said}")
        return [one.pid for one in self._workers]
