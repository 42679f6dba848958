"""What the operating system refuses to do with files: where, why, and what to do."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from ledgermq.errors import LedgerMQError

_REMEDIES: Final = {
    errno.EACCES: "call the command as a user who may read and write there",
    errno.EPERM: "call the command as a user who may read and write there",
    errno.EROFS: "name a directory that can be written",
    errno.ENOSPC: "make room there, and call the command again",
    errno.EDQUOT: "make room there, and call the command again",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.EEXIST: "name another place, or move away what is there in place of a directory",
    errno.ENOTDIR: "name another place: a part of that path is no directory",
    errno.EISDIR: "name another place, or move away what is there in place of a file",
    errno.EMFILE: "allow the process more of them (`ulimit -n`), and call the command again",
}
_NOT_WRITTEN: Final = (errno.EBADF, errno.EDQUOT, errno.EIO, errno.ENOSPC)
# Where no file is named, it was standard output: what was put by then would be put twice.
_UNANSWERED: Final = (
    "the answer cannot be written, but what the command was to do may be done: look before you "
    "call it again, with an output that can be written"
)


class DirectoryUnwritableError(LedgerMQError):
    """Nothing can be written in the directory."""

    code = "directory-unwritable"


def told_refusal(error: OSError) -> str:
    """Where the system refused what, and what to do."""
    if error.strerror is None:
        return str(error)
    where = [str(one) for one in (error.filename, error.filename2) if one is not None]
    remedy = _REMEDIES.get(error.errno or 0)
    if not where and error.errno in _NOT_WRITTEN:
        remedy = _UNANSWERED
    text = ": ".join([*where, error.strerror])
    return f"{text}; {remedy}" if remedy else text


def check_makeable(directory: Path, what: str) -> None:
    """See that something could be written in a directory, without making it.

    Raises what `told_of` raises.
    """
    with told_of(directory, what):
        there = next(one for one in (directory, *directory.absolute().parents) if one.exists())
        refused = 0 if there.is_dir() else errno.ENOTDIR
        if not refused and not os.access(there, os.W_OK | os.X_OK):
            refused = errno.EACCES
        if refused:
            raise OSError(refused, os.strerror(refused), str(there))


@contextmanager
def told_of(directory: Path, what: str) -> Iterator[None]:
    """Whatever is refused in the block is told of this directory.

    Raises:
        DirectoryUnwritableError: The system refused it; the text says `what` was to be.
    """
    try:
        yield
    except OSError as error:
        in_the_way = [] if error.filename in (None, str(directory)) else [str(error.filename)]
        told = [one for one in in_the_way if os.path.lexists(one)] + [str(error.strerror)]
        remedy = _REMEDIES.get(error.errno or 0, "choose a directory that can be made and written")
        raise DirectoryUnwritableError(
            f"{what} cannot be written in {directory}: {': '.join(told)}; {remedy}"
        ) from error
