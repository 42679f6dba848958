"""Why Spark failed is said by the error that came first, without frames of Java."""

import errno
import os
import tempfile
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark import SparkContext

from ledgermq.cli.options.spark import SparkFailedError, quiet_spark, scratch_directory
from ledgermq.wire.topics.reading import LogDamagedError
from ledgermq_spark.archive.stretch import ArchiveBrokenError
from ledgermq_spark.log import session
from ledgermq_spark.log.positions import PartitionRange, PositionOutOfRangeError
from ledgermq_spark.log.read_log import read_raw
from support.brokers import topic_surgery as surgery
from support.brokers.worker_process import new_place


class JavaError:
    """An error in Java, as Python sees it."""

    def __init__(self, message, cause=None):
        self.getMessage = lambda: message
        self.getCause = lambda: cause


class FailedJobError(Exception):
    """Stands for what py4j raises."""

    __module__ = "py4j.protocol"

    def __init__(self):
        super().__init__("An error occurred while calling o672.parquet.\n\tat org.apache.spark")
        full = JavaError("No space left on device\n\tat java.base/sun.nio")
        self.java_exception = JavaError("Job aborted", JavaError(None, full))


class Session:
    """Stands for a Spark session."""

    def stop(self):
        """It ends."""


@contextmanager
def begun_spark():
    """Spark behind a command that needs it."""
    with quiet_spark(1) as engine:
        assert engine.session is not None
        yield engine


def test_the_reason_is_that_of_the_first_error(monkeypatch):
    """One line: what Java says besides is in the log, whose place is told."""
    monkeypatch.setattr(session, "spark_session", lambda **_: Session())
    with pytest.raises(SparkFailedError) as told, begun_spark():
        raise FailedJobError
    reason, _, log = str(told.value).partition(". Its log is ")
    assert reason.startswith("Spark failed: No space left on device: make room where the command")
    assert "\n" not in reason
    assert log.endswith(".log")


def test_what_fails_because_of_ctrl_c_is_ctrl_c(monkeypatch):
    """PySpark tidies up behind an interrupted job, and sometimes finds no Java that answers."""
    monkeypatch.setattr(session, "spark_session", lambda **_: Session())
    failed = FailedJobError()
    failed.__context__ = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt), begun_spark():
        raise failed


class FullJavaError(Exception):
    """Stands for what py4j raises where Java's memory is out."""

    __module__ = "py4j.protocol"
    java_exception = JavaError("Java heap space")


def test_full_memory_is_told_with_the_setting_that_gives_more(monkeypatch):
    """How much there was, and what to do."""
    monkeypatch.setenv("LEDGERMQ_SPARK_MEMORY", "700m")
    monkeypatch.setattr(session, "spark_session", lambda **_: Session())
    said = r"Spark failed: the 700m of memory .* are full: .*LEDGERMQ_SPARK_MEMORY=6g\. Its log is"
    with pytest.raises(SparkFailedError, match=said), begun_spark():
        raise FullJavaError


def test_a_damaged_record_is_told_with_what_to_do(monkeypatch):
    """Kafka's own client finds it where Spark reads the log."""
    monkeypatch.setattr(session, "spark_session", lambda **_: Session())
    failure = type("SparkRuntimeException", (Exception,), {"__module__": "pyspark.errors"})
    said = "ledgermq.operations-0 holds a record that is damaged: the one at position 154. Where"
    with pytest.raises(LogDamagedError, match=said), begun_spark():
        raise failure(
            "Record batch for partition ledgermq.operations-0 at offset 154 is invalid, cause: "
            "Record is corrupt (stored crc = 288708285, computed crc = 3800547836)"
        )


TRACEBACK = """[UDF_ERROR.PAYLOAD] An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "stretch.py", line 1, in records
{}
"""


def test_an_error_of_ours_in_a_task_is_told_as_itself(monkeypatch):
    """Spark did what it was to do."""
    monkeypatch.setattr(session, "spark_session", lambda **_: Session())
    failure = type("PythonException", (Exception,), {"__module__": "pyspark.errors"})
    said = "ledgermq_spark.archive.stretch.ArchiveBrokenError: a/b has records without a time"
    text = r"^a/b has records without a time$"
    with pytest.raises(ArchiveBrokenError, match=text), begun_spark():
        raise failure(TRACEBACK.format(said))
    with pytest.raises(SparkFailedError, match="Spark failed: ValueError: no"), begun_spark():
        raise failure(TRACEBACK.format("ValueError: no"))


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.slow
def test_a_log_that_is_trimmed_while_it_is_read_is_told_as_that(broker, tmp_path):
    """It was out of range for Kafka, and Spark had failed."""
    place = new_place(broker.bootstrap, tmp_path)
    log = PartitionRange(
        topic=place.topics.operations, partition=place.claim.partition, start=0, end=5
    )
    for _ in range(log.end):
        surgery.write(place, log.topic, "QM1", b"x")
    said = f"{log.topic}-0 was cut while this read it, .*: position 0 was there, and is gone. Call"

    def read_too_late():
        with begun_spark() as engine:
            surgery.delete_records(place, log.topic, log.partition, 3)
            read_raw(engine.session, broker.bootstrap, [log]).count()

    with pytest.raises(PositionOutOfRangeError, match=said):
        read_too_late()


class Java:
    """Stands for the process of Java, which ends by itself when it is waited for."""

    def __init__(self, code):
        self.code = code

    def wait(self, _seconds):
        """It has ended."""

    def poll(self):
        """How it ended."""
        return self.code


class DeadSession:
    """Stands for a Spark session whose Java has ended."""

    def stop(self):
        """Nobody listens."""
        raise ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (52, "of memory that its Java has are full: .*LEDGERMQ_SPARK_MEMORY=6g"),
        (-9, "its Java was killed, as systems do where memory is out"),
        (1, "its Java ended with code 1"),
    ],
)
def test_a_java_that_has_ended_is_told_as_such(monkeypatch, code, said):
    """Not that nobody listens where it did."""
    monkeypatch.setattr(session, "spark_session", lambda **_: DeadSession())
    monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace(proc=Java(code)))
    with pytest.raises(SparkFailedError, match=rf"Spark failed: .*{said}"), begun_spark():
        raise ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))


class ShutDownError(Exception):
    """Stands for what py4j raises of a job that runs while Spark ends."""

    __module__ = "py4j.protocol"
    java_exception = JavaError("Job 3 cancelled because SparkContext was shut down")


@pytest.mark.parametrize(
    "told", [ShutDownError(), ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")]
)
def test_full_memory_that_ends_java_is_told_as_full_memory(monkeypatch, told):
    """Java says it in its log, and is ending while Python is told something else."""

    def filling(**_given):
        os.write(2, b"java.lang.OutOfMemoryError: Java heap space\n")
        return Session()

    monkeypatch.setattr(session, "spark_session", filling)
    monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace(proc=Java(None)))
    said = "of memory that its Java has are full: .*LEDGERMQ_SPARK_MEMORY=6g"
    with pytest.raises(SparkFailedError, match=said), begun_spark():
        raise told


def test_a_log_that_does_not_fit_does_not_hide_the_reason(monkeypatch):
    """The disk of temporary files may be the one that is full."""

    def full(*_given):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(session, "spark_session", lambda **_: Session())
    monkeypatch.setattr(Path, "read_bytes", full)
    with (
        pytest.raises(SparkFailedError, match=r"make room .*\. Its log was not kept in"),
        begun_spark(),
    ):
        raise FailedJobError


def test_scratch_files_of_a_killed_command_go_with_the_next_one(monkeypatch, tmp_path):
    """Those of one that runs stay, and so does what is none of a command's."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    killed, other = tmp_path / "ledgermq-spark-killed", tmp_path / "ledgermq-spark-other"
    other.mkdir()
    with scratch_directory() as running:
        killed.mkdir()
        (killed / "lock").touch()
        with scratch_directory():
            assert not killed.exists()
            assert running.exists()
    assert list(tmp_path.iterdir()) == [other]
