"""The options that say which messages of the journal are meant."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from ledgermq.cli.options.bodies import selector_option
from ledgermq.cli.options.destinations import valid_destination
from ledgermq.cli.options.moments import MESSAGE_ID, TIME_EXPLAINED
from ledgermq.cli.options.target import Target
from ledgermq.cli.options.together import DIRECTORY, Read, together
from ledgermq.selector import SelectorError, parse_selector

if TYPE_CHECKING:
    from ledgermq_spark.journal.choice import Choice


def _instant(text: str) -> datetime:
    from ledgermq_spark.log.positions import instant_of

    try:
        return instant_of(text)
    except ValueError:
        raise ValueError(f"{text!r} is no time: write 2026-11-20T10:00:00Z") from None


_INSTANT: Final = Read("TIME", _instant, TIME_EXPLAINED)
directory_option = click.option(
    "--directory",
    type=DIRECTORY,
    envvar="LEDGERMQ_JOURNAL_DIRECTORY",
    show_envvar=True,
    help="Directory of the journal's backups.  [default: journal, in the data directory]",
)
# Of what is put again.
ids_option = click.option(
    "--id",
    "message_ids",
    type=MESSAGE_ID,
    multiple=True,
    help="Only the message with this id, 32 hexadecimal digits. May be repeated.",
)
ungrouped_option = click.option(
    "--ungrouped", is_flag=True, help="Put copies without the group of their originals."
)
choice_options: Final = together(
    click.option(
        "--from",
        "source",
        type=click.Choice(("archive", "log", "both")),
        default="both",
        show_default=True,
        help="Where to look. archive: in the backups; log: in the journal as it is now.",
    ),
    directory_option,
    click.option(
        "--queue", metavar="NAME", help="Only messages put to this queue, or to topic:NAME."
    ),
    click.option("--since", type=_INSTANT, help="Only messages enqueued at that time or later."),
    click.option("--until", type=_INSTANT, help="Only messages enqueued before that time."),
    selector_option,
)


def backups_directory(target: Target, given: Path | None) -> Path:
    """Where backups are (DB-17)."""
    return given or target.data_directory / "journal"


def choice_from(options: dict[str, Any], limit: int) -> Choice:
    """What the options choose.

    Raises:
        UsageError: a value that cannot be.
        InvalidDestinationError: no queue or topic can have that name.
    """
    from ledgermq_spark.journal.choice import Choice

    queue = options["queue"]
    selector = checked_selector(options["selector"])
    since, until = options["since"], options["until"]
    if since is not None and until is not None and until <= since:
        raise click.UsageError("--until is not after --since: nothing was enqueued between them")
    return Choice(
        message_ids=options.get("message_ids", ()),
        destination="" if queue is None else valid_destination(queue),
        since=since,
        until=until,
        selector=selector,
        limit=limit,
    )


def checked_selector(selector: str) -> str:
    """A selector that can be read; UsageError says where it cannot."""
    try:
        parse_selector(selector)
    except SelectorError as error:
        raise click.UsageError(f"--selector: {error}") from None
    return selector
