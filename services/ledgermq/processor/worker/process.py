"""A worker as a process of the system: its parent, the files that it may open, its end in time."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import logging
import os
import resource
import signal
import sys
from typing import Any

from ledgermq.processor.worker.settings import SettingsError

log = logging.getLogger(__name__)

PARENT_VARIABLE = "LEDGERMQ_SUPERVISOR_PID"
PR_SET_PDEATHSIG = 1
# What a worker of one queue manager has open: with fewer its libraries fail one after another,
# and say nothing that would help.
FILES_LEAST = 54
FEW_FILES = 128


def die_with_parent() -> None:
    """Asks the system to kill this process when its supervisor ends, if it has one (Linux).

    Done here and not between fork and exec: the supervisor has threads.
    """
    parent = os.environ.get(PARENT_VARIABLE, "")
    if not parent.isdigit() or sys.platform != "linux":
        return
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(parent):
        sys.exit(f"the supervisor, process {parent}, is gone")


def allow_many_files() -> None:
    """Lets the process open as many files as the system lets it, as Java does for brokers.

    Each queue manager takes a dozen, for its connections. Most systems begin with 1,024, for
    programs of long ago; a hundred queue managers are more.

    Raises:
        SettingsError: With so few no worker can be.
    """
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Some systems name a limit that they do not let anybody have.
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    if most == resource.RLIM_INFINITY or most >= FEW_FILES:
        return
    told = (
        f"this process may have {most} files open, a worker needs {FILES_LEAST}, and a dozen for "
        "each queue manager: allow it more (`ulimit -Hn`, LimitNOFILE of systemd)"
    )
    if most < FILES_LEAST:
        raise SettingsError(told)
    log.warning("%s", told)


def leave_at_once(code: int) -> None:
    """Ends the process: without a broker, threads of Faust and librdkafka wait for ever.

    Nothing is lost by that: what was not acknowledged is folded again at the next start.
    """
    log.warning("the worker did not stop in time, perhaps its broker is gone; it ends at once")
    logging.shutdown()
    os._exit(code)


async def in_time(work: Any, seconds: float) -> None:
    """Waits for something that must not keep the worker from ending, whatever it raises."""
    task = asyncio.ensure_future(work)
    await asyncio.wait({task}, timeout=seconds)
    if not task.done():
        task.cancel()
        # What was gathered ends with the error of having been cancelled, which somebody must take.
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
    elif task.cancelled() or task.exception() is not None:
        log.debug("while stopping: %r", task)
