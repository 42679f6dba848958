"""`ledgermq put`: puts one message, or one for each line of standard input, on a destination."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from ledgermq.cli.bodies import map_from_json, properties_from
from ledgermq.cli.destinations import destination_from
from ledgermq.cli.output import Output, count_of
from ledgermq.cli.target import Target, target_options
from ledgermq.errors import LedgerMQError

if TYPE_CHECKING:
    from ledgermq.client.receipts import ReceiptFuture, SendReceipt

__all__ = ["put"]

UNANSWERED_MAX = 10_000


@click.command()
@click.argument("destination")
@click.argument("body", required=False)
@click.option(
    "--file", "file", type=click.File("rb"), help="Put the bytes of this file; - is standard input."
)
@click.option("--json-body", is_flag=True, help="Bodies are JSON objects: put map messages.")
@click.option(
    "--property", "properties", multiple=True, metavar="NAME=VALUE", help="May be repeated."
)
@click.option("--priority", type=click.IntRange(0, 9), default=4, show_default=True)
@click.option("--correlation-id", help="Link to another message.")
@click.option("--reply-to", metavar="queue:NAME", help="Where an answer is wanted.")
@click.option("--type", "type_", help="The sender's name for the kind of message.")
@click.option("--non-persistent", is_flag=True, help="Mark as such; it is kept all the same.")
@target_options
def put(
    target: Target,
    output: Output,
    destination: str,
    body: str | None,
    file: BinaryIO | None,
    json_body: bool,
    properties: tuple[str, ...],
    non_persistent: bool,
    **fields: Any,
) -> int:
    """Put BODY on DESTINATION as a text message.

    DESTINATION is a queue, as NAME or queue:NAME, or topic:NAME. Without BODY and --file, every
    line of standard input is a message.
    """
    if body is not None and file is not None:
        raise click.UsageError("give BODY or --file, not both")
    bodies: Iterator[Any]
    if file is not None and json_body:
        bodies = iter([map_from_json(file.read().decode(), where="the file")])
    elif file is not None:
        bodies = iter([file.read()])
    elif body is not None:
        bodies = iter([map_from_json(body, where="BODY") if json_body else body])
    else:
        return _put_lines(
            target, output, destination, json_body, properties, non_persistent, fields
        )
    return _put_all(
        target, output, destination, bodies, properties, non_persistent, fields, many=False
    )


def _put_lines(
    target: Target,
    output: Output,
    destination: str,
    json_body: bool,
    properties: tuple[str, ...],
    non_persistent: bool,
    fields: dict[str, Any],
) -> int:
    if sys.stdin.isatty():
        output.remark("Reading messages from standard input, one a line; Ctrl-D ends.")
    lines = _lines(json_body)
    return _put_all(
        target, output, destination, lines, properties, non_persistent, fields, many=True
    )


def _lines(json_body: bool) -> Iterator[Any]:
    for number, line in enumerate(click.get_text_stream("stdin"), 1):
        text = line.removesuffix("\n").removesuffix("\r")
        yield map_from_json(text, where=f"line {number}") if json_body else text


def _put_all(
    target: Target,
    output: Output,
    destination: str,
    bodies: Iterator[Any],
    properties: tuple[str, ...],
    non_persistent: bool,
    fields: dict[str, Any],
    *,
    many: bool,
) -> int:
    options = {
        "properties": properties_from(properties),
        "persistent": not non_persistent,
        **{"type" if name == "type_" else name: value for name, value in fields.items()},
    }
    kind, name = destination_from(destination)
    named = {kind: name}
    shown = name if kind == "queue" else f"{kind} {name}"
    count = confirmed = 0
    last: SendReceipt | None = None
    waiting: list[ReceiptFuture[SendReceipt]] = []
    with target.connect() as connection, connection.session() as session:
        producer = session.producer(f"{kind}:{name}")
        try:
            for body in bodies:
                waiting.append(producer.send_async(body, **options))
                count += 1
                if len(waiting) >= UNANSWERED_MAX:
                    last = _settle(target, waiting)
                    confirmed = count
            if waiting:
                last = _settle(target, waiting)
        except (LedgerMQError, click.ClickException) as error:
            if many:
                confirmed += _confirmed(target, waiting)
                error.add_note(f"{count_of(confirmed, 'message')} of the input put")
            raise
    if last is None:
        output.done(f"nothing put on {shown}: no input", {**named, "count": 0})
        return 0
    if many:
        text = f"{count} messages put on {shown}, the last with sequence number {last.sequence}"
        output.done(text, {**named, "count": count, "last_sequence": last.sequence})
        return 0
    where = target.named(last.position or 0)
    output.done(
        f"message {last.message_id} put on {shown}, sequence number {last.sequence}, at {where}",
        {
            **named,
            "message_id": last.message_id,
            "sequence": last.sequence,
            "position": last.position,
        },
    )
    return 0


def _settle(target: Target, waiting: list[ReceiptFuture[SendReceipt]]) -> SendReceipt:
    """Wait for what was sent; the first error ends the command and says how far it came."""
    receipts = [future.result(target.timeout_seconds) for future in waiting]
    waiting.clear()
    return receipts[-1]


def _confirmed(target: Target, waiting: list[ReceiptFuture[SendReceipt]]) -> int:
    """How many of the sends under way are confirmed, waiting once for all of them."""
    deadline = time.monotonic() + target.timeout_seconds
    confirmed = 0
    for future in waiting:
        try:
            future.result(max(0.0, deadline - time.monotonic()))
        except LedgerMQError:
            continue
        confirmed += 1
    return confirmed
