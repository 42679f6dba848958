"""From a queue to a goal elsewhere, by way of a queue of transfers; one runs, others stand by."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Final

from ledgermq.client.connection import Connection
from ledgermq.errors import LedgerMQError
from ledgermq.relay.forwarding import Forwarder, Goal
from ledgermq.relay.running import Tell, keep_going
from ledgermq.relay.transfers import Gatherer

IDLE_SECONDS: Final = 0.5
# Of one that was killed, the session ends after twice that; then another one goes on.
SUSPECT_SECONDS: Final = 5.0
# How often it is asked whether that one is gone.
STANDBY_SECONDS: Final = 0.5
# For what was moved a moment ago.
COMING_SECONDS: Final = 5.0
# While nothing comes; each time is a question to the worker.
LOOK_SECONDS: Final = 10.0


@dataclass(slots=True, kw_only=True)
class Relaying:
    """A queue's way to a goal.

    Attributes:
        connect: Makes a connection to the queue manager that has the queue, as `ledgermq.connect`
            is asked to; of several for the same transfers all but one are refused, so that one
            relays and others wait.
        queue: Where messages come from.
        transfers: The queue of transfers, which is there.
        goal: Opens the goal, for the transfers of the queue.
        until_end: Whether to stop when nothing is left to relay.
        forwarded: How many messages went on.
    """

    connect: Callable[..., AbstractContextManager[Connection]]
    queue: str
    transfers: str
    goal: Callable[[Connection], AbstractContextManager[Goal]]
    until_end: bool = False
    tell: Tell = print
    stopping: threading.Event = field(default_factory=threading.Event)
    forwarded: int = 0
    _disabled: list[str] = field(default_factory=list, init=False)

    def run(self) -> None:
        """Goes on until it is stopped, or at the end if it is to stop there.

        Raises:
            MessageNotRelayedError: A message is too large to be relayed, or cannot become a record.
            TransfersForgottenError: The queue manager was restored to an earlier moment.
            LedgerMQError: The goal refuses a message for good; its transfer stays where it is.
        """
        keep_going(self._run, lambda: self.forwarded, self.stopping, self.tell, self._stand_by)

    def _stand_by(self, seconds: float) -> None:
        """Waits for so long, or until the one that works is seen to have ended.

        A question stands on no log, so it may be asked more often than a session is opened.
        """
        limit = time.monotonic() + seconds
        with contextlib.suppress(LedgerMQError), self.connect() as connection:
            looked = connection.admin.queue_status(self.transfers).receivers
            while looked and time.monotonic() < limit and not self.stopping.wait(STANDBY_SECONDS):
                looked = connection.admin.queue_status(self.transfers).receivers
                if not looked:
                    return
        self.stopping.wait(max(0.0, limit - time.monotonic()))

    def _run(self) -> None:
        opening = self.connect(client_id=self.transfers, suspect_timeout_seconds=SUSPECT_SECONDS)
        with opening as connection, self.goal(connection) as goal:
            forwarder = Forwarder(connection, self.transfers, goal, self.tell)
            gatherer = Gatherer(connection, self.queue, self.transfers, goal.check)
            wait_seconds = IDLE_SECONDS
            looks_at = 0.0
            while not self.stopping.is_set():
                forwarded = forwarder.forward(wait_seconds)
                self.forwarded += forwarded
                wait_seconds = 0.0
                if forwarded:
                    continue
                if gatherer.gather(IDLE_SECONDS):
                    wait_seconds = COMING_SECONDS
                    continue
                if self.until_end and self._is_empty(connection):
                    return
                if time.monotonic() >= looks_at:
                    self._look(connection)
                    looks_at = time.monotonic() + LOOK_SECONDS

    def _look(self, connection: Connection) -> None:
        """Says what nobody would see: that nothing comes, as gets are disabled."""
        names = (self.queue, self.transfers)
        disabled = [one for one in names if connection.admin.queue_status(one).gets_disabled]
        for name in disabled:
            if name not in self._disabled:
                self.tell(
                    f"waits: gets of queue {name} are disabled, so nothing comes from it until "
                    f"`ledgermq queue resume {name}`"
                )
        self._disabled = disabled

    def _is_empty(self, connection: Connection) -> bool:
        admin = connection.admin
        waiting = admin.queue_status(self.transfers).message_count
        return not waiting and not admin.queue_status(self.queue).current
