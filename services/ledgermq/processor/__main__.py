"""`python -m ledgermq.processor`: runs a worker, or discards checkpoints."""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path
from typing import Any

from ledgermq.processor.checkpoint_loading import discard_checkpoints
from ledgermq.processor.logs import set_up_log
from ledgermq.processor.parent import die_with_parent
from ledgermq.processor.settings import SettingsError, WorkerSettings
from ledgermq.processor.worker import EXIT_FAULT, EXIT_UNREACHABLE, run_worker
from ledgermq.wire.registry import RegistryError, list_queue_managers
from ledgermq.wire.topics import Topics

__all__ = ["main"]

EXIT_USAGE = 2


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m ledgermq.processor",
        description="Folds the operations log of LedgerMQ and writes outcomes. Every option can "
        "also be given as LEDGERMQ_NAME in the environment.",
    )
    parser.add_argument("command", nargs="?", choices=["run", "discard-checkpoints"], default="run")
    parser.add_argument("--bootstrap", help="address of Kafka, HOST:PORT")
    parser.add_argument("--data-dir", dest="data_directory", type=Path, help="scratch directory")
    parser.add_argument("--topic-prefix", help="prefix of the log topics (ledgermq)")
    parser.add_argument("--name", help="name of this worker; two workers must not share one")
    parser.add_argument(
        "--queue-manager",
        dest="queue_managers",
        action="append",
        help="claimed if the registry is empty (QM1); with discard-checkpoints: whose checkpoints",
    )
    parser.add_argument("--partitions", type=int, help="queue managers there is room for (4)")
    parser.add_argument("--lanes", type=int, help="outcome lanes of a queue manager (4)")
    parser.add_argument("--web-port", type=int, help="metrics and health; 0 any, -1 none")
    parser.add_argument("--log-level", help="DEBUG, INFO, WARNING or ERROR (INFO)")
    return parser


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line; an exit code."""
    die_with_parent()
    given: dict[str, Any] = vars(_arguments().parse_args(arguments))
    command = given.pop("command")
    named = given["queue_managers"]
    given["queue_managers"] = tuple(named) if named else None
    if command == "discard-checkpoints" and given["data_directory"] is None:
        given["data_directory"] = Path()
    try:
        settings = WorkerSettings.from_environment(**given)
    except SettingsError as error:
        print(f"ledgermq worker: {error}", file=sys.stderr)
        return EXIT_USAGE
    set_up_log(settings.log_level)
    if command == "run":
        return run_worker(settings)
    return _discard(settings, named)


def _discard(settings: WorkerSettings, named: list[str] | None) -> int:
    topics = Topics(settings.topic_prefix)
    try:
        claims = list_queue_managers(settings.bootstrap, topics)
    except RegistryError as error:
        logging.getLogger(__name__).critical("%s", error)
        return EXIT_UNREACHABLE
    wanted = [claim for claim in claims if named is None or claim.queue_manager in named]
    for claim in wanted:
        count = discard_checkpoints(settings.bootstrap, topics, claim)
        print(f"{claim.queue_manager}: {count} checkpoints discarded")
    if not wanted:
        print("no such queue manager in the registry", file=sys.stderr)
        return EXIT_FAULT
    return 0


if __name__ == "__main__":
    sys.exit(main())
