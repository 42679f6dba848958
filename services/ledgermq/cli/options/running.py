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

from ledgermq.errors import BrokerUnavailableError, LedgerMQError
from ledgermq.file_lock import lock_within
from ledgermq.system_refusals import told_of

DATA_DIRECTORY_DEFAULT: Final = Path("ledgermq-data")
FILE_NAME: Final = "up.json"
# Whoever looks what runs holds the lock for a moment.
LOCK_WAIT_SECONDS: Final = 1.0


class UpRunningError(LedgerMQError):
    code = "directory-in-use"


@contextlib.contextmanager
def announce(directory: Path) -> Iterator[Any]:
    """Hold the directory, and give a function that tells what runs here.

    Raises:
        UpRunningError: Another one runs there.
        DirectoryUnwritableError: The directory cannot be made, or nothing written in it.
    """
    path = directory / FILE_NAME
    with told_of(directory, "data"):
        directory.mkdir(parents=True, exist_ok=True)
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
    """What runs on a directory: pid, bootstrap and so on; None if nothing does, or not yet.

    Raises:
        BrokerUnavailableError: The file that says so cannot be read.
    """
    path = directory / FILE_NAME
    try:
        with path.open(encoding="utf-8") as handle:
            if not _is_held(handle):
                return None
            found = _read(handle)
            # While it starts there is nothing in it.
            is_written = os.fstat(handle.fileno()).st_size > 0
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise BrokerUnavailableError(
            f"whether `ledgermq up` runs on {directory} is not known: {path} cannot be read: "
            f"{error.strerror}; call the command as a user who may read it, or give --bootstrap"
        ) from error
    if found is None and is_written:
        raise BrokerUnavailableError(
            f"`ledgermq up` runs on {directory}, but where cannot be read: {path} is not as it was "
            "written; stop it and start it again, or give --bootstrap"
        )
    return found


def _is_held(handle: Any) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def running_bootstrap(directory: Path) -> str | None:
    found = running(directory)
    return None if found is None else found.get("bootstrap")


def _read(handle: Any) -> dict[str, Any] | None:
    handle.seek(0)
    try:
        found = json.loads(handle.read())
    except (ValueError, RecursionError):
        return None
    whole = isinstance(found, dict) and isinstance(found.get("bootstrap"), str) and "pid" in found
    return found if whole else None
