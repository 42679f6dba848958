"""What all jobs share on their command line, and how they end."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from ledgermq.errors import LedgerMQError
from ledgermq.wire.topics.registry import RegistryError

USAGE, UNREACHABLE = 2, 3


def parser(what: str) -> argparse.ArgumentParser:
    """A parser with the options of all jobs."""
    found = argparse.ArgumentParser(description=what)
    found.add_argument("--bootstrap", default="127.0.0.1:9092", help="address of the cluster")
    found.add_argument("--queue-manager", default="QM1", help="its name")
    found.add_argument("--topic-prefix", default="ledgermq", help="of the log topics")
    found.add_argument("--at", help="position (1234) or time (2026-11-20T10:00:00Z); else the end")
    found.add_argument("--output", type=Path, help="directory for what the job writes")
    found.add_argument("--json", action="store_true", help="print JSON")
    return found


def tell(stage: str, done: int, total: int) -> None:
    """Tells progress to people on standard error."""
    print(f"[{done}/{total}] {stage}", file=sys.stderr, flush=True)


def run(job: Callable[[], int]) -> int:
    """Run a job; an error for people becomes one line and an exit code (2 usage, 3 cluster)."""
    try:
        return job()
    except RegistryError as problem:
        print(f"error: {problem}", file=sys.stderr)
        return UNREACHABLE
    except LedgerMQError as problem:
        print(f"error: {problem} ({problem.code})", file=sys.stderr)
        return UNREACHABLE if problem.code == "log-unreachable" else USAGE
