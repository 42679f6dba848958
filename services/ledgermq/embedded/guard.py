"""Runs one command and sees to it that the command does not outlive the process that asked for it.

Run as a script: `python guard.py OWNER_PID KEPT_FD COMMAND...`. It stands between the owner and the
broker for two reasons. The system's own "tell me when my parent dies" follows the parent's
*thread*, and a broker started from a worker thread must not die with that thread. And an owner
that is killed with SIGKILL cannot clean up: this process sees its end and kills the command. If
this process is killed itself, the system kills the command (on Linux).

It prints the command's process id, forwards SIGTERM, and ends as the command ends. KEPT_FD is the
directory's lock: this process and the command hold it open, so the lock is held exactly as long as
either lives. Standard library only, so that it starts within milliseconds.
"""

import ctypes
import os
import select
import signal
import subprocess
import sys

PR_SET_PDEATHSIG = 1
POLL_SECONDS = 0.2


def main(arguments: list[str]) -> int:
    """Run the command until it ends or the owner does; return the command's exit status."""
    owner_pid, kept_fd, command = int(arguments[0]), int(arguments[1]), arguments[2:]
    # A stop that comes before the command exists must not kill the guard alone.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    guard_pid = os.getpid()
    libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None

    def before_exec() -> None:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        if libc is not None:
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != guard_pid:
                os._exit(1)

    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        # Standard output is the owner's pipe, for the one line below; all else is the log.
        stdout=sys.stderr,
        pass_fds=[kept_fd],
        preexec_fn=before_exec,  # noqa: PLW1509 - the guard has one thread
    )
    signal.signal(signal.SIGTERM, lambda *_: child.send_signal(signal.SIGTERM))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    print(child.pid, flush=True)
    if not wait_for_either(child, owner_pid):
        child.kill()
    status = child.wait()
    return 128 - status if status < 0 else status


def wait_for_either(child: "subprocess.Popen[bytes]", owner_pid: int) -> bool:
    """Wait until the child ends (True) or the owner does (False)."""
    if not hasattr(os, "pidfd_open"):
        while child.poll() is None and os.getppid() == owner_pid:
            try:
                child.wait(timeout=POLL_SECONDS)
            except subprocess.TimeoutExpired:
                continue
        return child.poll() is not None
    try:
        owner_fd = os.pidfd_open(owner_pid)
    except OSError:
        return False
    child_fd = os.pidfd_open(child.pid)
    # The owner may have died before its id was opened, and the id may be another's now.
    if os.getppid() != owner_pid:
        return False
    poller = select.poll()
    poller.register(owner_fd, select.POLLIN)
    poller.register(child_fd, select.POLLIN)
    ready = {descriptor for descriptor, _ in poller.poll()}
    return child_fd in ready


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
