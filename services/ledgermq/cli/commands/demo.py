"""`ledgermq demo`: the whole system at work on real input, with a crash and an audit."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import click


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
def demo(whole_year: bool, data_directory: Path) -> int:
    """Run the flights of New York City 2013 through queues, kill the worker, audit it all.

    Runs in a checkout of the source only; the installed package does not contain the demo.
    Everything is started and stopped by the command. The exit code is 1 if anything disagrees.
    """
    # The package does not contain the demo, so it never imports it by an import statement.
    run = import_module("ledgermq_demo.main").run_demo
    code: int = run(data_directory, whole_year=whole_year)
    return code
