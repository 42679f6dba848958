"""What the demo's applications have in common: a transacted session, and reports as JSON lines."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import ledgermq
from ledgermq.errors import LedgerMQError

if TYPE_CHECKING:
    from ledgermq.client.session import Session


# The worker is killed on purpose: its comeback is waited for.
PATIENCE_SECONDS: Final = 120.0


def run_application(address: str, topic_prefix: str, work: Callable[[Session], None]) -> int:
    """Do the work in a transacted session, and report how it ended; an exit code."""
    try:
        with (
            ledgermq.connect(
                address, topic_prefix=topic_prefix, timeout=PATIENCE_SECONDS
            ) as connection,
            connection.session(transacted=True) as session,
        ):
            work(session)
    except LedgerMQError as error:
        report(event="failed", error=str(error))
        return 1
    report(event="finished")
    return 0


def report(**event: Any) -> None:
    """Write what was done to standard output, which the demo reads."""
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()
