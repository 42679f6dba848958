"""What a data directory says about the `ledgermq up` that runs on it.

The running command holds a lock on up.json for as long as it lives, so what a killed one left
behind is known to be stale.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from ledgermq.errors import LedgerMQError
from ledgermq.file_lock import lock_within

DATA_DIRECTORY_DEFAULT: Final = Path("ledgermq-data")
FILE_NAME: Final = "up.json"
# Whoever looks what runs holds the lock for a moment.
LOCK_WAIT_SECONDS: Final = 1.0


class UpRunningError(LedgerMQError):
    code = "directory-in-use"


@contextlib.contextmanager
def announce(directory: Path) -> Iterator[Any]:
    """Hold the directory, and give a function that tells what runs here; else UpRunningError."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / FILE_NAME
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    with os.fdopen(descriptor, "r+", encoding="utf-8") as handle:
        if not lock_within(LOCK_WAIT_SECONDS, handle):
            other = _read(handle)
            where = f" at {other['bootstrap']}, process {other['pid']}" if other else ""
            raise UpRunningError(
                f"`ledgermq up` runs on {directory} already{where}. Use it, stop it, or give "
                "another --data-dir."
            )

        def tell(**found: Any) -> None:
            handle.seek(0)
            handle.truncate()
            json.dump({"pid": os.getpid(), **found}, handle)
            handle.flush()

        handle.truncate(0)
        try:
            yield tell
        finally:
            handle.seek(0)
            handle.truncate()


def running(directory: Path) -> dict[str, Any] | None:
    """What runs on a directory: pid, bootstrap and so on; None if nothing does."""
    try:
        with (directory / FILE_NAME).open(encoding="utf-8") as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return _read(handle)
    except OSError:
        pass
    return None


def running_bootstrap(directory: Path) -> str | None:
    found = running(directory)
    return None if found is None else found.get("bootstrap")


def _read(handle: Any) -> dict[str, Any] | None:
    handle.seek(0)
    try:
        found = json.loads(handle.read())
    except ValueError:
        return None
    return found if isinstance(found, dict) and "bootstrap" in found else None
