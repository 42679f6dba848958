"""Holes in the ledger, which are passed over once they were declared skipped (§8; H9).

A worker at a hole that nobody declared waits there: it says so, answers questions as of before it,
and goes on by itself once the declaration stands on the log. So one queue manager's hole stops no
other one.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time

from ledgermq.errors import LedgerMQError
from ledgermq.processor.lanes.lanes import Folded
from ledgermq.processor.owner.folding import Folder
from ledgermq.processor.owner.side_topic import SideTopic
from ledgermq.processor.worker.logs import ManagerLog, NowAndThen
from ledgermq.wire.topics.ledger import Ledger
from ledgermq.wire.topics.reading import LogDamagedError, LogUnreadableError
from ledgermq.wire.topics.skipping import Hole, skip_command

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
END_SECONDS = 2.0
SAY_AGAIN_SECONDS = 60.0
POSITIONS_MAX = 500


class SkippedLaterError(LedgerMQError):
    """An entry that was folded was declared skipped: the state is to be folded without it."""

    code = "skipped-later"


class HoleWatch:
    """Stands between one queue manager's fold and what its log does not have."""

    def __init__(self, ledger: Ledger, folder: Folder, side_topic: SideTopic) -> None:
        self._ledger = ledger
        self._claim = ledger.claim
        self._log = ManagerLog(log, ledger.claim.queue_manager)
        self._folder = folder
        self._side_topic = side_topic
        # Whether the fold waits before a hole that nobody declared skipped.
        self.waits = False
        self._looking = asyncio.Lock()
        self._next_look = 0.0
        self._still_at, self._next_end = -1, 0.0
        self._reasons = NowAndThen(SAY_AGAIN_SECONDS)

    def is_known(self, position: int) -> bool:
        return self._folder.ahead.hole_at(position) is not None

    async def pass_over(self) -> list[Folded] | None:
        """Folds a hole before the next record as far as it was declared skipped.

        Nothing, if it was not: then the fold waits. None if the log does have the record.
        """
        self.waits = True
        folder, ahead = self._folder, self._folder.ahead
        expected = folder.expected
        if not self.is_known(expected) or not ahead.skipped(expected):
            if time.monotonic() < self._next_look:
                return []
            self._next_look = time.monotonic() + LOOK_SECONDS
            if not await self._look(expected):
                return []
        hole = ahead.hole_at(expected)
        last = expected - 1 if hole is None else ahead.skipped_through(hole)
        if hole is not None and last < expected:
            self._report(hole)
            return []
        self.waits = False
        if hole is None:
            return None
        self._log.warning(
            "positions %d to %d hold no record and were declared skipped; passing over them",
            expected,
            last,
            position=expected,
        )
        return folder.fold_hole(last, POSITIONS_MAX)

    async def look_at_next(self) -> None:
        """Reads on to the end of the log before an entry that brings a version is folded."""
        folder = self._folder
        folder.look_wanted, position = False, folder.expected
        await self._look_on(position)
        folder.looked_at = position

    async def begin_anew_if_skipped(self) -> None:
        """Before a version that is unknown: whether the entry that brought it was declared skipped.

        Raises:
            LogUnreadableError: The log did not answer.
            SkippedLaterError: It was; the state is to be loaded anew.
        """
        folder = self._folder
        position = folder.state.position
        await self._look_on(position)
        if folder.ahead.skipped(position):
            raise SkippedLaterError(
                f"{self._claim.queue_manager}: position {position} was declared skipped after it "
                "was folded; the worker must start again, to begin below it"
            )

    @property
    def end_is_due(self) -> bool:
        return time.monotonic() >= self._next_end

    async def look_at_end(self) -> None:
        """Looks whether the log ends with a hole, once nothing has come for a while."""
        # One at a time: a broker that is away takes long, and each look takes a thread meanwhile.
        self._next_end = math.inf
        try:
            await self._look_at_end()
        finally:
            self._next_end = time.monotonic() + END_SECONDS

    async def _look_at_end(self) -> None:
        folder = self._folder
        expected = folder.expected
        if len(folder) or expected != self._still_at:
            self._still_at = expected
            return
        end = await self._side_topic.end_of_operations(self._claim.partition)
        if end is None or end <= expected or len(folder) or not await self._look(expected):
            return
        hole = folder.ahead.hole_at(expected)
        if hole is not None and expected == folder.expected and not len(folder):
            self.waits = True
            self._report(hole)

    async def _look(self, position: int) -> bool:
        try:
            await self._look_on(position)
        except LogDamagedError as error:
            self.waits = True
            self._say(position, f"nothing from position {position} on is folded: {error}")
            return False
        except LogUnreadableError as error:
            self._log.warning("%s", error)
            return False
        return True

    async def _look_on(self, position: int) -> None:
        async with self._looking:
            await asyncio.to_thread(self._folder.ahead.look, position)

    def _report(self, hole: Hole) -> None:
        self._say(
            hole.first,
            f"the log has a hole: positions {hole.first} to {hole.last} hold no record, as the end "
            "of a Kafka transaction leaves it; nothing above is folded. Find who writes to the "
            "operations topic with transactions, or what else took the records away, and restore "
            "them if they were there. Else declare the positions skipped, and the worker goes on: "
            f"`{skip_command(self._ledger, hole)}`",
        )

    def _say(self, position: int, text: str) -> None:
        """Says why the fold waits, and again after a while."""
        if self._reasons.may_say(text):
            self._log.critical("%s", text, position=position)
