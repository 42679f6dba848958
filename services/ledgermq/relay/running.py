"""How a relay or bridge goes on: what passes is waited for, and begun anew from what is known."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from ledgermq.errors import (
    ConnectionClosedError,
    LedgerMQError,
    OutcomeUnknownError,
    PutsDisabledError,
    QuotaExceededError,
)

# Beside what is retryable: after these it begins anew, too, as nothing is put twice.
PASSING: Final = (
    ConnectionClosedError,
    OutcomeUnknownError,
    PutsDisabledError,
    QuotaExceededError,
)
PAUSE_SECONDS: Final = 1.0
Tell = Callable[[str], None]


class SourceMovedError(LedgerMQError):
    """Source or destination are elsewhere than was thought: begin again from where they are."""

    code = "source-moved"
    retryable = True


def keep_going(run: Callable[[], None], stopping: threading.Event, tell: Tell) -> None:
    """Runs until it ends by itself, or is to stop; what does not pass is raised."""
    told = ""
    while not stopping.is_set():
        try:
            run()
        except LedgerMQError as error:
            if not (isinstance(error, PASSING) or error.retryable):
                raise
            # Each refusal has another place on the log.
            what = str(error).replace(f"@{error.position}", "")
            if what != told:
                told = what
                tell(f"waits and begins anew: {error}")
            stopping.wait(PAUSE_SECONDS)
        else:
            return
