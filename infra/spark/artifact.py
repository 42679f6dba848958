"""Builds the artifact of the Spark jobs: all that they need where there is Spark and bare Python.

It holds our packages and those that they import, as locked in `requirements/spark.txt`, in
`site-packages/`, the connector for Kafka in `jars/`, and `job.py`, the program to submit. Packages
have native libraries: an artifact suits the system and the Python that built it.
"""

import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from ledgermq.embedded import EmbeddedError, spark_connector_jars

ROOT = Path(__file__).resolve().parents[2]
ARTIFACT = "ledgermq-spark.tar.gz"
# What nobody imports at work, and every executor would unpack.
LEFT_OUT = ("bin", "pyarrow/include", "pyarrow/tests", "pandas/tests")
COMPRESSION = 6


def build(directory: Path) -> Path:
    """Build the artifact in a directory; returns its path. It is there whole or not at all."""
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".artifact-", dir=directory) as scratch:
        contents = Path(scratch) / "contents"
        packages = contents / "site-packages"
        locked = ROOT / "requirements" / "spark.txt"
        _install(packages, "--require-hashes", "--only-binary", ":all:", "-r", str(locked))
        _install(packages, "--no-build-isolation", str(ROOT))
        for name in LEFT_OUT:
            shutil.rmtree(packages / name, ignore_errors=True)
        (contents / "jars").mkdir()
        for jar in spark_connector_jars():
            shutil.copy(jar, contents / "jars")
        shutil.copy(ROOT / "infra" / "spark" / "job.py", contents)
        unfinished = Path(scratch) / ARTIFACT
        with tarfile.open(unfinished, "w:gz", compresslevel=COMPRESSION) as archive:
            archive.add(contents, arcname=".", filter=_of_nobody)
        return unfinished.replace(directory / ARTIFACT)


def _install(target: Path, *what: str) -> None:
    """Install packages into a directory, without those that they depend on."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--upgrade"]
    subprocess.run([*command, "--target", str(target), *what], check=True)


def _of_nobody(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Files belong to whoever unpacks them."""
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


def main() -> None:
    """Build it below `build/`, or in the directory that is given."""
    try:
        built = build(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build")
    except EmbeddedError as error:
        sys.exit(f"ledgermq: {error}")
    except subprocess.CalledProcessError as error:
        sys.exit(f"ledgermq: pip ended with code {error.returncode}; it said why above")
    print(f"{built}: {built.stat().st_size / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
