"""Class-data archives: with one, Java maps the classes of a program instead of loading each anew.

The broker is ready in two thirds of the time, and Spark needs half the processor time for its
start. `infra/fetch_jars.py` makes them; a program that finds none starts as it always did. Java
takes an archive only where it was made by this Java of these very files, and warns where it was
not: so an archive is called after both.
"""

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

from ledgermq.embedded.jars import cache_directory


def class_archive(program: str, java: Path, jars: Iterable[Path]) -> Path:
    """Return where the archive of a program lies, for this Java, whether or not it was made.

    Args:
        program: Its name and version, such as "kafka-4.3.1".
        java: The `java` command that runs it.
        jars: What it runs from.
    """
    java = Path(os.path.realpath(java))
    files = [java.parent.parent / "lib/modules", *sorted(jars)]
    key = f"{_digest(files)}-{_digest(map(_identity, files))}"
    return cache_directory() / "classes" / f"{program}-{key}.jsa"


def outdated_archives(archive: Path) -> list[Path]:
    """Return the archives whose place an archive takes: the same files as they were before."""
    place = archive.stem.rpartition("-")[0]
    return [one for one in archive.parent.glob(f"{place}-*.jsa") if one != archive]


def archive_options(program: str, java: Path | None, jars: Iterable[Path]) -> list[str]:
    """Return the options with which Java uses the archive of a program; none if there is none."""
    if java is None or not (archive := class_archive(program, java, jars)).is_file():
        return []
    return [f"-XX:SharedArchiveFile={archive}"]


def _digest(parts: Iterable[object]) -> str:
    return hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()[:12]


def _identity(file: Path) -> tuple[str, int, int]:
    try:
        found = file.stat()
    except OSError:
        return str(file), 0, 0
    return str(file), found.st_size, found.st_mtime_ns
