"""Commands that run until they are stopped: Ctrl-C and SIGTERM let them end what they are at."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator


@contextlib.contextmanager
def stopped_by_signals() -> Iterator[threading.Event]:
    """An event that is set by Ctrl-C or SIGTERM; the second time they end the process."""
    stopping = threading.Event()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def stop(number: int, _: object) -> None:
        stopping.set()
        signal.signal(number, before[signal.Signals(number)])

    for number in before:
        signal.signal(number, stop)
    try:
        yield stopping
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
