"""Finds a Java that is new enough for the embedded broker and for Spark.

JAVA_HOME is looked at first, then PATH; the first that is new enough is taken, so that an old
JAVA_HOME does not hide a good Java on PATH.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

from ledgermq.embedded.errors import JavaMissingError, JavaTooOldError
from ledgermq.errors.shown import shown

JAVA_VERSION_MIN = 17
# The first level of compilation is enough for a process that does not live long.
QUICK_START = "-XX:TieredStopAtLevel=1"

HOW_TO_GET_JAVA = (
    f"Install a Java runtime, version {JAVA_VERSION_MIN} or newer, and put it on PATH or point "
    "JAVA_HOME at it. Debian and Ubuntu: apt-get install openjdk-17-jre-headless; "
    "Fedora: dnf install java-21-openjdk-headless; macOS: brew install openjdk@17."
)

PROBE_TIMEOUT_SECONDS = 30


def find_java() -> Path:
    """Return the path of a `java` command of version 17 or newer.

    Raises:
        JavaMissingError: There is no `java` in JAVA_HOME or on PATH.
        JavaTooOldError: There is one, but it is too old or does not say its version.
    """
    rejected: list[str] = []
    for source, java in _candidates():
        said = _said(java)
        version = _version_in(said)
        if version is not None and version >= JAVA_VERSION_MIN:
            return java
        found = f"is version {version}"
        if version is None:
            found = f"did not say its version but {shown(' '.join(said.split()))}"
        rejected.append(f"{java} (from {source}) {found}")
    if rejected:
        raise JavaTooOldError(
            f"Kafka and Spark need Java {JAVA_VERSION_MIN} or newer, but "
            f"{'; '.join(rejected)}. {HOW_TO_GET_JAVA}"
        )
    raise JavaMissingError(
        f"No Java was found: JAVA_HOME is {os.environ.get('JAVA_HOME') or 'not set'} "
        f"and there is no java command on PATH. {HOW_TO_GET_JAVA}"
    )


def java_version(java: Path) -> int | None:
    """Return the feature version (8, 17, 21, ...) of a `java` command, or None if it has none."""
    return _version_in(_said(java))


def _said(java: Path) -> str:
    """What a `java` command says of its version, or why it does not."""
    try:
        answer = subprocess.run(
            [str(java), "-version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PROBE_TIMEOUT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as cause:
        return str(cause)
    return answer.stderr + answer.stdout


def _version_in(said: str) -> int | None:
    # Java 8 and older call themselves 1.8 and so on.
    match = re.search(r'version "(?:1\.)?(\d+)', said)
    return int(match.group(1)) if match else None


def _candidates() -> list[tuple[str, Path]]:
    candidates: list[tuple[str, Path]] = []
    home = os.environ.get("JAVA_HOME")
    if home and os.access(Path(home) / "bin" / "java", os.X_OK):
        candidates.append(("JAVA_HOME", Path(home) / "bin" / "java"))
    on_path = shutil.which("java")
    if on_path:
        candidates.append(("PATH", Path(on_path)))
    return candidates
