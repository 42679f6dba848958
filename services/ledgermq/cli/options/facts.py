"""What happened up to a moment: asked of the log, or of an archive of it, which needs no broker."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ledgermq.cli.options.moments import position_at
from ledgermq.cli.options.spark import archive_job, spark_job
from ledgermq.cli.options.target import Target
from ledgermq.cli.options.together import DIRECTORY
from ledgermq.cli.printing.output import Output

if TYPE_CHECKING:
    from ledgermq_spark.laws.facts import Facts
    from ledgermq_spark.log.session import LazySession

archive_option = click.option(
    "--archive",
    type=DIRECTORY,
    help="Read this archive of the log (`ledgermq archive`) instead of the log; no broker is "
    "needed.",
)


def moment_position(
    target: Target, moment: Any, archive: Path | None, *, before: bool = False
) -> int:
    """The position of a moment on the log, or in an archive; of an archive None is its end.

    Of a time it is the last by then, or `before` it.

    Raises what `facts_at` raises.
    """
    from ledgermq_spark.archive.archived import archived_position
    from ledgermq_spark.archive.log_archive import LogArchive

    if archive is not None:
        stretches = LogArchive(archive, target.queue_manager).there()
        return archived_position(stretches, moment, before=before)
    return position_at(target, moment, before=before)


@contextlib.contextmanager
def facts_at(
    target: Target,
    output: Output,
    title: str,
    at: Any,
    archive: Path | None,
    first: Callable[[LazySession], Facts | None] = lambda _: None,
    *,
    is_read: bool = True,
) -> Iterator[Facts]:
    """What tables are asked of, up to a moment; Spark, if it was needed, runs until the block ends.

    What is `first` is done before the log is read; if it gives facts, they are asked, and nothing
    is read. That the log `is_read` in any case lets one without its beginning be refused before
    Spark runs.

    Raises what `spark_job` raises, and:
        ArchiveMissingError: There is nothing of the queue manager in the archive.
        ArchiveBrokenError: The archive is not whole.
        PositionOutOfRangeError: The moment is not on the log, or not in the archive; or the
            beginning of the log was trimmed.
    """
    from ledgermq_spark.archive.archived import archived_facts
    from ledgermq_spark.jobs.run import run_tables
    from ledgermq_spark.log.positions import refuse_trimmed

    if archive is None:
        if is_read:
            refuse_trimmed(target.located()[1], target.queue_manager)
        position = None if at is None else position_at(target, at)
        with spark_job(target, output, title) as job:
            yield first(job["spark"]) or run_tables(at=position, **job)
        return
    with archive_job(output, title, moment_position(target, None, archive) + 1) as job:
        found = first(job["spark"])
        yield found or archived_facts(archive, target.queue_manager, at, **job)
