"""`ledgermq bench` and `ledgermq demo`: what only a checkout of the source can run.

The installed package contains neither, so they are never imported by an import statement.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import click

from ledgermq.cli.options.once import OnceCommand
from ledgermq.cli.options.target import json_option
from ledgermq.cli.options.together import DIRECTORY, Long


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
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the figures to this file, too, as JSON; with --growth or --managers also a picture "
    "beside it, .svg.",
)
@json_option
def bench(**options: Any) -> int:
    """Measure throughput and latency, and print where they were measured.

    Runs in a checkout of the source only; the installed package does not contain the benchmarks.
    The exit code is 4 if a figure is below what it must reach.
    """
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
    if output is not None and not output.parent.is_dir():
        raise click.UsageError(f"there is no directory {output.parent} for --output")
    known = [row.name for row in import_module("ledgermq_benchmarks.rows").ROWS]
    unknown = [name for name in options["names"] if name not in known]
    if unknown:
        raise click.UsageError(f"there is no row {unknown[0]!r}; rows are {', '.join(known)}")
    code: int = import_module("ledgermq_benchmarks.main").run(**options)
    return code


@click.command(cls=OnceCommand)
@click.option(
    "--all",
    "whole_year",
    is_flag=True,
    help="Run all flights of the year, 336,776; without it only some.",
)
@click.option(
    "--data-dir",
    "data_directory",
    type=DIRECTORY,
    default=Path(".demo"),
    show_default=True,
    help="Directory for all data of the demo; what an earlier demo left there is removed.",
)
@click.option(
    "--bootstrap",
    metavar="HOST:PORT",
    help="Kafka address of the installation to use, which must not have the demo's queues.  "
    "[default: one of its own]",
)
@click.option(
    "--kill-worker",
    "kill_command",
    metavar="COMMAND",
    help="With --bootstrap: command that kills a worker; {worker} in it stands for the "
    "worker's name.  [default: none is killed]",
)
def demo(
    whole_year: bool, data_directory: Path, bootstrap: str | None, kill_command: str | None
) -> int:
    """Run the flights of New York City 2013 through queues, kill the worker, audit it all.

    Runs in a checkout of the source only; the installed package does not contain the demo.
    Without --bootstrap everything is started and stopped by the command. The exit code is 1 if
    anything disagrees.
    """
    if kill_command is not None and bootstrap is None:
        raise click.UsageError("--kill-worker goes with --bootstrap: the demo kills its own itself")
    run = import_module("ledgermq_demo.main").run_demo
    code: int = run(
        data_directory, whole_year=whole_year, bootstrap=bootstrap, kill_command=kill_command
    )
    return code
