"""Who asks for a change, why, and whether it is really wanted."""

from __future__ import annotations

import getpass
import sys

import click

from ledgermq.cli.options.together import together

reason_option = click.option("--reason", default="", help="Why; it is recorded on the log.")
actor_option = click.option(
    "--actor", help="Who does it, recorded on the log.  [default: your user name]"
)


who_and_why = together(
    click.option("--reason", required=True, help="Why; it is recorded on the log."),
    click.option(
        "--actor",
        default=getpass.getuser,
        help="Who does it, recorded on the log.  [default: your user name]",
    ),
    click.option("--yes", is_flag=True, help="Do it; without this nothing is changed."),
)


def expect_answer(what: str) -> None:
    """See at once whether somebody can be asked later: where nobody can, --yes must be given.

    Raises:
        UsageError: Standard input is no terminal.
    """
    if not sys.stdin.isatty():
        raise click.UsageError(f"{what}: add --yes")


def confirm(what: str) -> None:
    """Ask whether to go on with what `what` says.

    Raises:
        UsageError: Standard input is no terminal.
        Abort: The answer was no.
    """
    expect_answer(what)
    click.confirm(f"{what}. Go on?", abort=True, err=True)
