"""`ledgermq demo`: its options."""

from __future__ import annotations

from pathlib import Path

import click

from ledgermq.cli.options.once import OnceCommand
from ledgermq.cli.options.together import DIRECTORY


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

    Without --bootstrap everything is started and stopped by the command. The exit code is 1 if
    anything disagrees.
    """
    from ledgermq_demo.main import run_demo

    if kill_command is not None and bootstrap is None:
        raise click.UsageError("--kill-worker goes with --bootstrap: the demo kills its own itself")
    return run_demo(
        data_directory, whole_year=whole_year, bootstrap=bootstrap, kill_command=kill_command
    )
