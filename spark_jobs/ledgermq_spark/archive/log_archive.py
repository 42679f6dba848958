"""A directory with the log of a queue manager in stretches, each where the one before ended.

A stretch is made in a directory of its own and takes its place by being renamed: whoever is killed
leaves nothing that counts, and of two who make the same stretch one succeeds.
"""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ledgermq.errors import LedgerMQError
from ledgermq_spark.archive.stretch import (
    MANIFEST,
    REMEDY,
    ArchiveBrokenError,
    Stretch,
)
from ledgermq_spark.log.durable_files import (
    alone_in,
    bounded_name,
    sync,
    unreadable,
    write_durably,
)

UNFINISHED: Final = ".unfinished"
PROVEN: Final = "proven.json"
PROVEN_SAYS: Final = {"at", "last", "digest", "lane_ends"}


class ArchiveBusyError(LedgerMQError):
    """Somebody else adds to the archive at this moment."""

    code = "archive-busy"


class ArchiveMissingError(LedgerMQError):
    """There is nothing of this queue manager in the archive."""

    code = "archive-missing"


@dataclass(frozen=True, slots=True)
class LogArchive:
    """What a directory keeps of a queue manager's log; it need not be there before the first."""

    path: Path
    queue_manager: str

    @property
    def home(self) -> Path:
        """Where the stretches of this queue manager lie."""
        return self.path / bounded_name(self.queue_manager)

    def stretches(self) -> list[Stretch]:
        """All stretches in their order.

        Raises:
            ArchiveBrokenError: A manifest cannot be read, or a stretch is missing.
        """
        try:
            there = list(self.home.iterdir())
        except FileNotFoundError:
            return []
        except OSError as error:
            problem = unreadable(error, "take the archive from a copy")
            raise ArchiveBrokenError(f"{self.home} {problem}") from error
        found: list[Stretch] = []
        for path in sorted(one for one in there if one.name.isdigit()):
            stretch = Stretch.at(path)
            if stretch.queue_manager != self.queue_manager:
                raise ArchiveBrokenError(
                    f"{path} is a stretch of the queue manager {stretch.queue_manager}, not of "
                    f"{self.queue_manager}: {REMEDY}"
                )
            expected = found[-1].last + 1 if found else 0
            if stretch.first != expected:
                raise ArchiveBrokenError(
                    f"{path} begins at position {stretch.first}, not at {expected}: a stretch is "
                    "missing; take it from a copy of the archive"
                )
            found.append(stretch)
        return found

    def there(self) -> list[Stretch]:
        """The same, and there must be one.

        Raises:
            ArchiveMissingError: There is none.
            ArchiveBrokenError: As `stretches` does.
        """
        found = self.stretches()
        if not found:
            raise ArchiveMissingError(
                f"there is nothing of {self.queue_manager} in {self.path}: "
                f"`ledgermq archive update {shlex.quote(str(self.path))}` begins it"
            )
        return found

    def sealed(self) -> list[Stretch]:
        """The same, and each is behind the one that it was added to.

        Raises:
            ArchiveMissingError: There is none.
            ArchiveBrokenError: As `stretches` does, or a manifest was altered.
        """
        found = self.there()
        check_seals(found)
        return found

    @contextmanager
    def adding(self) -> Iterator[None]:
        """Nobody else adds meanwhile; what somebody left unfinished goes.

        Raises:
            ArchiveBusyError: Somebody else does.
            DirectoryUnwritableError: Nothing can be written there.
        """
        busy = f"somebody else adds to {self.home} at this moment; wait until that is over"
        with alone_in(self.home, "an archive", ArchiveBusyError(busy)):
            shutil.rmtree(self.home / UNFINISHED, ignore_errors=True)
            yield

    def proven(self) -> dict[str, Any] | None:
        """What the last audit proved, as it was noted; None if none did.

        Raises:
            ArchiveBrokenError: What was noted cannot be read.
        """
        path = self.home / PROVEN
        if not path.exists():
            return None
        try:
            found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            if not isinstance(found, dict) or not found.keys() >= PROVEN_SAYS:
                raise ValueError("it is not as it was written")
            ends = found["lane_ends"]
            whole = isinstance(ends, list) and all(type(one) is int for one in ends)
            if ends is not None and not whole:
                raise ValueError("it is not as it was written")
        except (OSError, ValueError, RecursionError) as error:
            raise ArchiveBrokenError(
                f"{path} cannot be read: {error}; without it the next audit begins at position 0"
            ) from error
        return found

    def note_proven(self, told: dict[str, Any]) -> None:
        """Note what an audit proved: the next one begins behind it."""
        write_durably(self.home / PROVEN, json.dumps(told, indent=2) + "\n")

    def unfinished(self, first: int) -> Path:
        """Where the stretch from a position on is made."""
        return self.home / UNFINISHED / f"{first:019}"

    def commit(self, made: Path) -> Stretch:
        """Put what was made in its place."""
        target = self.home / made.name
        made.rename(target)
        sync(self.home)
        return Stretch.at(target)


def check_seals(stretches: Sequence[Stretch]) -> None:
    """See that each stretch is behind the one that it was added to.

    Raises:
        ArchiveBrokenError: One is not.
    """
    for before, stretch in zip([None, *stretches], stretches, strict=False):
        if not stretch.is_behind(before):
            others = "" if before is None else f", or {before.path / MANIFEST} was"
            raise ArchiveBrokenError(
                f"{stretch.path / MANIFEST} has another seal of what stands before it: it was "
                f"altered{others}; take it from a copy of the archive, after `ledgermq archive "
                "prove` has said what else is wrong"
            )
