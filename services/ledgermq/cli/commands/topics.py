"""`ledgermq topic`: create, list, look at, alter and delete topics."""

from __future__ import annotations

from typing import Any, Final

import click

from ledgermq.cli.options.consent import yes_option
from ledgermq.cli.options.destinations import common_prefix, name_argument, patterns_argument
from ledgermq.cli.options.once import OnceGroup, called
from ledgermq.cli.options.setting_options import given_options, setting_options
from ledgermq.cli.options.target import Target, target_options
from ledgermq.cli.printing.deleting import confirm_deletion, tell_dry_run, why_topic_stays
from ledgermq.cli.printing.exits import OK
from ledgermq.cli.printing.listing import Listing, listing_options
from ledgermq.cli.printing.output import Column, Output, count_of, headed
from ledgermq.cli.printing.screens import status_document
from ledgermq.cli.printing.statuses import done, print_list, print_status
from ledgermq.protocol.documents.destinations import TopicStatus

ADDS_UP: Final = (
    "next sequence = sent and committed + expired + displaced + moved + dropped + message count"
)

COLUMNS: Final = (
    Column(key="name", heading="NAME"),
    Column(key="subscriptions", heading="SUBSCR", number=True),
    Column(key="receivers", heading="RECEIVERS", number=True),
    Column(key="message_count", heading="MESSAGES", number=True),
    Column(key="message_bytes", heading="BYTES", number=True),
    Column(key="uncommitted_puts", heading="UNCOM PUT", number=True, detail=True),
    Column(key="sent_and_committed", heading="SENT", number=True),
    *headed("expired", "displaced", "moved", number=True, detail=True),
    Column(key="dropped", heading="DROPPED", number=True),
    Column(key="min_sequence", heading="MIN SEQ", number=True),
    Column(key="max_sequence", heading="MAX SEQ", number=True),
)


@click.group(cls=OnceGroup)
def topic() -> None:
    """Create, list, look at, alter and delete topics."""


@topic.command()
@name_argument("topic")
@click.option(
    "--moves-unrouted",
    is_flag=True,
    help="Messages that no subscription wants go to the error destination; else they are dropped.",
)
@setting_options
@target_options
def create(target: Target, output: Output, name: str, **settings: Any) -> None:
    """Create topic NAME; refused if there is one.

    A setting that is not given has its default.
    """
    with target.connect() as connection:
        position = connection.admin.create_topic(name, **settings)
    done(output, "topic", name, "created", position)


@topic.command()
@name_argument("topic")
@click.option(
    "--moves-unrouted/--no-moves-unrouted",
    default=None,
    help="Whether messages that no subscription wants go to the error destination.",
)
@setting_options
@target_options
def alter(target: Target, output: Output, name: str, **settings: Any) -> None:
    """Change settings of topic NAME and its subscriptions; what is not given stays as it is."""
    settings = given_options(settings)
    with target.connect() as connection:
        position = connection.admin.alter_topic(name, **settings)
    done(output, "topic", name, "altered", position)


@topic.command("list")
@patterns_argument("topic")
@listing_options(TopicStatus, COLUMNS)
@target_options
def list_topics(
    target: Target, output: Output, patterns: tuple[str, ...], listing: Listing
) -> None:
    """List the topics with their figures; `subscription list` has those of each subscription.

    PATTERNS such as 'prices.*' choose those with such names: * is anything, ? one character.
    """
    with target.connect() as connection:
        listed = connection.admin.topics(prefix=common_prefix(patterns))
    found = [status_document(status) for status in listed]
    print_list(
        target, output, found, listing, sums=ADDS_UP, nothing="no topics yet", patterns=patterns
    )


@topic.command()
@name_argument("topic")
@target_options
def show(target: Target, output: Output, name: str) -> None:
    """Show everything about topic NAME, and the log position it is true at.

    A message counts while at least one subscription has it.
    """
    with target.connect() as connection:
        status = status_document(connection.admin.topic(name))
    print_status(target, output, status, sums=ADDS_UP)


@topic.command()
@name_argument("topic")
@click.option(
    "--purge",
    is_flag=True,
    help="Delete it with its durable subscriptions; their messages are lost.",
)
@click.option("--dry-run", is_flag=True, help="Only show what would be lost.")
@yes_option
@target_options
def delete(target: Target, output: Output, name: str, purge: bool, dry_run: bool, yes: bool) -> int:
    """Delete topic NAME, which no session may be using.

    Without --purge it must also have no durable subscriptions.
    """
    what = f"topic {name}"
    with target.connect() as connection:
        if dry_run or (purge and not yes):
            status = connection.admin.topic(name)
            lost = f"{count_of(status.subscriptions, 'subscription')} and "
            lost += count_of(status.message_count, "message")
            if dry_run:
                held = {"subscriptions": status.subscriptions, "messages": status.message_count}
                refused = why_topic_stays(connection.admin, status, purge=purge)
                return tell_dry_run(output, what, lost, {"topic": name, **held}, refused)
            confirm_deletion(what, lost)
        position = connection.admin.delete_topic(name, purge=purge)
    done(output, "topic", name, "deleted", position)
    return OK


# A status screen, as `queue stat` prints one, is there for queues alone (SEQ-13).
topic.add_command(called(show, "The same as `topic show`."), "stat")
