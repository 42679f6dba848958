"""Silence: who was not heard of for too long (PROTOCOL.md §9; H5, H12).

Theory of operation. Silence of a connection counts from the moment when the side topic had been
read to its end, and a suspicion is written only after both the side topic and the ledger were read
to their ends once more, so that neither a slow worker nor a long stop of its process can end a live
session. Nor can a broker that was away, whose clients could not be heard of: whether it answers is
looked at once half of a suspect time-out has passed in silence, and if it does not answer at once,
all silence counts anew from its answer.
"""

from __future__ import annotations

import asyncio
import logging
import time

from ledgermq.core.state.manager import QueueManager
from ledgermq.processor.owner.side_topic import Listener, SideTopic
from ledgermq.processor.owner.time_keeper import AWAY_SECONDS, TimeKeeper
from ledgermq.processor.worker.logs import ManagerLog
from ledgermq.wire.topics.registry import Claim

log = logging.getLogger(__name__)

SUSPECTS_MAX = 1_000
PATIENCE_SECONDS = 10.0
# Of the suspect time-out: so long a client has, at the least, to come back after its broker.
DOUBTFUL_SHARE = 0.5


class Silence:
    """Who was heard of when, on the worker's own monotonic clock."""

    def __init__(self) -> None:
        self._connections: dict[bytes, float] = {}
        self._sessions: dict[int, float] = {}
        self._counts_from: float | None = None

    def heard(self, connection: bytes, state: QueueManager) -> None:
        """Notes a heartbeat; not of whom the state does not know, as anybody can invent those.

        Nothing is missed: silence of a session begins with its first operation, which comes later.
        """
        if connection in state.connections:
            self._connections[connection] = time.monotonic()

    def acted(self, session: int, now: float) -> None:
        self._sessions[session] = now

    def count_from_now(self) -> None:
        """The side topic has been read to its end for the first time; silence counts from here."""
        if self._counts_from is None:
            self._counts_from = time.monotonic()

    def count_anew(self, moment: float) -> None:
        """Nobody could be heard of until then."""
        if self._counts_from is not None:
            self._counts_from = max(self._counts_from, moment)

    def silent(self, state: QueueManager, share: float = 1.0) -> list[int]:
        """Sessions not heard of for (a share of) their suspect timeout, and not suspected yet."""
        if self._counts_from is None:
            return []
        now, start = time.monotonic(), self._counts_from
        found: list[int] = []
        for handle, session in state.sessions.items():
            if session.suspected or not session.confirmed:
                continue
            heard = max(
                start,
                self._connections.get(session.connection.identity, start),
                self._sessions.get(handle, start),
            )
            if now - heard > share * session.suspect_timeout_ms / 1000:
                found.append(handle)
                if len(found) == SUSPECTS_MAX:
                    break
        return found

    def forget_gone(self, state: QueueManager) -> None:
        sessions, connections = state.sessions, state.connections
        self._sessions = {key: at for key, at in self._sessions.items() if key in sessions}
        self._connections = {key: at for key, at in self._connections.items() if key in connections}


class SilenceWatch:
    def __init__(self, claim: Claim, side_topic: SideTopic, keeper: TimeKeeper) -> None:
        self._claim = claim
        self._side_topic = side_topic
        self._keeper = keeper
        self.silence = Silence()

    async def listen(self, listener: Listener) -> None:
        """Hears the side topic, and lets silence count once it was read to its end."""
        side_topic, partition = self._side_topic, self._claim.partition
        await side_topic.listen(partition, listener)
        while not await side_topic.read_to_end(partition):
            await asyncio.sleep(0.2)
        if side_topic.hears(partition):
            self.silence.count_from_now()
        else:
            ManagerLog(log, self._claim.queue_manager).error(
                "partition %d of the questions is not read beside that of the operations; no "
                "session will be suspected",
                partition,
            )

    async def suspect(self, state: QueueManager) -> None:
        """Reads side topic and ledger to their ends, then suspects who is silent still.

        To be called while anybody is doubtful.
        """
        side_topic, partition, silence = self._side_topic, self._claim.partition, self.silence
        if not side_topic.hears(partition):
            return
        asked_at = time.monotonic()
        end = await side_topic.end_of_questions(partition)
        answered_at = time.monotonic()
        if end is None or answered_at - asked_at > AWAY_SECONDS:
            silence.count_anew(answered_at)
            return
        if not silence.silent(state) or not await side_topic.read_to(partition, end):
            return
        end = await side_topic.end_of_operations(partition)
        limit = time.monotonic() + PATIENCE_SECONDS
        while end is not None and state.position + 1 < end:
            if time.monotonic() > limit:
                return
            await asyncio.sleep(0.01)
        if end is not None:
            await self._keeper.suspect(state, silence.silent(state))

    def is_anybody_doubtful(self, state: QueueManager) -> bool:
        # While an entry of its own waits for the broker, an owner looks after nobody.
        self.silence.count_anew(self._keeper.away_until)
        return bool(self.silence.silent(state, DOUBTFUL_SHARE))
