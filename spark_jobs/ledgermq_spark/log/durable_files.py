"""Files that stay: written by one at a time, whole or not at all, put on the disk."""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import quote

LOCK: Final = ".lock"


def plain_name(queue_manager: str) -> str:
    """A queue manager's name as part of a path."""
    return quote(queue_manager, safe="")


def file_digest(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


@contextmanager
def alone_in(directory: Path, busy: Exception) -> Iterator[None]:
    """Nobody else is in a directory meanwhile; raises what it is given where somebody is."""
    with (directory / LOCK).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise busy from None
        yield


def settled(directory: Path) -> list[Path]:
    """The Parquet files of a directory, on the disk to stay; what else Spark left goes."""
    files = []
    for path in sorted(one for one in directory.iterdir() if one.is_file()):
        if path.suffix == ".parquet":
            sync(path)
            files.append(path)
        else:
            path.unlink()
    return files


def write_durably(path: Path, text: str) -> None:
    """Write a text file whole, or leave what was there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".part")
    with unfinished.open("w", encoding="utf-8") as handle:
        handle.write(text)
        handle.flush()
        os.fsync(handle.fileno())
    unfinished.replace(path)
    sync(path.parent)


def sync(path: Path) -> None:
    """Put a file, or the entries of a directory, on the disk to stay."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
