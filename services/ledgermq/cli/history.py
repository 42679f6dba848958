"""`ledgermq trace`, `rebuild` and `audit`: what the log tells, by Spark."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any

import click

from ledgermq.cli.output import Output, iso_time
from ledgermq.cli.queues import ADDS_UP
from ledgermq.cli.screens import (
    LIST_COLUMNS,
    list_row,
    screen,
    screen_document,
    with_iso_times,
)
from ledgermq.cli.spark import quiet_spark
from ledgermq.cli.target import Target, target_options
from ledgermq.errors import QueueNotFoundError

__all__ = ["Progress", "audit", "progress_bar", "rebuild", "trace"]

Progress = Callable[[str, int, int], None]


@contextlib.contextmanager
def progress_bar(output: Output, title: str) -> Iterator[Progress]:
    """A progress bar on standard error for people; silent for scripts."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    # A file of our own, as standard error goes elsewhere while Spark starts.
    with os.fdopen(os.dup(2), "w", encoding="utf-8") as terminal:
        bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            TimeElapsedColumn(),
            console=Console(file=terminal),
            transient=True,
            disable=not (output.for_people and terminal.isatty()),
        )
        with bar:
            task = bar.add_task(f"{title}: starting Spark", total=None)

            def tell(stage: str, done: int, total: int) -> None:
                text = f"{title}: {stage}"
                bar.update(task, description=text, completed=done, total=total or None)

            yield tell


class _Moment(click.ParamType):
    """A log position (1234, QM1@1234) or a time (ISO 8601, UTC if bare)."""

    name = "POSITION|TIME"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from ledgermq_spark.positions import PositionOutOfRangeError, parse_moment

        try:
            return parse_moment(value)
        except PositionOutOfRangeError as error:
            self.fail(str(error), param, ctx)


@click.command()
@click.option(
    "--at",
    type=_Moment(),
    help="A log position (1234) or a time (2026-11-21T10:00:00Z).  [default: the log's end]",
)
@click.option("--queue", metavar="NAME", help="Print the status screen of this queue only.")
@click.option("--from-checkpoint", is_flag=True, help="Begin with a checkpoint, not from zero.")
@target_options
def rebuild(
    target: Target,
    output: Output,
    at: Any,
    queue: str | None,
    from_checkpoint: bool,
) -> int:
    """Rebuild the state of all queues as it was at a moment, from the log alone."""
    from ledgermq_spark.rebuild import rebuild_at

    target.check_broker()

    with progress_bar(output, "rebuild") as tell, quiet_spark() as session:
        rebuilt = rebuild_at(
            target.bootstrap,
            target.queue_manager,
            at,
            topic_prefix=target.topic_prefix,
            from_checkpoint=from_checkpoint,
            spark=session,
            progress=tell,
        )
    found = {status["name"]: status for status in rebuilt.statuses}
    where = f"{target.named(rebuilt.position)}, {iso_time(rebuilt.time)}"
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
        return 0
    if output.as_json:
        output.document(
            {
                "queue_manager": target.queue_manager,
                "position": rebuilt.position,
                "time": iso_time(rebuilt.time),
                "digest": rebuilt.digest,
                "operations": rebuilt.operations,
                "queues": [with_iso_times(status) for status in rebuilt.statuses],
            }
        )
        return 0
    output.table(
        LIST_COLUMNS,
        [list_row(status) for status in rebuilt.statuses],
        caption=f"at {where}: {ADDS_UP}\ndigest of the state: {rebuilt.digest}",
    )
    return 0
