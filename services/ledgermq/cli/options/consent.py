"""Who asks for a change, why, and whether it is really wanted."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

import click

from ledgermq.cli.options.together import Read, together
from ledgermq.cli.printing.output import plain
from ledgermq.client.admin.part import who_asks
from ledgermq.errors import LedgerMQError
from ledgermq.protocol.limits import ACTOR_CHARACTERS_MAX, DESCRIPTION_CHARACTERS_MAX

if TYPE_CHECKING:
    from rich.progress import Progress

ACTOR_HELP: Final = "Who does it; recorded on the log.  [default: your user name]"


def _of_at_most(characters: int, least: int, text: str) -> str:
    """What the queue manager takes; a dry run, which asks for nothing, refuses the rest, too."""
    if not least <= len(text) <= characters:
        must = f"at most {characters}" if least == 0 else f"{least} to {characters}"
        raise ValueError(f"it has {len(text):,} characters, must have {must}")
    return text


# Whether there must be one is asked where it is known; until then an empty one is none.
REASON: Final = Read("TEXT", partial(_of_at_most, DESCRIPTION_CHARACTERS_MAX, 0))
ACTOR: Final = Read("NAME", partial(_of_at_most, ACTOR_CHARACTERS_MAX, 1))

reason_option = click.option(
    "--reason",
    type=REASON,
    default="",
    help="Why it is done; recorded on the log. Required, unless --dry-run is given.",
)
actor_option = click.option("--actor", type=ACTOR, help=ACTOR_HELP)
dry_run_option = click.option(
    "--dry-run", is_flag=True, help="Only show which messages are meant, and change nothing."
)
yes_option = click.option(
    "--yes", is_flag=True, help="Do it without asking; required where no terminal can be asked."
)

who_and_why = together(
    click.option(
        "--reason",
        type=Read("TEXT", partial(_of_at_most, DESCRIPTION_CHARACTERS_MAX, 1)),
        required=True,
        help="Why it is done; recorded on the log.",
    ),
    click.option("--actor", type=ACTOR, default=who_asks, help=ACTOR_HELP),
    yes_option,
)


# Progress bars on the terminal: they draw over whatever else is written there.
_DRAWN: Final[list[Progress]] = []


class NotConfirmedError(LedgerMQError):
    """Somebody was asked whether to go on, and did not say yes."""

    code = "not-confirmed"


@contextlib.contextmanager
def drawn(bar: Progress) -> Iterator[None]:
    """Shows a progress bar, which makes way for each question that is asked meanwhile."""
    with bar:
        _DRAWN.append(bar)
        try:
            yield
        finally:
            _DRAWN.remove(bar)


@contextlib.contextmanager
def _undrawn() -> Iterator[None]:
    for bar in _DRAWN:
        bar.stop()
    try:
        yield
    finally:
        for bar in _DRAWN:
            bar.start()


def expect_answer(what: str) -> None:
    """See at once whether somebody can be asked later: where nobody can, --yes must be given.

    Raises:
        UsageError: Standard input is no terminal.
    """
    if not sys.stdin.isatty():
        raise click.UsageError(f"{what}: add --yes")


def confirm(what: str) -> None:
    """Ask whether to go on with what `what` says; standard output has nothing of it.

    Raises:
        UsageError: Standard input is no terminal.
        NotConfirmedError: The answer was not yes, or the input ended (Ctrl-D).
    """
    expect_answer(what)
    with _undrawn():
        click.echo(f"{plain(what)}. Go on? [y/N]: ", nl=False, err=True)
        answer = sys.stdin.readline()
    if not answer.endswith("\n"):
        click.echo(err=True)
    if answer.strip().lower() not in ("y", "yes"):
        raise NotConfirmedError("nothing was done: the question was not answered with yes")
