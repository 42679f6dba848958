"""Fetches the jars of the embedded broker and of Spark into the cache, and prepares their classes.

Preparing is one run of each program after which its Java writes a class-data archive, so that every
later start is quicker. Where Java cannot write one, all works as well without.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ledgermq.embedded import EmbeddedError, broker_jars, delta_jars, spark_connector_jars
from ledgermq.embedded.class_archive import class_archive, outdated_archives
from ledgermq.embedded.jars import BROKER
from ledgermq.embedded.java import find_java
from ledgermq_spark.log.session import spark_jars, spark_program

RUN_TIMEOUT_SECONDS = 300

RUN_BROKER = """
import sys
from ledgermq.embedded import EmbeddedBroker

with EmbeddedBroker(sys.argv[1]):
    pass
"""

# What every job does: reads and writes tables, joins, sorts, and gives rows to Python and back.
RUN_SPARK = """
import sys
from pyspark.sql import Window, functions
from ledgermq_spark.log.session import spark_session

spark = spark_session(brief=True, log_level="OFF")
rows = spark.range(1000).withColumn("part", functions.col("id") % 7)
rows.write.parquet(sys.argv[1] + "/rows")
rows = spark.read.parquet(sys.argv[1] + "/rows")
rows = rows.mapInArrow(lambda batches: batches, rows.schema)
rows = rows.withColumn("rank", functions.rank().over(Window.partitionBy("part").orderBy("id")))
counts = rows.groupBy("part").agg(functions.count("*"), functions.max("rank"))
rows.join(counts, "part").orderBy("id").toPandas()
java = spark.sparkContext._gateway.proc
spark.stop()
java.stdin.close()
java.wait()
"""


def main(arguments: list[str]) -> None:
    """Fetch what is not cached, with `--spark` for Spark only; else end with a text for people."""
    try:
        if arguments != ["--spark"]:
            broker_jars()
        spark_connector_jars()
        delta_jars()
        if arguments != ["--spark"]:
            prepare_classes(BROKER.name, find_java(), broker_jars(), RUN_BROKER)
            prepare_classes(spark_program(), find_java(), spark_jars(), RUN_SPARK)
    except EmbeddedError as error:
        sys.exit(f"ledgermq: {error}")


def prepare_classes(program: str, java: Path, jars: Sequence[Path], code: str) -> None:
    """Make the class-data archive of a program by one run of it, unless it is there.

    It takes the place of one of the files as they were before, which is large.
    """
    archive = class_archive(program, java, jars)
    if archive.exists():
        return
    print(f"ledgermq: preparing the classes of {program}, once", file=sys.stderr, flush=True)
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{program}.", dir=archive.parent) as directory:
        made = Path(directory) / "archive"
        # Java warns on standard output, from which Spark's script takes the command that it runs.
        options = f'-Xlog:disable "-XX:ArchiveClassesAtExit={made}"'
        try:
            subprocess.run(
                [sys.executable, "-c", code, directory],
                env=os.environ | {"JDK_JAVA_OPTIONS": options},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                timeout=RUN_TIMEOUT_SECONDS,
                check=True,
            )
            for old in outdated_archives(archive):
                old.unlink()
            made.rename(archive)
        except (OSError, subprocess.SubprocessError) as cause:
            why = _why(cause)
            print(f"ledgermq: {program} starts slower without: {why}", file=sys.stderr, flush=True)


def _why(cause: OSError | subprocess.SubprocessError) -> str:
    """Return what stopped a run: its last line, rather than the program that it was given."""
    if isinstance(cause, subprocess.TimeoutExpired):
        return f"it took more than {RUN_TIMEOUT_SECONDS} seconds"
    if isinstance(cause, subprocess.CalledProcessError):
        lines = (cause.stdout or "").split("\n")
        return next((line for line in reversed(lines) if line.strip()), f"code {cause.returncode}")
    return str(cause)


if __name__ == "__main__":
    main(sys.argv[1:])
