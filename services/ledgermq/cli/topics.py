"""`ledgermq topic`: create, list, look at, alter and delete topics."""

from __future__ import annotations

from typing import Any, Final

import click

from ledgermq.cli.destinations import without_kind
from ledgermq.cli.output import Column, Output, count_of
from ledgermq.cli.screens import blocked_text, status_document, with_iso_times
from ledgermq.cli.setting_options import given_options, setting_options, shown_settings
from ledgermq.cli.target import Target, target_options

__all__ = ["topic"]

ADDS_UP: Final = "next sequence = sent and committed + expired + moved + dropped + message count"

COLUMNS: Final = (
    Column(key="name", heading="NAME"),
    Column(key="subscriptions", heading="SUBSCR", number=True),
    Column(key="receivers", heading="RECEIVERS", number=True),
    Column(key="message_count", heading="MESSAGES", number=True),
    Column(key="message_bytes", heading="BYTES", number=True),
    Column(key="uncommitted_puts", heading="UNCOM PUT", number=True),
    Column(key="sent_and_committed", heading="SENT", number=True),
    Column(key="dropped", heading="DROPPED", number=True),
    Column(key="min_sequence", heading="MIN SEQ", number=True),
    Column(key="max_sequence", heading="MAX SEQ", number=True),
)
# Left out for people where no row has them.
_DETAILS: Final = ("uncommitted_puts",)


@click.group()
def topic() -> None:
    """Create, list, look at, alter and delete topics."""


@topic.command()
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
    help="How many unsettled messages of a subscription a session may hold; 0: any number.",
)
@setting_options
@target_options
def create(target: Target, output: Output, name: str, **settings: Any) -> int:
    """Create topic NAME."""
    name = without_kind(name, "topic")
    with target.connect() as connection:
        position = connection.admin.create_topic(name, **settings)
    output.done(f"topic {name} created", {"topic": name, "created": True, "position": position})
    return 0


@topic.command()
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
    help="How many unsettled messages of a subscription a session may hold; 0: any number.",
)
@setting_options
@target_options
def alter(target: Target, output: Output, name: str, **settings: Any) -> int:
    """Change settings of topic NAME and its subscriptions; what is not given stays as it is."""
    name = without_kind(name, "topic")
    settings = given_options(settings)
    with target.connect() as connection:
        position = connection.admin.alter_topic(name, **settings)
    output.done(f"topic {name} altered", {"topic": name, "altered": True, "position": position})
    return 0


@topic.command("list")
@target_options
def list_topics(target: Target, output: Output) -> int:
    """List the topics with their figures; `subscription list` has those of each subscription."""
    with target.connect() as connection:
        found = [status_document(status) for status in connection.admin.topics()]
    if output.as_json:
        output.document([with_iso_times(status) for status in found])
        return 0
    where = f"at {target.named(found[0]['position'])}: {ADDS_UP}" if found else "no topics yet"
    output.table(output.telling(COLUMNS, found, _DETAILS), found, caption=where)
    return 0


@topic.command()
@click.argument("name")
@target_options
def stat(target: Target, output: Output, name: str) -> int:
    """Show everything about topic NAME, and the log position it is true at.

    A message counts while at least one subscription has it.
    """
    with target.connect() as connection:
        status = with_iso_times(status_document(connection.admin.topic(name)))
    labels = {key.replace("_", " "): value for key, value in status.items()}
    labels.update(shown_settings(labels.pop("settings")))
    labels["blocked"] = blocked_text(status["blocked"])
    labels["position"] = target.named(status["position"])
    output.fields(labels, document=status)
    if output.for_people:
        output.remark(click.style(ADDS_UP, dim=True))
    return 0


@topic.command()
@click.argument("name")
@click.option("--purge", is_flag=True, help="Delete it with its durable subscriptions.")
@click.option("--dry-run", is_flag=True, help="Only say what would go.")
@click.option("--yes", is_flag=True, help="With --purge: do it.")
@target_options
def delete(target: Target, output: Output, name: str, purge: bool, dry_run: bool, yes: bool) -> int:
    """Delete topic NAME, which nobody may be using.

    Without --purge it must have no durable subscriptions either; with it they go, and what they
    hold.
    """
    name = without_kind(name, "topic")
    with target.connect() as connection:
        if dry_run or (purge and not yes):
            status = connection.admin.topic(name)
            lost = f"{count_of(status.subscriptions, 'subscription')} and "
            lost += count_of(status.message_count, "message")
            if not dry_run:
                raise click.UsageError(f"this would delete {name} with {lost}: add --yes")
            output.done(
                f"topic {name} would be deleted with {lost}",
                {
                    "topic": name,
                    "subscriptions": status.subscriptions,
                    "messages": status.message_count,
                    "deleted": False,
                },
            )
            return 0
        position = connection.admin.delete_topic(name, purge=purge)
    output.done(f"topic {name} deleted", {"topic": name, "deleted": True, "position": position})
    return 0


topic.add_command(stat, "show")
