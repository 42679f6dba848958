"""Writes all tables as Parquet."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ledgermq.errors import LedgerMQError
from ledgermq_spark.tables.all_tables import TABLES

if TYPE_CHECKING:
    from ledgermq_spark.laws.law import Facts

# Below a table that grows with an archive: how far each queue manager's is written, by format.
# Spark leaves out what begins with an underscore.
NOTES: Final = "_written-"


class TablesOtherwiseError(LedgerMQError):
    """The directory has tables that were written in another way."""

    code = "tables-otherwise"


class DirectoryUnwritableError(LedgerMQError):
    """Nothing can be written in the directory."""

    code = "directory-unwritable"


def write_tables(facts: Facts, directory: Path) -> None:
    """Write all tables, each below its name, in place of those there.

    Raises what `check_whole` raises.
    """
    check_whole(directory)
    for name, text in TABLES.items():
        facts.query(text).write.mode("overwrite").parquet(str(directory / name))


def check_whole(directory: Path) -> None:
    """Make a directory if need be, and see that all tables may be written in it.

    Raises:
        DirectoryUnwritableError: Nothing can be written there.
        TablesOtherwiseError: There are tables that grow with an archive.
    """
    check_writable(directory)
    if any(next((directory / name).glob(f"{NOTES}*"), None) for name in TABLES):
        raise TablesOtherwiseError(
            f"{directory} has tables that grow with an archive: go on with --archive, or choose "
            "another directory"
        )


def check_writable(directory: Path) -> None:
    """Make a directory if need be, and see that files can be written in it.

    Raises:
        DirectoryUnwritableError: They cannot.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=directory):
            pass
    except OSError as error:
        raise DirectoryUnwritableError(
            f"tables cannot be written in {directory}: {error.strerror}; choose a directory that "
            "can be made and written"
        ) from error
