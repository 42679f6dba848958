"""Commands that move, copy, delete or purge messages: their options, and a question before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

import click

from ledgermq.cli.options.bodies import selector_option
from ledgermq.cli.options.consent import (
    actor_option,
    confirm,
    dry_run_option,
    reason_option,
    yes_option,
)
from ledgermq.cli.options.destinations import destination_from, destination_named
from ledgermq.cli.options.target import Target
from ledgermq.cli.options.together import Count, Read, together
from ledgermq.cli.printing.message_rows import shown_body
from ledgermq.cli.printing.output import Column, Output, count_of
from ledgermq.client.admin.manual import Handled
from ledgermq.client.messages.message import Message
from ledgermq.digits import is_whole
from ledgermq.errors import InvalidDestinationError
from ledgermq.wire.content.objects import LONG_MAX

COLUMNS: Final = (
    Column(key="sequence", heading="SEQ", number=True),
    Column(key="message_id", heading="MESSAGE ID", whole=True),
    Column(key="origin", heading="FROM"),
    Column(key="why", heading="WHY"),
    Column(key="body", heading="BODY", cut=True),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """What a command does: its word, the word when it is done, and the call of administration.

    `leaves` says which messages it leaves as they are.
    """

    word: str
    done: str
    call: str
    to_origin: bool = False
    leaves: str = "somebody holds them"


PURGE: Final = Action(word="purge", done="purged", call="purge_queue")
DELETE: Final = Action(word="delete", done="deleted", call="delete_messages")
MOVE: Final = Action(word="move", done="moved", call="move_messages")
COPY: Final = Action(word="copy", done="copied", call="copy_messages")
RETRY: Final = Action(
    word="retry",
    done="sent back",
    call="retry_messages",
    to_origin=True,
    leaves="somebody holds them, they came from nowhere or by a binding, or where they came from "
    "is gone or is a topic without subscriptions",
)


def _numbers(text: str) -> range:
    first, _, last = text.partition("..")
    if not (is_whole(first) and is_whole(last or first)):
        raise ValueError(f"{text!r} is no sequence number: write 7, or 3..5")
    numbers = range(int(first), int(last or first) + 1)
    if int(last or first) > LONG_MAX:
        raise ValueError(f"{text!r}: no sequence number is above {LONG_MAX}")
    if not numbers:
        raise ValueError(f"{text!r} names no number: write the lower one first")
    return numbers


limit_option: Final = click.option(
    "--limit",
    type=Count(min=0),
    default=0,
    help="How many messages at most, the first ones; 0, the default: all.",
)

# Which messages, who asks for it and why; a purge takes no sequence numbers.
purge_options: Final = together(
    selector_option,
    limit_option,
    click.option(
        "--subscription",
        metavar="NAME",
        default="",
        help="For messages of topic:NAME: the name of the subscription that holds them.",
    ),
    click.option(
        "--client-id",
        metavar="ID",
        default="",
        help="The client id of that subscription, if it has one.",
    ),
    click.option(
        "--durable/--not-durable",
        default=True,
        show_default=True,
        help="Whether that subscription is durable.",
    ),
    reason_option,
    actor_option,
    dry_run_option,
    yes_option,
)
handling_options: Final = together(
    click.option(
        "--sequence",
        "sequences",
        type=Read("NUMBERS", _numbers),
        multiple=True,
        help="Only the message with this sequence number, 7, or those of a range with both its "
        "ends, 3..5. May be repeated.",
    ),
    purge_options,
)


def carry_out(
    target: Target,
    output: Output,
    action: Action,
    source: str,
    options: Mapping[str, Any],
    *to: str,
) -> None:
    """Say what would be done, and do it if that is wanted; UsageError without reason or consent."""
    given = dict(options)
    dry_run, yes = given.pop("dry_run"), given.pop("yes")
    reason, actor = given.pop("reason"), given.pop("actor")
    if "sequences" in given:
        given["sequences"] = given["sequences"] or None
    if not dry_run and not reason:
        raise click.UsageError(f"say why you {action.word} messages: --reason TEXT")
    source = destination_named(source)
    with target.connect() as connection:
        admin = connection.admin
        if dry_run or not yes:
            told = admin.select_messages(source, to_origin=action.to_origin, **given)
            for destination in to:
                # What is shown, or asked, is what would be done: a move to nowhere is refused.
                kind, name = destination_from(destination)
                (admin.topic if kind == "topic" else admin.queue_status)(name)
                if destination == source:
                    raise InvalidDestinationError(f"{destination} is where the messages are")
            if dry_run:
                _tell(target, output, action, source, told)
                return
            count = count_of(told.affected, "message")
            confirm(f"this would {action.word} {count} of {source}")
        done = getattr(admin, action.call)(source, *to, reason=reason, actor=actor, **given)
    _tell(target, output, action, source, done)


def _tell(target: Target, output: Output, action: Action, source: str, told: Handled) -> None:
    document: dict[str, Any] = {
        "source": source,
        "action": action.word,
        "affected": told.affected,
        "skipped": told.skipped,
        "dry_run": told.dry_run,
        "position": told.position,
    }
    rows = [_row(one) for one in told.messages]
    if told.dry_run:
        document["messages"] = rows
        document["origins"] = [asdict(one) for one in told.origins]
    would = "would be " if told.dry_run else ""
    text = f"{count_of(told.affected, 'message')} of {source} {would}{action.done}"
    if told.skipped:
        text += f", {told.skipped} left as they are: {action.leaves}"
    output.done(text, document)
    if rows and not output.as_json:
        output.table(COLUMNS, rows, caption=target.named(told.position))


def _row(message: Message) -> dict[str, Any]:
    """A message with where it was before."""
    origin = message.origin
    return {
        "sequence": message.sequence,
        "message_id": message.message_id,
        "origin": "" if origin is None else f"{origin.destination}@{origin.sequence}",
        "why": "" if origin is None else origin.reason,
        "body": shown_body(message),
    }
