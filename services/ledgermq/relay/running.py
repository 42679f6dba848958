"""How a relay or bridge goes on: what passes is waited for, and begun anew from what is known."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from typing import Final

from ledgermq.errors import (
    ConnectionClosedError,
    InvalidClientIDError,
    LedgerMQError,
    OutcomeUnknownError,
    PutsDisabledError,
    QuotaExceededError,
)

REFUSED: Final = (PutsDisabledError, QuotaExceededError)
# Beside what is retryable: after these it begins anew, too, as nothing is put twice.
PASSING: Final = (ConnectionClosedError, OutcomeUnknownError, *REFUSED)
PAUSE_SECONDS: Final = 1.0
# What is refused stands on the log each time.
REFUSED_PAUSE_SECONDS_MAX: Final = 30.0
# Less, for where its end is not seen before.
STANDBY_PAUSE_SECONDS_MAX: Final = 10.0
# What ran for longer was well: why it waits now is told, though it waited for the same before.
WELL_SECONDS: Final = 60.0
STANDS_BY: Final = "stands by: this relay or bridge runs elsewhere, and goes on here when that ends"
NOT_COUNTED: Final = "If it was, it is not done again, and the count at the end leaves it out"
Tell = Callable[[str], None]


class SourceMovedError(LedgerMQError):
    """Source or destination are elsewhere than was thought: begin again from where they are."""

    code = "source-moved"
    retryable = True


def keep_going(
    run: Callable[[], None],
    done: Callable[[], int],
    stopping: threading.Event,
    tell: Tell,
    stand_by: Callable[[float], object] | None = None,
) -> None:
    """Runs until it ends by itself, or is to stop; what does not pass is raised.

    `done` says how many messages went on: while a target refuses and none does, pauses grow, and
    so they do while another run has the client id. Those `stand_by` may end before so many seconds
    are over.
    """
    told = ""
    pause_seconds = PAUSE_SECONDS
    while not stopping.is_set():
        before, began = done(), time.monotonic()
        try:
            run()
        except LedgerMQError as error:
            if not (isinstance(error, PASSING) or error.retryable):
                raise
            stands_by = isinstance(error, InvalidClientIDError)
            if isinstance(error, OutcomeUnknownError):
                error.advice = NOT_COUNTED
            text = STANDS_BY if stands_by else f"waits and begins anew: {error}"
            # Each refusal has another place on the log.
            what = re.sub(r"@\d+", "", text)
            if what != told or time.monotonic() - began > WELL_SECONDS:
                told = what
                tell(text)
            # Of a unit of work that was rolled back the refusal is the cause.
            is_refused = isinstance(error, REFUSED) or isinstance(error.__cause__, REFUSED)
            if stands_by or (is_refused and done() == before):
                most = STANDBY_PAUSE_SECONDS_MAX if stands_by else REFUSED_PAUSE_SECONDS_MAX
                pause_seconds = min(pause_seconds, most)
                rest = stand_by if stands_by and stand_by is not None else stopping.wait
                rest(pause_seconds)
                pause_seconds = min(2 * pause_seconds, most)
            else:
                pause_seconds = PAUSE_SECONDS
                stopping.wait(pause_seconds)
        else:
            return
