"""`ledgermq worker` runs a worker; `ledgermq checkpoint discard` makes the next one begin anew."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ledgermq.cli.exits import OK, REFUSED
from ledgermq.cli.output import Output
from ledgermq.cli.running import running_bootstrap
from ledgermq.cli.target import (
    BOOTSTRAP_DEFAULT,
    Target,
    data_directory_option,
    resting_target_options,
)

__all__ = ["checkpoint", "worker"]

WORKER_REFUSED = 4


@click.command()
@click.option(
    "--bootstrap",
    metavar="HOST:PORT",
    envvar="LEDGERMQ_BOOTSTRAP",
    show_envvar=True,
    help="Kafka to work on.  [default: the running `ledgermq up`, else localhost:9092]",
)
@data_directory_option
@click.option("--topic-prefix", metavar="PREFIX", help="Prefix of the log topics.  [ledgermq]")
@click.option(
    "--queue-manager",
    "queue_managers",
    metavar="NAME",
    multiple=True,
    help="Created if the log knows no queue manager yet; may be repeated.  [QM1]",
)
@click.option("--name", help="Name in logs and checkpoints; no two workers may share one.")
@click.option(
    "--partitions", type=click.IntRange(min=1), help="Queue managers the log has room for."
)
@click.option("--lanes", type=click.IntRange(min=1), help="Outcome lanes of a queue manager.")
@click.option("--web-port", type=click.IntRange(-1, 65535), help="Metrics; 0 any, -1 none.")
@click.option("--log-level", type=click.Choice(["DEBUG", "INFO", "WARNING", "ERROR"]))
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
    from ledgermq.processor.logs import set_up_log
    from ledgermq.processor.settings import WorkerSettings
    from ledgermq.processor.worker import run_worker

    address = bootstrap or running_bootstrap(data_directory) or BOOTSTRAP_DEFAULT
    found = WorkerSettings.from_environment(
        bootstrap=address,
        data_directory=data_directory / "worker",
        queue_managers=queue_managers or None,
        **settings,
    )
    set_up_log(found.log_level)
    code = run_worker(found)
    return REFUSED if code == WORKER_REFUSED else code


@click.group()
def checkpoint() -> None:
    """Manage checkpoints of the state."""


@checkpoint.command()
@click.option("--yes", is_flag=True, help="Do it.")
@resting_target_options
def discard(target: Target, output: Output, yes: bool) -> int:
    """Discard all checkpoints of the queue manager, so that its worker starts from the log.

    For a worker that refuses to start because the checkpoints are not of this log. Stop the workers
    first. Nothing is lost: the state is folded again from the operations.
    """
    from ledgermq.processor.checkpoint_loading import discard_checkpoints

    claim = target.claim()
    if not yes:
        raise click.UsageError(
            f"this discards all checkpoints of {target.queue_manager} at {target.bootstrap}; the "
            "next worker folds the whole log again. Add --yes to do it"
        )
    count = discard_checkpoints(target.bootstrap, target.topics, claim)
    output.done(
        f"{count} checkpoints of {target.queue_manager} discarded",
        {"queue_manager": target.queue_manager, "discarded": count},
    )
    return OK
