"""`ledgermq worker` runs a worker until it is stopped."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from ledgermq.cli.options.once import OnceCommand
from ledgermq.cli.options.running import running_bootstrap
from ledgermq.cli.options.target import BOOTSTRAP_DEFAULT, data_directory_option
from ledgermq.cli.options.together import GIVEN, Command, Long
from ledgermq.cli.printing.exits import REFUSED
from ledgermq.processor.worker.exit_codes import EXIT_REFUSED
from ledgermq.processor.worker.settings import LOG_FORMATS, WorkerSettings
from ledgermq.wire.kafka.settings import forget_kafka_environment


def _setting(flag: str, text: str, name: str = "", **more: Any) -> Callable[[Command], Command]:
    """An option for a setting of workers, by the option's name unless it has another.

    The settings read its variable, where several values are separated by commas.
    """
    name = name or flag.removeprefix("--").replace("-", "_")
    return click.option(flag, name, help=f"{text}  [env var: LEDGERMQ_{name.upper()}]", **more)


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
@_setting(
    "--topic-prefix",
    "Prefix of the names of the log topics on Kafka.  [default: ledgermq]",
    metavar="PREFIX",
)
@_setting(
    "--queue-manager",
    "Queue manager that is created if the log has none yet. May be repeated.  [default: QM1]",
    "queue_managers",
    metavar="NAME",
    multiple=True,
)
@_setting(
    "--name",
    "Name of this worker in logs and checkpoints; no two workers may have the same.  [default: "
    "host and process]",
    metavar="NAME",
)
@_setting(
    "--partitions",
    "How many queue managers the log topics have room for, if they are created now.  [default: 4]",
    metavar="NUMBER",
    type=Long(1),
)
@_setting(
    "--lanes",
    "How many outcome lanes each queue manager has, if the topics are created now.  [default: 4]",
    metavar="NUMBER",
    type=Long(1),
)
@_setting(
    "--web-port",
    "Port where it serves metrics and health; 0, the default: any free port, -1: none.",
    metavar="PORT",
    type=Long(-1, 65535),
)
@_setting(
    "--log-level",
    "The lowest level that is written to the worker's log.  [default: INFO]",
    type=click.Choice(("DEBUG", "INFO", "WARNING", "ERROR")),
)
@_setting(
    "--log-format",
    "Format of the worker's log, text for people or json for programs.  [default: text]",
    type=click.Choice(LOG_FORMATS),
)
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
    from ledgermq.processor.worker.start import run_worker

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
