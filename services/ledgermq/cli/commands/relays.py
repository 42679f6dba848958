"""`ledgermq relay`: messages of a queue go to another queue manager, each exactly once."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Final

import click

from ledgermq.cli.options.consent import confirm, yes_option
from ledgermq.cli.options.destinations import queue_from, valid_destination
from ledgermq.cli.options.once import OnceGroup
from ledgermq.cli.options.stopping import stopped_by_signals
from ledgermq.cli.options.target import Target, target_options
from ledgermq.cli.printing.output import Column, Output, count_of, headed
from ledgermq.cli.printing.statuses import done
from ledgermq.client.connection import Connection
from ledgermq.errors import LedgerMQError, QueueNotFoundError
from ledgermq.errors.shown import shown
from ledgermq.protocol.documents.destinations import QueueStatus
from ledgermq.protocol.limits import OBJECT_NAME_CHARACTERS_MAX, is_name
from ledgermq.relay.definitions import PREFIX, Definition, definitions, find_definition, source_name
from ledgermq.relay.forwarding import Goal
from ledgermq.relay.queue_goal import QueueGoal
from ledgermq.relay.relaying import Relaying
from ledgermq.wire.topics.identity import log_identity

# What a name leaves room for in that of the queue of transfers.
RELAY_CHARACTERS_MAX: Final = OBJECT_NAME_CHARACTERS_MAX - len(PREFIX)
COLUMNS: Final = (
    Column(key="name", heading="NAME", whole=True),
    *headed("from", "to"),
    Column(key="waiting", heading="TRANSFERS WAITING", number=True),
    Column(key="moved", heading="TRANSFERS DONE", number=True),
    Column(key="runners", heading="RUNNERS", number=True),
)


@click.group(cls=OnceGroup)
def relay() -> None:
    """Relay messages of a queue to another queue manager, each exactly once."""


@relay.command()
@click.option(
    "--from",
    "from_",
    required=True,
    metavar="QUEUE@QM",
    help="Queue, and queue manager, whose messages are taken: queue:orders@QM1.",
)
@click.option(
    "--to",
    required=True,
    metavar="DESTINATION@QM",
    help="Queue or topic, and queue manager, to which they are put: queue:orders@QM2.",
)
@click.option("--name", metavar="NAME", help="Name of the relay.  [default: that of the queue]")
@click.option(
    "--to-bootstrap",
    default="",
    metavar="HOST:PORT",
    help="Address of the other queue manager's Kafka.  [default: the same Kafka]",
)
@click.option(
    "--to-topic-prefix",
    default="",
    metavar="PREFIX",
    help="Prefix of the log topics of the other queue manager.  [default: the same prefix]",
)
@target_options
def create(
    target: Target,
    output: Output,
    from_: str,
    to: str,
    name: str | None,
    to_bootstrap: str,
    to_topic_prefix: str,
) -> None:
    """Define a relay of a queue to another queue manager; `ledgermq relay run NAME` runs it."""
    place, at, queue_manager = from_.partition("@")
    queue = queue_from(place, why="relay a durable subscription's messages by a queue")
    if at and not queue_manager:
        raise click.UsageError(f"--from {from_} names no queue manager behind the @")
    if at:
        target = replace(target, queue_manager=queue_manager)
    goal, _, goal_manager = to.partition("@")
    if not goal_manager:
        raise click.UsageError("--to names the other queue manager too, as in queue:orders@QM2")
    found = Definition(
        name=name or queue,
        queue=queue,
        to=valid_destination(goal),
        queue_manager=goal_manager,
        bootstrap=to_bootstrap,
        topic_prefix=to_topic_prefix,
    )
    if not is_name(found.transfers):
        raise click.UsageError(
            f"{shown(found.name)} is no name of a relay: it has 1 to {RELAY_CHARACTERS_MAX} "
            "characters of A-Z a-z 0-9 . _ / % -; give it one with --name"
        )
    goal_target = _goal_target(target, found)
    goal_target.claim()
    if found.to in ("queue:" + queue, "queue:" + found.transfers) and _is_same(target, goal_target):
        raise click.UsageError(
            f"{found.to} on {goal_manager} is where this relay takes messages from: it would carry "
            "them in a circle without end"
        )
    with target.connect() as connection:
        position = found.create(connection)
    done(output, "relay", found.name, "created", position)


@relay.command("list")
@target_options
def list_relays(target: Target, output: Output) -> None:
    """List the relays of a queue manager."""
    with target.connect() as connection:
        rows = [_row(target, found, status) for found, status in definitions(connection)]
    output.table(COLUMNS, rows, caption="" if rows else "no relays yet")


@relay.command()
@click.argument("name")
@target_options
def show(target: Target, output: Output, name: str) -> None:
    """Show relay NAME: what waits here, and how far the other side has taken it."""
    with target.connect() as connection:
        found, status = find_definition(connection, name)
        row = _row(target, found, status)
        try:
            waiting = connection.admin.queue_status(found.queue).message_count
        except QueueNotFoundError:
            # The first message that is put to it makes it.
            waiting = 0
        row["messages waiting"] = waiting
        source = _source(target, connection, found)
        try:
            with _goal_target(target, found).connect() as other:
                taken = [one for one in other.admin.list_sources() if one.name == source]
        except LedgerMQError:
            # Who looks while the other side is away wants to know what waits here.
            output.fields(row)
            raise
        row["last transfer taken"] = max((one.taken for one in taken), default=None)
    output.fields(row)


@relay.command()
@click.argument("name")
@click.option(
    "--purge", is_flag=True, help="Delete it although transfers wait; their messages are lost."
)
@yes_option
@target_options
def delete(target: Target, output: Output, name: str, purge: bool, yes: bool) -> None:
    """Delete relay NAME; refused while transfers wait, unless --purge is given."""
    with target.connect() as connection:
        found, status = find_definition(connection, name)
        if purge and status.message_count and not yes:
            what = count_of(status.message_count, "transfer")
            confirm(f"this would delete {what} that no other queue manager has taken, with all in")
        position = connection.admin.delete_queue(found.transfers, purge=purge)
    done(output, "relay", name, "deleted", position)


@relay.command()
@click.argument("name")
@click.option(
    "--until-end",
    is_flag=True,
    help="Stop when all there is has been relayed. Without it the relay waits for more.",
)
@target_options
def run(target: Target, output: Output, name: str, until_end: bool) -> None:
    """Run relay NAME until Ctrl-C or SIGTERM.

    If it runs several times, one works and the others wait until that one ends.
    """
    with target.connect() as connection:
        found, _ = find_definition(connection, name)
    with stopped_by_signals(output) as stopping:
        way = Relaying(
            connect=target.connect,
            queue=found.queue,
            transfers=found.transfers,
            goal=partial(_goal, target, found),
            until_end=until_end,
            tell=output.remark,
            stopping=stopping,
        )
        way.run()
    where = f"{found.to} on {found.queue_manager}"
    text = f"{count_of(way.forwarded, 'message')} relayed to {where}"
    output.done(text, {"relay": name, "forwarded": way.forwarded})


@contextlib.contextmanager
def _goal(target: Target, found: Definition, connection: Connection) -> Iterator[Goal]:
    source = _source(target, connection, found)
    with _goal_target(target, found).connect() as other:
        yield QueueGoal(other, found.to, source, connection)


def _source(target: Target, connection: Connection, found: Definition) -> str:
    return source_name(
        connection, found.transfers, target.bootstrap, target.topics, target.timeout_seconds
    )


def _goal_target(target: Target, found: Definition) -> Target:
    return replace(
        target,
        queue_manager=found.queue_manager,
        broker=found.bootstrap or target.bootstrap,
        topic_prefix=found.topic_prefix or target.topic_prefix,
    )


def _is_same(one: Target, other: Target) -> bool:
    """Whether two are the same queue manager, by whatever address."""
    if one.queue_manager != other.queue_manager:
        return False
    first, second = (
        log_identity(each.bootstrap, each.topics.operations, each.timeout_seconds)
        for each in (one, other)
    )
    return first == second


def _row(target: Target, found: Definition, status: QueueStatus) -> dict[str, Any]:
    return {
        "name": found.name,
        "from": f"queue:{found.queue}@{target.queue_manager}",
        "to": f"{found.to}@{found.queue_manager}",
        "waiting": status.message_count,
        "moved": status.sent_and_committed,
        "runners": status.receivers,
    }
