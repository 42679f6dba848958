"""`ledgermq trace`, `rebuild` and `audit`: what the log tells, by Spark."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import click

from ledgermq.cli.output import Column, Output, iso_time
from ledgermq.cli.queues import ADDS_UP
from ledgermq.cli.screens import (
    list_columns,
    list_row,
    screen,
    screen_document,
    with_iso_times,
)
from ledgermq.cli.spark import quiet_spark
from ledgermq.cli.target import Target, target_options
from ledgermq.errors import LedgerMQError, QueueNotFoundError

if TYPE_CHECKING:
    from ledgermq_spark.history import Life

__all__ = [
    "LIFE_COLUMNS",
    "Moment",
    "Progress",
    "life_rows",
    "position_at",
    "progress_bar",
    "rebuild",
    "trace",
]

Progress = Callable[[str, int, int], None]
LIFE_COLUMNS = (
    Column(key="position", heading="POSITION", number=True, whole=True),
    Column(key="time", heading="TIME", whole=True),
    Column(key="what", heading="WHAT", whole=True),
    Column(key="reason", heading="REASON"),
)
TOPIC_COLUMNS = (
    Column(key="name", heading="TOPIC"),
    Column(key="subscriptions", heading="SUBSCRIPTIONS", number=True),
    Column(key="receivers", heading="RECEIVERS", number=True),
    Column(key="message_count", heading="MESSAGES", number=True),
    Column(key="sent_and_committed", heading="SENT", number=True),
    Column(key="dropped", heading="DROPPED", number=True),
    Column(key="min_sequence", heading="MIN SEQ", number=True),
    Column(key="max_sequence", heading="MAX SEQ", number=True),
)
SUBSCRIPTION_COLUMNS = (
    Column(key="topic", heading="TOPIC"),
    Column(key="kind", heading="KIND"),
    Column(key="name", heading="SUBSCRIPTION"),
    Column(key="client_id", heading="CLIENT ID"),
    Column(key="selector", heading="SELECTOR"),
    Column(key="receivers", heading="RECEIVERS", number=True),
    Column(key="added", heading="ADDED", number=True),
    Column(key="sent_and_committed", heading="SENT", number=True),
    Column(key="message_count", heading="MESSAGES", number=True),
)
MESSAGE_ID = re.compile(r"(ID:)?[0-9a-fA-F]{32}")


class MessageUnknownError(LedgerMQError, LookupError):
    """The log holds no put of a message with this id."""

    code = "message-unknown"


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


class Moment(click.ParamType):
    """A log position (1234, QM1@1234) or a time (ISO 8601, UTC if bare)."""

    name = "POSITION|TIME"

    def convert(  # noqa: D102 - as the base class says
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        from ledgermq_spark.positions import PositionOutOfRangeError, parse_moment

        try:
            return parse_moment(value)
        except PositionOutOfRangeError as error:
            self.fail(str(error), param, ctx)


def position_at(target: Target, at: Any) -> int | None:
    """The log position of a moment; found before Spark is started, None for the log's end.

    Raises:
        PositionOutOfRangeError: The moment lies before the log's start or after its end.
    """
    from ledgermq_spark.positions import resolve_at
    from ledgermq_spark.rebuild import locate

    if at is None:
        return None
    _, log = locate(target.bootstrap, target.topics, target.queue_manager)
    return resolve_at(target.bootstrap, log, at)


@click.command()
@click.option(
    "--at",
    type=Moment(),
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
    """Rebuild the state of all queues and topics as it was at a moment, from the log alone."""
    from ledgermq_spark.rebuild import rebuild_at

    target.check_broker()

    position = position_at(target, at)
    with (
        progress_bar(output, "rebuild") as tell,
        quiet_spark(target.bootstrap, target.topics, target.queue_manager) as engine,
    ):
        rebuilt = rebuild_at(
            target.bootstrap,
            target.queue_manager,
            position,
            topic_prefix=target.topic_prefix,
            from_checkpoint=from_checkpoint,
            progress=tell,
            **engine.options("rebuild"),
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
                "topics": [with_iso_times(status) for status in rebuilt.topics],
                "subscriptions": [with_iso_times(status) for status in rebuilt.subscriptions],
            }
        )
        return 0
    rows = [list_row(status) for status in rebuilt.statuses]
    output.table(
        list_columns(rows, for_people=output.for_people),
        rows,
        caption=f"at {where}: {ADDS_UP}\ndigest of the state: {rebuilt.digest}",
    )
    for columns, found_there in (
        (TOPIC_COLUMNS, rebuilt.topics),
        (SUBSCRIPTION_COLUMNS, rebuilt.subscriptions),
    ):
        if found_there:
            click.echo()
            output.table(columns, found_there)
    return 0


@click.command()
@click.argument("message_id")
@target_options
def trace(target: Target, output: Output, message_id: str) -> int:
    """Tell the life of the message with MESSAGE_ID, from its put to now, from the log alone."""
    from ledgermq_spark.run import trace_message

    if not MESSAGE_ID.fullmatch(message_id):
        raise click.UsageError(
            f"{message_id!r} is no message id: it has 32 hexadecimal digits, see `ledgermq browse`"
        )
    target.check_broker()
    with (
        progress_bar(output, "trace") as tell,
        quiet_spark(target.bootstrap, target.topics, target.queue_manager) as engine,
    ):
        life = trace_message(
            target.bootstrap,
            target.queue_manager,
            message_id,
            topic_prefix=target.topic_prefix,
            progress=tell,
            **engine.options("trace"),
        )
    if life is None:
        raise MessageUnknownError(
            f"no message {message_id} was ever put on {target.queue_manager}; see "
            "`ledgermq browse QUEUE` for those that wait"
        )
    if output.as_json:
        output.document(life.as_dict())
        return 0
    topic = life.queue.startswith("topic:")
    number = "none" if life.sequence is None else str(life.sequence)
    output.fields(
        {
            "Message": life.message_id,
            "Topic" if topic else "Queue": life.queue.removeprefix("topic:"),
            "Sequence number": number,
            "Priority": life.priority,
            "Backouts": life.backout_count,
            "Now": life.fate,
        }
    )
    click.echo()
    output.table(LIFE_COLUMNS, life_rows(life))
    return 0


def life_rows(life: Life) -> list[dict[str, Any]]:
    """The steps of a message's life as rows of a table."""
    return [
        {
            "position": f"{life.queue_manager}@{step.position}",
            "time": iso_time(step.time, precision="milliseconds"),
            "what": step.what,
            "reason": step.reason,
        }
        for step in life.steps
    ]
