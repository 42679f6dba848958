"""`ledgermq queue`: create, list, look at, alter, suspend, resume and delete queues."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from ledgermq.cli.commands.messages import move
from ledgermq.cli.options.chosen_messages import PURGE, carry_out, purge_options
from ledgermq.cli.options.consent import yes_option
from ledgermq.cli.options.destinations import common_prefix, name_argument, patterns_argument
from ledgermq.cli.options.once import OnceGroup
from ledgermq.cli.options.setting_options import given_options, setting_options
from ledgermq.cli.options.target import Target, target_options
from ledgermq.cli.printing.deleting import confirm_deletion, tell_dry_run, why_queue_stays
from ledgermq.cli.printing.exits import OK
from ledgermq.cli.printing.listing import Listing, listing_options
from ledgermq.cli.printing.output import Column, Output, cell_text, count_of, headed
from ledgermq.cli.printing.screens import (
    ADDS_UP,
    LIST_COLUMNS,
    blocked_text,
    list_row,
    screen,
    screen_document,
    state_rows,
    status_document,
    with_iso_times,
)
from ledgermq.cli.printing.statuses import done, print_list, print_status
from ledgermq.protocol.documents.destinations import QueueStatus

STATE_COLUMNS = (
    Column(key="state", heading="STATE", whole=True),
    *headed("messages", "bytes", number=True),
)

OBSTACLE_COLUMNS = (
    Column(key="cause", heading="CAUSE", whole=True),
    Column(key="messages", heading="MESSAGES", number=True),
    *headed("session", "consumer", number=True, detail=True),
    Column(key="why", heading="WHY"),
)


@click.group(cls=OnceGroup)
def queue() -> None:
    """Create, list, look at, alter and delete queues."""


@queue.command()
@name_argument("queue")
@click.option(
    "--group-affinity",
    is_flag=True,
    help="Deliver all messages of a group to one consumer, as long as that is open.",
)
@setting_options
@target_options
def create(target: Target, output: Output, name: str, **settings: Any) -> None:
    """Create queue NAME; refused if there is one.

    A setting that is not given has its default.
    """
    with target.connect() as connection:
        position = connection.admin.create_queue(name, **settings)
    done(output, "queue", name, "created", position)


@queue.command("list")
@patterns_argument("queue")
@listing_options(QueueStatus, LIST_COLUMNS)
@target_options
def list_queues(
    target: Target, output: Output, patterns: tuple[str, ...], listing: Listing
) -> None:
    """List the queues, with how many messages they hold, in which states, and their consumers.

    PATTERNS such as 'orders.*' choose those with such names: * is anything, ? one character.
    """
    with target.connect() as connection:
        listed = connection.admin.list_queues(prefix=common_prefix(patterns))
    found = [list_row(status_document(status)) for status in listed]
    print_list(
        target, output, found, listing, sums=ADDS_UP, nothing="no queues yet", patterns=patterns
    )


@queue.command()
@name_argument("queue")
@click.option("--states", is_flag=True, help="Print messages and bytes by state instead.")
@target_options
def stat(target: Target, output: Output, name: str, states: bool) -> None:
    """Print the status screen of queue NAME: nine lines, times in UTC as MMDDYYYY:HH:MM:SS.

    With --json the labels become keys in snake case, and times are ISO 8601. --states shows what
    is in flight: how many messages and bytes are in which state, and the most there ever were.
    """
    with target.connect() as connection:
        status = status_document(connection.admin.queue_status(name))
    if states:
        rows = state_rows(status, indented=not output.as_json)
        highest = {"messages": status["messages_high"], "bytes": status["bytes_high"]}
        rows.append({"state": "highest ever", **highest})
        blocked = blocked_text(with_iso_times(status)["blocked"])
        caption = f"at {target.named(status['position'])}: {ADDS_UP}; held up: {blocked}"
        output.table(STATE_COLUMNS, rows, caption=caption)
    elif output.as_json:
        output.document(screen_document(status))
    else:
        click.echo(screen(status))


@queue.command()
@name_argument("queue")
@target_options
def show(target: Target, output: Output, name: str) -> None:
    """Show everything about queue NAME, and the log position it is true at."""
    with target.connect() as connection:
        status = status_document(connection.admin.queue_status(name))
    print_status(target, output, status, sums=ADDS_UP)


@queue.command()
@name_argument("queue")
@target_options
def why(target: Target, output: Output, name: str) -> None:
    """Say why messages of queue NAME are not delivered, and why its consumers get none.

    Everything that can be delivered has been at the log position it names: what is still there has
    a reason, and so has each consumer that gets nothing.
    """
    with target.connect() as connection:
        found = connection.admin.queue_obstacles(name)
    document = asdict(found) | {"summary": found.summary}
    rows = []
    for listed, one in zip(document["obstacles"], found.obstacles, strict=True):
        listed["text"] = one.text
        listed["group_id"] = None if one.group_id is None else one.group_id.hex()
        # As text: session 0 is one too, and a column that holds nothing but zeros is left out.
        told = {key: cell_text(listed[key]) for key in ("session", "consumer")}
        rows.append({**listed, **told, "why": one.text})
    output.remark(found.summary)
    caption = f"at {target.named(found.position)}"
    output.table(OBSTACLE_COLUMNS, rows, caption=caption, document=document)
    if found.more:
        output.remark(f"there are more: these are the first {len(rows)}")


@queue.command()
@name_argument("queue")
@click.option(
    "--group-affinity/--no-group-affinity",
    default=None,
    help="Whether all messages of a group are delivered to one consumer, as long as that is open.",
)
@click.option(
    "--gets-disabled/--gets-enabled",
    default=None,
    help="Whether it takes messages and delivers none; `queue suspend` and `queue resume` do the "
    "same.",
)
@setting_options
@target_options
def alter(target: Target, output: Output, name: str, **settings: Any) -> None:
    """Change settings of queue NAME; what is not given stays as it is."""
    settings = given_options(settings)
    with target.connect() as connection:
        position = connection.admin.alter_queue(name, **settings)
    done(output, "queue", name, "altered", position)


@queue.command()
@name_argument("queue")
@target_options
def suspend(target: Target, output: Output, name: str) -> None:
    """Disable the gets of queue NAME: it takes messages and delivers none."""
    _set_gets(target, output, name, disabled=True)


@queue.command()
@name_argument("queue")
@target_options
def resume(target: Target, output: Output, name: str) -> None:
    """Enable the gets of queue NAME: it delivers again."""
    _set_gets(target, output, name, disabled=False)


def _set_gets(target: Target, output: Output, name: str, *, disabled: bool) -> None:
    with target.connect() as connection:
        position = connection.admin.alter_queue(name, gets_disabled=disabled)
    document = {"queue": name, "gets_disabled": disabled, "position": position}
    output.done(f"gets of queue {name} {'disabled' if disabled else 'enabled'}", document)


@queue.command()
@name_argument("queue")
@click.option("--purge", is_flag=True, help="Delete it although it holds messages; they are lost.")
@click.option("--dry-run", is_flag=True, help="Only show how many messages would be lost.")
@yes_option
@target_options
def delete(target: Target, output: Output, name: str, purge: bool, dry_run: bool, yes: bool) -> int:
    """Delete queue NAME, which no session may be using.

    Without --purge it must also be empty.
    """
    what = f"queue {name}"
    with target.connect() as connection:
        if dry_run or (purge and not yes):
            status = connection.admin.queue_status(name)
            lost = count_of(status.message_count, "message")
            if dry_run:
                held = {"queue": name, "messages": status.message_count}
                refused = why_queue_stays(connection.admin, status, purge=purge)
                return tell_dry_run(output, what, lost, held, refused)
            confirm_deletion(what, lost)
        position = connection.admin.delete_queue(name, purge=purge)
    done(output, "queue", name, "deleted", position)
    return OK


@queue.command()
@click.argument("name")
@purge_options
@target_options
def purge(target: Target, output: Output, name: str, **options: Any) -> None:
    """Remove the messages of queue NAME that no consumer holds.

    NAME may also be topic:NAME, with --subscription. `ledgermq msg delete` removes single messages
    by their sequence numbers.
    """
    carry_out(target, output, PURGE, name, options)


queue.add_command(move)
