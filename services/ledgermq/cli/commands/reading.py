"""`ledgermq get` takes messages from a queue, `ledgermq browse` looks at them and takes none."""

from __future__ import annotations

import time
from itertools import islice
from typing import Final

import click

import ledgermq
from ledgermq.cli.options.bodies import selector_option
from ledgermq.cli.options.destinations import queue_from
from ledgermq.cli.options.once import OnceCommand
from ledgermq.cli.options.target import Target, target_options
from ledgermq.cli.options.together import Count, Number
from ledgermq.cli.printing.message_rows import print_messages
from ledgermq.cli.printing.output import Output, count_of
from ledgermq.client.connection import Connection
from ledgermq.client.messages.message import Message
from ledgermq.client.receiving.consumer import Consumer
from ledgermq.errors import MessageUndecodableError

PAGE_MESSAGES: Final = 200
# How long to listen before asking whether there is anything to wait for.
PROMPT_SECONDS: Final = 0.2
WHY_NO_TOPIC: Final = "messages of a topic are consumed from its subscriptions, by a program"

_body_only_option = click.option(
    "--body-only", is_flag=True, help="Print only the bodies, one on each line."
)


@click.command(cls=OnceCommand)
@click.argument("queue")
@click.option("--count", type=Count(min=1), default=1, show_default=True, help="How many at most.")
@click.option(
    "--wait",
    "wait_seconds",
    type=Number(min=0),
    default=0.0,
    metavar="SECONDS",
    help="How many seconds to wait while there are fewer messages; 0, the default: not at all.",
)
@selector_option
@click.option(
    "--no-ack",
    is_flag=True,
    help="Give the messages back afterwards; each then counts as delivered once more.",
)
@_body_only_option
@target_options
def get(
    target: Target,
    output: Output,
    queue: str,
    count: int,
    wait_seconds: float,
    selector: str,
    no_ack: bool,
    body_only: bool,
) -> None:
    """Take messages from QUEUE and acknowledge them once they are printed.

    With --json a JSON document is printed on a line for each message. With --wait a queue that is
    not there yet is created.
    """
    queue = queue_from(queue, why=WHY_NO_TOPIC)
    deadline = time.monotonic() + wait_seconds
    page = PAGE_MESSAGES if output.as_json or body_only else count
    found = 0
    with target.connect() as connection, connection.session(ack=ledgermq.AckMode.CLIENT) as session:
        # A consumer makes the queue, of a mistyped name too. Whoever waits may only be early.
        status = None if wait_seconds else connection.admin.queue_status(queue)
        consumer = session.consumer(
            f"queue:{queue}", prefetch=min(count, PAGE_MESSAGES), selector=selector or None
        )
        # A session gets no more than this before it acknowledges.
        limit = (status or connection.admin.queue_status(queue)).unacknowledged_max
        page = min(page, limit or page)
        count = min(count, limit) if no_ack and limit else count
        while found < count:
            wanted = min(page, count - found)
            messages = _take(connection, consumer, queue, selector, wanted, deadline)
            if not messages:
                break
            for message in messages:
                _check_readable(queue, message)
            found += print_messages(output, messages, body_only=body_only)
            # Only what was printed is acknowledged; what is not goes back when the session closes.
            if not no_ack:
                session.acknowledge()
    if not found:
        output.remark(f"no message available on {queue}")
    elif no_ack:
        output.remark("given back, not acknowledged")


def _take(
    connection: Connection,
    consumer: Consumer,
    queue: str,
    selector: str,
    count: int,
    deadline: float,
) -> list[Message]:
    """Up to `count` messages: what is there now, and what comes until the deadline."""
    messages: list[Message] = []
    while len(messages) < count:
        message = consumer.receive(timeout=PROMPT_SECONDS)
        if message is None and time.monotonic() >= deadline:
            # Deliveries stand on the lane before an answer that was given after them.
            coming = _is_coming(connection, queue, selector, len(messages))
            message = consumer.receive(timeout=0)
            if message is None and not coming:
                break
        if message is not None:
            messages.append(message)
    return messages


def _check_readable(queue: str, message: Message) -> None:
    """Refuses to take what cannot be printed; MessageUndecodableError says what to do with it."""
    try:
        _ = message.unloaded_body
    except MessageUndecodableError as error:
        number = message.sequence
        error.add_note(
            f"look at it with `ledgermq browse {queue}`, and move or delete it with `ledgermq msg "
            f"move {queue} OTHER --sequence {number}` or `ledgermq msg delete {queue} --sequence "
            f"{number}`"
        )
        raise


def _is_coming(connection: Connection, queue: str, selector: str, held: int) -> bool:
    """Whether a message is there that this command will be given, and only has to wait for."""
    status = connection.admin.queue_status(queue)
    if not status.current or status.gets_disabled:
        return False
    if status.unacknowledged_max and held >= status.unacknowledged_max:
        return False
    return not selector or any(
        True for _ in connection.browser(f"queue:{queue}", selector=selector)
    )


@click.command(cls=OnceCommand)
@click.argument("queue")
@click.option("--count", type=Count(min=1), default=20, show_default=True, help="How many at most.")
@selector_option
@click.option(
    "--order",
    type=click.Choice(["physical", "logical"]),
    default="physical",
    show_default=True,
    help="physical: by sequence number; logical: groups together and each in its own order.",
)
@_body_only_option
@target_options
def browse(
    target: Target,
    output: Output,
    queue: str,
    count: int,
    selector: str,
    order: str,
    body_only: bool,
) -> None:
    """Look at the messages available on QUEUE, in delivery order, without taking any."""
    queue = queue_from(queue, why=WHY_NO_TOPIC)
    with target.connect() as connection:
        wanted = ledgermq.Order(order.upper())
        browser = connection.browser(f"queue:{queue}", selector=selector or None, order=wanted)
        messages = iter(browser)
        found = print_messages(output, islice(messages, count), body_only=body_only)
        more = found == count and next(messages, None) is not None
    if more:
        output.cut_short(f"{count_of(count, 'message')} shown; there are more: see --count")
    if not found:
        output.remark(f"no message available on {queue}")
