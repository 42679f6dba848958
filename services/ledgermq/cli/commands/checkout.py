"""`ledgermq bench` and `ledgermq demo`: what only a checkout of the source can run.

The installed package contains neither, so they are never imported by an import statement.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import click

from ledgermq.cli.options.target import json_option


@click.command()
@click.option(
    "--bootstrap",
    metavar="HOST:PORT",
    help="Installation to measure.  [default: one that is started for the purpose]",
)
@click.option("--queue-manager", metavar="NAME", default="QM1", show_default=True)
@click.option("--runs", type=click.IntRange(min=1), default=5, show_default=True)
@click.option("--row", "names", multiple=True, help="Measure this row only; may be repeated.")
@click.option(
    "--against",
    type=click.Choice(["rabbitmq"]),
    help="Run each row beside this one, from the distribution's package; print the ratios.",
)
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the figures to this file too, as JSON.",
)
@json_option
def bench(**options: Any) -> int:
    """Measure throughput and latency, and print where they were measured.

    Runs in a checkout of the source only; the installed package does not contain the benchmarks.
    The exit code is 4 if a figure is below what it must reach.
    """
    code: int = import_module("ledgermq_benchmarks.main").run(**options)
    return code


@click.command()
@click.option("--all", "whole_year", is_flag=True, help="The whole year, 336,776 flights.")
@click.option(
    "--data-dir",
    "data_directory",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(".demo"),
    show_default=True,
    help="Where everything is kept; what an earlier demo left there is removed.",
)
@click.option(
    "--bootstrap",
    metavar="HOST:PORT",
    help="Installation to play on, new or without the demo's queues.  [default: one of its own]",
)
@click.option(
    "--kill-worker",
    "kill_command",
    metavar="COMMAND",
    help="With --bootstrap: kills the worker {worker}.  [default: none is killed]",
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
