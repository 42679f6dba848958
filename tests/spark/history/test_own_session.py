"""What `history.read` says of a Spark session of one's own that cannot do it."""

from __future__ import annotations

from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from pyspark.errors import PythonException
from pyspark.sql import SparkSession

from ledgermq.errors import ArgumentTypeError
from ledgermq.wire.topics.registry import RegistryError
from ledgermq_spark import history
from ledgermq_spark.history import History
from ledgermq_spark.log import positions
from ledgermq_spark.log.positions import LogUnreachableError, PartitionRange
from ledgermq_spark.log.read_log import read_raw
from ledgermq_spark.log.session import SparkUnavailableError

ADDRESS = "kafka://127.0.0.1:1/QM1"


@pytest.mark.spark
def test_a_session_without_the_connector_is_told_which_one_it_needs(spark):
    """By its package and by the function that returns its files; Avro stands for it here."""
    plain = SimpleNamespace(read=SimpleNamespace(format=lambda _: spark.read.format("avro")))
    place = PartitionRange(topic="t", partition=0, start=0, end=1)
    with pytest.raises(SparkUnavailableError, match=r"spark-sql-kafka-0-10_2\.13:4\..*_jars\(\)"):
        read_raw(plain, "127.0.0.1:1", [place])


def test_workers_without_our_packages_are_told_with_their_python(monkeypatch):
    """PYSPARK_PYTHON chooses it; what else goes wrong in Python is told as it is."""
    told = ["ModuleNotFoundError: No module named 'ledgermq_spark'", "ValueError: no"]

    def run(*_, **__):
        raise PythonException(told.pop(0))

    monkeypatch.setattr(history, "run_tables", run)
    spark = Mock(spec=SparkSession, sparkContext=SimpleNamespace(pythonExec="python3"))
    with pytest.raises(SparkUnavailableError, match=r"run python3, .*ledgermq_spark: .*PYSPARK_P"):
        history.read(spark, ADDRESS)
    with pytest.raises(PythonException, match="ValueError: no"):
        history.read(spark, ADDRESS)


def test_a_broker_that_does_not_answer_is_told_as_the_docstring_says(monkeypatch):
    """The log cannot be reached, whichever of its topics was asked first."""

    def find(*_):
        raise RegistryError("the registry at 127.0.0.1:1 cannot be read")

    monkeypatch.setattr(positions, "find_queue_manager", find)
    with pytest.raises(LogUnreachableError, match="the registry at 127"):
        history.read(Mock(spec=SparkSession), ADDRESS)


def test_a_session_that_was_stopped_is_told_so(tmp_path):
    """It was an attribute that None has not."""
    stopped = Mock(spec=SparkSession, sparkContext=SimpleNamespace(_jsc=None))
    for read in (history.read, history.read_archive):
        with pytest.raises(SparkUnavailableError, match="the Spark session was stopped"):
            read(stopped, ADDRESS if read is history.read else tmp_path, "QM1")


@pytest.mark.parametrize("spark", [None, "local[2]", 5])
def test_what_is_no_session_is_refused_by_name(spark, tmp_path):
    """None was taken for a session of the commands, which then was the program's own."""
    for read in (history.read, history.read_archive):
        with pytest.raises(ArgumentTypeError, match=r"spark is .*: it must be a SparkSession"):
            read(spark, ADDRESS if read is history.read else tmp_path, "QM1")


def test_what_names_no_archive_is_refused_by_name(tmp_path):
    """None was an error of the library for paths, and an empty text the current directory."""
    spark = Mock(spec=SparkSession)
    for path in (None, 5, ""):
        with pytest.raises(ArgumentTypeError, match=r"^path is .*: it must be the directory"):
            history.read_archive(spark, path, "QM1")
    for name in (None, 5, ""):
        with pytest.raises(ArgumentTypeError, match=r"^queue_manager is .*: it must be the name"):
            history.read_archive(spark, tmp_path, name)


def test_what_is_no_directory_or_prefix_is_refused_by_name(tmp_path):
    """They were errors of libraries, and an empty text the current directory."""
    spark = Mock(spec=SparkSession)
    for directory in (5, "", b"x"):
        with pytest.raises(ArgumentTypeError, match=r"^directory is .*: it must be a directory"):
            history.read(spark, ADDRESS, directory=directory)
        with pytest.raises(ArgumentTypeError, match=r"^directory is .*: it must be a directory"):
            history.read_archive(spark, tmp_path, "QM1", directory=directory)
    with pytest.raises(ArgumentTypeError, match=r"^topic_prefix is 5, .*: it must be a prefix"):
        history.read(spark, ADDRESS, topic_prefix=5)


@pytest.mark.parametrize("most", [-1, 2**31, 2**70, 1.5, "1", True, None])
def test_so_many_lives_as_spark_cannot_count_are_refused_by_name(most):
    """They were errors of Spark's limit, in a query that nobody had written."""
    with pytest.raises(ArgumentTypeError, match=r"^most is .*a whole number from 0 to 2147483647"):
        History(Mock(), "QM1").lives("true", most)


def test_a_table_that_there_is_not_is_told_with_those_there_are():
    """Only its name was told."""
    with pytest.raises(KeyError, match="no table 'message'; there are: message_events, operations"):
        History(Mock(), "QM1").table("message")
