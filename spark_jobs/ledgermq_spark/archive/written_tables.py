"""Tables that grow with an archive: of each stretch what happened in it is added, once.

What happened at a position never changes, so those tables are only added to, in files that carry
the name of their stretch, or in versions of a Delta table that do. What is told of things that live
on (a message, a session, a group, a queue's depth) is written anew each time.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as f

from ledgermq.errors import LedgerMQError
from ledgermq_spark.archive.archived import archived_facts
from ledgermq_spark.archive.judged import judged_facts
from ledgermq_spark.archive.log_archive import LogArchive
from ledgermq_spark.archive.stretch import Stretch
from ledgermq_spark.log.durable_files import plain_name, settled, write_durably
from ledgermq_spark.log.session import spark_session
from ledgermq_spark.log.store import Store
from ledgermq_spark.tables.all_tables import TABLES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from ledgermq_spark.rebuild.rebuild import Progress

ADDED_TO: Final = ("message_events", "operations", "outcomes")
PARTITIONS: Final = ("queue_manager", "day")
PARQUET, DELTA = "parquet", "delta"
UNFINISHED: Final = ".unfinished"


def write_new(
    path: Path,
    queue_manager: str,
    output: Path,
    *,
    table_format: str = PARQUET,
    spark: SparkSession | None = None,
    directory: Path | None = None,
    progress: Progress | None = None,
) -> int:
    """Write what an archive has and tables lack; returns how many stretches that were.

    Whoever is killed and begins again writes nothing twice. One at a time may write.

    Raises:
        ArchiveMissingError: There is nothing of this queue manager in the archive.
        ArchiveBrokenError: The archive is not whole.
        TablesOtherwiseError: There are tables in another format, or written without an archive.
    """
    tell = progress or (lambda *_: None)
    spark = spark or spark_session()
    stretches = LogArchive(path, queue_manager).there()
    scratch = directory or Path(tempfile.mkdtemp(prefix="ledgermq-spark-"))
    tables = _Tables(spark, output, queue_manager, table_format, scratch)
    through = tables.written_through()
    new = [one for one in stretches if one.last > through]
    for number, stretch in enumerate(new):
        tell(f"writing from position {stretch.first}", number, len(new) + 1)
        tables.add(stretches, stretch)
    tell("writing what lives on", len(new), len(new) + 1)
    if new:
        tables.replace(path)
    return len(new)


class TablesOtherwiseError(LedgerMQError):
    """The directory has tables that were written in another way."""

    code = "tables-otherwise"


class _Tables:
    """The tables of one queue manager in a directory, which those of others are in, too."""

    def __init__(
        self,
        spark: SparkSession,
        output: Path,
        queue_manager: str,
        table_format: str,
        scratch: Path,
    ) -> None:
        self._spark = spark
        self._output = output
        self._queue_manager = queue_manager
        self._is_delta = table_format == DELTA
        self._scratch = scratch
        notes = output / f".written-{table_format}"
        self._note = notes / f"{plain_name(queue_manager)}.json"
        if (output / ADDED_TO[0]).exists() and not notes.exists():
            raise TablesOtherwiseError(
                f"{output} has tables that were written in another way, whole or in another "
                "format: choose another directory"
            )

    def written_through(self) -> int:
        """The last position that is in the tables; -1 if none is."""
        if not self._note.exists():
            return -1
        return int(json.loads(self._note.read_text(encoding="utf-8"))["through"])

    def add(self, stretches: Sequence[Stretch], stretch: Stretch) -> None:
        """Add what happened in one of an archive's stretches, and note that it is there."""
        store = Store(self._spark, self._scratch / "stretch")
        facts = judged_facts(self._spark, stretches, [stretch], store)
        for name in ADDED_TO:
            rows = facts.query(TABLES[name]).where(f.col("position") >= stretch.first)
            self._add(name, rows.withColumn("queue_manager", f.lit(self._queue_manager)), stretch)
        write_durably(self._note, json.dumps({"through": stretch.last}) + "\n")

    def replace(self, archive: Path) -> None:
        """Write anew what is told of things that live on."""
        facts = archived_facts(
            archive, self._queue_manager, spark=self._spark, directory=self._scratch / "whole"
        )
        for name, text in TABLES.items():
            if name in ADDED_TO:
                continue
            rows = facts.query(text)
            if self._is_delta:
                mine = f"queue_manager = '{self._queue_manager}'"
                writer = rows.write.format(DELTA).mode("overwrite").option("replaceWhere", mine)
                writer.partitionBy("queue_manager").save(str(self._output / name))
            else:
                place = self._output / name / f"queue_manager={plain_name(self._queue_manager)}"
                rows.drop("queue_manager").write.mode("overwrite").parquet(str(place))

    def _add(self, name: str, rows: DataFrame, stretch: Stretch) -> None:
        if self._is_delta:
            writer = rows.write.format(DELTA).mode("append").partitionBy(*PARTITIONS)
            # A version that is there is not written again.
            writer = writer.option("txnAppId", f"ledgermq {self._queue_manager}")
            writer.option("txnVersion", stretch.first).save(str(self._output / name))
            return
        made = self._output / UNFINISHED / name
        rows.write.mode("overwrite").partitionBy(*PARTITIONS).parquet(str(made))
        mine = f"queue_manager={plain_name(self._queue_manager)}"
        for old in (self._output / name / mine).glob(f"day=*/{stretch.name}-*"):
            old.unlink()
        for day in sorted(made.glob("queue_manager=*/day=*")):
            target = self._output / name / mine / day.name
            target.mkdir(parents=True, exist_ok=True)
            for number, file in enumerate(settled(day)):
                file.replace(target / f"{stretch.name}-{number}.parquet")
        shutil.rmtree(made)
