"""`ledgermq archive`: keep the whole log in a directory, prove it, and see what is there."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Final

import click

from ledgermq.cli.commands.audit import ANOMALY_COLUMNS, anomaly_rows
from ledgermq.cli.options.facts import moment_position
from ledgermq.cli.options.moments import at_option, position_at
from ledgermq.cli.options.once import OnceGroup
from ledgermq.cli.options.spark import archive_job, spark_job
from ledgermq.cli.options.target import Target, target_options
from ledgermq.cli.options.together import DIRECTORY, Count
from ledgermq.cli.printing.exits import OK, REFUSED
from ledgermq.cli.printing.output import Column, Output, count_of, headed

STRETCH_COLUMNS: Final = (
    Column(key="first", heading="FROM", number=True),
    Column(key="last", heading="TO", number=True),
    Column(key="newest_at", heading="UNTIL"),
    Column(key="digest", heading="DIGEST OF THE STATE", cut=True),
    *headed("anchor", "seal", cut=True),
)
PROVEN_COLUMNS: Final = (
    Column(key="first", heading="FROM", number=True),
    Column(key="last", heading="TO", number=True),
    Column(key="records", heading="RECORDS", number=True),
    Column(key="rows", heading="ROWS TOLD", number=True),
    Column(key="seconds", heading="SECONDS", number=True),
    Column(key="problem", heading="THE FOLD"),
)

directory_argument = click.argument("directory", type=DIRECTORY)


@click.group(cls=OnceGroup)
def archive() -> None:
    """Write an archive of the log: its records, what happened, and the state at intervals.

    Begin it while the log still has its beginning, and update it before each trim of the log.
    `sql`, `tables`, `diff`, `rebuild` and `trace` then answer from it (--archive), sooner than from
    the log, and without a broker.
    """


@archive.command()
@directory_argument
@at_option
@click.option(
    "--every",
    type=Count(min=1),
    help="How many operations a new stretch has; the state is stored at the end of each. Fewer "
    "make later answers sooner, and the archive larger.  [default: 50000]",
)
@target_options
def update(target: Target, output: Output, directory: Path, at: object, every: int | None) -> None:
    """Add to the archive in DIRECTORY what has come onto the log since the last update.

    The first update makes the archive, from the beginning of the log. Each record is added once.
    """
    from ledgermq_spark.archive.log_archive import LogArchive
    from ledgermq_spark.archive.updating import OPERATIONS_PER_STRETCH, update_archive

    target.check_broker()
    position = None if at is None else position_at(target, at)
    # What is in the way is told before Spark starts.
    with LogArchive(directory, target.queue_manager).adding():
        pass
    size = every or OPERATIONS_PER_STRETCH
    with spark_job(target, output, "archive") as job:
        added = update_archive(path=directory, at=position, operations_per_stretch=size, **job)
    document = {
        "directory": str(directory),
        "queue_manager": target.queue_manager,
        "stretches": len(added),
        "from": added[0].first if added else None,
        "to": added[-1].last if added else None,
    }
    if not added:
        up_to = "" if position is None else f" up to {target.named(position)}"
        told = f"{directory} has all that is on the log of {target.queue_manager}{up_to}"
        output.done(told, document)
        return
    output.done(
        f"{count_of(added[-1].last + 1 - added[0].first, 'operation')} added to {directory}, "
        f"{target.named(added[0].first)} to {target.named(added[-1].last)}, in "
        f"{count_of(len(added), 'stretch', 'stretches')}",
        document,
    )


@archive.command("list")
@directory_argument
@target_options
def list_stretches(target: Target, output: Output, directory: Path) -> None:
    """List the stretches of the archive in DIRECTORY, each with the digest of its last state."""
    from ledgermq_spark.archive.log_archive import LogArchive

    rows = [
        {
            "first": one.first,
            "last": one.last,
            "newest_at": one.newest_at,
            "digest": one.digest,
            "anchor": f"{one.last}:{one.chain.hex()}",
            "seal": one.seal,
            "path": str(one.path),
        }
        for one in LogArchive(directory, target.queue_manager).sealed()
    ]
    output.table(STRETCH_COLUMNS, rows)


@archive.command()
@directory_argument
@target_options
def prove(target: Target, output: Output, directory: Path) -> int:
    """Prove the archive in DIRECTORY: fold every stretch again, and check the laws of the audit.

    The exit code is 0 if all of it is proven, 1 if anything is not.
    """
    from ledgermq_spark.jobs.run import run_proof

    with archive_job(output, "prove", moment_position(target, None, directory) + 1) as job:
        stretches, findings = run_proof(directory, target.queue_manager, **job)
    wrong = [one for one in stretches if one.problem is not None]
    rows = [
        {
            **asdict(one),
            "seconds": one.milliseconds / 1000,
            "problem": one.problem or ("folded as kept" if output.for_people else None),
        }
        for one in stretches
    ]
    if output.as_json:
        output.document({"stretches": rows, "findings": [one.as_dict() for one in findings]})
        return REFUSED if wrong or findings else OK
    output.table(PROVEN_COLUMNS, rows)
    if wrong:
        output.remark(
            f"not proven: {count_of(len(wrong), 'stretch', 'stretches')} of {len(stretches)}; laws "
            "are asked once all stretches are as the fold gives them. Take these from a copy of "
            "the archive"
        )
        return REFUSED
    if findings:
        output.table(ANOMALY_COLUMNS, anomaly_rows(target.queue_manager, findings))
        output.remark(f"not proven: {count_of(len(findings), 'breach', 'breaches')} of laws")
        return REFUSED
    last = target.named(stretches[-1].last)
    output.remark(f"proven up to {last}: {stretches[-1].last + 1:,} positions, all laws hold")
    return OK
