"""What happened to messages, as tables: `history.read(spark, "kafka://HOST:PORT/QM1").events()`."""

from __future__ import annotations

import re
import sys
from datetime import datetime
from pathlib import Path
from typing import Final

from pyspark.errors import PythonException
from pyspark.sql import Column, DataFrame, SparkSession

from ledgermq.errors import ArgumentTypeError
from ledgermq.errors.shown import shown
from ledgermq.wire.topics.address import parse_address
from ledgermq_spark.archive.archived import archived_facts
from ledgermq_spark.jobs.run import run_tables
from ledgermq_spark.laws.engines.choice import dataframe_engine
from ledgermq_spark.laws.facts import Facts
from ledgermq_spark.log.session import SparkUnavailableError
from ledgermq_spark.tables.all_tables import TABLES
from ledgermq_spark.tables.life import Life, lives_of

LIVES_DEFAULT: Final = 20
# What Spark counts to in a query.
_MOST_MAX: Final = 2**31 - 1
_LACKING: Final = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")


class History:
    """The history of one queue manager up to a position, as tables that are made when asked for.

    Times are timestamps in UTC; `docs/tables` has the contract of each table.
    """

    def __init__(self, facts: Facts, queue_manager: str) -> None:
        self._facts = facts
        self._queue_manager = queue_manager

    def table(self, name: str) -> DataFrame:
        """The table of this name, one of `ledgermq_spark.tables.all_tables.TABLES`.

        Raises:
            KeyError: There is no such table; it names those there are.
        """
        if name not in TABLES:
            raise KeyError(f"there is no table {name!r}; there are: {', '.join(TABLES)}")
        table: DataFrame = self._facts.query(TABLES[name])
        return table

    def events(self) -> DataFrame:
        """`message_events`: each move of each message, and each put that had to wait."""
        return self.table("message_events")

    def operations(self) -> DataFrame:
        """`operations`: what was asked for, one row for each entry of the log."""
        return self.table("operations")

    def outcomes(self) -> DataFrame:
        """`outcomes`: what the fold answered the entries with."""
        return self.table("outcomes")

    def messages(self) -> DataFrame:
        """`messages`: one row for each message in each queue, topic or subscription it was in."""
        return self.table("messages")

    def deliveries(self) -> DataFrame:
        """`deliveries`: each time that a message was handed to a session."""
        return self.table("deliveries")

    def units_of_work(self) -> DataFrame:
        """`units_of_work`: one row for each, with its puts and gets, committed or undone."""
        return self.table("units_of_work")

    def sessions(self) -> DataFrame:
        """`sessions`: each session from its Open to its end."""
        return self.table("sessions")

    def groups(self) -> DataFrame:
        """`groups`: each message group, queue by queue."""
        return self.table("groups")

    def subscriptions(self) -> DataFrame:
        """`subscriptions`: each subscription, with what became of its copies of messages."""
        return self.table("subscriptions")

    def queue_depth(self) -> DataFrame:
        """`queue_depth`: depth, bytes and age of the oldest message, after each change."""
        return self.table("queue_depth")

    def lives(self, chosen: Column | str, most: int = LIVES_DEFAULT) -> list[Life]:
        """What happened to each of some messages, step by step; of many, the first that were put.

        Args:
            chosen: Which, as a condition over what was put: `ledgermq_spark.tables.life.meant`.
            most: How many at most.

        Raises:
            ArgumentTypeError: `most` is no whole number that Spark can count to.
        """
        if type(most) is not int or not 0 <= most <= _MOST_MAX:
            raise _wrong("most", most, f"a whole number from 0 to {_MOST_MAX}")
        puts = self._facts.frame("puts").where(chosen)
        return lives_of(self._facts, self._queue_manager, puts, most)


def read(
    spark: SparkSession,
    address: str,
    at: int | str | datetime | None = None,
    *,
    topic_prefix: str = "ledgermq",
    directory: Path | str | None = None,
) -> History:
    """Read a queue manager's history from its log, on a Spark session whose settings stay.

    The log is folded once, in this call; the rows that come of it are stored in `directory`.

    Args:
        spark: Any session that has the connector for Kafka.
        address: `kafka://HOST[:PORT][,...][/NAME]`.
        at: A position (`1234`, `QM1@1234`), a time (aware datetime or ISO 8601), None: the end.
        topic_prefix: Prefix of the installation's log topics.
        directory: Where the folded rows are stored; driver and executors must all see it. None:
            a fresh temporary directory.

    Raises:
        ArgumentTypeError: `spark` is no session, `topic_prefix` no text, `directory` no directory.
        AddressError: `address` is not of that form.
        PositionOutOfRangeError: `at` lies before the log's start or after its end, or is no moment.
        QueueManagerNotFoundError: The installation has no queue manager of that name.
        LogUnreachableError: The cluster does not answer, or lacks the topics.
        FoldStoppedError: The log has a hole, or an entry of an unknown protocol version.
        SparkUnavailableError: The session cannot read Kafka, or Spark's Python workers lack
            LedgerMQ.
    """
    _check_session(spark)
    bootstrap, queue_manager = parse_address(address)
    if not isinstance(topic_prefix, str):
        raise _wrong("topic_prefix", topic_prefix, "a prefix of topics")
    try:
        facts = run_tables(
            bootstrap,
            queue_manager,
            at,
            topic_prefix=topic_prefix,
            spark=spark,
            directory=_path_of(directory),
            tunes=False,
            choice=dataframe_engine,
        )
    except PythonException as problem:
        lacking = _LACKING.search(str(problem))
        if lacking is None:
            raise
        raise SparkUnavailableError(
            f"Spark's Python workers run {spark.sparkContext.pythonExec}, which has no package "
            f"{lacking[1]}: before the session starts, set PYSPARK_PYTHON to a Python that has "
            f"ledgermq[spark]; on this machine {sys.executable} has"
        ) from problem
    return History(facts, queue_manager)


def read_archive(
    spark: SparkSession,
    path: Path | str,
    queue_manager: str,
    at: int | str | datetime | None = None,
    *,
    directory: Path | str | None = None,
) -> History:
    """Read a queue manager's history from an archive of its log, without a broker or a fold.

    Args:
        spark: Any session.
        path: The archive, made by `ledgermq archive update`; driver and executors must see it.
        queue_manager: Name of the queue manager.
        at: A position, a time, None: the end of the archive.
        directory: Where intermediate rows are stored; None: a fresh temporary directory.

    Raises:
        ArgumentTypeError: `spark` is no session, `path` no directory, `queue_manager` no name.
        ArchiveMissingError: `path` holds no archive of this queue manager.
        ArchiveBrokenError: Files of the archive are missing or damaged.
        PositionOutOfRangeError: `at` lies before the archive's start or after its end, or is no
            moment.
    """
    _check_session(spark)
    if not isinstance(path, str | Path) or not str(path):
        raise _wrong("path", path, "the directory of an archive")
    if not isinstance(queue_manager, str) or not queue_manager:
        raise _wrong("queue_manager", queue_manager, "the name of a queue manager")
    facts = archived_facts(
        Path(path),
        queue_manager,
        at,
        spark=spark,
        directory=_path_of(directory),
        choice=dataframe_engine,
    )
    return History(facts, queue_manager)


def _wrong(name: str, value: object, wanted: str) -> ArgumentTypeError:
    kind = type(value).__name__
    return ArgumentTypeError(f"{name} is {shown(value)}, of type {kind}: it must be {wanted}")


def _check_session(spark: object) -> None:
    """Of None a session would be made whose settings are those of the commands, and kept."""
    if not isinstance(spark, SparkSession):
        raise _wrong("spark", spark, "a SparkSession")
    context = getattr(spark, "sparkContext", None)
    if context is not None and getattr(context, "_jsc", context) is None:
        raise SparkUnavailableError("the Spark session was stopped: begin another one")


def _path_of(directory: Path | str | None) -> Path | None:
    if directory is not None and (not isinstance(directory, str | Path) or not str(directory)):
        raise _wrong("directory", directory, "a directory")
    return None if directory is None else Path(directory)
