"""`ledgermq browse` looks at the messages of a queue and takes none."""

from __future__ import annotations

from itertools import islice

import click

from ledgermq.cli.options.destinations import queue_from
from ledgermq.cli.options.selection import WHY_NO_TOPIC, body_only_option, selector_option
from ledgermq.cli.options.target import Target, target_options
from ledgermq.cli.printing.message_rows import print_messages
from ledgermq.cli.printing.output import Output


@click.command()
@click.argument("queue")
@click.option(
    "--count", type=click.IntRange(min=1), default=20, show_default=True, help="How many at most."
)
@selector_option
@click.option(
    "--order",
    type=click.Choice(["physical", "logical"]),
    default="physical",
    show_default=True,
    help="By sequence number, or groups together and in their own order.",
)
@body_only_option
@target_options
def browse(
    target: Target,
    output: Output,
    queue: str,
    count: int,
    selector: str | None,
    order: str,
    body_only: bool,
) -> None:
    """Look at the messages available on QUEUE, in delivery order, without taking any."""
    import ledgermq

    queue = queue_from(queue, why=WHY_NO_TOPIC)
    with target.connect() as connection:
        wanted = ledgermq.Order(order.upper())
        browser = connection.browser(f"queue:{queue}", selector=selector, order=wanted)
        found = print_messages(output, islice(browser, count), body_only=body_only)
    if not found:
        output.remark(f"no message available on {queue}")
