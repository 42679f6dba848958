"""Keeping checkpoints: when the next one is due, and telling those who asked for one."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from ledgermq.processor.checkpoints.writing import Checkpointer, CheckpointFailedError
from ledgermq.processor.lanes.lanes import LaneWriter
from ledgermq.processor.owner.answers import Answerer, Question
from ledgermq.processor.owner.folding import Folder
from ledgermq.processor.worker.logs import ManagerLog
from ledgermq.processor.worker.settings import WorkerSettings
from ledgermq.protocol.answers import Answer
from ledgermq.wire.framing.checkpoint_keys import manifest_key

log = logging.getLogger(__name__)

LOOK_SECONDS = 0.2
LAST_LOOK_SECONDS = 0.01
AGAIN_SECONDS_MIN = 2.0
AGAIN_SECONDS_MAX = 60.0
ENCODING_SHARE = 10
PAUSE_SECONDS_MAX = 60.0


class CheckpointSchedule:
    """Takes one queue manager's checkpoints when they are due, one at a time.

    `commit` commits a position to the group, `beside` runs a coroutine beside the owner's task.
    """

    def __init__(
        self,
        name: str,
        settings: WorkerSettings,
        checkpointer: Checkpointer,
        commit: Callable[[int], Awaitable[None]],
        beside: Callable[[Coroutine[Any, Any, None]], Any],
    ) -> None:
        self._name = name
        self._log = ManagerLog(log, name)
        self._settings = settings
        self.checkpointer = checkpointer
        self._commit = commit
        self._beside = beside
        self._writing = False
        self._failures = 0
        self._next_look = self._not_before = 0.0
        self._hurried = self._ended = False
        self._tried_at = time.monotonic()
        self._operations_then = 0
        self.wanted: list[Question] = []

    def look(self, folder: Folder, lanes: LaneWriter, answers: Answerer) -> None:
        """Takes a snapshot and starts writing it, if it is time and none is being written.

        The outcomes of everything folded must have been handed to the lanes.
        """
        now = time.monotonic()
        if (
            self._ended
            or self._writing
            or now < (self._not_before if self.wanted else self._next_look)
        ):
            return
        self._next_look = now + LOOK_SECONDS
        state = folder.state
        if state.position == self._durable_position:
            self._answer_waiting(folder, answers)
            return
        if not self._is_due(folder, now) or folder.last_record is None:
            return
        self._tried_at, self._operations_then = now, folder.operations
        self._writing = True
        snapshot = self.checkpointer.snapshot(state, folder.chain, folder.last_record, lanes.mark())
        position = state.position
        asked, self.wanted = self.wanted, []

        async def write() -> None:
            try:
                await self.checkpointer.write(snapshot, lanes, self._commit)
            except CheckpointFailedError as error:
                pause = min(AGAIN_SECONDS_MIN * 2**self._failures, AGAIN_SECONDS_MAX)
                self._failures += 1
                self._log.error(
                    "%s; trying again in %.0f s. Messages are not held up, but a restart folds all "
                    "that came since the last checkpoint",
                    error,
                    pause,
                    position=position,
                )
                self._not_before = self._next_look = time.monotonic() + pause
                self.wanted += asked
            else:
                if self._failures:
                    self._log.info("checkpoints can be written again", position=position)
                self._failures = 0
                self.wanted, later = asked, self.wanted
                self._answer_waiting(folder, answers)
                self.wanted = later
            finally:
                self._writing = False

        self._beside(write())

    async def write_last(self, position: int) -> None:
        """Has one written that covers a position, at once; there is none after it.

        The owner must go on meanwhile: it takes the snapshot.
        """
        self._hurried, self._next_look = True, 0.0
        while self._durable_position < position:
            await asyncio.sleep(LAST_LOOK_SECONDS)
        self._ended = True

    @property
    def _durable_position(self) -> int:
        durable = self.checkpointer.durable
        return -1 if durable is None else int(durable["position"])

    def _is_due(self, folder: Folder, now: float) -> bool:
        settings = self._settings
        if self.wanted or self._hurried:
            return True
        changed = folder.operations - self._operations_then
        # Where messages leave from all over a deep queue, each touches a block of its own: encoding
        # may take a tenth of the time at most.
        pause = ENCODING_SHARE * self.checkpointer.encoding_seconds
        if now - self._tried_at < min(pause, PAUSE_SECONDS_MAX):
            return False
        # What the last one was to cover changed already, and the others count from there.
        if self._failures or changed >= settings.checkpoint_operations:
            return True
        if not changed:
            return False
        if now - self._tried_at >= settings.checkpoint_seconds:
            return True
        stores = folder.state.stores.values()
        blocks = sum(len(touched) for one in stores if (touched := one.touched_blocks))
        return blocks >= settings.checkpoint_blocks

    def _answer_waiting(self, folder: Folder, answers: Answerer) -> None:
        asked, self.wanted = self.wanted, []
        manifest = self.checkpointer.durable
        document: dict[str, Any] = {"position": -1, "digest": None, "manifest": None}
        if manifest is not None:
            document = {name: manifest[name] for name in ("position", "digest")}
            document["manifest"] = manifest_key(self._name, manifest["position"]).decode()
        for question in asked:
            answer = Answer(document=document)
            answers.reply(folder.state, question, answer, position=document["position"])
