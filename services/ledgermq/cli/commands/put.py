"""`ledgermq put`: puts one message, or one for each line of standard input, on a destination."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count as numbers_from
from typing import Any, BinaryIO, Final

import click

from ledgermq.cli.options.bodies import map_from_json, properties_from
from ledgermq.cli.options.destinations import DESTINATION, destination_from
from ledgermq.cli.options.once import OnceCommand
from ledgermq.cli.options.setting_options import Duration
from ledgermq.cli.options.target import Target, target_options
from ledgermq.cli.options.together import Long
from ledgermq.cli.printing.output import Output, count_of
from ledgermq.client.sending.receipts import ReceiptFuture, SendReceipt
from ledgermq.errors import LedgerMQError, MessageTooLargeError
from ledgermq.protocol.limits import CONTENT_BYTES_MAX, TIMING_MS_MAX

UNANSWERED_MAX = 10_000
# Read of a file or line; more than a message has, as JSON takes more room than what is sent of it.
INPUT_MAX: Final = 8 * CONTENT_BYTES_MAX


@click.command(cls=OnceCommand)
@click.argument("destination")
@click.argument("body", required=False)
@click.option(
    "--file",
    "file",
    metavar="FILE",
    type=click.File("rb"),
    help="Put the bytes of this file as one message; - is standard input.",
)
@click.option(
    "--json-body", is_flag=True, help="Read each body as a JSON object and put a map message."
)
@click.option(
    "--property",
    "properties",
    multiple=True,
    metavar="NAME=VALUE",
    help="A property, which selectors may ask for. VALUE is a number if it is written as one, true "
    "or false, else text. May be repeated.",
)
@click.option(
    "--priority",
    metavar="NUMBER",
    type=Long(0, 9),
    default=4,
    show_default=True,
    help="Messages of a higher priority are delivered first.",
)
@click.option(
    "--time-to-live",
    type=Duration(most=TIMING_MS_MAX),
    default=0,
    help="How long the message lives from now on; then it expires.  [default: for ever]",
)
@click.option(
    "--delivery-delay",
    type=Duration(most=TIMING_MS_MAX),
    default=0,
    help="How long the message waits before it is delivered.  [default: not at all]",
)
@click.option(
    "--correlation-id",
    metavar="TEXT",
    help="Correlation id (JMSCorrelationID), by which a reply is matched with its request.",
)
@click.option(
    "--reply-to",
    type=DESTINATION,
    help="Where the receiver is to send its reply (JMSReplyTo).",
)
@click.option(
    "--type",
    "type_",
    metavar="TEXT",
    help="Kind of the message (JMSType), a name on which sender and receiver agree.",
)
@click.option(
    "--deduplication-id",
    metavar="ID",
    help="Put nothing if the destination has taken a message with this id within its deduplication "
    "window; a destination without a window refuses the id.",
)
@click.option(
    "--non-persistent",
    is_flag=True,
    help="Mark the message as non-persistent; it is stored as safely as any other.",
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
        with _named(file.name):
            data = file.read(INPUT_MAX + 1)
        _check_length(len(data), file.name)
        return map_from_json(data, where="the file") if json_body else data
    return map_from_json(body or "", where="BODY") if json_body else body


def _lines(output: Output, json_body: bool) -> Iterator[Any]:
    if sys.stdin.isatty():
        output.remark("Reading messages from standard input, one a line; Ctrl-D ends.")
    # What is no text passes here as surrogates, so that its line can be named.
    stream = click.get_text_stream("stdin", errors="surrogateescape")
    for number in numbers_from(1):
        with _named("standard input"):
            line = stream.readline(INPUT_MAX + 1)
        if not line:
            return
        _check_length(len(line), f"line {number}")
        text = line.removesuffix("\n").removesuffix("\r")
        try:
            text.encode()
        except UnicodeEncodeError:
            raise click.UsageError(
                f"line {number} is no text in {stream.encoding}: put bytes with --file"
            ) from None
        yield map_from_json(text, where=f"line {number}") if json_body else text


@contextmanager
def _named(name: str) -> Iterator[None]:
    """Says what could not be read: without a name it would be taken for the answer."""
    try:
        yield
    except OSError as error:
        error.filename = name
        raise


def _check_length(length: int, name: str) -> None:
    """Refuses what would fill the memory before it could be refused as a message.

    Raises:
        MessageTooLargeError: No message can be as long.
    """
    if length > INPUT_MAX:
        raise MessageTooLargeError(
            f"{name} is longer than {INPUT_MAX:,}: a message has at most {CONTENT_BYTES_MAX:,} "
            "bytes; put it in parts, or a reference to it"
        )


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
        except (LedgerMQError, click.ClickException, KeyboardInterrupt) as error:
            if many:
                confirmed += _confirmed(target, waiting)
                error.add_note(f"{count_of(confirmed, 'message')} of the input put")
            raise
    if last is None:
        text, document = f"nothing put on {shown}: no input", {"count": 0}
    elif many:
        text = f"{count_of(count, 'message')} put on {shown}, the last with sequence number "
        text += f"{last.sequence}"
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
