"""`ledgermq rebuild`: the state at any moment, computed from the log alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ledgermq.cli.commands.bindings import COLUMNS as BINDING_COLUMNS
from ledgermq.cli.commands.subscriptions import COLUMNS as SUBSCRIPTION_COLUMNS
from ledgermq.cli.commands.topics import COLUMNS as TOPIC_COLUMNS
from ledgermq.cli.options.destinations import queue_from
from ledgermq.cli.options.facts import archive_option, moment_position
from ledgermq.cli.options.moments import at_option, position_at
from ledgermq.cli.options.once import OnceCommand
from ledgermq.cli.options.spark import archive_job, spark_job
from ledgermq.cli.options.target import Target, target_options
from ledgermq.cli.printing.output import Output
from ledgermq.cli.printing.screens import (
    ADDS_UP,
    LIST_COLUMNS,
    list_row,
    screen,
    screen_document,
    with_iso_times,
)
from ledgermq.errors import QueueNotFoundError
from ledgermq.protocol.instants import iso_time

if TYPE_CHECKING:
    from ledgermq_spark.rebuild.rebuilt import Rebuilt


@click.command(cls=OnceCommand)
@at_option
@click.option("--queue", metavar="NAME", help="Print only the status screen of this queue.")
@click.option(
    "--from-checkpoint",
    is_flag=True,
    help="Fold the log from a checkpoint instead of its beginning: sooner, but it trusts that "
    "checkpoint. Done in any case if the log is trimmed.",
)
@archive_option
@target_options
def rebuild(
    target: Target,
    output: Output,
    at: Any,
    queue: str | None,
    from_checkpoint: bool,
    archive: Path | None,
) -> None:
    """Rebuild the state of all queues and topics as it was at a moment, from the log alone."""
    if archive is not None and from_checkpoint:
        raise click.UsageError("an archive has states of its own: leave out --from-checkpoint")
    if queue is not None:
        queue = queue_from(queue, why="without --queue its figures are printed with all others")
    rebuilt = _rebuilt(target, output, at, archive, from_checkpoint=from_checkpoint)
    found = {status["name"]: status for status in rebuilt.statuses}
    # A log without an entry has no time yet.
    time = iso_time(rebuilt.time) if rebuilt.time >= 0 else None
    where = f"{target.named(rebuilt.position)}, {time}"
    if time is None:
        where = f"the beginning of {target.queue_manager}, whose log is empty"
    if queue is not None:
        if queue not in found:
            raise QueueNotFoundError(
                f"there was no queue {queue} at {where}", destination=f"queue:{queue}"
            )
        if output.as_json:
            output.document(screen_document(found[queue]))
        else:
            click.echo(screen(found[queue]))
            output.remark(f"as it was at {where}")
        return
    if output.as_json:
        output.document(
            {
                "queue_manager": target.queue_manager,
                "position": rebuilt.position,
                "time": time,
                "digest": rebuilt.digest,
                "operations": rebuilt.operations,
                "queues": [with_iso_times(status) for status in rebuilt.statuses],
                "topics": [with_iso_times(status) for status in rebuilt.topics],
                "subscriptions": [with_iso_times(status) for status in rebuilt.subscriptions],
                "bindings": rebuilt.bindings,
            }
        )
        return
    caption = f"at {where}: {ADDS_UP}\ndigest of the state: {rebuilt.digest}"
    output.table(LIST_COLUMNS, [list_row(status) for status in rebuilt.statuses], caption=caption)
    tables = (
        (TOPIC_COLUMNS, rebuilt.topics),
        (SUBSCRIPTION_COLUMNS, rebuilt.subscriptions),
        (BINDING_COLUMNS, rebuilt.bindings),
    )
    for columns, rows in tables:
        if rows:
            click.echo()
            output.table(columns, rows)


def _rebuilt(
    target: Target, output: Output, at: Any, archive: Path | None, *, from_checkpoint: bool
) -> Rebuilt:
    from ledgermq_spark.archive.folding import rebuild_archived
    from ledgermq_spark.rebuild.rebuild import rebuild_at

    if archive is not None:
        moment = moment_position(target, at, archive)
        with archive_job(output, "rebuild", moment + 1) as job:
            return rebuild_archived(archive, target.queue_manager, moment, **job)
    position = None if at is None else position_at(target, at)
    with spark_job(target, output, "rebuild") as job:
        return rebuild_at(at=position, from_checkpoint=from_checkpoint, **job)
