"""`ledgermq log tail` prints the entries of the operations log as they stand there."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from dataclasses import fields
from datetime import datetime
from typing import Any, Final

import click
from confluent_kafka import Message

from ledgermq.cli.options.moments import MOMENT, position_at
from ledgermq.cli.options.once import OnceCommand
from ledgermq.cli.options.target import Target, target_options
from ledgermq.cli.options.together import LONG, Count
from ledgermq.cli.printing.output import Output, json_text, plain
from ledgermq.protocol import administration, operations
from ledgermq.protocol.instants import iso_time
from ledgermq.protocol.operations import Open, Operation, SessionOperation
from ledgermq.wire.framing.codec import decode_operation, kinds_in

LAST_DEFAULT: Final = 20
LOOK_SECONDS: Final = 0.25
KINDS: Final = sorted(
    kind.__name__
    for module in (operations, administration)
    for kind in kinds_in(module, Operation)
    if kind not in (Operation, SessionOperation)
)
# Every entry of a session has them; they say nothing of what it asks for.
OF_EVERY_ENTRY: Final = {field.name for field in fields(SessionOperation)}


@click.command(cls=OnceCommand)
@click.option("--from", "since", type=MOMENT, help="Begin at this position or time.")
@click.option(
    "--last",
    type=Count(min=0),
    help=f"Begin so many positions before the end of the log.  [default: {LAST_DEFAULT}]",
)
@click.option("--follow", "-f", is_flag=True, help="Go on with what is appended, until Ctrl-C.")
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    type=click.Choice(KINDS, case_sensitive=False),
    metavar="NAME",
    help="Only entries of this kind, as Put or Commit; if repeated, of any of these.",
)
@click.option("--session", type=LONG, help="Only entries of this session.")
@click.option(
    "--grep", metavar="TEXT", help="Only entries whose line of --json has this text in it."
)
@target_options
def tail(
    target: Target,
    output: Output,
    since: Any,
    last: int | None,
    follow: bool,
    kinds: tuple[str, ...],
    session: int | None,
    grep: str | None,
) -> None:
    """Print entries of the operations log: all that was asked for, in the order that counts.

    With --json each is a line of JSON. Contents of messages are left out (`ledgermq msg show`).
    What came of an entry, accepted or refused, is in `ledgermq trace` and `ledgermq sql`.
    """
    if since is not None and last is not None:
        raise click.UsageError("--from and --last both say where to begin: leave one of them out")
    for record in _records(target, since, LAST_DEFAULT if last is None else last, follow=follow):
        operation = decode_operation(record.value())
        if kinds and type(operation).__name__ not in kinds:
            continue
        document = entry_document(record, operation)
        if session is not None and document.get("session") != session:
            continue
        line = json_text(document) if output.as_json or grep is not None else ""
        if grep is not None and grep not in line:
            continue
        if output.as_json:
            click.echo(line)
        else:
            _print(output, document, operation)


def _records(target: Target, since: Any, last: int, *, follow: bool) -> Iterator[Message]:
    claim = target.claim()
    topic = target.topics.operations
    with target.reader() as reader:
        begins, end = reader.ends(topic, claim.partition)
        position = max(begins, end - last)
        if since is not None:
            is_time = isinstance(since, datetime)
            position = position_at(target, since, before=is_time) + is_time
        while True:
            yield from reader.records(topic, claim.partition, position, end)
            position = max(position, end)
            if not follow:
                return
            while end <= position:
                time.sleep(LOOK_SECONDS)
                _, end = reader.ends(topic, claim.partition)


def entry_document(record: Message, operation: Operation) -> dict[str, Any]:
    """An entry as `--json` prints it: where and when, its kind, and its fields."""
    position = record.offset() or 0
    _, time_ms = record.timestamp()
    document: dict[str, Any] = {
        "position": position,
        "time": iso_time(time_ms * 1_000, precision="milliseconds"),
        "kind": type(operation).__name__,
    }
    if isinstance(operation, Open):
        document["session"] = position
    named = {field.name: _readable(getattr(operation, field.name)) for field in fields(operation)}
    return document | named


def _readable(value: Any) -> Any:
    """A value of an entry: ids in hexadecimal, of contents the size alone."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dict):
        shown = {name: _readable(one) for name, one in value.items() if name != "content"}
        if "content" in value:
            shown["content_bytes"] = len(value["content"])
        return shown
    if isinstance(value, list):
        return [_readable(one) for one in value]
    return value


def _said(value: Any) -> Any:
    """A value without the fields that were left open."""
    if isinstance(value, dict):
        return {name: _said(one) for name, one in value.items() if one is not None}
    return [_said(one) for one in value] if isinstance(value, list) else value


def _print(output: Output, document: dict[str, Any], operation: Operation) -> None:
    """For people a line each, with the fields that say something."""
    session = document.get("session")
    asked = " ".join(
        f"{field.name}={json_text(_said(document[field.name]))}"
        for field in fields(operation)
        if field.name not in OF_EVERY_ENTRY
        and getattr(operation, field.name) not in (None, [], field.default)
    )
    whose = "" if session is None else f"session {session}"
    head = f"{document['position']:>10}  {document['time']}  {document['kind']:<16}  {whose:<16}"
    line = plain(f"{head}  {asked}").rstrip()
    click.echo(line[: shutil.get_terminal_size().columns] if output.for_people else line)
