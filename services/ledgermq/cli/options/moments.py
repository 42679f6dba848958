"""Moments of a log on the command line: a position or a time; and the ids of its messages."""

from __future__ import annotations

import re
from typing import Any, Final

import click

from ledgermq.cli.options.target import Target

MESSAGE_ID: Final = re.compile(r"(ID:)?[0-9a-fA-F]{32}")


class Moment(click.ParamType):
    """A log position (1234, QM1@1234) or a time (ISO 8601, UTC if bare)."""

    name = "POSITION|TIME"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from ledgermq_spark.log.positions import PositionOutOfRangeError, parse_moment

        try:
            return parse_moment(value)
        except PositionOutOfRangeError as error:
            self.fail(str(error), param, ctx)


def position_at(target: Target, at: Any) -> int | None:
    """The log position of a moment; found before Spark is started, None for the log's end.

    Raises:
        PositionOutOfRangeError: The moment lies before the log's start or after its end.
    """
    from ledgermq_spark.log.positions import resolve_at
    from ledgermq_spark.rebuild.rebuild import locate

    if at is None:
        return None
    _, log = locate(target.bootstrap, target.topics, target.queue_manager)
    return resolve_at(target.bootstrap, log, at)


at_option = click.option(
    "--at",
    type=Moment(),
    help="A log position (1234) or a time (2026-11-21T10:00:00Z).  [default: the log's end]",
)
