"""A worker's own entries: Tick, TimeAgreed, Suspect, VersionOffered (§6, §8; H6, H7).

At most one entry of the worker is unfolded per queue manager; after one that changed nothing the
next waits a second.
"""

from __future__ import annotations

import logging
import math
import time
import uuid

from ledgermq.core.apply import next_deadline
from ledgermq.core.clock import time_after
from ledgermq.core.state.manager import QueueManager
from ledgermq.processor.lanes.producer import LogProducer
from ledgermq.processor.worker.logs import ManagerLog, NowAndThen
from ledgermq.protocol.administration import VersionOffered
from ledgermq.protocol.limits import PROTOCOL_VERSION, TIME_AGREEMENT_US, TIME_LEAP_US
from ledgermq.protocol.operations import Operation, Suspect, Tick, TimeAgreed
from ledgermq.wire.framing.codec import encode_operation, full_name_of
from ledgermq.wire.framing.headers import common_headers
from ledgermq.wire.topics.registry import Claim

log = logging.getLogger(__name__)

BACK_OFF_SECONDS = 1.0
SAY_AGAIN_SECONDS = 60.0
# A broker that takes longer to answer was away.
AWAY_SECONDS = 1.0
# Beyond this a plain Tick might not count, so the time is agreed instead.
AGREE_BEYOND_US = 55_000_000
STALE_US = 40_000_000
TICK_MARGIN_US = 5_000
# Of so many suspected sessions a line has the handles.
NAMED_MAX = 20


def _clock_of(state: QueueManager) -> tuple[int, int, int | None]:
    """State time, its reference and the next deadline: one of them changes by a worker's entry."""
    return state.time, state.time_reference, next_deadline(state)


class TimeKeeper:
    """Writes the worker's entries for one queue manager, one at a time."""

    def __init__(self, claim: Claim, producer: LogProducer, worker: str) -> None:
        self._claim = claim
        self._log = ManagerLog(log, claim.queue_manager)
        self._producer = producer
        self._worker = worker
        self._unfolded: int | None = None
        self._writing = False
        self._effect_before: tuple[int, int, int | None] | None = None
        self._was_ahead = False
        self._not_before = 0.0
        self._standstills = NowAndThen(SAY_AGAIN_SECONDS)
        # When the broker answered last that had been away; on the monotonic clock.
        self.away_until = -math.inf
        self.written = 0

    @property
    def busy(self) -> bool:
        return self._writing or self._unfolded is not None or time.monotonic() < self._not_before

    def ahead_seconds(self, state: QueueManager) -> float:
        """How far log time is ahead of the log's clock, by the worker's estimate of that."""
        return max(0, state.time - self._producer.clock.now_us()) / 1_000_000

    def folded_to(self, state: QueueManager) -> None:
        """To be called after folding; backs off if the worker's own entry changed nothing."""
        self._log_whether_ahead(state)
        if self._unfolded is None or state.position < self._unfolded:
            return
        self._unfolded = None
        if self._effect_before == _clock_of(state) or state.time_stood_still:
            self._not_before = time.monotonic() + BACK_OFF_SECONDS
        self._effect_before = None
        if state.time_stood_still:
            self._log_why_time_stands_still(state)

    def _log_why_time_stands_still(self, state: QueueManager) -> None:
        """Says that this worker cannot agree on time, as nobody else would notice, now and then."""
        ahead_us = self._producer.clock.ahead_us
        if abs(ahead_us) <= TIME_AGREEMENT_US or not self._standstills.may_say():
            return
        self._log.error(
            "log time stands still: this machine's clock is %.0f s %s Kafka's, and with more "
            "than %.0f s between them this worker cannot agree on time. Whatever waits for a time "
            "waits on, and messages whose time to live is over are still delivered. Set the clock "
            "right, and it goes on by itself",
            abs(ahead_us) / 1_000_000,
            "behind" if ahead_us > 0 else "ahead of",
            TIME_AGREEMENT_US / 1_000_000,
            position=state.position,
        )

    async def agree_time(self, state: QueueManager) -> None:
        """Appends the TimeAgreed that an operation called for, before its outcomes are sent."""
        if self.busy:
            return
        self._log.info(
            "the entry at position %d is over 60 s from where log time goes on; agreeing on it",
            state.position,
            position=state.position,
        )
        await self._append(self._time_agreed(), state)

    async def let_time_pass(self, state: QueueManager, *, heartbeat_heard: bool) -> None:
        if self.busy or state.time < 0:
            return
        clock, reference = self._producer.clock, state.time_reference
        ahead = reference >= 0
        before, now_us = reference if ahead else state.time, clock.latest_us()
        passed_us, set_back_us = now_us - before, before - clock.now_us()
        after, _, _ = time_after(state.time, reference, now_us - TICK_MARGIN_US, agreed=True)
        deadline = next_deadline(state)
        due = deadline is not None and after >= deadline
        waited_for = heartbeat_heard or deadline is not None
        # While log time is ahead, more than 60 s at once do not count as passed.
        stale = passed_us > STALE_US and (waited_for if ahead else heartbeat_heard)
        if waited_for and set_back_us > TIME_LEAP_US:
            await self._append(self._time_agreed(), state)
        elif due and passed_us <= AGREE_BEYOND_US:
            await self._append(Tick(worker=self._worker), state)
        elif due or stale:
            await self._append(self._time_agreed(), state)

    async def suspect(self, state: QueueManager, sessions: list[int]) -> None:
        if not self.busy and sessions:
            more = len(sessions) - NAMED_MAX
            self._log.info(
                "nothing was heard of sessions %s%s; they are suspected",
                ", ".join(map(str, sessions[:NAMED_MAX])),
                f" and {more} more" if more > 0 else "",
                position=state.position,
                sessions=sessions,
            )
            await self._append(Suspect(worker=self._worker, sessions=sessions), state)

    def _log_whether_ahead(self, state: QueueManager) -> None:
        ahead = state.time_reference >= 0
        if ahead and not self._was_ahead:
            self._log.warning(
                "log time is %.0f s ahead of the clock, which was set back; it goes on at 7/8 of "
                "the clock's pace until that has caught up",
                (state.time - state.time_reference) / 1_000_000,
                position=state.position,
            )
        elif self._was_ahead and not ahead:
            self._log.info("the clock has caught up with log time", position=state.position)
        self._was_ahead = ahead

    async def offer_version(self, state: QueueManager) -> None:
        """Offers the version that this worker knows, if no worker offered one as high (§8)."""
        if not self.busy and state.offered_version < PROTOCOL_VERSION:
            self._log.info(
                "offering protocol version %d", PROTOCOL_VERSION, position=state.position
            )
            offer = VersionOffered(worker=self._worker, version=PROTOCOL_VERSION)
            await self._append(offer, state)

    def _time_agreed(self) -> TimeAgreed:
        return TimeAgreed(worker=self._worker, writer_time=int(time.time() * 1_000_000))

    async def _append(self, operation: Operation, state: QueueManager) -> None:
        name, partition, _ = self._claim
        self._writing, began = True, time.monotonic()
        try:
            headers = common_headers(f"/ledgermq/{name}/{self._worker}", full_name_of(operation))
            headers.append(("ce_id", uuid.uuid4().hex.encode()))
            value = encode_operation(operation)
            position = await self._producer.append_operation(
                partition, name.encode(), value, headers
            )
        finally:
            self._writing = False
        now = time.monotonic()
        if now - began > AWAY_SECONDS:
            self.away_until = now
        self.written += 1
        self._effect_before = _clock_of(state)
        self._unfolded = position
        if isinstance(operation, Suspect):
            self._effect_before = None
            self._not_before = time.monotonic() + BACK_OFF_SECONDS
