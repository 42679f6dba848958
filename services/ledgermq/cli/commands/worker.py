"""`ledgermq worker` runs a worker until it is stopped."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from ledgermq.cli.options.once import OnceCommand
from ledgermq.cli.options.running import running_bootstrap
from ledgermq.cli.options.target import BOOTSTRAP_DEFAULT, data_directory_option
from ledgermq.cli.options.together import GIVEN, Command, Long, together
from ledgermq.cli.printing.exits import REFUSED
from ledgermq.processor.worker.settings import WORKER_OPTIONS, WorkerOption, WorkerSettings


def _option_of(one: WorkerOption) -> Callable[[Command], Command]:
    kind: Any = None
    if one.choices:
        kind = click.Choice(one.choices)
    elif one.lowest is not None:
        kind = Long(one.lowest, one.highest)
    # Read by the worker's settings, where several values are separated by commas.
    variable = f"LEDGERMQ_{one.setting.upper()}"
    text = f"{one.help}  [env var: {variable}]"
    return click.option(
        one.flag, one.setting, type=kind, multiple=one.many, metavar=one.metavar, help=text
    )


@click.command(cls=OnceCommand)
@click.option(
    "--bootstrap",
    metavar="HOST:PORT",
    type=GIVEN,
    envvar="LEDGERMQ_BOOTSTRAP",
    show_envvar=True,
    help="Address of the Kafka that has the log; several are separated by commas.  [default: the "
    "running `ledgermq up`, else localhost:9092]",
)
@data_directory_option(
    "Directory of its own, with scratch files in `worker`. Where `ledgermq up` runs on it, its "
    "broker is used."
)
@together(*map(_option_of, WORKER_OPTIONS))
def worker(
    bootstrap: str | None,
    data_directory: Path,
    queue_managers: tuple[str, ...],
    **settings: Any,
) -> int:
    """Run a worker in the foreground, until Ctrl-C or SIGTERM.

    It creates the log topics if they are missing. With several workers on one log each takes some
    of the queue managers; one that gets none stands by.
    """
    from ledgermq.processor.worker.logs import set_up_log
    from ledgermq.processor.worker.worker import EXIT_REFUSED, run_worker
    from ledgermq.wire.kafka.settings import forget_kafka_environment

    address = bootstrap or running_bootstrap(data_directory)
    if address and not bootstrap:
        forget_kafka_environment()
    found = WorkerSettings.from_environment(
        bootstrap=address or BOOTSTRAP_DEFAULT,
        data_directory=data_directory / "worker",
        queue_managers=queue_managers or None,
        **settings,
    )
    set_up_log(found.log_level, found.log_format, found.worker_name)
    code = run_worker(found)
    return REFUSED if code == EXIT_REFUSED else code
