"""A worker's process by its environment, forked: see `forked`."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path

from ledgermq.processor.__main__ import main
from ledgermq.processor.worker import crash_points
from ledgermq.processor.worker.process import PARENT_VARIABLE
from support.brokers.forked import Forked, become, emptied


class ForkedWorker(Forked):
    """A running worker; its log goes to a file."""

    def __init__(self, environment: dict[str, str], log: Path) -> None:
        super().__init__(_work, environment, emptied(log))


def _work(environment: dict[str, str], log: str) -> None:
    # The process that forks ends with the tests, and the worker with that.
    become(environment | {PARENT_VARIABLE: str(os.getppid())}, log, log)
    importlib.reload(crash_points)  # it reads the environment
    sys.exit(main())
