"""`ledgermq top`: the queues, and what goes in and out of them, looked at again and again."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from typing import Any, Final

import click

from ledgermq.cli.options.destinations import common_prefix, fits, patterns_argument
from ledgermq.cli.options.once import OnceCommand
from ledgermq.cli.options.target import Target, target_options
from ledgermq.cli.options.together import Count, Number
from ledgermq.cli.printing.listing import Listing
from ledgermq.cli.printing.output import Column, Output, count_of, drawn_table, headed, plain
from ledgermq.cli.printing.screens import list_row, status_document
from ledgermq.client.connection import Connection
from ledgermq.errors import LedgerMQError
from ledgermq.protocol.documents.destinations import QueueStatus
from ledgermq.protocol.instants import utc_text

INTERVAL_SECONDS_DEFAULT: Final = 2.0
COLUMNS: Final = (
    *headed("name", "state"),
    *headed("current", "pending", number=True),
    Column(key="puts_per_second", heading="PUT/S", number=True),
    Column(key="consumed_per_second", heading="CONSUMED/S", number=True),
    *headed("expired", "moved", "dropped", number=True, detail=True),
    Column(key="receivers", heading="RECEIVERS", number=True, detail=True),
    Column(key="oldest_seconds", heading="OLDEST S", number=True),
)
KEYS: Final = tuple(column.key for column in COLUMNS)
# Of a terminal, besides rows: the line above them, headings, two remarks below, and the cursor's.
LINES_BESIDE: Final = 5


@dataclass(frozen=True, slots=True)
class Look:
    """Queues at one position of the log; `monotonic_seconds` is when the answer came."""

    monotonic_seconds: float
    time: datetime
    queues: Sequence[QueueStatus]

    @classmethod
    def taken(cls, connection: Connection, patterns: Sequence[str]) -> Look:
        """Now, of the queues whose names fit one of the patterns, or of all if there are none."""
        listed = connection.admin.list_queues(prefix=common_prefix(patterns))
        found = [one for one in listed if fits(one.name, patterns)]
        return cls(time.monotonic(), datetime.now(UTC), found)

    def rows(self, before: Look | None) -> list[dict[str, Any]]:
        """A row for each queue; a rate is none if the queue was not there at the look before."""
        then = {} if before is None else {one.created_position: one for one in before.queues}
        seconds = self.monotonic_seconds - (before or self).monotonic_seconds
        return [self._row(one, then.get(one.created_position), seconds) for one in self.queues]

    def _row(self, now: QueueStatus, then: QueueStatus | None, seconds: float) -> dict[str, Any]:
        puts = consumed = None
        if then is not None and seconds > 0:
            puts = round((now.next_sequence - then.next_sequence) / seconds, 1)
            consumed = round((now.sent_and_committed - then.sent_and_committed) / seconds, 1)
        oldest = now.first_enqueued_at if now.message_count else None
        # The log has a clock of its own, which may be ahead of ours.
        waited = None if oldest is None else max(0, round((self.time - oldest).total_seconds()))
        worked_out = {
            "puts_per_second": puts,
            "consumed_per_second": consumed,
            "oldest_seconds": waited,
        }
        row = list_row(status_document(now)) | worked_out
        return {key: row[key] for key in KEYS}


@click.command(cls=OnceCommand)
@patterns_argument("queue")
@click.option(
    "--interval",
    "interval_seconds",
    metavar="SECONDS",
    type=Number(min=0.1, max=3600),
    default=INTERVAL_SECONDS_DEFAULT,
    show_default=True,
    help="How long to wait between two looks.",
)
@click.option("--looks", type=Count(min=1), help="End after so many.  [default: until Ctrl-C]")
@click.option(
    "--sort",
    type=click.Choice(KEYS),
    metavar="NAME",
    default="puts_per_second",
    show_default=True,
    help=f"Order by {', '.join(KEYS[:-1])} or {KEYS[-1]}: numbers from the largest.",
)
@target_options
def top(
    target: Target,
    output: Output,
    patterns: tuple[str, ...],
    interval_seconds: float,
    looks: int | None,
    sort: str,
) -> None:
    """Show the queues with what goes in and out of them, and look again, until Ctrl-C.

    PATTERNS such as 'orders.*' choose those with such names. A rate counts what was committed
    between two looks. With --json each look is a line. `ledgermq queue why` says why messages wait.
    """
    listing = Listing(columns=COLUMNS, keys=KEYS, sort=sort)
    before: Look | None = None
    rows: Sequence[Mapping[str, Any]] = []
    with target.connect() as connection, _screen(output) as show:
        for number in count(1):
            try:
                look = Look.taken(connection, patterns)
            except LedgerMQError as error:
                # Whoever looks on wants to see when it goes on; a program wants to know.
                if before is None or not (error.retryable and output.for_people):
                    raise
                show(f"{utc_text(datetime.now(UTC), 'seconds')}  no answer: {error}", rows)
            else:
                rows = listing.ordered(look.rows(before))
                before = look
                if output.as_json:
                    position = look.queues[0].position if look.queues else None
                    output.line({"time": look.time, "position": position, "queues": rows})
                else:
                    show(_headline(target, look, rows), rows)
            if number == looks:
                return
            time.sleep(interval_seconds)


def _headline(target: Target, look: Look, rows: Sequence[Mapping[str, Any]]) -> str:
    told = [utc_text(look.time, "seconds"), count_of(len(rows), "queue")]
    if rows:
        told.insert(0, target.named(look.queues[0].position))
        told.append(count_of(sum(row["current"] + row["pending"] for row in rows), "message"))
    for key, what in (("puts_per_second", "put/s"), ("consumed_per_second", "consumed/s")):
        rates = [row[key] for row in rows if row[key] is not None]
        if rates:
            told.append(f"{sum(rates):,.1f} {what}")
    return ", ".join(told)


@contextlib.contextmanager
def _screen(output: Output) -> Iterator[Callable[[str, Sequence[Mapping[str, Any]]], None]]:
    """Shows rows below a headline: on a terminal each time in the same place."""
    if not output.for_people:
        yield lambda _, rows: output.table(COLUMNS, rows)
        return
    from rich.console import Console, Group, RenderableType
    from rich.live import Live
    from rich.text import Text

    with Live(console=Console(highlight=False), auto_refresh=False) as live:

        def show(headline: str, rows: Sequence[Mapping[str, Any]]) -> None:
            room = max(1, shutil.get_terminal_size().lines - LINES_BESIDE)
            shown: list[RenderableType] = [Text(plain(headline), style="bold")]
            shown.append(drawn_table(COLUMNS, rows[:room]))
            if len(rows) > room:
                left_out = count_of(len(rows) - room, "more queue")
                shown.append(Text(f"{left_out}: choose by PATTERNS or --sort", style="dim"))
            live.update(Group(*shown), refresh=True)

        yield show
