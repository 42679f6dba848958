"""Starts the Spark session that every job uses: local, quiet, reachable from this machine only.

Where `spark-submit` started the program, master, memory, jars and addresses are what it was given,
and executors have our packages from the artifact that came with it.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Lock
from typing import TYPE_CHECKING, TypeAlias

from ledgermq.errors import LedgerMQError
from ledgermq_spark.log import machine
from ledgermq_spark.log.scratch import directory_until_exit
from ledgermq_spark.log.spark_options import SECRET_OPTIONS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# One Arrow batch holds decoded operations of up to 8 MiB each: bounded by bytes, then by records.
ARROW_BATCH_BYTES_MAX = 64 * 1024 * 1024
ARROW_BATCH_RECORDS_MAX = 2_000
# Spark holds so many rows of a file at once, whatever their size, by default 4,096: the records of
# an archive may have 8 MiB each.
FILE_BATCH_RECORDS_MAX = 16
# What counts is how soon a job is over, not how short its pauses are: a tenth of an audit's laws.
COLLECTOR = "-XX:+UseParallelGC"
CODE_CACHE = "-XX:ReservedCodeCacheSize=256m"

# Each sort and each join of a task begins with one such page, zeroed: by default a 32nd of the heap
# of two cores, which a small log fills to a hundredth. That was a tenth of an audit's laws.
SMALL_PAGES = {"spark.buffer.pageSize": "2m"}
# What jobs need wherever they run.
JOB_SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    # Files say of times what those say that DuckDB writes: instants, to the microsecond.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(ARROW_BATCH_RECORDS_MAX),
    "spark.sql.execution.arrow.maxBytesPerBatch": str(ARROW_BATCH_BYTES_MAX),
    "spark.sql.parquet.columnarReaderBatchSize": str(FILE_BATCH_RECORDS_MAX),
    # What jobs keep is 4 to 60 times as large in memory as on disk. Unless told, Spark takes it
    # for small and holds it whole for joins: on a log of a million messages until memory was out.
    "spark.sql.sources.fileCompressionFactor": "10.0",
    # A fold that takes long on one batch is no dead worker.
    "spark.python.worker.reuse": "true",
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "true",
    # Spark 4 notes for each function called on a column where that was, for the texts of its
    # errors: about ten calls to Java each.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.sql.dataFrameQueryContext.enabled": "false",
    # What Spark shows of options and settings, in plans and on its pages, has no passwords or keys.
    "spark.sql.redaction.options.regex": f"{SECRET_OPTIONS}|url",
    "spark.redaction.regex": SECRET_OPTIONS,
}
# Of a log up to so long a job is `brief`. The laws of 6,430 operations and 415,000 moves take 123 s
# so, 141 s with Java's optimising compiler; those of four times as much 276 and 224 s.
BRIEF_OPERATIONS_MAX = 15_000
# Of a brief job: each task costs more than what there is to do in it.
BRIEF_PARTITIONS = 2
# Where an executor unpacks the artifact, below its own directory: `--archives FILE#ledgermq-spark`.
UNPACKED = "./ledgermq-spark"
# What Spark forks the Python of its tasks from; on a cluster executors may lack it.
TASK_PYTHON = "ledgermq_spark.jobs.task_python"
# What Spark shows a job by.
APPLICATION = "ledgermq"

DELTA_SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}


class SparkUnavailableError(LedgerMQError):
    """Spark cannot start: PySpark or what it needs is not installed."""

    code = "spark-unavailable"


class LazySession:
    """A Spark session that begins once something asks for it: a short log is read without one."""

    def __init__(self, start: Callable[[], SparkSession]) -> None:
        self._start = start
        self._settings: dict[str, str] = {}
        self._lock = Lock()
        # Set once nobody wants what is read in its place.
        self.given_up = Event()
        self.begun: SparkSession | None = None

    def begin(self) -> SparkSession:
        """The session, which runs from now on; several threads may ask."""
        with self._lock:
            if self.begun is None:
                session = self._start()
                _set(session, self._settings)
                self.begun = session
            return self.begun

    def set(self, settings: Mapping[str, str]) -> None:
        """Settings that it has now, or from its beginning on."""
        with self._lock:
            self._settings |= settings
            if self.begun is not None:
                _set(self.begun, settings)


# What a job works with: a session that its caller has, or one for when it is needed.
Spark: TypeAlias = "SparkSession | LazySession"


def session_of(spark: Spark) -> SparkSession:
    """The session, begun if need be."""
    return spark.begin() if isinstance(spark, LazySession) else spark


def is_spared(spark: Spark, records: int, *, by_one_task: bool = False) -> bool:
    """Whether so many records are read in this process; any number that one task would take.

    Whoever gives a session, as of a cluster, has it read.
    """
    is_little = by_one_task or records <= BRIEF_OPERATIONS_MAX
    return isinstance(spark, LazySession) and is_little


@contextmanager
def thread_beside(spark: Spark) -> Iterator[ThreadPoolExecutor]:
    """A thread for what is done beside; at Ctrl-C it reads no further.

    Spark ends its tasks then. Without that, Ctrl-C would wait until a whole log is folded.
    """
    with ThreadPoolExecutor(max_workers=1) as pool:
        try:
            yield pool
        except KeyboardInterrupt:
            if isinstance(spark, LazySession):
                spark.given_up.set()
            raise


def is_on_this_machine(spark: Spark) -> bool:
    """Whether Spark's processes are here, and see what this one sees."""
    if isinstance(spark, LazySession):
        return not is_submitted()
    return (spark.sparkContext.master or "").startswith("local")


def cores_of(spark: Spark) -> int:
    """How many tasks it does at once."""
    if isinstance(spark, LazySession):
        return machine.cores()
    return spark.sparkContext.defaultParallelism


def configure(spark: Spark, settings: Mapping[str, str]) -> None:
    """Have queries done by these settings from now on."""
    if isinstance(spark, LazySession):
        spark.set(settings)
    else:
        _set(spark, settings)


def _set(session: SparkSession, settings: Mapping[str, str]) -> None:
    for name, value in settings.items():
        session.conf.set(name, value)


def is_submitted() -> bool:
    """Whether `spark-submit` started this program, so that settings are its to give."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def spark_session(
    *,
    directory: Path | None = None,
    log_level: str = "WARN",
    java_options: str = COLLECTOR,
    brief: bool = False,
    delta: bool = False,
) -> SparkSession:
    """Return the running Spark session, or start one.

    How many processors and how much memory it takes says `machine`. In a program that
    `spark-submit` started, only `log_level` counts.

    Args:
        directory: Where Spark spills and keeps its files; a fresh temporary one if not given.
        log_level: Of Spark's own log.
        java_options: Of the Java process, in place of the collector that suits jobs.
        brief: Whether the job is over before Java's optimising compiler would pay; on two cores
            that compiler takes a fifth of an audit of 12,000 operations.
        delta: Whether it can write Delta Lake tables.

    Raises:
        SparkUnavailableError: PySpark, pandas or PyArrow is not installed.
        JarsUnavailableError: The Kafka connector, or Delta Lake if asked for, is not cached and
            could not be fetched.
        JavaMissingError, JavaTooOldError: There is no Java that is new enough.
        SparkSettingError: A variable that says how much Spark may take holds something else.
    """
    try:
        import pandas  # noqa: F401 (mapInArrow refuses to start without it)
        import pyarrow  # noqa: F401
        from pyspark.sql import SparkSession
    except ImportError as cause:
        raise SparkUnavailableError(
            f"Rebuild and audit need Spark: {cause.name} is not installed. "
            "Install it with: pip install 'ledgermq[spark]'."
        ) from cause
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    if is_submitted():
        return _submitted_session(log_level)
    from ledgermq.embedded.jars import delta_jars, spark_connector_jars
    from ledgermq.embedded.java import QUICK_START

    jars = ",".join(map(str, [*spark_connector_jars(), *(delta_jars() if delta else ())]))
    scratch = str(directory or directory_until_exit())
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    # The tasks' Python is chosen by this variable; the setting of that name comes too late.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    cores = machine.cores()
    builder = SparkSession.builder.master(f"local[{cores}]").appName(APPLICATION)
    if brief:
        java_options = f"{QUICK_START} {CODE_CACHE} {java_options}"
    java_options = f"{_archive_of_chosen_java()} {java_options}"
    settings = _settings(scratch, jars, machine.memory(cores), java_options)
    settings |= partitions(BRIEF_PARTITIONS if brief else cores) | (SMALL_PAGES if brief else {})
    settings |= DELTA_SETTINGS if delta else {}
    Path(scratch).mkdir(parents=True, exist_ok=True)
    spark = builder.config(map={**settings}).getOrCreate()
    spark.sparkContext.setLogLevel(log_level)
    return spark


def _archive_of_chosen_java() -> str:
    """Have Spark's script take the Java that the broker takes; return what has it map its classes.

    The script takes that of JAVA_HOME, else that on the path, whatever its version.
    """
    from ledgermq.embedded.class_archive import archive_options
    from ledgermq.embedded.java import find_java

    java = find_java()
    if java != Path(os.environ.get("JAVA_HOME", "")) / "bin" / "java":
        os.environ.pop("JAVA_HOME", None)
    return shlex.join(archive_options(spark_program(), java, spark_jars()))


def partitions(number: int) -> dict[str, str]:
    """Return the settings that have Spark divide what queries read and shuffle into so many."""
    return {
        "spark.sql.shuffle.partitions": str(number),
        "spark.sql.leafNodeDefaultParallelism": str(number),
    }


def spark_program() -> str:
    """Return what the class-data archive of Spark's Java is called."""
    import pyspark

    return f"spark-{pyspark.__version__}"


def spark_jars() -> list[Path]:
    """Return what Spark's Java starts from; jars of a job come later."""
    import pyspark

    return list((Path(pyspark.__file__).parent / "jars").glob("*.jar"))


def _submitted_session(log_level: str) -> SparkSession:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(APPLICATION).config(map={**JOB_SETTINGS})
    # What an executor unpacked; with a local master none does, and what is here is seen.
    packages = os.pathsep.join([f"{UNPACKED}/site-packages", *_source_roots()])
    builder = builder.config("spark.executorEnv.PYTHONPATH", packages)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel(log_level)
    return spark


def _settings(scratch: str, jars: str, driver_memory: str, java_options: str) -> dict[str, str]:
    temporary = shlex.quote(f"-Djava.io.tmpdir={scratch}")
    return JOB_SETTINGS | {
        "spark.jars": jars,
        "spark.executorEnv.PYTHONPATH": os.pathsep.join(_source_roots()),
        "spark.python.daemon.module": TASK_PYTHON,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": driver_memory,
        "spark.driver.extraJavaOptions": f"{temporary} {java_options}",
        "spark.local.dir": scratch,
        "spark.sql.warehouse.dir": str(Path(scratch) / "warehouse"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # There is no page to show what is over, nor plans: each query writes its own for that, and
        # in the default form they take a sixteenth of an audit of a short log.
        "spark.sql.ui.explainMode": "simple",
        "spark.sql.ui.retainedExecutions": "5",
        "spark.ui.retainedJobs": "20",
        "spark.ui.retainedStages": "20",
        "spark.ui.retainedTasks": "1000",
    }


def _source_roots() -> list[str]:
    """Where the packages lie, for Python workers that do not see this environment's paths."""
    import ledgermq
    import ledgermq_spark

    here = [str(Path(module.__file__ or "").parents[1]) for module in (ledgermq, ledgermq_spark)]
    inherited = os.environ.get("PYTHONPATH", "")
    return list(dict.fromkeys([*here, *inherited.split(os.pathsep)]) if inherited else here)
