"""The heartbeats of a connection, and with them repeats, catching up, what waits to be written.

One thread that sleeps until something is due. Nothing here decides what is true: repeats act once,
answers to RESYNC are read by the reader.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Final

from ledgermq.client.link.route import LogOut
from ledgermq.client.link.router import Router
from ledgermq.errors import LedgerMQError

LOGGER = logging.getLogger("ledgermq.client")
ROUND_SECONDS: Final = 0.5
ACKNOWLEDGE_WITHIN_SECONDS: Final = 0.1
RESYNC_AFTER_SECONDS: Final = 1.0
RESYNC_PAUSE_MAX_SECONDS: Final = 4.0
REPEAT_AFTER_SECONDS: Final = 3.0
# While outcomes come, those that are waited for may be behind them, on a slow link or a busy lane:
# what is asked and written again would only make that longer.
PATIENCE_WHILE_THEY_COME: Final = 5


class Heartbeats:
    """Runs until stopped; `soon` makes the next round come within a tenth of a second.

    Attributes:
        last_deed: What is to be done in place of the next round, and then no more; None: nothing.
    """

    def __init__(self, router: Router, transport: LogOut, heartbeat_seconds: float) -> None:
        self._router = router
        self._transport = transport
        self._heartbeat_seconds = heartbeat_seconds
        self._beat_at = 0.0
        self._resync_at = 0.0
        self._resync_pause = RESYNC_AFTER_SECONDS
        self._wake = threading.Event()
        self._soon = False
        self._stopping = threading.Event()
        self.last_deed: Callable[[], None] | None = None
        self._thread = threading.Thread(target=self._run, name="ledgermq-heartbeats", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def soon(self) -> None:
        """An acknowledgement was left unwritten; cheap when it was called already."""
        if not self._soon:
            self._soon = True
            self._wake.set()

    def stop(self) -> None:
        """Ends after the round that is running."""
        self._stopping.set()
        self._wake.set()
        if threading.current_thread() is not self._thread and self._thread.is_alive():
            self._thread.join()

    def report_handed_over(self) -> None:
        """Lets each session report what its application holds; by the clock of the log's route."""
        now = self._transport.clock()
        for engine in self._router.engines():
            engine.report_handed_over(now)

    def _run(self) -> None:
        pause = 0.0
        while not self._stopping.is_set():
            self._wake.wait(pause)
            self._wake.clear()
            if self._stopping.is_set():
                return
            if self.last_deed is not None:
                self.last_deed()
                return
            if self._soon:
                time.sleep(ACKNOWLEDGE_WITHIN_SECONDS)
            try:
                self._round(time.monotonic())
            except LedgerMQError as error:
                LOGGER.info("the heartbeats of a connection skip a round: %s", error)
            except Exception:
                LOGGER.exception("the heartbeats of a connection go on after an error")
            pause = min(ROUND_SECONDS, self._heartbeat_seconds)

    def _round(self, now: float) -> None:
        self._transport.serve()
        # By what was written before this round.
        is_held_up = self._transport.is_held_up
        if self._router.broken is not None:
            return  # without heartbeats the queue manager ends what is left of the sessions
        if now >= self._beat_at:
            self._beat_at = now + self._heartbeat_seconds
            self._transport.beat()
        self._soon = False
        self._router.leave_ended()
        engines = self._router.engines()
        for engine in engines:
            engine.heard(self._transport.heard_at)
        more = [engine.each_round() for engine in engines]
        if any(more):
            self.soon()
        self.report_handed_over()
        they_come = now - self._router.came_at < REPEAT_AFTER_SECONDS
        patience = PATIENCE_WHILE_THEY_COME if they_come else 1
        longest = max((engine.oldest_wait_seconds(now) for engine in engines), default=0.0)
        late = longest > RESYNC_AFTER_SECONDS * patience or self._router.opening_waits(now)
        if not late and not self._router.catching_up:
            self._resync_pause = RESYNC_AFTER_SECONDS
        elif now >= self._resync_at:
            self._resync_at = now + self._resync_pause
            # A worker that starts must not find a flood of questions.
            self._resync_pause = min(2 * self._resync_pause, RESYNC_PAUSE_MAX_SECONDS)
            self._router.ask_resync()
        # What waits here is written once a broker is back: copies of it would only take memory.
        if not is_held_up:
            failed, self._transport.failed = self._transport.failed, False
            for engine in engines:
                engine.repeat_overdue(now, 0.0 if failed else REPEAT_AFTER_SECONDS * patience)
