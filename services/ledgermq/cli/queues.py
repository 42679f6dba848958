"""`ledgermq queue`: create, list, look at, alter, suspend, resume and delete queues."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ledgermq.cli.output import Output, iso_time
from ledgermq.cli.screens import LIST_COLUMNS, list_row, screen, screen_document
from ledgermq.cli.target import Target, target_options

if TYPE_CHECKING:
    from ledgermq.client.admin import QueueStatus

__all__ = ["queue"]

ADDS_UP = "current + pending = message count + uncommitted puts"


@click.group()
def queue() -> None:
    """Create, list, look at, alter and delete queues."""


@queue.command()
@click.argument("name")
@click.option("--description", default="", help="Free text for people.")
@click.option(
    "--message-bytes-max",
    type=click.IntRange(min=0),
    default=0,
    help="Largest content of a message in bytes; 0: the limit of the log.",
)
@target_options
def create(
    target: Target, output: Output, name: str, description: str, message_bytes_max: int
) -> int:
    """Create queue NAME."""
    with target.connect() as connection:
        connection.admin.create_queue(
            name, description=description, message_bytes_max=message_bytes_max
        )
    output.done(f"queue {name} created", {"queue": name, "created": True})
    return 0


@queue.command("list")
@target_options
def list_queues(target: Target, output: Output) -> int:
    """List the queues with their figures."""
    with target.connect() as connection:
        answer = connection.admin.queues()
    documents = [_document(status) for status in answer.queues]
    if output.as_json:
        output.document(documents)
        return 0
    where = f"{target.named(answer.position)}, {iso_time(answer.time)}: {ADDS_UP}"
    output.table(LIST_COLUMNS, [list_row(one) for one in documents], caption=where)
    return 0


@queue.command()
@click.argument("name")
@target_options
def stat(target: Target, output: Output, name: str) -> int:
    """Print the status screen of queue NAME: nine lines, times in UTC as MMDDYYYY:HH:MM:SS.

    With --json the labels are keys in snake case and times ISO 8601.
    """
    with target.connect() as connection:
        status = _document(connection.admin.queue(name))
    if output.as_json:
        output.document(screen_document(status))
    else:
        click.echo(screen(status))
    return 0
