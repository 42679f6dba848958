"""How long a session is surely there: what it holds may be handed over without asking (SES-65).

The queue manager suspects a session only when no heartbeat of its connection has come for the
suspect time-out. So it is there for that long from a heartbeat that the log took, or an operation
that was applied. A process that did not run for longer, or had no broker, may hold messages that
others have got meanwhile: it asks before it hands one over. So it does when it stood still for less
than that, as somebody may have taken its connection over.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Final

from ledgermq.client.engine.engine import Engine
from ledgermq.client.sansio.protocol import Pending
from ledgermq.protocol.operations import Alive

# The heartbeats come round twice a second, unless the process stands still.
STANDSTILL_SECONDS: Final = 2.0


class Lease:
    """That of one session; by the clock of the log's route, in seconds."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._clock = engine.transport.clock
        self._seconds = engine.settings.suspect_timeout_seconds
        began = max(self._clock(), engine.transport.heard_at)
        self._ends_at = began + self._seconds
        self._awake_until = began + STANDSTILL_SECONDS
        self._woke_at = -math.inf
        self._asking: Pending | None = None

    def renew(self, heard_at: float) -> None:
        """A heartbeat written at that time is on the log; too late once the lease is over.

        Called by each round of the heartbeats.
        """
        with self._engine.lock:
            now = self._clock()
            if self._is_sure(now):
                self._renew_locked(heard_at)
            self._awake_until = max(self._awake_until, now + STANDSTILL_SECONDS)

    def _renew_locked(self, heard_at: float) -> None:
        # What was asked before a standstill is answered by what was true before it.
        if heard_at >= self._woke_at:
            self._ends_at = max(self._ends_at, heard_at + self._seconds)

    def _is_sure(self, now: float) -> bool:
        """Whether it is not over; a standstill ends it."""
        if now >= self._awake_until:
            self._woke_at, self._ends_at = now, -math.inf
            self._awake_until = now + STANDSTILL_SECONDS
        return now < self._ends_at

    def holds_locked(self) -> bool:
        """Whether the session is surely there. If not, the queue manager is asked: wait for news.

        Raises:
            BrokerUnavailableError, LogError: nothing can be written.
        """
        now = self._clock()
        if self._is_sure(now):
            return True
        asking, protocol = self._asking, self._engine.protocol
        if (asking is None or asking.settled) and not protocol.full:
            self._asking = asking = self._engine.write_locked(Alive)
            asking.applied = partial(self._renew_locked, now)
        return False
