"""Moments of a log on the command line: a position or a time; ids of its messages and groups."""

from __future__ import annotations

import re
from functools import partial
from typing import Any, Final

import click

from ledgermq.cli.options.target import Target
from ledgermq.cli.options.together import Read
from ledgermq.protocol.limits import GROUP_ID_BYTES, MESSAGE_ID_BYTES

GROUP_ID_DIGITS: Final = 2 * GROUP_ID_BYTES


def _digits(what: str, count: int, text: str) -> str:
    """The hexadecimal digits of an id, in small letters."""
    found = text.removeprefix("ID:").lower()
    if not re.fullmatch(rf"[0-9a-f]{{{count}}}", found):
        raise ValueError(f"{text!r} is no {what}: it has {count} hexadecimal digits")
    return found


MESSAGE_ID: Final = Read("MESSAGE-ID", partial(_digits, "message id", 2 * MESSAGE_ID_BYTES))
GROUP_ID: Final = Read("ID", partial(_digits, "group id", GROUP_ID_DIGITS))


def _moment(text: str) -> Any:
    from ledgermq_spark.log.positions import parse_moment

    return parse_moment(text)


TIME_EXPLAINED: Final = (
    "TIME is written 2026-11-21T10:00:00Z (ISO 8601); without a zone it is in UTC."
)
MOMENT: Final = Read(
    "POSITION|TIME", _moment, f"POSITION is a log position, 1234 or QM1@1234. {TIME_EXPLAINED}"
)


def position_at(target: Target, moment: Any, *, before: bool = False) -> int:
    """The log position of a moment; of a time that of the last record by then, or `before` it.

    Raises what `Target.located` raises, and:
        PositionOutOfRangeError: The moment lies before the log's start or after its end.
    """
    from ledgermq_spark.log.positions import resolve_at

    _, log = target.located()
    return resolve_at(target.bootstrap, log, moment, before=before)


at_option = click.option(
    "--at",
    type=MOMENT,
    help="The moment up to which the log is taken into account.  [default: the log's end]",
)
