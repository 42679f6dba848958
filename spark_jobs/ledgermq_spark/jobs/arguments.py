"""What all jobs share on their command line, and how they end."""

from __future__ import annotations

import argparse
import errno
import shutil
import sys
import tempfile
import traceback
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec

from ledgermq.errors import LedgerMQError
from ledgermq.wire.topics.address import AddressError, parse_servers
from ledgermq.wire.topics.registry import RegistryError
from ledgermq_spark.log.durable_files import check_writable
from ledgermq_spark.log.session import is_submitted

USAGE, UNREACHABLE, UNPROVEN = 2, 3, 5
Given = ParamSpec("Given")


def parser(what: str) -> argparse.ArgumentParser:
    """A parser with the options of all jobs."""
    found = argparse.ArgumentParser(description=what)
    found.add_argument(
        "--bootstrap", type=_servers, default="127.0.0.1:9092", help="address of the cluster"
    )
    found.add_argument("--queue-manager", default="QM1", help="its name")
    found.add_argument("--topic-prefix", default="ledgermq", help="of the log topics")
    found.add_argument("--at", help="position (1234) or time (2026-11-20T10:00:00Z); else the end")
    found.add_argument("--output", type=_directory, help="directory for what the job writes")
    found.add_argument(
        "--work",
        type=_directory,
        required=is_submitted(),
        help="directory for intermediate results, which driver and executors all see under this "
        "name; else a temporary one, which is enough on one machine",
    )
    found.add_argument("--json", action="store_true", help="print JSON")
    return found


def _servers(text: str) -> str:
    try:
        return parse_servers(text)
    except AddressError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _directory(text: str) -> Path:
    if "://" in text:
        raise argparse.ArgumentTypeError(
            f"{text} is an address: give a directory that every machine has mounted"
        )
    return Path(text).absolute()


@contextmanager
def work_directory(given: argparse.Namespace) -> Iterator[Path]:
    """A directory for one run's intermediate results, which is removed at the end.

    Raises:
        DirectoryUnwritableError: Nothing can be written there, or where the job's output goes.
    """
    if given.output is not None:
        # Told before the log is read: what that gave would be lost.
        check_writable(given.output, "what the job finds")
    if given.work is None:
        with tempfile.TemporaryDirectory(prefix="ledgermq-spark-") as made:
            yield Path(made)
        return
    # Not by `tempfile`, which lets nobody but its own user in.
    check_writable(given.work, "intermediate results")
    path = given.work / f"ledgermq-{uuid.uuid4().hex}"
    path.mkdir()
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def where(given: argparse.Namespace, directory: Path) -> dict[str, Any]:
    """Which log a job reads and up to where, where it keeps things, and whom it tells."""
    return {
        "bootstrap": given.bootstrap,
        "queue_manager": given.queue_manager,
        "at": given.at,
        "topic_prefix": given.topic_prefix,
        "directory": directory,
        "progress": tell,
    }


def tell(stage: str, done: int, total: int) -> None:
    """Tells progress to people on standard error."""
    print(f"[{done}/{total}] {stage}", file=sys.stderr, flush=True)


def job(main: Callable[Given, int]) -> Callable[Given, int]:
    """A job's `main`: an error for people becomes one line and a code (2 usage, 3 cluster).

    Any other is told as it came, with code 5: Python's own would be the verdict "anomalies".
    """

    @wraps(main)
    def told(*arguments: Given.args, **named: Given.kwargs) -> int:
        try:
            return main(*arguments, **named)
        except RegistryError as problem:
            print(f"error: {problem}", file=sys.stderr)
            return UNREACHABLE
        except LedgerMQError as problem:
            print(f"error: {problem} ({problem.code})", file=sys.stderr)
            return UNREACHABLE if problem.code == "log-unreachable" else USAGE
        except OSError as problem:
            # Arrow names no file where the disk is full.
            is_full = problem.errno in (errno.ENOSPC, errno.EDQUOT)
            place = problem.filename or ("intermediate results (--work)" if is_full else None)
            if place is None:
                traceback.print_exc()
                return UNPROVEN
            print(f"error: {place}: {problem.strerror}", file=sys.stderr)
            return USAGE
        except Exception:
            traceback.print_exc()
            return UNPROVEN

    return told
