"""`python -m ledgermq.processor`: runs a worker, or discards checkpoints."""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path
from typing import Any

from ledgermq.processor.checkpoints.discarding import DiscardRefusedError, discard_checkpoints
from ledgermq.processor.checkpoints.loading import LogIncompleteError
from ledgermq.processor.worker.logs import set_up_log
from ledgermq.processor.worker.membership import refuse_if_workers_run
from ledgermq.processor.worker.parent import die_with_parent
from ledgermq.processor.worker.settings import WORKER_OPTIONS, SettingsError, WorkerSettings
from ledgermq.processor.worker.worker import (
    EXIT_FAULT,
    EXIT_REFUSED,
    EXIT_UNREACHABLE,
    EXIT_USAGE,
    NOT_LET_IN,
    run_worker,
)
from ledgermq.wire.topics.address import AddressError
from ledgermq.wire.topics.log_topics import Topics
from ledgermq.wire.topics.reading import LogUnreadableError
from ledgermq.wire.topics.registry import RegistryError, list_queue_managers


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m ledgermq.processor",
        description="Folds the operations log of LedgerMQ and writes outcomes. Every option can "
        "also be given as LEDGERMQ_NAME in the environment. With discard-checkpoints, "
        "--queue-manager says whose; it is refused while a worker runs.",
    )
    parser.add_argument("command", nargs="?", choices=["run", "discard-checkpoints"], default="run")
    parser.add_argument("--bootstrap", help="address of Kafka, HOST:PORT")
    parser.add_argument("--data-dir", dest="data_directory", type=Path, help="scratch directory")
    for one in WORKER_OPTIONS:
        kind = str if one.lowest is None else int
        action = "append" if one.many else "store"
        parser.add_argument(one.flag, dest=one.setting, type=kind, action=action, help=one.help)
    return parser


def main(arguments: list[str] | None = None) -> int:
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
    set_up_log(settings.log_level, settings.log_format, settings.worker_name)
    try:
        return run_worker(settings) if command == "run" else _discard(settings, named)
    except (AddressError, SettingsError) as error:
        print(f"ledgermq worker: {error}", file=sys.stderr)
        return EXIT_USAGE


def _discard(settings: WorkerSettings, named: list[str] | None) -> int:
    bootstrap, topics = settings.bootstrap, Topics(settings.topic_prefix)
    patience = settings.request_timeout_seconds
    try:
        found = list_queue_managers(bootstrap, topics, timeout_seconds=patience)
        claims = {one.queue_manager: one for one in found}
        wanted = list(claims) if named is None else named
        unknown = [name for name in wanted if name not in claims]
        if unknown or not wanted:
            names = f": {', '.join(unknown)}" if unknown else ""
            print(f"no such queue manager in the registry{names}", file=sys.stderr)
            return EXIT_FAULT
        for name in wanted:
            refuse_if_workers_run(bootstrap, topics, patience, DiscardRefusedError, claims[name])
        for name in wanted:
            count = discard_checkpoints(bootstrap, topics, claims[name], timeout_seconds=patience)
            print(f"{name}: {count} checkpoints discarded")
    except (RegistryError, LogUnreadableError, *NOT_LET_IN) as error:
        logging.getLogger(__name__).critical("%s", error)
        return EXIT_UNREACHABLE
    except (DiscardRefusedError, LogIncompleteError) as error:
        logging.getLogger(__name__).critical("%s", error)
        return EXIT_REFUSED
    return 0


if __name__ == "__main__":
    sys.exit(main())
