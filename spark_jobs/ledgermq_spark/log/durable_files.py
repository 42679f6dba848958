"""Files that stay: written by one at a time, whole or not at all, put on the disk."""

from __future__ import annotations

import errno
import hashlib
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final
from urllib.parse import quote

from ledgermq.file_lock import lock_within
from ledgermq.system_refusals import told_of

# Who reads a table passes over names that begin so.
UNFINISHED: Final = ".{}.part"
LOCK: Final = ".lock"
NAME_BYTES_MAX: Final = 255
DIGEST_CHARACTERS: Final = 32
# Words that Spark or DuckDB takes for a number, a date or nothing.
_NO_TEXTS: Final = frozenset({"epoch", "inf", "infinity", "nan", "null"})


def plain_name(queue_manager: str) -> str:
    """A queue manager's name as part of a path, which `.` and `..` would lead out of."""
    name = quote(queue_manager, safe="")
    return name if name.strip(".") else name.replace(".", "%2E")


def partition_of(plain: str) -> str:
    """The directory that gives the rows in it the queue manager of this plain name.

    Spark and DuckDB make a number of `007` and a date of `2024-01-01`; where a character is
    encoded, they see a text and decode it.
    """
    is_text = plain[0].isalpha() and plain.lower() not in _NO_TEXTS
    if not is_text and plain[0] != "%":
        plain = f"%{ord(plain[0]):02X}{plain[1:]}"
    return f"queue_manager={plain}"


def bounded_name(queue_manager: str, beside: str = "") -> str:
    """Its plain name, cut where that is longer than a file's may be; `beside` is the rest of it.

    What is cut is told apart by its digest, behind what no plain name has.
    """
    name, room = plain_name(queue_manager), NAME_BYTES_MAX - len(beside)
    if len(name) <= room:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:DIGEST_CHARACTERS]
    return f"{name[: room - 1 - len(digest)]}~{digest}"


def file_digest(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def damage_of(directory: Path, files: Mapping[str, str]) -> str | None:
    """Which Parquet file below it is missing, is not as its digest says or has none, if one is."""
    for name, digest in files.items():
        path = directory / name
        try:
            if file_digest(path) != digest:
                return f"{path} is not as it was written"
        except FileNotFoundError:
            return f"{path} is missing"
        except OSError as error:
            return f"{path} cannot be read: {error.strerror}"
    for path in directory.rglob("*.parquet"):
        if str(path.relative_to(directory)) not in files:
            return f"{path} was not written with the others"
    return None


def unreadable(error: OSError, otherwise: str) -> str:
    """Why a file cannot be read, and what to do: `otherwise`, unless rights are missing."""
    remedy = otherwise
    if isinstance(error, PermissionError):
        remedy = "call the command as a user who may read it"
    return f"cannot be read: {error.strerror or error}; {remedy}"


def check_writable(directory: Path, what: str) -> None:
    """Make a directory if need be, and see that files can be written there.

    Raises:
        DirectoryUnwritableError: They cannot; the text says `what` was to be.
    """
    with told_of(directory, what):
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=directory):
            pass


@contextmanager
def alone_in(directory: Path, what: str, busy: Exception) -> Iterator[None]:
    """Make a directory if need be; nobody else writes in it meanwhile.

    Raises:
        DirectoryUnwritableError: Nothing can be written there; the text says `what` was to be.
        Exception: `busy`, where somebody else does.
    """
    check_writable(directory, what)
    with told_of(directory, what):
        # To lock a file that somebody else made, it is enough to read it.
        lock = os.open(directory / LOCK, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        if not lock_within(0.0, lock):
            raise busy
        yield
    finally:
        os.close(lock)


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


def settled_digests(place: Path) -> dict[str, str]:
    """The digest of each Parquet file below it, once all of them are on the disk to stay."""
    files = {}
    for directory in (place, *sorted(one for one in place.rglob("*") if one.is_dir())):
        for path in settled(directory):
            files[str(path.relative_to(place))] = file_digest(path)
        sync(directory)
    return files


def write_durably(path: Path, content: str | bytes) -> None:
    """Write a file whole, or leave what was there; where a link leads, and into a device as it is.

    Raises:
        OSError: It cannot be written; `filename` is that file, or a directory that cannot be made.
    """
    write_together({path: content})


def write_together(contents: Mapping[Path, str | bytes]) -> None:
    """Write files that tell of one thing: all of them, or each stays as it was.

    None takes its place before all have found room. Whoever is killed in between leaves one of them
    without the others, but none beside one of another time.

    Raises what `write_durably` raises.
    """
    unfinished: dict[Path, Path] = {}
    try:
        for path, content in contents.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            with _named(path):
                _write_aside(path, content, unfinished)
        for path in list(unfinished)[1:]:
            with _named(path):
                path.resolve().unlink(missing_ok=True)
        directories = {part.parent for part in unfinished.values()}
        for path in list(unfinished):
            with _named(path):
                unfinished[path].replace(path.resolve())
                del unfinished[path]
        for directory in directories:
            sync(directory)
    finally:
        for part in unfinished.values():
            with suppress(OSError):
                part.unlink()


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Whatever is refused names this file: a full disk is told without the one that did not fit."""
    try:
        yield
    except OSError as error:
        error.filename = str(path)
        raise


def _write_aside(path: Path, content: str | bytes, unfinished: dict[Path, Path]) -> None:
    """Write what is to take a place beside it, and note it; at once where nothing may take it."""
    written = content.encode() if isinstance(content, str) else content
    place = path.resolve()
    if _takes_no_place(place):
        with place.open("ab") as handle:
            handle.write(written)
        return
    part = place.with_name(UNFINISHED.format(place.name))
    with part.open("wb") as handle:
        unfinished[path] = part
        handle.write(written)
        handle.flush()
        os.fsync(handle.fileno())


def _takes_no_place(path: Path) -> bool:
    """Whether nothing may take the place of what is there: /dev/null, a directory, the output."""
    if not path.exists():
        return False
    with suppress(OSError):
        found, output = path.stat(), os.fstat(1)
        if os.path.samestat(found, output):
            return True
    return not path.is_file()


def check_replaceable(path: Path) -> None:
    """See that `write_durably` can write this file, whose directory must be there.

    Raises:
        OSError: It cannot, or it is a directory.
    """
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not _takes_no_place(path):
        place = path.resolve()
        with suppress(FileNotFoundError):
            place.with_name(UNFINISHED.format(place.name)).lstat()
        with tempfile.NamedTemporaryFile(dir=place.parent):
            pass


def sync(path: Path) -> None:
    """Put a file, or the entries of a directory, on the disk to stay."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
