"""`ledgermq bench`: measures the system on this machine."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

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
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the figures to this file too, as JSON.",
)
@json_option
def bench(
    bootstrap: str | None,
    queue_manager: str,
    runs: int,
    names: tuple[str, ...],
    output: Path | None,
    as_json: bool,
) -> int:
    """Measure throughput and latency, and print where they were measured.

    Runs in a checkout of the source only; the installed package does not contain the benchmarks.
    The exit code is 4 if a figure is below what it must reach.
    """
    # The package does not contain the benchmarks, so it never imports them by an import statement.
    code: int = import_module("ledgermq_benchmarks.main").run(
        bootstrap=bootstrap,
        queue_manager=queue_manager,
        runs=runs,
        names=names,
        as_json=as_json,
        output=output,
    )
    return code
