"""`ledgermq put`: puts one message, or one for each line of standard input, on a destination."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from ledgermq.cli.options.bodies import map_from_json, properties_from
from ledgermq.cli.options.destinations import destination_from
from ledgermq.cli.options.once import OnceCommand
from ledgermq.cli.options.setting_options import Duration
from ledgermq.cli.options.target import Target, target_options
from ledgermq.cli.printing.output import Output, count_of
from ledgermq.errors import LedgerMQError

if TYPE_CHECKING:
    from ledgermq.client.sending.receipts import ReceiptFuture, SendReceipt


UNANSWERED_MAX = 10_000


@click.command(cls=OnceCommand)
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
@click.option("--time-to-live", type=Duration(), default=0, help="It expires then; else never.")
@click.option("--delivery-delay", type=Duration(), default=0, help="It is not delivered before.")
@click.option("--correlation-id", help="Link to another message.")
@click.option("--reply-to", metavar="queue:NAME", help="Where an answer is wanted.")
@click.option("--type", "type_", help="The sender's name for the kind of message.")
@click.option(
    "--deduplication-id",
    metavar="ID",
    help="A second message of that id vanishes, where the destination has a deduplication window.",
)
@click.option(
    "--non-persistent",
    is_flag=True,
    help="Mark the message so; it is written to the log all the same.",
)
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
    time_to_live: int,
    delivery_delay: int,
    **fields: Any,
) -> None:
    """Put BODY on DESTINATION as a text message.

    DESTINATION is a queue, as NAME or queue:NAME, or topic:NAME. Without BODY and --file, every
    line of standard input is a message.
    """
    if body is not None and file is not None:
        raise click.UsageError("give BODY or --file, not both")
    options = {
        "properties": properties_from(properties),
        "persistent": not non_persistent,
        "time_to_live": time_to_live / 1000,
        "delivery_delay": delivery_delay / 1000,
        **{"type" if name == "type_" else name: value for name, value in fields.items()},
    }
    many = body is None and file is None
    if many and options["deduplication_id"] is not None:
        raise click.UsageError("--deduplication-id is for one message: give BODY or --file")
    bodies = _lines(output, json_body) if many else iter([_body(body, file, json_body)])
    _put_all(target, output, destination, bodies, options, many=many)


def _body(body: str | None, file: BinaryIO | None, json_body: bool) -> Any:
    if file is not None:
        data = file.read()
        return map_from_json(data.decode(), where="the file") if json_body else data
    return map_from_json(body or "", where="BODY") if json_body else body


def _lines(output: Output, json_body: bool) -> Iterator[Any]:
    if sys.stdin.isatty():
        output.remark("Reading messages from standard input, one a line; Ctrl-D ends.")
    for number, line in enumerate(click.get_text_stream("stdin"), 1):
        text = line.removesuffix("\n").removesuffix("\r")
        yield map_from_json(text, where=f"line {number}") if json_body else text


def _put_all(
    target: Target,
    output: Output,
    destination: str,
    bodies: Iterator[Any],
    options: dict[str, Any],
    *,
    many: bool,
) -> None:
    kind, name = destination_from(destination)
    shown = name if kind == "queue" else f"{kind} {name}"
    count = confirmed = 0
    last: SendReceipt | None = None
    document: dict[str, Any]
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
        text, document = f"nothing put on {shown}: no input", {"count": 0}
    elif many:
        text = f"{count} messages put on {shown}, the last with sequence number {last.sequence}"
        document = {"count": count, "last_sequence": last.sequence}
    else:
        text = f"message {last.message_id} put on {shown}, sequence number {last.sequence}, "
        text += f"at {target.named(last.position or 0)}"
        document = {name: getattr(last, name) for name in ("message_id", "sequence", "position")}
        if last.duplicate:
            text = f"put on {shown} before under that id, with sequence number {last.sequence}: "
            text += "nothing was put now"
            document["duplicate"] = True
    output.done(text, {kind: name, **document})


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
