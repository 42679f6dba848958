"""Directories for what a job keeps for a while, where its caller gives it none."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from pathlib import Path


def directory_until_exit() -> Path:
    """Makes an empty directory, which is removed when the process ends.

    Frames read their rows there whenever somebody asks them, so that it cannot go before.
    """
    path = Path(tempfile.mkdtemp(prefix="ledgermq-spark-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path
