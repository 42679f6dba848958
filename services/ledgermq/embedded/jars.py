"""Fetches the broker's and the Spark connector's jars once, and keeps them in a cache directory.

The Apache Ivy inside PySpark resolves them, so that nothing but Java and the Python packages is
needed. A set of jars becomes visible by one rename when it is complete: a fetch that is killed
leaves nothing that a later one could mistake for a result. Fetches exclude one another by a file
lock, which the system drops when its holder dies.
"""

import fcntl
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from xml.sax.saxutils import quoteattr

from ledgermq.embedded.errors import JarsUnavailableError
from ledgermq.embedded.java import find_java

FETCH_ATTEMPTS_MAX = 3
FETCH_TIMEOUT_SECONDS = 900
CONTENTS = "contents.json"


@dataclass(frozen=True, kw_only=True)
class JarSet:
    """A named set of jars: modules to resolve with all they depend on, less what is excluded.

    Attributes:
        name: The folder's name in the cache; it must change when the modules do.
        title: What people call it.
        modules: (organisation, module, version) of each root.
        excluded: Organisations, or organisation/module, that are not fetched.
    """

    name: str
    title: str
    modules: tuple[tuple[str, str, str], ...]
    excluded: tuple[str, ...] = ()


BROKER = JarSet(
    name="kafka-4.3.1",
    title="the Kafka 4.3.1 broker (about 44 MB)",
    modules=(
        ("org.apache.kafka", "kafka_2.13", "4.3.1"),
        # Kafka logs through SLF4J 1.7 and brings no binding: without one it says nothing at all.
        ("org.slf4j", "slf4j-simple", "1.7.36"),
    ),
)

SPARK_CONNECTOR = JarSet(
    name="spark-sql-kafka-4.0.0",
    title="the Kafka connector of Spark 4.0 (about 10 MB)",
    modules=(("org.apache.spark", "spark-sql-kafka-0-10_2.13", "4.0.0"),),
    # PySpark ships these; a second copy of another version on the class path would be a hazard.
    excluded=(
        "com.google.code.findbugs",
        "org.apache.hadoop",
        "org.apache.spark/spark-tags_2.13",
        "org.lz4",
        "org.scala-lang",
        "org.scala-lang.modules",
        "org.slf4j",
        "org.xerial.snappy",
    ),
)

# What writes Delta Lake tables; PySpark has all that it needs beside it.
DELTA = JarSet(
    name="delta-4.0.0",
    title="Delta Lake for Spark 4.0 (about 8 MB)",
    modules=(("io.delta", "delta-spark_2.13", "4.0.0"),),
    excluded=("org.antlr", "org.apache.hadoop", "org.apache.spark", "org.scala-lang"),
)


def cache_directory() -> Path:
    """Return where jars are kept: LEDGERMQ_CACHE_DIR, else `.cache/ledgermq` at home.

    Raises:
        JarsUnavailableError: it is not set, and this user has no home, as in many containers.
    """
    chosen = os.environ.get("LEDGERMQ_CACHE_DIR")
    if chosen:
        return Path(chosen).absolute()
    try:
        return Path.home() / ".cache" / "ledgermq"
    except RuntimeError:
        raise JarsUnavailableError(
            "this user has no home directory where the jars of Kafka and Spark could be kept: set "
            "LEDGERMQ_CACHE_DIR to a directory for them"
        ) from None


def cached_jars(jar_set: JarSet) -> list[Path] | None:
    """Return the jars of a set if it is in the cache and whole, else None. Fetches nothing."""
    folder = cache_directory() / "jars" / jar_set.name
    try:
        contents = json.loads((folder / CONTENTS).read_text(encoding="utf-8"))
        whole = all((folder / name).stat().st_size == size for name, size in contents.items())
    except (OSError, ValueError, AttributeError):
        return None
    return [folder / name for name in sorted(contents)] if whole and contents else None


def fetched_jars(jar_set: JarSet) -> list[Path]:
    """Return the jars of a set, fetching them first if they are not cached.

    Raises:
        JarsUnavailableError: They are not cached and could not be fetched.
        JavaMissingError: They are not cached and there is no Java to fetch them with.
        JavaTooOldError: They are not cached and the Java is too old.
    """
    jars = cached_jars(jar_set)
    if jars is not None:
        return jars
    root = cache_directory() / "jars"
    try:
        root.mkdir(parents=True, exist_ok=True)
        with (root / "lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            # Another process may have fetched them while this one waited for the lock.
            if cached_jars(jar_set) is None:
                _fetch(jar_set, root)
    except OSError as cause:
        raise JarsUnavailableError(
            f"{jar_set.title} could not be put into {root}: {cause}. Free some space, or choose "
            "another directory with LEDGERMQ_CACHE_DIR."
        ) from cause
    jars = cached_jars(jar_set)
    if jars is None:
        raise JarsUnavailableError(f"{root / jar_set.name} changed as it was fetched; try again.")
    return jars


# The broker's class path; what a Spark session needs in `spark.jars` to read Kafka, and to write
# Delta Lake tables.
broker_jars = partial(fetched_jars, BROKER)
spark_connector_jars = partial(fetched_jars, SPARK_CONNECTOR)
delta_jars = partial(fetched_jars, DELTA)


def _fetch(jar_set: JarSet, root: Path) -> None:
    java = find_java()
    ivy = _ivy_jar()
    final = root / jar_set.name
    print(f"ledgermq: fetching {jar_set.title} into {final}, once", file=sys.stderr, flush=True)
    # The lock is held, so anything of this name was left by a fetch that was killed.
    for leftover in root.glob(f".{jar_set.name}.*"):
        shutil.rmtree(leftover, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=f".{jar_set.name}.", dir=root) as scratch_name:
        scratch = Path(scratch_name)
        retrieved = scratch / "jars"
        retrieved.mkdir()
        (scratch / "ivy.xml").write_text(_ivy_module(jar_set), encoding="utf-8")
        _run_ivy(java, ivy, jar_set, scratch, root.parent / "ivy")
        contents = {jar.name: jar.stat().st_size for jar in sorted(retrieved.glob("*.jar"))}
        (retrieved / CONTENTS).write_text(json.dumps(contents, indent=1), encoding="utf-8")
        if final.exists():
            shutil.rmtree(final)
        retrieved.rename(final)
    size_mb = sum(contents.values()) / 1e6
    print(f"ledgermq: {len(contents)} jars, {size_mb:.0f} MB", file=sys.stderr, flush=True)


def _run_ivy(java: Path, ivy: Path, jar_set: JarSet, scratch: Path, ivy_cache: Path) -> None:
    command = [str(java), "-jar", str(ivy)]
    command += ["-settings", str(_ivy_settings()), "-cache", str(ivy_cache)]
    command += ["-ivy", str(scratch / "ivy.xml"), "-confs", "default", "-types", "jar", "bundle"]
    command += ["-retrieve", f"{scratch}/jars/[artifact]-[revision](-[classifier]).[ext]"]
    output = ""
    for _ in range(FETCH_ATTEMPTS_MAX):
        try:
            answer = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                timeout=FETCH_TIMEOUT_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            output = f"no end after {FETCH_TIMEOUT_SECONDS} seconds"
            continue
        if answer.returncode == 0:
            return
        output = answer.stdout
    wanted = ", ".join(":".join(module) for module in jar_set.modules)
    tail = [line for line in output.splitlines() if line.strip()][-15:]
    raise JarsUnavailableError(
        f"{jar_set.title} is not in {cache_directory()} and could not be fetched from Maven "
        f"Central ({wanted}), in {FETCH_ATTEMPTS_MAX} attempts. Check the network, or set "
        "LEDGERMQ_IVY_SETTINGS to an Ivy settings file that names a mirror, or copy the cache "
        "directory from a machine that has it. Ivy's last words:\n" + "\n".join(tail)
    )


def _ivy_module(jar_set: JarSet) -> str:
    lines = ['<ivy-module version="2.0">', '<info organisation="ledgermq" module="jars"/>']
    lines.append("<dependencies>")
    for organisation, module, version in jar_set.modules:
        attributes = f"org={quoteattr(organisation)} name={quoteattr(module)}"
        lines.append(f'<dependency {attributes} rev={quoteattr(version)} conf="default"/>')
    for excluded in jar_set.excluded:
        organisation, _, module = excluded.partition("/")
        attributes = f"org={quoteattr(organisation)}"
        if module:
            attributes += f" module={quoteattr(module)}"
        lines.append(f"<exclude {attributes}/>")
    return "\n".join([*lines, "</dependencies>", "</ivy-module>"])


def _ivy_settings() -> Path:
    chosen = os.environ.get("LEDGERMQ_IVY_SETTINGS")
    if chosen:
        return Path(chosen).absolute()
    here = Path(__file__).resolve()
    # In a wheel the file lies beside this module, in a checkout in infra/.
    for settings in (here.parent / "ivysettings.xml", here.parents[3] / "infra/ivysettings.xml"):
        if settings.is_file():
            return settings
    raise JarsUnavailableError(
        f"ivysettings.xml is missing beside {here}: the installation is damaged, install again."
    )


def _ivy_jar() -> Path:
    spec = importlib.util.find_spec("pyspark")
    for location in (spec.submodule_search_locations or []) if spec else []:
        for jar in sorted(Path(location).glob("jars/ivy-*.jar")):
            return jar
    raise JarsUnavailableError(
        "Jars are fetched with the Apache Ivy inside PySpark, which is not installed here. "
        "Install it with: pip install 'ledgermq[spark]'; or start a Kafka of your own and give "
        "its bootstrap address."
    )
