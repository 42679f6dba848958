"""Dying with the parent: a process that was started by a supervisor must not outlive it."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PARENT_VARIABLE = "LEDGERMQ_SUPERVISOR_PID"
PR_SET_PDEATHSIG = 1


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
