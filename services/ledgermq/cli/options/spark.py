"""Spark behind a command: started once if it is needed, quiet, and stopped at the end."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ledgermq.cli.options.consent import drawn
from ledgermq.cli.options.target import Target
from ledgermq.cli.printing.output import Output
from ledgermq.errors import LedgerMQError
from ledgermq.file_lock import lock_within
from ledgermq.wire.topics.reading import LogDamagedError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from rich.console import Console

    from ledgermq_spark.log.session import LazySession


Stages = Callable[[str, int, int], None]

SCRATCH, LOCK = "ledgermq-spark-", "lock"
TAIL_LINES = 15
# Where in Java an error came from: it would push the error itself out of the tail.
FRAME = "\tat "
# What Kafka's client in Java says of a record whose checksum does not agree.
DAMAGED = re.compile(r"Record batch for partition (\S+) at offset (\d+) is invalid")
# What it says of a position that was there when the job began.
GONE = re.compile(r"FetchPosition\{offset=(\d+),.* is out of range for partition (\S+)")
# The last line of a Python worker that ended with an error of ours.
OURS = re.compile(r"(ledgermq(?:_spark)?(?:\.\w+)+)\.(\w+): (.+)")
# What Java and Spark say where memory is out; Spark's own code for that, if Java ends by it.
MEMORY_FULL = re.compile(
    r"Java heap space|GC overhead limit|OutOfMemoryError|Unable to acquire \d+ bytes of memory"
)
JAVA_MEMORY_FULL = 52
JAVA_ENDS_SECONDS = 5.0
# They write what went wrong on standard error, with all of Java's frames; our errors say it.
TALKATIVE = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """A Spark session, and a directory for what its jobs leave, which is removed at the end."""

    spark: LazySession
    directory: Path

    @property
    def session(self) -> SparkSession:
        return self.spark.begin()

    def options(self, job: str) -> dict[str, Any]:
        return {"spark": self.spark, "directory": self.directory / job}


class SparkFailedError(LedgerMQError):
    code = "spark-failed"


@contextlib.contextmanager
def quiet_spark(operations: int, *, delta: bool = False) -> Iterator[Engine]:
    """A Spark session for so many operations, whose Java writes to a file.

    It can write Delta Lake tables, if asked for. It begins once a job needs it.

    Raises:
        JavaMissingError: There is no Java.
        JavaTooOldError: There is one, but it is too old.
        LogDamagedError: A record that was read is damaged.
        PositionOutOfRangeError: What was read was cut off the log meanwhile.
        SparkFailedError: Spark did not start, and the text ends with its log's tail; or a job
            failed.
    """
    from pyspark.logger import PySparkLogger
    from pyspark.sql import SparkSession

    from ledgermq_spark.log.session import BRIEF_OPERATIONS_MAX, LazySession, spark_session

    for name in TALKATIVE:
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)
    # What is between Python and Java writes down each Ctrl-C with all frames, by these two.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addHandler(logging.NullHandler())
    brief = operations <= BRIEF_OPERATIONS_MAX
    # A program that has a session of its own keeps it.
    borrowed = SparkSession.getActiveSession() is not None
    with scratch_directory() as scratch:
        log = scratch / "spark.log"

        def start() -> SparkSession:
            with _output_to(log), _ctrl_c_as_before():
                return spark_session(
                    directory=scratch / "work", log_level="ERROR", brief=brief, delta=delta
                )

        spark = LazySession(start)
        try:
            try:
                yield Engine(spark=spark, directory=scratch / "results")
            finally:
                if spark.begun is not None and not borrowed:
                    _stop(spark.begun)
        except LedgerMQError:
            raise
        except Exception as error:
            of_spark = type(error).__module__.partition(".")[0] in ("pyspark", "py4j")
            # Whoever asks a Java that has ended finds nobody who listens.
            if not of_spark and not isinstance(error, ConnectionError):
                raise
            if _is_of_ctrl_c(error):
                raise KeyboardInterrupt from error
            is_java_heard = spark.begun is None or _of_java(error) is not None
            reason = _of_memory(log) or (None if is_java_heard else _end_of_java())
            if reason is None and not of_spark:
                raise
            reason = reason or _reason(error)
            ours = _of_the_log(reason) or _of_a_task(reason)
            if ours is not None:
                raise ours from error
            text = f"Spark failed: {reason}. {_kept(log)}"
            if spark.begun is None:
                lines = log.read_text(errors="replace").splitlines()
                told = [line for line in lines if not line.startswith(FRAME)]
                text = "\n".join([f"{text}; it ends with:", *told[-TAIL_LINES:]])
            raise SparkFailedError(text) from error


@contextlib.contextmanager
def scratch_directory() -> Iterator[Path]:
    """A directory of temporary files, which goes at the end.

    Those of commands that were killed go first: each is locked for as long as its command lives.
    """
    for lock in Path(tempfile.gettempdir()).glob(f"{SCRATCH}*/{LOCK}"):
        with contextlib.suppress(OSError), lock.open() as handle:
            if lock_within(0.0, handle):
                shutil.rmtree(lock.parent, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=SCRATCH) as name:
        scratch = Path(name)
        with (scratch / f"{LOCK}-unfinished").open("w") as handle:
            lock_within(0.0, handle)
            # Seen by others only once it is locked.
            (scratch / f"{LOCK}-unfinished").rename(scratch / LOCK)
            yield scratch


@contextlib.contextmanager
def spark_job(target: Target, output: Output, title: str) -> Iterator[dict[str, Any]]:
    """What every job on a queue manager's log takes, with a progress bar while it runs.

    Raises what `quiet_spark` and `Target.located` raise.
    """
    _, log = target.located()
    with archive_job(output, title, log.end - log.start) as job:
        yield {
            "bootstrap": target.bootstrap,
            "queue_manager": target.queue_manager,
            "topic_prefix": target.topic_prefix,
            **job,
        }


@contextlib.contextmanager
def archive_job(
    output: Output, title: str, operations: int, *, delta: bool = False
) -> Iterator[dict[str, Any]]:
    """What a job on an archive of so many operations takes; it needs no broker.

    Raises what `quiet_spark` raises.
    """
    with _progress_bar(output, title) as tell, quiet_spark(operations, delta=delta) as engine:
        yield {"progress": tell, **engine.options(title)}


@contextlib.contextmanager
def _progress_bar(output: Output, title: str) -> Iterator[Stages]:
    """A progress bar on standard error for people; silent for scripts."""
    from rich.console import Console

    # A file of our own, as standard error goes elsewhere while Spark starts.
    with os.fdopen(os.dup(2), "w", encoding="utf-8") as terminal:
        console, shown = Console(file=terminal), output.for_people and terminal.isatty()
        with stages_bar(console, title, beginning=f"{title}: starting", shown=shown) as tell:
            yield tell


@contextlib.contextmanager
def stages_bar(console: Console, title: str, *, beginning: str, shown: bool) -> Iterator[Stages]:
    """A progress bar for a job, which tells its stage, steps done and steps in all (0: unknown)."""
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not shown,
    )
    with drawn(bar) if shown else bar:
        task = bar.add_task(beginning, total=None)

        def tell(stage: str, done: int, total: int) -> None:
            text = f"{title}: {stage}" if stage else title
            bar.update(task, description=text, completed=done, total=total or None)

        yield tell


@contextlib.contextmanager
def _ctrl_c_as_before() -> Iterator[None]:
    """Ctrl-C waits until Spark runs, and means afterwards what it meant before.

    A Java that is left while it starts finds nobody to tell where it listens, and never ends. The
    handler that PySpark sets asks Java to stop all jobs, in the middle of what this thread asks of
    Java: what follows is an error of Spark in the place of KeyboardInterrupt, or nothing at all.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before == signal.SIG_IGN:
        yield
        return
    pressed = threading.Event()
    signal.signal(signal.SIGINT, lambda *_: pressed.set())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if pressed.is_set():
            # The processes that were begun had it too: what fails for that reason is no error.
            signal.raise_signal(signal.SIGINT)


@contextlib.contextmanager
def _output_to(log: Path) -> Iterator[None]:
    """What processes started meanwhile print goes to a file: Java warns on standard output, too."""
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    saved = {}
    try:
        for number, stream in ((1, sys.stdout), (2, sys.stderr)):
            stream.flush()
            saved[number] = os.dup(number)
            os.dup2(descriptor, number)
        yield
    finally:
        for number, before in saved.items():
            os.dup2(before, number)
            os.close(before)
        os.close(descriptor)


def _stop(session: SparkSession) -> None:
    """Ends Spark; a Java that has ended already does not hide why."""
    from py4j.protocol import Py4JError

    try:
        with warnings.catch_warnings(action="ignore"):
            session.stop()
    except (Py4JError, OSError):
        if _java_exit() is None:
            raise


def _java_exit() -> int | None:
    """How Spark's Java ended; None: it runs, or was not started here."""
    from pyspark import SparkContext

    process = getattr(SparkContext._gateway, "proc", None)
    if process is None:
        return None
    # Its connections end just before it does.
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(JAVA_ENDS_SECONDS)
    code: int | None = process.poll()
    return code


def _of_memory(log: Path) -> str | None:
    """What to do where memory was full: Spark ends Java then, amid whatever Python asks of it."""
    return _memory_advice() if MEMORY_FULL.search(log.read_text(errors="replace")) else None


def _end_of_java() -> str | None:
    """Why Spark's Java has ended, if it has."""
    code = _java_exit()
    if code is None:
        return None
    if code == JAVA_MEMORY_FULL:
        return _memory_advice()
    if code == -signal.SIGKILL:
        return "its Java was killed, as systems do where memory is out: free some, and call again"
    return f"its Java ended with code {code}"


def _memory_advice() -> str:
    from ledgermq_spark.log import machine

    return (
        f"the {machine.memory(machine.cores())} of memory that its Java has are full: ask for less "
        f"at once, or give it more with {machine.MEMORY_VARIABLE}, such as "
        f"{machine.MEMORY_VARIABLE}=6g"
    )


def _reason(error: Exception) -> str:
    """What Spark says went wrong first of all, the last word of a Python worker if it was one."""
    text = str(error)
    if "Traceback" not in text:
        text = _root(error) or text
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    if os.strerror(errno.ENOSPC) in text:
        return (
            f"{os.strerror(errno.ENOSPC)}: make room where the command writes, or for scratch "
            f"files in {tempfile.gettempdir()} (TMPDIR), and call it again"
        )
    if MEMORY_FULL.search(text):
        return _memory_advice()
    if "Traceback" not in text:
        return lines[0].rstrip(".")
    said = [line for line in lines if re.match(r"[\w.]+(Error|Exception|Interrupt)\b", line)]
    return (said or lines)[-1].rstrip(".")


def _of_the_log(reason: str) -> LedgerMQError | None:
    """What is wrong with the log, where that is what Spark failed of."""
    from ledgermq_spark.log.positions import cut_meanwhile

    if damaged := DAMAGED.search(reason):
        return LogDamagedError(damaged[1], f"the one at position {damaged[2]}")
    if gone := GONE.search(reason):
        return cut_meanwhile(gone[2], int(gone[1]))
    return None


def _of_a_task(reason: str) -> LedgerMQError | None:
    """The error of ours that a task ended with, if it did with one."""
    told = OURS.fullmatch(reason)
    kind = told and getattr(import_module(told[1]), told[2], None)
    if told is None or not (isinstance(kind, type) and issubclass(kind, LedgerMQError)):
        return None
    # Its text is made already; the class may make it of other arguments.
    error = kind.__new__(kind)
    LedgerMQError.__init__(error, told[3])
    return error


def _is_of_ctrl_c(error: BaseException | None) -> bool:
    """Whether it came while Ctrl-C ended a job: PySpark tidies up then, and may find no Java."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def _of_java(error: Exception) -> Any:
    """The error in Java, as it came, or as Spark made one of Python of it; None: there is none."""
    return getattr(error, "java_exception", None) or getattr(error, "_origin", None)


def _root(error: Exception) -> str | None:
    """What the error in Java says that led to this one, if Java still answers."""
    from py4j.protocol import Py4JError

    said = None
    cause = _of_java(error)
    with contextlib.suppress(Py4JError, OSError):
        while cause is not None:
            said = cause.getMessage() or said
            cause = cause.getCause()
    return said


def _kept(log: Path) -> str:
    """Put the log where it outlives the command, and say where."""
    descriptor, name = tempfile.mkstemp(prefix="ledgermq-spark-", suffix=".log")
    try:
        with os.fdopen(descriptor, "wb") as handle:
            handle.write(log.read_bytes())
    except OSError as error:
        Path(name).unlink()
        return f"Its log was not kept in {tempfile.gettempdir()}: {error.strerror}"
    return f"Its log is {name}"
