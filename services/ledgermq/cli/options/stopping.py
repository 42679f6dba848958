"""Commands that run until they are stopped: Ctrl-C and SIGTERM let them end what they are at.

They may be within a call to Kafka's library for as long as that waits for a broker, and Python's
handlers of signals wait for its end. So a thread of its own is told of signals, and ends the
process if nothing else does.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import threading
from collections.abc import Iterator
from typing import Final

from ledgermq.cli.printing.exits import UNREACHABLE
from ledgermq.cli.printing.output import Output

NUMBERS: Final = (signal.SIGINT, signal.SIGTERM)
# An orderly end needs Kafka; what was done is remembered there already.
STOP_SECONDS: Final = 10.0


@contextlib.contextmanager
def stopped_by_signals(output: Output) -> Iterator[threading.Event]:
    """An event that is set by Ctrl-C or SIGTERM; the second one, or 10 s, end the process."""
    stopping = threading.Event()
    told, tell = socket.socketpair()
    with told, tell:
        tell.setblocking(False)
        before = {number: signal.signal(number, _heard) for number in NUMBERS}
        told_before = signal.set_wakeup_fd(tell.fileno(), warn_on_full_buffer=False)
        watch = threading.Thread(target=_watch, args=(told, stopping, output), daemon=True)
        watch.start()
        try:
            yield stopping
        finally:
            signal.set_wakeup_fd(told_before)
            for number, handler in before.items():
                signal.signal(number, handler)
            tell.close()
            watch.join()


def _heard(number: int, frame: object) -> None:
    """What is to be done is done by the thread that watches."""


def _watch(told: socket.socket, stopping: threading.Event, output: Output) -> None:
    if not told.recv(1):
        return
    stopping.set()
    if not select.select([told], [], [], STOP_SECONDS)[0]:
        try:
            output.error(
                "broker-unavailable",
                "told to stop, and Kafka let it come to no orderly end within "
                f"{STOP_SECONDS:.0f} s: it ended as it was. What it has done is remembered there, "
                "and the same run goes on behind that",
            )
        finally:
            os._exit(UNREACHABLE)
    again = told.recv(1)
    if again:
        os._exit(128 + again[0])
