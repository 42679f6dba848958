"""`ledgermq get` and `ledgermq browse`: takes messages, or only looks at them."""

from __future__ import annotations

import time
from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from ledgermq.cli.bodies import body_document, body_line
from ledgermq.cli.destinations import queue_from
from ledgermq.cli.output import Column, Output
from ledgermq.cli.target import Target, target_options

if TYPE_CHECKING:
    from ledgermq.client.connection import Connection
    from ledgermq.client.consumer import Consumer
    from ledgermq.client.message import Message

__all__ = ["browse", "get"]

PAGE_MESSAGES = 200
GROUP_DIGITS_SHOWN = 12
WHY_NO_TOPIC = "messages of topics are had through subscriptions, in a program"
# How long to listen before asking whether there is anything to wait for.
PROMPT_SECONDS = 0.2

COLUMNS = (
    Column(key="sequence", heading="SEQUENCE", number=True),
    Column(key="priority", heading="PRI", number=True),
    Column(key="delivery_count", heading="DELIVERY", number=True),
    Column(key="timestamp", heading="ENQUEUED", whole=True),
    Column(key="message_id", heading="MESSAGE ID", whole=True),
    Column(key="group", heading="GROUP", whole=True),
    Column(key="body", heading="BODY", cut=True),
)


selector_option = click.option(
    "--selector",
    metavar="TEXT",
    help="Only messages that this message selector selects, as region = 'EU' AND count > 2.",
)


@click.command()
@click.argument("queue")
@click.option("--count", type=click.IntRange(min=1), default=1, show_default=True, help="At most.")
@click.option(
    "--wait",
    "wait_seconds",
    type=click.FloatRange(min=0),
    default=0.0,
    metavar="SECONDS",
    help="How long to wait for a message that is not there yet.",
)
@selector_option
@click.option("--no-ack", is_flag=True, help="Give back what was got; it counts as delivered.")
@click.option("--body-only", is_flag=True, help="Print bodies alone, one a line.")
@target_options
def get(
    target: Target,
    output: Output,
    queue: str,
    count: int,
    wait_seconds: float,
    selector: str | None,
    no_ack: bool,
    body_only: bool,
) -> int:
    """Take messages from QUEUE and acknowledge them once they are printed.

    With --json one JSON document a line is printed for each message.
    """
    import ledgermq

    queue = queue_from(queue, why=WHY_NO_TOPIC)
    deadline = time.monotonic() + wait_seconds
    page = PAGE_MESSAGES if output.as_json or body_only else count
    found = 0
    with target.connect() as connection, connection.session(ack=ledgermq.AckMode.CLIENT) as session:
        consumer = session.consumer(
            f"queue:{queue}", prefetch=min(count, PAGE_MESSAGES), selector=selector
        )
        # A session gets no more than this before it acknowledges.
        limit = connection.admin.queue_status(queue).unacknowledged_max
        page = min(page, limit or page)
        count = min(count, limit) if no_ack and limit else count
        while found < count:
            wanted = min(page, count - found)
            messages = _take(connection, consumer, queue, selector, wanted, deadline)
            if not messages:
                break
            found += _print(output, messages, body_only=body_only)
            # Only what was printed is acknowledged; what is not goes back when the session closes.
            if not no_ack:
                session.acknowledge()
    if not found:
        output.remark(f"no message available on {queue}")
    elif no_ack:
        output.remark("given back, not acknowledged")
    return 0


def _take(
    connection: Connection,
    consumer: Consumer,
    queue: str,
    selector: str | None,
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


def _is_coming(connection: Connection, queue: str, selector: str | None, held: int) -> bool:
    """Whether a message is there that this command will be given, and only has to wait for."""
    status = connection.admin.queue_status(queue)
    if not status.current or status.gets_disabled:
        return False
    if status.unacknowledged_max and held >= status.unacknowledged_max:
        return False
    return selector is None or any(
        True for _ in connection.browser(f"queue:{queue}", selector=selector)
    )


@click.command()
@click.argument("queue")
@click.option("--count", type=click.IntRange(min=1), default=20, show_default=True, help="At most.")
@selector_option
@click.option(
    "--order",
    type=click.Choice(["physical", "logical"]),
    default="physical",
    show_default=True,
    help="By sequence number, or groups together and in their own order.",
)
@click.option("--body-only", is_flag=True, help="Print bodies alone, one a line.")
@target_options
def browse(
    target: Target,
    output: Output,
    queue: str,
    count: int,
    selector: str | None,
    order: str,
    body_only: bool,
) -> int:
    """Look at the messages available on QUEUE, in delivery order, without taking any."""
    import ledgermq

    queue = queue_from(queue, why=WHY_NO_TOPIC)
    with target.connect() as connection:
        wanted = ledgermq.Order(order.upper())
        browser = connection.browser(f"queue:{queue}", selector=selector, order=wanted)
        found = _print(output, islice(browser, count), body_only=body_only)
    if not found:
        output.remark(f"no message available on {queue}")
    return 0


def _print(output: Output, messages: Iterable[Message], *, body_only: bool) -> int:
    """Print messages as they come and return how many; a table for people is printed at the end."""
    rows: list[dict[str, Any]] = []
    found = 0
    for message in messages:
        found += 1
        if output.as_json:
            output.line(message_document(message))
        elif body_only:
            click.echo(body_line(message.unloaded_body))
        else:
            rows.append(_row(message, for_people=output.for_people))
    if rows:
        again = any(row["delivery_count"] > 1 for row in rows) or not output.for_people
        grouped = any(row["group"] for row in rows) or not output.for_people
        left_out = {"delivery_count": not again, "group": not grouped}
        shown = [one for one in COLUMNS if not left_out.get(one.key)]
        output.table(shown, rows)
    return found


def _row(message: Message, *, for_people: bool) -> dict[str, Any]:
    enqueued = message.timestamp
    return {
        "sequence": message.sequence,
        "priority": message.priority,
        "delivery_count": message.delivery_count,
        # The day is left out where room is dear; --json has all of it.
        "timestamp": f"{enqueued:%H:%M:%S} UTC" if for_people else enqueued,
        "message_id": message.message_id,
        "group": _group(message, for_people=for_people),
        "body": body_line(message.unloaded_body),
    }


def _group(message: Message, *, for_people: bool) -> str:
    """Group id and number, `+` and the offset of a segment; a group's last message ends in `!`."""
    if message.group_id is None:
        return ""
    group_id = message.group_id.hex()
    last = "!" if message.group_status == "LAST_MESSAGE_IN_GROUP" else ""
    offset = "" if message.segment_status == "NOT_A_SEGMENT" else f"+{message.offset}"
    shown = group_id[:GROUP_DIGITS_SHOWN] if for_people else group_id
    return f"{shown}:{message.group_sequence}{offset}{last}"


def message_document(message: Message) -> dict[str, Any]:
    """A message as JSON."""
    return {
        "message_id": message.message_id,
        "queue": message.destination.removeprefix("queue:"),
        "sequence": message.sequence,
        "priority": message.priority,
        "persistent": message.persistent,
        "delivery_count": message.delivery_count,
        "redelivered": message.redelivered,
        "enqueued_at": message.timestamp,
        "deliver_at": message.deliver_at,
        "expires_at": message.expires_at,
        "put_position": message.put_position,
        "put_index": message.put_index,
        "correlation_id": message.correlation_id,
        "reply_to": message.reply_to,
        "type": message.type,
        "group_id": None if message.group_id is None else message.group_id.hex(),
        "group_sequence": message.group_sequence,
        "group_status": message.group_status,
        "offset": message.offset,
        "segment_status": message.segment_status,
        "properties": dict(message.properties),
        **body_document(message.unloaded_body),
    }
