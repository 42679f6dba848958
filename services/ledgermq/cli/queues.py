"""`ledgermq queue`: create, list, look at, alter, suspend, resume and delete queues."""

from __future__ import annotations

from typing import Any

import click

from ledgermq.cli.destinations import destination_from
from ledgermq.cli.handling import MOVE, PURGE, carry_out, handling_options
from ledgermq.cli.output import Column, Output, count_of
from ledgermq.cli.screens import (
    blocked_text,
    list_columns,
    list_row,
    screen,
    screen_document,
    state_rows,
    status_document,
    with_iso_times,
)
from ledgermq.cli.setting_options import given_options, setting_options, shown_settings
from ledgermq.cli.target import Target, target_options

__all__ = ["ADDS_UP", "queue"]

ADDS_UP = "current + pending = message count + uncommitted puts"

STATE_COLUMNS = (
    Column(key="state", heading="STATE", whole=True),
    Column(key="messages", heading="MESSAGES", number=True),
    Column(key="bytes", heading="BYTES", number=True),
)


@click.group()
def queue() -> None:
    """Create, list, look at, alter and delete queues."""


@queue.command()
@click.argument("name")
@click.option("--description", default="", help="Free text for people.")
@click.option(
    "--message-bytes-max",
    type=click.IntRange(min=0),
    default=0,
    help="Largest content of a message in bytes; 0: the limit of the log.",
)
@click.option(
    "--unacknowledged-max",
    type=click.IntRange(min=0),
    default=0,
    help="How many unsettled messages of it a session may hold; 0: any number.",
)
@click.option(
    "--group-affinity",
    is_flag=True,
    help="All messages of a group go to one consumer, while that is open.",
)
@setting_options
@target_options
def create(target: Target, output: Output, name: str, **settings: Any) -> int:
    """Create queue NAME."""
    with target.connect() as connection:
        position = connection.admin.create_queue(name, **settings)
    output.done(f"queue {name} created", {"queue": name, "created": True, "position": position})
    return 0


@queue.command("list")
@target_options
def list_queues(target: Target, output: Output) -> int:
    """List the queues with their figures."""
    with target.connect() as connection:
        found = [status_document(status) for status in connection.admin.list_queues()]
    if output.as_json:
        output.document([with_iso_times(status) for status in found])
        return 0
    where = f"at {target.named(found[0]['position'])}: {ADDS_UP}" if found else "no queues yet"
    rows = [list_row(status) for status in found]
    output.table(list_columns(rows, for_people=output.for_people), rows, caption=where)
    return 0


@queue.command()
@click.argument("name")
@click.option("--states", is_flag=True, help="Messages and bytes by state instead.")
@target_options
def stat(target: Target, output: Output, name: str, states: bool) -> int:
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
    return 0


@queue.command()
@click.argument("name")
@target_options
def show(target: Target, output: Output, name: str) -> int:
    """Show everything about queue NAME, and the log position it is true at."""
    with target.connect() as connection:
        status = with_iso_times(status_document(connection.admin.queue_status(name)))
    labels = {key.replace("_", " "): value for key, value in status.items()}
    labels.update(shown_settings(labels.pop("settings")))
    labels["blocked"] = blocked_text(status["blocked"])
    labels["position"] = target.named(status["position"])
    output.fields(labels, document=status)
    if output.for_people:
        output.remark(click.style(ADDS_UP, dim=True))
    return 0


@queue.command()
@click.argument("name")
@click.option("--description", help="Free text for people.")
@click.option(
    "--message-bytes-max",
    type=click.IntRange(min=0),
    help="Largest content of a message in bytes; 0: the limit of the log.",
)
@click.option(
    "--unacknowledged-max",
    type=click.IntRange(min=0),
    help="How many unsettled messages of it a session may hold; 0: any number.",
)
@click.option(
    "--group-affinity/--no-group-affinity",
    default=None,
    help="Whether all messages of a group go to one consumer, while that is open.",
)
@click.option(
    "--gets-disabled/--gets-enabled",
    default=None,
    help="Whether it takes messages and delivers none; as suspend and resume do.",
)
@setting_options
@target_options
def alter(target: Target, output: Output, name: str, **settings: Any) -> int:
    """Change settings of queue NAME; what is not given stays as it is."""
    settings = given_options(settings)
    with target.connect() as connection:
        position = connection.admin.alter_queue(name, **settings)
    output.done(f"queue {name} altered", {"queue": name, "altered": True, "position": position})
    return 0


@queue.command()
@click.argument("name")
@target_options
def suspend(target: Target, output: Output, name: str) -> int:
    """Disable the gets of queue NAME: it takes messages and delivers none."""
    with target.connect() as connection:
        position = connection.admin.suspend_queue(name)
    output.done(f"gets of queue {name} disabled", _switched(name, True, position))
    return 0


@queue.command()
@click.argument("name")
@target_options
def resume(target: Target, output: Output, name: str) -> int:
    """Enable the gets of queue NAME: it delivers again."""
    with target.connect() as connection:
        position = connection.admin.resume_queue(name)
    output.done(f"gets of queue {name} enabled", _switched(name, False, position))
    return 0


def _switched(name: str, gets_disabled: bool, position: int) -> dict[str, Any]:
    return {"queue": name, "gets_disabled": gets_disabled, "position": position}


@queue.command()
@click.argument("name")
@click.option("--purge", is_flag=True, help="Delete it with the messages that it still holds.")
@click.option("--dry-run", is_flag=True, help="Only say how many messages would go.")
@click.option("--yes", is_flag=True, help="With --purge: do it.")
@target_options
def delete(target: Target, output: Output, name: str, purge: bool, dry_run: bool, yes: bool) -> int:
    """Delete queue NAME, which nobody may be using and which, without --purge, must be empty."""
    with target.connect() as connection:
        if dry_run or (purge and not yes):
            count = connection.admin.queue_status(name).message_count
            messages = count_of(count, "message")
            if not dry_run:
                raise click.UsageError(f"this would delete {name} with {messages}: add --yes")
            output.done(
                f"queue {name} would be deleted with {messages}",
                {"queue": name, "messages": count, "deleted": False},
            )
            return 0
        position = connection.admin.delete_queue(name, purge=purge)
    output.done(f"queue {name} deleted", {"queue": name, "deleted": True, "position": position})
    return 0


@queue.command()
@click.argument("name")
@handling_options
@target_options
def purge(target: Target, output: Output, name: str, **options: Any) -> int:
    """Remove the messages of queue NAME that nobody holds (or topic:NAME, of a --subscription)."""
    if options["sequences"]:
        raise click.UsageError("a purge takes no numbers: use msg delete")
    return carry_out(target, output, PURGE, name, options)


@queue.command()
@click.argument("name")
@click.argument("destination")
@handling_options
@target_options
def move(target: Target, output: Output, name: str, destination: str, **options: Any) -> int:
    """Move the messages of queue NAME that nobody holds to DESTINATION."""
    return carry_out(target, output, MOVE, name, options, ":".join(destination_from(destination)))
