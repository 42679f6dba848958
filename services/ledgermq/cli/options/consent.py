"""Who asks for a change, why, and whether it is really wanted."""

from __future__ import annotations

import getpass
import sys
from collections.abc import Callable
from typing import Any

import click

reason_option = click.option("--reason", default="", help="Why; it is recorded on the log.")
actor_option = click.option(
    "--actor", help="Who does it, recorded on the log.  [default: your user name]"
)


def who_and_why(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command that changes others' work the options --reason, --actor and --yes."""
    for option in (
        click.option("--yes", is_flag=True, help="Do it; without this nothing is changed."),
        click.option(
            "--actor",
            default=getpass.getuser,
            help="Who does it, recorded on the log.  [default: your user name]",
        ),
        click.option("--reason", required=True, help="Why; it is recorded on the log."),
    ):
        command = option(command)
    return command


def confirm(what: str) -> None:
    """Ask whether to go on with what `what` says; where nobody can answer, --yes must be given.

    Raises:
        UsageError: Standard input is no terminal.
        Abort: The answer was no.
    """
    if not sys.stdin.isatty():
        raise click.UsageError(f"{what}: add --yes")
    click.confirm(f"{what}. Go on?", abort=True, err=True)
