"""`ledgermq session`: who has which session open, what it holds, why it gets nothing."""

from __future__ import annotations

from dataclasses import asdict

import click

from ledgermq.cli.options.consent import confirm, who_and_why
from ledgermq.cli.options.once import OnceGroup
from ledgermq.cli.options.target import Target, target_options
from ledgermq.cli.options.together import LONG
from ledgermq.cli.printing.output import Column, Output, headed

COLUMNS = (
    Column(key="session", heading="SESSION", number=True),
    Column(key="acknowledge_mode", heading="MODE"),
    Column(key="state", heading="STATE"),
    Column(key="consumers", heading="CONSUMERS", number=True),
    Column(key="consumers_paused", heading="PAUSED", number=True, detail=True),
    Column(key="consumers_in_doubt", heading="IN DOUBT", number=True, detail=True),
    *headed("in_flight", "open_puts", number=True),
    Column(key="unit_of_work_began_at", heading="IN WORK SINCE", detail=True),
    Column(key="last_sequence", heading="OPERATIONS", number=True),
    Column(key="client_id", heading="CLIENT ID", detail=True),
    Column(key="connection", heading="CONNECTION"),
)
CONSUMERS = (
    Column(key="consumer", heading="CONSUMER", number=True),
    *headed("destination", "state"),
    Column(key="consumer_priority", heading="PRIORITY", number=True, detail=True),
    *headed("credit", "in_flight", number=True),
    Column(key="why", heading="GETS NOTHING BECAUSE", detail=True),
    Column(key="selector", heading="SELECTOR", detail=True),
)


@click.group(cls=OnceGroup)
def session() -> None:
    """Look at sessions, and end one."""


@session.command("list")
@target_options
def list_sessions(target: Target, output: Output) -> None:
    """List the open sessions; a session's number is the log position of its Open."""
    with target.connect() as connection:
        own = connection.identity
        found = [asdict(one) for one in connection.admin.sessions() if one.connection != own]
    rows = [{**one, "state": "suspected" if one["suspected"] else "alive"} for one in found]
    caption = "" if rows else "no sessions but our own"
    output.table(COLUMNS, rows, caption=caption, document=found)


@session.command()
@click.argument("handle", metavar="SESSION", type=LONG)
@target_options
def show(target: Target, output: Output, handle: int) -> None:
    """Show SESSION: its consumers, what it holds, and why a consumer gets nothing."""
    with target.connect() as connection:
        found = connection.admin.session(handle)
    if output.as_json:
        output.document(asdict(found))
        return
    status = found.status
    fields = {
        "session": status.session,
        "connection": status.connection,
        "client id": status.client_id,
        "mode": status.acknowledge_mode,
        "state": "suspected" if status.suspected else "alive",
        "deadline": found.deadline,
        "in flight": status.in_flight,
        "open puts": status.open_puts,
        "in work since": status.unit_of_work_began_at,
        "unit of work ended by": found.unit_of_work_ended_by,
        "position": target.named(found.position),
    }
    output.fields(fields)
    rows = [
        {**asdict(one), "state": "open" if one.open else "closed", "why": ", ".join(one.paused)}
        for one in found.consumers
    ]
    output.table(CONSUMERS, rows)


@session.command()
@click.argument("handle", metavar="SESSION", type=LONG)
@who_and_why
@target_options
def end(target: Target, output: Output, handle: int, reason: str, actor: str, yes: bool) -> None:
    """End SESSION as if its client was lost: what it holds goes back, its puts vanish."""
    with target.connect() as connection:
        status = connection.admin.session(handle).status
        told = f"deliveries that go back: {status.in_flight}, open puts that vanish: "
        told += str(status.open_puts)
        if not yes:
            confirm(f"this would end session {handle} ({told})")
        position = connection.admin.end_session(handle, reason=reason, actor=actor)
    document = {"session": handle, "ended": True, "position": position}
    output.done(f"session {handle} ended: {told}", document)
