"""Who asks for a change, why, and whether it is really wanted."""

from __future__ import annotations

import getpass
import sys
from typing import Final

import click

from ledgermq.cli.options.together import together

ACTOR_HELP: Final = "Who does it; recorded on the log.  [default: your user name]"

reason_option = click.option(
    "--reason",
    metavar="TEXT",
    default="",
    help="Why it is done; recorded on the log. Required, unless --dry-run is given.",
)
actor_option = click.option("--actor", metavar="NAME", help=ACTOR_HELP)
dry_run_option = click.option(
    "--dry-run", is_flag=True, help="Only show which messages are meant, and change nothing."
)
yes_option = click.option(
    "--yes", is_flag=True, help="Do it without asking; required where no terminal can be asked."
)

who_and_why = together(
    click.option(
        "--reason",
        metavar="TEXT",
        required=True,
        help="Why it is done; recorded on the log.",
    ),
    click.option("--actor", metavar="NAME", default=getpass.getuser, help=ACTOR_HELP),
    click.option("--yes", is_flag=True, help="Do it; without --yes nothing is changed."),
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
