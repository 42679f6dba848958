"""What happened to messages, as tables: `history.read(spark, "kafka://HOST:PORT/QM1").events()`."""

from __future__ import annotations

import re
import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark.errors import PythonException

from ledgermq.wire.topics.address import parse_address
from ledgermq_spark.archive.archived import archived_facts
from ledgermq_spark.jobs.run import run_tables
from ledgermq_spark.log.session import SparkUnavailableError
from ledgermq_spark.tables.all_tables import TABLES
from ledgermq_spark.tables.life import Life, lives_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from ledgermq_spark.laws.law import Facts

LIVES_DEFAULT: Final = 20
_LACKING: Final = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")


class History:
    """The history of one queue manager up to a position, as tables that are made when asked for.

    Times are timestamps in UTC; `docs/tables` has the contract of each table.
    """

    def __init__(self, facts: Facts, queue_manager: str) -> None:
        self._facts = facts
        self._queue_manager = queue_manager

    def table(self, name: str) -> DataFrame:
        """A table by its name, one of `TABLES`.

        Raises:
            KeyError: There is no such table.
        """
        return self._facts.query(TABLES[name])

    def events(self) -> DataFrame:
        """`message_events`: each move of each message, and each put that had to wait."""
        return self.table("message_events")

    def operations(self) -> DataFrame:
        """What was asked for, entry by entry."""
        return self.table("operations")

    def outcomes(self) -> DataFrame:
        """What was answered, as the fold answers it."""
        return self.table("outcomes")

    def messages(self) -> DataFrame:
        """Each stay of a message in a queue, topic or subscription."""
        return self.table("messages")

    def deliveries(self) -> DataFrame:
        """Each time a session was given a message."""
        return self.table("deliveries")

    def units_of_work(self) -> DataFrame:
        """What was put and got together."""
        return self.table("units_of_work")

    def sessions(self) -> DataFrame:
        """Sessions from their Open to their end."""
        return self.table("sessions")

    def groups(self) -> DataFrame:
        """Groups, queue by queue."""
        return self.table("groups")

    def subscriptions(self) -> DataFrame:
        """Subscriptions of topics, with what became of their copies."""
        return self.table("subscriptions")

    def queue_depth(self) -> DataFrame:
        """Depth, bytes and age of the oldest message after each entry that changed them."""
        return self.table("queue_depth")

    def lives(self, chosen: Column, most: int = LIVES_DEFAULT) -> list[Life]:
        """The lives of the messages that `tables.life.meant` chooses, the first that were put."""
        return lives_of(self._facts, self._queue_manager, chosen, most)


def read(
    spark: SparkSession,
    address: str,
    at: int | str | datetime | None = None,
    *,
    topic_prefix: str = "ledgermq",
    directory: Path | None = None,
) -> History:
    """Read a queue manager's history from its log, on a Spark session whose settings stay.

    The log is folded once, now; what that gives is kept in a directory.

    Args:
        spark: Any session that has the connector for Kafka.
        address: `kafka://HOST[:PORT][,...][/NAME]`.
        at: A position (`1234`, `QM1@1234`), a time (aware datetime or ISO 8601), None: the end.
        topic_prefix: Of the installation's log topics.
        directory: Where what was folded is kept, one that all of Spark sees; a fresh temporary one
            if not given.

    Raises:
        AddressError: The address is none.
        PositionOutOfRangeError: `at` lies before the log's start or after its end.
        QueueManagerUnknownError: Nobody claimed that name.
        LogUnreachableError: The cluster does not answer, or lacks the topics.
        FoldStoppedError: The log has a hole, or an entry of an unknown protocol version.
        SparkUnavailableError: The session cannot read Kafka, or Spark's Python workers lack
            LedgerMQ.
    """
    bootstrap, queue_manager = parse_address(address)
    try:
        facts = run_tables(
            bootstrap,
            queue_manager,
            at,
            topic_prefix=topic_prefix,
            spark=spark,
            directory=directory,
            tunes=False,
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
    path: Path,
    queue_manager: str,
    at: int | str | datetime | None = None,
    *,
    directory: Path | None = None,
) -> History:
    """Read a queue manager's history from an archive of its log, without a broker or a fold.

    Args:
        spark: Any session.
        path: The archive, which `ledgermq archive update` makes; all of Spark must see it.
        queue_manager: Its name.
        at: A position, a time, None: the end of the archive.
        directory: Where intermediate rows are kept; a fresh temporary one if not given.

    Raises:
        ArchiveMissingError: There is nothing of this queue manager.
        ArchiveBrokenError: The archive is not whole.
        PositionOutOfRangeError: `at` lies before the archive's start or after its end.
    """
    facts = archived_facts(path, queue_manager, at, spark=spark, directory=directory)
    return History(facts, queue_manager)
