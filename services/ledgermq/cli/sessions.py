"""`ledgermq session list`: who has which session open, and what it holds."""

from __future__ import annotations

from dataclasses import asdict

import click

from ledgermq.cli.output import Column, Output
from ledgermq.cli.target import Target, target_options

__all__ = ["session"]

COLUMNS = (
    Column(key="session", heading="SESSION", number=True),
    Column(key="acknowledge_mode", heading="MODE"),
    Column(key="state", heading="STATE"),
    Column(key="consumers", heading="CONSUMERS", number=True),
    Column(key="consumers_paused", heading="PAUSED", number=True),
    Column(key="consumers_in_doubt", heading="IN DOUBT", number=True),
    Column(key="in_flight", heading="IN FLIGHT", number=True),
    Column(key="open_puts", heading="OPEN PUTS", number=True),
    Column(key="last_sequence", heading="OPERATIONS", number=True),
    Column(key="client_id", heading="CLIENT ID"),
    Column(key="connection", heading="CONNECTION"),
)
# Left out for people where no session has them.
DETAILS = ("consumers_paused", "consumers_in_doubt", "client_id")


@click.group()
def session() -> None:
    """Look at sessions."""


@session.command("list")
@target_options
def list_sessions(target: Target, output: Output) -> int:
    """List the open sessions; a session's number is the log position of its Open."""
    with target.connect() as connection:
        own = connection.identity
        found = [asdict(one) for one in connection.admin.sessions() if one.connection != own]
    if output.as_json:
        output.document(found)
        return 0
    rows = [{**one, "state": "suspected" if one["suspected"] else "alive"} for one in found]
    caption = "" if rows else "no sessions but our own"
    output.table(output.telling(COLUMNS, rows, DETAILS), rows, caption=caption)
    return 0
