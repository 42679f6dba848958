"""`ledgermq bench`: its options, and what does not go together of them."""

from __future__ import annotations

from typing import Any

import click

from ledgermq.cli.options.once import OnceCommand
from ledgermq.cli.options.target import json_option
from ledgermq.cli.options.together import OUTPUT_FILE, Long


@click.command(cls=OnceCommand)
@click.option(
    "--bootstrap",
    metavar="HOST:PORT",
    help="Kafka address of the installation to measure.  [default: one started for the purpose]",
)
@click.option(
    "--queue-manager",
    metavar="NAME",
    default="QM1",
    show_default=True,
    help="Queue manager that is measured.",
)
@click.option(
    "--runs",
    metavar="NUMBER",
    type=Long(min=1),
    default=5,
    show_default=True,
    help="How often each row is measured.",
)
@click.option(
    "--row",
    "names",
    metavar="ROW",
    multiple=True,
    help="Measure only this row of the table. May be repeated.",
)
@click.option(
    "--against",
    type=click.Choice(["rabbitmq"]),
    help="Measure each row on this broker, too, from the distribution's package; print ratios.",
)
@click.option(
    "--growth",
    "with_growth",
    is_flag=True,
    help="Measure how throughput changes with depth, sessions, queues, consumers and properties.",
)
@click.option(
    "--managers",
    "with_managers",
    is_flag=True,
    help="Measure several queue managers together, on one worker and on two.",
)
@click.option(
    "--output",
    type=OUTPUT_FILE,
    metavar="FILE",
    help="Write the figures to this file, too, as JSON; with --growth also a picture beside it, "
    ".svg.",
)
@json_option
def bench(**options: Any) -> int:
    """Measure throughput and latency, and print where they were measured.

    The exit code is 4 if a figure is below what it must reach.
    """
    from ledgermq_benchmarks.main import run
    from ledgermq_benchmarks.rows import ROWS

    curves = options["with_growth"] or options["with_managers"]
    if curves and (options["names"] or options["against"]):
        raise click.UsageError(
            "--growth and --managers measure no rows: leave out --row, --against"
        )
    output = options["output"]
    if output is not None and curves and output.suffix == ".svg":
        raise click.UsageError(
            "--output is the file of the figures; their picture is put beside it"
        )
    known = [row.name for row in ROWS]
    unknown = [name for name in options["names"] if name not in known]
    if unknown:
        raise click.UsageError(f"there is no row {unknown[0]!r}; rows are {', '.join(known)}")
    return run(**options)
