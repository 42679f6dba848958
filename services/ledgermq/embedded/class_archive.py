"""Class-data archives: with one, Java maps the classes of a program instead of loading each anew.

The broker is ready in two thirds of the time, and Spark needs half the processor time for its
start. `infra/fetch_jars.py` makes them; a program that finds none starts as it always did. Java
ignores without a word an archive that was made by another Java or with other jars.
"""

import hashlib
import os
from pathlib import Path

from ledgermq.embedded.jars import cache_directory


def class_archive(program: str, java: Path) -> Path:
    """Return where the archive of a program lies, for this Java, whether or not it was made.

    Args:
        program: Its name and version, such as "kafka-4.3.1".
        java: The `java` command that runs it.
    """
    java = Path(os.path.realpath(java))
    try:
        classes = (java.parents[1] / "lib/modules").stat()
        identity = f"{java} {classes.st_size} {classes.st_mtime_ns}"
    except (OSError, IndexError):
        identity = str(java)
    key = hashlib.sha256(identity.encode()).hexdigest()[:12]
    return cache_directory() / "classes" / f"{program}-{key}.jsa"


def archive_options(program: str, java: Path | None) -> list[str]:
    """Return the options with which Java uses the archive of a program; none if there is none."""
    if java is None or not (archive := class_archive(program, java)).is_file():
        return []
    return [f"-XX:SharedArchiveFile={archive}"]
