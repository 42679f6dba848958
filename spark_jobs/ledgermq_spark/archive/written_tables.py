"""Tables that grow with an archive: of each stretch what happened in it is added, once.

What happened at a position never changes, so those tables are only added to, in files that carry
the name of their stretch, or in versions of a Delta table that do. What is told of things that live
on (a message, a session, a group, a queue's depth) is written anew each time.

How far a table is written is noted in its own directory, and after it is: whoever was killed goes
on where that was not done, and what was taken away is made again, as its note went with it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Unpack

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from ledgermq.system_refusals import DirectoryUnwritableError
from ledgermq_spark.archive.archived import archived_facts
from ledgermq_spark.archive.judged import judged_facts
from ledgermq_spark.archive.log_archive import LogArchive
from ledgermq_spark.archive.stretch import Stretch
from ledgermq_spark.laws.facts import Facts
from ledgermq_spark.log.durable_files import (
    NAME_BYTES_MAX,
    partition_of,
    plain_name,
    settled,
    sync,
    write_durably,
)
from ledgermq_spark.log.session import Spark, session_of
from ledgermq_spark.log.store import Store, as_it_is
from ledgermq_spark.rebuild.running import JobOptions, Running
from ledgermq_spark.tables.all_tables import TABLES
from ledgermq_spark.tables.writing import (
    NOTES,
    UNFINISHED,
    TablesOtherwiseError,
    put_in_place,
    writing_in,
)

ADDED_TO: Final = ("message_events", "operations", "outcomes")
PARTITIONS: Final = ("queue_manager", "day")
# What happened in a stretch itself; and rows of one queue manager, whose directory names it.
NEW: Final = "SELECT * EXCEPT (queue_manager) FROM {rows} WHERE position >= {first}"
WITHOUT_NAME: Final = "SELECT * EXCEPT (queue_manager) FROM {rows}"
PARQUET, DELTA = "parquet", "delta"


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What a run wrote: how many stretches that no table had, and the tables that lacked others.

    `mended` names tables that were missing, or behind others when a run before was killed.
    """

    stretches: int
    mended: list[str]


def write_new(
    path: Path,
    queue_manager: str,
    output: Path,
    *,
    table_format: str = PARQUET,
    **options: Unpack[JobOptions],
) -> Written:
    """Write what an archive has and tables lack.

    Whoever is killed and begins again writes nothing twice.

    Raises:
        ArchiveMissingError: There is nothing of this queue manager in the archive.
        ArchiveBrokenError: The archive is not whole.
        DirectoryUnwritableError: Nothing can be written in the directory.
        TablesBusyError: Somebody else writes there.
        TablesOtherwiseError: There are tables in another format, or written without an archive, or
            from another one.
    """
    running = Running(**options)
    stretches = LogArchive(path, queue_manager).sealed()
    with _growing_in(output, table_format):
        tables = _Tables(running.when_needed(), output, queue_manager, table_format, running.place)
        tables.check_written_from(path, stretches)
        reached = max(tables.through.values())
        mended = [name for name, through in tables.through.items() if through < reached]
        lacking = [one for one in stretches if tables.lacks(ADDED_TO, one.last)]
        for number, stretch in enumerate(lacking):
            stretch.check()
            running.tell(f"writing from position {stretch.first}", number, len(lacking) + 1)
            tables.add(stretches, stretch)
        running.tell("writing what lives on", len(lacking), len(lacking) + 1)
        tables.replace(path, stretches[-1])
    return Written(stretches=sum(one.last > reached for one in stretches), mended=mended)


def check_grown(output: Path, table_format: str) -> None:
    """See that tables may be written from an archive in a directory, which is made if need be.

    Raises:
        DirectoryUnwritableError: Nothing can be written there.
        TablesBusyError: Somebody else writes there.
        TablesOtherwiseError: There are tables in another format, or written without an archive.
    """
    with _growing_in(output, table_format):
        pass


@contextmanager
def _growing_in(output: Path, table_format: str) -> Iterator[None]:
    with writing_in(output):
        for place in (output / name for name in TABLES):
            if place.exists() and any(place.iterdir()) and not _notes(place, table_format).exists():
                raise TablesOtherwiseError(
                    f"{output} has tables that were written in another way, whole or in another "
                    "format: choose another directory"
                )
        yield


def _notes(place: Path, table_format: str) -> Path:
    """Where it is noted how far a table in a directory is written."""
    return place / f"{NOTES}{table_format}"


class _Tables:
    """The tables of one queue manager in a directory, which those of others are in, too.

    `through` has the last position that each has; -1: none.
    """

    def __init__(
        self,
        spark: Spark,
        output: Path,
        queue_manager: str,
        table_format: str,
        scratch: Path,
    ) -> None:
        self._spark = spark
        self._output = output
        self._queue_manager = queue_manager
        self._mine = partition_of(plain_name(queue_manager))
        if len(self._mine) > NAME_BYTES_MAX:
            raise DirectoryUnwritableError(
                f"tables of {queue_manager} cannot be written in {output}: no directory can be "
                "called by its name, in which each / and % takes three characters; without "
                "--archive tables need none of that name"
            )
        self._format = table_format
        self._scratch = scratch
        noted = {name: self._noted(name) for name in TABLES}
        self.through = {name: through for name, (through, _) in noted.items()}
        self._digests = {name: digest for name, (_, digest) in noted.items()}
        for name in self.lacks(list(TABLES), 0):
            # What is there is ours, and unfinished, from its first file on.
            self._note(name, None)

    def check_written_from(self, archive: Path, stretches: Sequence[Stretch]) -> None:
        """See that what is written was written from this archive.

        Raises:
            TablesOtherwiseError: A table ends where no stretch does, or with another state.
        """
        ends = {one.last: one.digest for one in stretches}
        for name, through in self.through.items():
            digest = self._digests[name] or ends.get(through)
            if through >= 0 and (digest is None or ends.get(through) != digest):
                raise TablesOtherwiseError(
                    f"{self._output / name} has {self._queue_manager} up to position {through} of "
                    f"another archive than {archive}: go on with that one, choose another "
                    f"directory, or remove {self._output} and all is written again"
                )

    def lacks(self, names: Sequence[str], position: int) -> list[str]:
        """Which of some tables end before a position."""
        return [name for name in names if self.through[name] < position]

    def add(self, stretches: Sequence[Stretch], stretch: Stretch) -> None:
        """Add what happened in one of an archive's stretches to the tables that lack it."""
        store = Store(self._spark, self._scratch / "stretch")
        facts = judged_facts(self._spark, stretches, [stretch], store)
        for name in self.lacks(ADDED_TO, stretch.last):
            rows = facts.query(NEW, rows=facts.query(TABLES[name]), first=stretch.first)
            by = [] if self._format == DELTA else ["day"]
            made = self._written(facts, name, rows, by)
            self._add(name, made, stretch)
            shutil.rmtree(made)
            self._note(name, stretch)

    def replace(self, archive: Path, end: Stretch) -> None:
        """Write anew what is told of things that live on, where it ends before an archive's end."""
        last = end.last
        lacking = self.lacks([name for name in TABLES if name not in ADDED_TO], last)
        if not lacking:
            return
        facts = archived_facts(
            archive, self._queue_manager, last, spark=self._spark, directory=self._scratch / "whole"
        )
        for name in lacking:
            rows = facts.query(WITHOUT_NAME, rows=facts.query(TABLES[name]))
            made = self._written(facts, name, rows)
            if self._format == DELTA:
                mine = f"queue_manager = '{self._queue_manager}'"
                writer = self._read(made).write.format(DELTA).mode("overwrite")
                writer = writer.option("replaceWhere", mine).partitionBy("queue_manager")
                writer.save(str(self._output / name))
            else:
                put_in_place(made, self._output / name / self._mine)
            self._note(name, end)

    def _written(self, facts: Facts, name: str, rows: Any, by: Sequence[str] = ()) -> Path:
        """Rows of a table as Parquet that nobody reads yet."""
        made = self._output / UNFINISHED / name
        facts.engine.write(rows, str(made), by)
        return made

    def _read(self, made: Path) -> DataFrame:
        """What was written, with the name of its queue manager."""
        rows = session_of(self._spark).read.parquet(as_it_is(made))
        return rows.withColumn("queue_manager", f.lit(self._queue_manager))

    def _note_of(self, name: str) -> Path:
        notes = _notes(self._output / name, self._format)
        return notes / f"{plain_name(self._queue_manager)}.json"

    def _noted(self, name: str) -> tuple[int, str | None]:
        """Up to which position a table is written, -1: nothing; and the digest of the state there.

        Notes of tables that are older do not have the digest.
        """
        note, place = self._note_of(name), self._output / name
        rows = place / ("_delta_log" if self._format == DELTA else self._mine)
        if not note.exists() or not rows.exists():
            return -1, None
        try:
            told = json.loads(note.read_text(encoding="utf-8"))
            return int(told["through"]), told.get("digest")
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise TablesOtherwiseError(
                f"{note} does not say any more how far the table is written: bring it back from a "
                f"copy, or remove {place}, and the table is written again"
            ) from error

    def _note(self, name: str, stretch: Stretch | None) -> None:
        """Note that a table is written up to the end of a stretch; None: nothing of it is."""
        self.through[name] = -1 if stretch is None else stretch.last
        told = {"through": self.through[name], "digest": stretch and stretch.digest}
        write_durably(self._note_of(name), json.dumps(told) + "\n")

    def _add(self, name: str, made: Path, stretch: Stretch) -> None:
        if self._format == DELTA:
            writer = self._read(made).write.format(DELTA).mode("append").partitionBy(*PARTITIONS)
            # A version that is there is not written again.
            writer = writer.option("txnAppId", f"ledgermq {self._queue_manager}")
            writer.option("txnVersion", stretch.first).save(str(self._output / name))
            return
        place = self._output / name / self._mine
        place.mkdir(parents=True, exist_ok=True)
        for old in place.glob(f"day=*/{stretch.name}-*"):
            old.unlink()
        for day in sorted(made.glob("day=*")):
            target = place / day.name
            target.mkdir(exist_ok=True)
            for number, file in enumerate(settled(day)):
                file.replace(target / f"{stretch.name}-{number}.parquet")
            sync(target)
        sync(place)
