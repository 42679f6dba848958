"""What a replay is of: a stretch of the log, what of it, and where to; its name, its pace."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from ledgermq.cli.options.bodies import selector_option
from ledgermq.cli.options.chosen_messages import limit_option
from ledgermq.cli.options.destinations import DESTINATION, valid_destination
from ledgermq.cli.options.facts import moment_position
from ledgermq.cli.options.journal_choice import checked_selector, ids_option, ungrouped_option
from ledgermq.cli.options.moments import MOMENT
from ledgermq.cli.options.target import Target
from ledgermq.cli.options.together import DIRECTORY, Read, together
from ledgermq.protocol.limits import OBJECT_NAME_CHARACTERS_MAX, is_name

if TYPE_CHECKING:
    from ledgermq_spark.journal.choice import Choice

SAME: Final = "same"
# Whoever replays has this client id, with the replay's name: one at a time.
CLIENT_ID: Final = "ledgermq-replay/"
NAME_DIGITS: Final = 12
# At this pace a second between two originals is a quarter of an hour between their copies.
FACTOR_MIN: Final = 0.001
_PACE: Final = re.compile(r"(\d+(?:\.\d+)?)x", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayChoice:
    """Which messages are put again, and how.

    Attributes:
        first: Position of the first entry whose messages are meant; `last` that of the last one.
        sources: Destinations that they were put to; none: all.
        into: Where the copies go; None: each to where its original was put.
        factor: How many times as fast as the originals came; None: at full speed.
        limit: How many messages of the stretch are meant at most; 0: all.
        groups: Whether copies keep their places in groups.
        archive: What is read instead of the log.
    """

    first: int
    last: int
    sources: tuple[str, ...]
    choice: Choice
    into: str | None
    factor: float | None
    limit: int
    groups: bool
    name: str
    archive: Path | None = None

    @property
    def where(self) -> str:
        return self.into or "where each was put to"


def _target(text: str) -> str:
    return text if text == SAME else valid_destination(text)


def _pace(text: str) -> str | float:
    found = _PACE.fullmatch(text)
    if text not in ("full", "original") and (found is None or float(found[1]) < FACTOR_MIN):
        raise ValueError(
            f"{text!r} is no pace: write full, original, or a factor such as 2x, {FACTOR_MIN}x at "
            "the slowest"
        )
    return text if found is None else float(found[1])


def _name(text: str) -> str:
    if not text or not is_name(CLIENT_ID + text):
        most = OBJECT_NAME_CHARACTERS_MAX - len(CLIENT_ID)
        raise ValueError(f"{text!r} is no name: 1 to {most} characters of A-Z a-z 0-9 . _ / % -")
    return text


replay_options: Final = together(
    click.option(
        "--from",
        "since",
        type=MOMENT,
        required=True,
        help="The first position, or a time: what was put then or later.",
    ),
    click.option(
        "--to",
        "until",
        type=MOMENT,
        required=True,
        help="The last position, or a time: what was put by then.",
    ),
    click.option(
        "--source",
        "sources",
        type=DESTINATION,
        multiple=True,
        help="Only messages that were put to this destination. May be repeated.",
    ),
    selector_option,
    ids_option,
    limit_option,
    click.option(
        "--into",
        type=Read("DESTINATION|same", _target),
        required=True,
        help="Where the copies are put; same: where each original was put.",
    ),
    click.option(
        "--pace",
        type=Read("full|original|FACTOR", _pace),
        default="full",
        show_default=True,
        help="How fast copies are put. full: as fast as possible; original: at the intervals of "
        "the originals; a factor such as 2x or 0.5x: so many times as fast as those.",
    ),
    ungrouped_option,
    click.option(
        "--archive",
        type=DIRECTORY,
        help="Read this archive of the log instead of the log, after adding what is new to it: for "
        "what was cut off the log, or is damaged there.",
    ),
    click.option(
        "--name",
        type=Read("NAME", _name),
        help="Name of this replay. Under one name each message is put only once, however often "
        "the command is run; under another name it is put again.  [default: made of --from, --to, "
        "--source, --selector, --id and --into]",
    ),
)


def replay_choice(target: Target, given: dict[str, Any]) -> ReplayChoice:
    """What the options mean on the log as it is.

    Raises:
        UsageError: A value cannot be.
        PositionOutOfRangeError: The stretch begins or ends where the log has nothing.
    """
    from ledgermq_spark.journal.choice import Choice

    selector, ids = checked_selector(given["selector"]), given["message_ids"]
    archive = given["archive"]
    first = _first_position(target, given["since"], archive)
    last = moment_position(target, given["until"], archive)
    if first > last:
        raise click.UsageError(
            f"--from {target.named(first)} lies after --to {target.named(last)}: nothing came in "
            "between; turn them round"
        )
    sources = tuple(sorted(set(given["sources"])))
    pace = {"full": None, "original": 1.0}.get(given["pace"], given["pace"])
    meant = [target.queue_manager, first, last, sources, selector, sorted(set(ids)), given["into"]]
    digest = hashlib.sha256(json.dumps(meant).encode()).hexdigest()[:NAME_DIGITS]
    return ReplayChoice(
        first=first,
        last=last,
        sources=sources,
        choice=Choice(message_ids=ids, selector=selector),
        into=None if given["into"] == SAME else given["into"],
        factor=pace,
        limit=given["limit"],
        groups=not given["ungrouped"],
        name=given["name"] or f"{first}-{last}-{digest}",
        archive=archive,
    )


def _first_position(target: Target, since: Any, archive: Path | None) -> int:
    """Of a time: the position of the first record that was appended then or later."""
    if isinstance(since, datetime):
        return moment_position(target, since, archive, before=True) + 1
    return moment_position(target, since, archive)
