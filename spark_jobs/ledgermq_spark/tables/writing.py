"""Writes all tables as Parquet."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from ledgermq.errors import LedgerMQError
from ledgermq_spark.laws.facts import Facts
from ledgermq_spark.log.durable_files import alone_in, settled, sync
from ledgermq_spark.tables.all_tables import TABLES

# Below a table that grows with an archive: how far each queue manager's is written, by format.
# Spark leaves out what begins with an underscore.
NOTES: Final = "_written-"
UNFINISHED: Final = ".unfinished"


class TablesOtherwiseError(LedgerMQError):
    """The directory has tables that were written in another way."""

    code = "tables-otherwise"


class TablesBusyError(LedgerMQError):
    """Somebody else writes tables in the directory at this moment."""

    code = "tables-busy"


def write_tables(facts: Facts, directory: Path) -> None:
    """Write all tables, each below its name, in place of those there, which stay if it fails.

    Raises what `writing_whole_in` raises.
    """
    made = directory / UNFINISHED
    with writing_whole_in(directory):
        for name, text in TABLES.items():
            facts.engine.write(facts.query(text), str(made / name))
        for name in TABLES:
            put_in_place(made / name, directory / name)


def put_in_place(made: Path, place: Path) -> None:
    """Put a directory of rows where others may be, now that it is whole, and on the disk."""
    settled(made)
    sync(made)
    shutil.rmtree(place, ignore_errors=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    made.rename(place)
    sync(place.parent)


def check_whole(directory: Path) -> None:
    """See that all tables may be written in a directory; raises what `writing_whole_in` raises."""
    with writing_whole_in(directory):
        pass


@contextmanager
def writing_whole_in(directory: Path) -> Iterator[None]:
    """Make a directory for tables if need be; nobody else writes any in it meanwhile.

    Raises:
        DirectoryUnwritableError: Nothing can be written there.
        TablesBusyError: Somebody else writes there.
        TablesOtherwiseError: There are tables that grow with an archive, or, where a table is to
            be, what is none.
    """
    with writing_in(directory):
        if any(next((directory / name).glob(f"{NOTES}*"), None) for name in TABLES):
            raise TablesOtherwiseError(
                f"{directory} has tables that grow with an archive: go on with --archive, or "
                "choose another directory"
            )
        for foreign in filter(None, (_foreign_in(directory / name) for name in TABLES)):
            raise TablesOtherwiseError(
                f"{foreign} belongs to no table, and tables that are written take the place of "
                "all that is there: choose another directory"
            )
        yield


def _foreign_in(place: Path) -> Path | None:
    """What is no file of a table where one is to be, such as backups of a journal, if any is."""
    if not place.is_dir():
        return place if place.exists() else None
    return next(
        (
            one
            for one in sorted(place.iterdir())
            # Spark leaves files that begin so.
            if one.is_dir() or not (one.suffix == ".parquet" or one.name.startswith(("_", ".")))
        ),
        None,
    )


@contextmanager
def writing_in(directory: Path) -> Iterator[None]:
    """As `writing_whole_in`, whatever tables there are; what is left unfinished goes."""
    busy = f"somebody else writes tables in {directory} at this moment; wait until that is over"
    unfinished = directory / UNFINISHED
    with alone_in(directory, "tables", TablesBusyError(busy)):
        # Whoever was killed left it.
        shutil.rmtree(unfinished, ignore_errors=True)
        try:
            yield
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
