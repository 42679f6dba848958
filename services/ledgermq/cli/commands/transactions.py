"""`ledgermq txn`: which units of work are open, what they hold, and how to end one."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

import click

from ledgermq.cli.options.consent import confirm, who_and_why
from ledgermq.cli.options.once import OnceGroup
from ledgermq.cli.options.target import Target, target_options
from ledgermq.cli.options.together import LONG
from ledgermq.cli.printing.output import Column, Output, cell_text, headed
from ledgermq.protocol.documents.sessions import TransactionStatus

COLUMNS: Final = (
    Column(key="session", heading="SESSION", number=True),
    Column(key="began_at", heading="SINCE"),
    *headed("puts", "put_bytes", "gets", number=True),
    Column(key="client_id", heading="CLIENT ID", detail=True),
    Column(key="connection", heading="CONNECTION"),
)
PARTS: Final = (
    *headed("what", "destination"),
    *headed("messages", "bytes", number=True),
)


def totals(found: TransactionStatus) -> dict[str, int]:
    return {
        "puts": sum(one.messages for one in found.puts),
        "put_bytes": sum(one.bytes for one in found.puts),
        "gets": sum(one.messages for one in found.gets),
    }


@click.group(cls=OnceGroup)
def txn() -> None:
    """Look at open units of work, and end one."""


@txn.command("list")
@target_options
def list_transactions(target: Target, output: Output) -> None:
    """List the units of work that hold anything; each is named by its session."""
    with target.connect() as connection:
        found = connection.admin.transactions()
    rows = [{**asdict(one), **totals(one)} for one in found]
    caption = "" if rows else "no unit of work is open"
    output.table(COLUMNS, rows, caption=caption, document=[asdict(one) for one in found])


@txn.command()
@click.argument("session", type=LONG)
@target_options
def show(target: Target, output: Output, session: int) -> None:
    """Show what the unit of work of SESSION holds, destination by destination."""
    with target.connect() as connection:
        found = connection.admin.transaction(session)
    if output.for_people:
        output.remark(f"unit of work of session {session}, open since {cell_text(found.began_at)}")
    parts = [("put", found.puts), ("get", found.gets)]
    rows = [{"what": what, **asdict(one)} for what, held in parts for one in held]
    output.table(PARTS, rows, document=asdict(found))


@txn.command()
@click.argument("session", type=LONG)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Only show which puts would vanish and which gets would go back.",
)
@who_and_why
@target_options
def rollback(
    target: Target,
    output: Output,
    session: int,
    reason: str,
    actor: str,
    yes: bool,
    dry_run: bool,
) -> None:
    """Roll back the unit of work of SESSION: its puts vanish, its gets go back."""
    with target.connect() as connection:
        held = totals(connection.admin.transaction(session))
        told = f"puts that vanish: {held['puts']}, gets that go back: {held['gets']}"
        if not dry_run and not yes:
            confirm(f"this would roll back session {session} ({told})")
        document: dict[str, Any] = {"session": session, **held, "rolled_back": not dry_run}
        if dry_run:
            output.done(f"session {session} would be rolled back: {told}", document)
            return
        document["position"] = connection.admin.rollback_transaction(
            session, reason=reason, actor=actor
        )
    output.done(f"unit of work of session {session} rolled back: {told}", document)
