"""`ledgermq subscription`: lists the subscriptions of topics, and deletes durable ones."""

from __future__ import annotations

from typing import Final

import click

from ledgermq.cli.options.consent import yes_option
from ledgermq.cli.options.once import OnceGroup
from ledgermq.cli.options.target import Target, target_options
from ledgermq.cli.printing.deleting import (
    confirm_deletion,
    tell_dry_run,
    why_subscription_stays,
)
from ledgermq.cli.printing.exits import OK
from ledgermq.cli.printing.listing import Listing, listing_options
from ledgermq.cli.printing.output import Column, Output, count_of, headed
from ledgermq.cli.printing.screens import status_document
from ledgermq.cli.printing.statuses import print_list
from ledgermq.client.connection import Connection
from ledgermq.protocol.documents.destinations import SubscriptionStatus

ADDS_UP: Final = (
    "added = current + pending + sent + expired + displaced + removed + moved + dropped"
)

COLUMNS: Final = (
    *headed("topic", "name"),
    Column(key="kind", heading="KIND", whole=True),
    Column(key="shared", heading="SHARED"),
    Column(key="client_id", heading="CLIENT ID", detail=True),
    *headed("receivers", "current", number=True),
    Column(key="pending", heading="PENDING", number=True, detail=True),
    Column(key="added", heading="ADDED", number=True),
    Column(key="sent_and_committed", heading="SENT", number=True),
    *headed("expired", "displaced", number=True, detail=True),
    Column(key="removed_by_administration", heading="REMOVED", number=True, detail=True),
    *headed("moved", "dropped", number=True, detail=True),
    Column(key="no_local", heading="NO LOCAL", detail=True),
    Column(key="selector", heading="SELECTOR", cut=True, detail=True),
)


@click.group(cls=OnceGroup)
def subscription() -> None:
    """List subscriptions, and delete durable ones."""


@subscription.command("list")
@click.option("--topic", metavar="NAME", help="Only the subscriptions of this topic.")
@listing_options(SubscriptionStatus, COLUMNS)
@target_options
def list_subscriptions(target: Target, output: Output, topic: str | None, listing: Listing) -> None:
    """List the subscriptions by topic, with what each holds."""
    with target.connect() as connection:
        if topic is not None:
            connection.admin.topic(topic)  # a topic that is not there is refused
        found = [status_document(status) for status in connection.admin.subscriptions(topic)]
    print_list(target, output, found, listing, sums=ADDS_UP, nothing="no subscriptions")


@subscription.command()
@click.argument("name")
@click.option(
    "--client-id",
    required=True,
    metavar="ID",
    help='Client id that the subscription belongs to; "" for a shared one that has none.',
)
@click.option("--dry-run", is_flag=True, help="Only show how many messages would be lost.")
@yes_option
@target_options
def delete(
    target: Target, output: Output, name: str, client_id: str, dry_run: bool, yes: bool
) -> int:
    """Delete durable subscription NAME, which no session may be using.

    The command connects with that client id, so no application may be connected with it.
    """
    what = f"subscription {name}" + (f" of client id {client_id}" if client_id else "")
    named = {"subscription": name, "client_id": client_id}
    with target.connect(client_id=client_id) as connection:
        status = _durable(connection, name, client_id)
        lost = count_of(0 if status is None else status.message_count, "message")
        if dry_run and status is not None:
            refused = why_subscription_stays(status)
            held = {**named, "messages": status.message_count}
            return tell_dry_run(output, what, lost, held, refused)
        if status is not None and status.message_count and not yes:
            confirm_deletion(what, lost)
        position = connection.admin.unsubscribe(name)
    output.done(f"{what} deleted", {**named, "deleted": True, "position": position})
    return OK


def _durable(connection: Connection, name: str, client_id: str) -> SubscriptionStatus | None:
    for one in connection.admin.subscriptions():
        if one.durable and (one.name, one.client_id) == (name, client_id):
            return one
    return None
