"""`ledgermq msg`: move, copy and delete messages by selector or sequence number; show one."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

import click

from ledgermq.cli.options.chosen_messages import COPY, DELETE, MOVE, carry_out, handling_options
from ledgermq.cli.options.destinations import destination_named, queue_from
from ledgermq.cli.options.once import OnceGroup
from ledgermq.cli.options.target import Target, target_options
from ledgermq.cli.options.together import LONG
from ledgermq.cli.printing.message_rows import message_document
from ledgermq.cli.printing.output import Output
from ledgermq.errors import LedgerMQError

WHY_NO_TOPIC: Final = (
    "its messages are in its subscriptions, where `ledgermq msg copy --subscription --sequence "
    "--dry-run` shows one"
)


class MessageUnknownError(LedgerMQError, LookupError):
    """No message is there that is meant."""

    code = "message-unknown"


class MessageHeldError(LedgerMQError):
    """Somebody holds the message that is to be shown."""

    code = "message-held"


@click.group(cls=OnceGroup)
def msg() -> None:
    """Show, move, copy and delete messages that no consumer holds."""


@msg.command()
@click.argument("source")
@click.argument("destination")
@handling_options
@target_options
def move(target: Target, output: Output, source: str, destination: str, **options: Any) -> None:
    """Move messages of SOURCE to DESTINATION, where they get new sequence numbers.

    Both are a queue, as NAME or queue:NAME, or topic:NAME. Messages that a consumer holds stay.
    """
    carry_out(target, output, MOVE, source, options, destination_named(destination))


@msg.command()
@click.argument("source")
@click.argument("destination")
@handling_options
@target_options
def copy(target: Target, output: Output, source: str, destination: str, **options: Any) -> None:
    """Put copies of messages of SOURCE to DESTINATION; the originals stay where they are.

    Both are a queue, as NAME or queue:NAME, or topic:NAME. Messages that a consumer holds are not
    copied.
    """
    carry_out(target, output, COPY, source, options, destination_named(destination))


@msg.command()
@click.argument("source")
@handling_options
@target_options
def delete(target: Target, output: Output, source: str, **options: Any) -> None:
    """Delete those messages of SOURCE that --selector or --sequence names.

    SOURCE is a queue, as NAME or queue:NAME, or topic:NAME. Messages that a consumer holds stay.
    """
    if not options["selector"] and not options["sequences"]:
        raise click.UsageError(
            "say which messages, by --selector or --sequence; `ledgermq queue purge` removes all"
        )
    carry_out(target, output, DELETE, source, options)


@msg.command()
@click.argument("source")
@click.argument("sequence", type=LONG)
@target_options
def show(target: Target, output: Output, source: str, sequence: int) -> None:
    """Show the message of queue SOURCE with that SEQUENCE number, if no consumer holds it."""
    named = f"queue:{queue_from(source, why=WHY_NO_TOPIC)}"
    with target.connect() as connection:
        found = connection.admin.select_messages(named, sequences=[sequence], shown=1)
    if not found.messages:
        what = f"message {sequence} of {named} cannot be shown"
        if found.skipped:
            raise MessageHeldError(f"{what}: somebody holds it")
        raise MessageUnknownError(f"{what}: there is none; `ledgermq browse` lists those there are")
    (message,) = found.messages
    document = message_document(message)
    origin = {} if message.origin is None else asdict(message.origin)
    labels = {name.replace("_", " "): value for name, value in document.items()}
    labels |= {f"origin {name.replace('_', ' ')}": value for name, value in origin.items()}
    output.fields(labels, document={**document, "origin": origin or None})
