"""`ledgermq dlq`: messages that came from elsewhere: listed, shown, sent back, purged."""

from __future__ import annotations

from typing import Any, Final

import click

from ledgermq.cli.commands.messages import show
from ledgermq.cli.commands.queues import purge
from ledgermq.cli.options.chosen_messages import RETRY, carry_out, handling_options
from ledgermq.cli.options.once import OnceGroup, called
from ledgermq.cli.options.target import Target, target_options
from ledgermq.cli.printing.output import Column, Output, headed

COLUMNS: Final = (
    *headed("queue", "reason"),
    Column(key="origin", heading="FROM"),
    Column(key="messages", heading="MESSAGES", number=True),
)


@click.group(cls=OnceGroup)
def dlq() -> None:
    """Look at dead letters, messages that came from another destination; send them back, or purge.

    They came because they expired, were redelivered too often, or were moved there.
    """


@dlq.command("list")
@click.argument("names", nargs=-1)
@target_options
def list_origins(target: Target, output: Output, names: tuple[str, ...]) -> None:
    """Count the messages of queues that came from elsewhere, by reason and origin.

    What a binding handed on is where it belongs, and is not among them.

    NAMES are the queues; without them all queues are looked at.
    """
    rows: list[dict[str, Any]] = []
    with target.connect() as connection:
        queues = names or [one.name for one in connection.admin.list_queues() if one.message_count]
        for queue in queues:
            told = connection.admin.select_messages(queue, shown=0)
            rows += [
                {
                    "queue": queue.removeprefix("queue:"),
                    "reason": one.reason,
                    "origin": one.destination,
                    "messages": one.count,
                }
                for one in told.origins
                if one.reason != "bound"
            ]
    output.table(COLUMNS, rows)
    if not rows:
        output.remark("no queue holds messages that came from elsewhere")


@dlq.command()
@click.argument("queue")
@handling_options
@target_options
def retry(target: Target, output: Output, queue: str, **options: Any) -> None:
    """Send messages of QUEUE back to the queue or topic that each came from.

    Messages stay if they came from nowhere else or by a binding, if their origin is gone, or if a
    consumer holds them.
    """
    carry_out(target, output, RETRY, queue, options)


SHOW: Final = "Show the message of SOURCE with that SEQUENCE number, and where it came from."
dlq.add_command(called(show, SHOW))
dlq.add_command(purge)
