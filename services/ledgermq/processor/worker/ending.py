"""The end of a worker: it waits for nothing for ever, and never longer than it may."""

from __future__ import annotations

import asyncio
import logging
import os
from typing import Any

log = logging.getLogger(__name__)


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
