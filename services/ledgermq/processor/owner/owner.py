"""An owner: everything one queue manager needs while its partition is assigned to this worker.

Theory of operation. One task per partition does one thing after the other, so nothing needs a
lock: load the state, then fold a slice, send its outcomes, answer questions, do the duties of time,
take a snapshot when one is due; then wait. The agent only hands records in.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import time
from collections.abc import Coroutine
from dataclasses import dataclass, fields
from typing import Any

from faust.types import TP

from ledgermq.core.state.manager import QueueManager
from ledgermq.errors import LedgerMQError
from ledgermq.processor.checkpoints.loading import Loaded, VersionUnknownError, load
from ledgermq.processor.checkpoints.schedule import CheckpointSchedule
from ledgermq.processor.checkpoints.writing import Checkpointer
from ledgermq.processor.faust_shell.transport import DrainedChunk, LogConsumer
from ledgermq.processor.lanes.anchors import LogCutError, anchors_on_lanes, check_ahead
from ledgermq.processor.lanes.bodies import BodyStore, LogReader
from ledgermq.processor.lanes.lanes import LaneWriter
from ledgermq.processor.lanes.producer import LogProducer
from ledgermq.processor.log.sizes import LogSizes
from ledgermq.processor.metrics.labels import Labels
from ledgermq.processor.metrics.tally import Tally
from ledgermq.processor.owner.answers import Answerer
from ledgermq.processor.owner.folding import Folder
from ledgermq.processor.owner.holes import HoleWatch
from ledgermq.processor.owner.side_topic import SideTopic
from ledgermq.processor.owner.silence import SilenceWatch
from ledgermq.processor.owner.time_keeper import TimeKeeper
from ledgermq.processor.worker.crash_points import crash_point, is_armed
from ledgermq.processor.worker.logs import KAFKA_LOGGER, ManagerLog
from ledgermq.processor.worker.settings import WorkerSettings
from ledgermq.wire.topics.ledger import Ledger
from ledgermq.wire.topics.log_topics import Topics
from ledgermq.wire.topics.registry import Claim

log = logging.getLogger(__name__)

DUTY_SECONDS = 0.05
SILENCE_SECONDS = 0.5
SEEKS_MAX = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    settings: WorkerSettings
    topics: Topics
    producer: LogProducer
    consumer: LogConsumer
    side_topic: SideTopic


class Owner:
    def __init__(self, claim: Claim, around: Surroundings) -> None:
        settings, topics = around.settings, around.topics
        self.claim = claim
        self._log = ManagerLog(log, claim.queue_manager)
        self.tp = TP(topics.operations, claim.partition)
        self._around = around
        self._settings = settings
        patience = settings.request_timeout_seconds
        self._ledger = Ledger(settings.bootstrap, topics, claim, patience)
        self.bodies = BodyStore(settings.body_cache_bytes, LogReader(self._ledger))
        self.tally = Tally(Labels(settings.metrics_per_destination))
        self.lanes = LaneWriter(
            claim, around.producer, self.bodies, settings.chunk_bytes, self.tally
        )
        sizes = LogSizes(self._ledger)
        self.answers = Answerer(
            claim.queue_manager, settings.worker_name, self.lanes, self.bodies, sizes
        )
        self.time = TimeKeeper(claim, around.producer, settings.worker_name)
        self.watch = SilenceWatch(claim, around.side_topic, self.time)
        self.folder: Folder | None = None
        self.checkpoints: CheckpointSchedule | None = None
        self.end_offset: int | None = None
        self._wake = asyncio.Event()
        self._held = self._closed = False
        self._answers_from = -1
        self._seeks: tuple[int, int] = (-1, 0)
        self._heartbeat_heard = False
        self._suspecting: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._next_duty = self._next_silence = 0.0
        self._fault: BaseException | None = None
        # Once the state is loaded.
        self._holes: HoleWatch

    # What the worker hands in -----------------------------------------------------------------

    @property
    def wanted_position(self) -> int | None:
        return None if self.folder is None else self.folder.expected + len(self.folder)

    def take_records(self, chunk: DrainedChunk) -> None:
        """Takes records in; holds the partition back when too many wait."""
        if self.folder is None:
            return
        self.end_offset = chunk.end_offset
        self.folder.add(chunk.records)
        if self.folder.crowded(self._settings) and not self._held:
            self._held = True
            self._around.consumer.feed.hold(self.tp)
        self._wake.set()

    def take_question(self, ask: dict[str, Any], size_bytes: int) -> None:
        self.answers.take(ask, size_bytes)
        self._wake.set()

    def take_heartbeat(self, connection: bytes) -> None:
        if self.folder is not None:
            self.watch.silence.heard(connection, self.folder.state)
        self._heartbeat_heard = True

    def drop_unfolded(self) -> None:
        """Forgets records that wait: after a rebalance they are read again."""
        if self.folder is not None:
            self.folder.drop_backlog()
            self._release()

    def nudge(self) -> None:
        self._wake.set()

    def fail(self, error: LedgerMQError) -> None:
        """Ends the owner with what somebody else found of its log."""
        self._fault = error
        self._wake.set()

    # The owner's task --------------------------------------------------------------------------

    async def run(self) -> None:
        """Owns the queue manager until cancelled; LedgerMQError if it cannot go on."""
        loaded = await self._load()
        folder = self.folder
        assert folder is not None
        self._log.info(
            "state loaded at position %d (%s); reading on from there",
            loaded.state.position,
            "from a checkpoint" if loaded.manifest else "from the beginning",
            position=loaded.state.position,
        )
        consumer = self._around.consumer
        consumer.seek_to(self.tp, folder.expected)
        consumer.feed.go_on(self.tp)
        self._beside(self.lanes.release())
        self._beside(self.watch.listen(self))
        while True:
            self._wake.clear()
            worked = await self._work(folder)
            if self._fault is not None:
                raise self._fault
            if not worked:
                await self._wake.wait()

    def _beside(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Runs something beside the owner's task; what it raises ends the owner."""
        task = asyncio.create_task(coroutine)
        self._tasks.add(task)

        def ended(done: asyncio.Task[None]) -> None:
            self._tasks.discard(done)
            self._wake.set()
            if not done.cancelled() and done.exception() is not None:
                self._fault = done.exception()

        task.add_done_callback(ended)
        return task

    async def _load(self) -> Loaded:
        """Loads the state in a thread: the event loop stays free (H11)."""
        settings = self._settings

        def in_thread() -> Loaded:
            # Looking for cycles among a million messages, over and over while they are made,
            # takes a quarter of the time of loading them.
            gc.disable()
            try:
                return self._read_checkpoint()
            finally:
                # What was let go of meanwhile would stay in memory until the next one is.
                if not self._closed:
                    gc.freeze()
                gc.enable()

        loaded = await asyncio.to_thread(in_thread)
        ledger = self._ledger
        self.folder = Folder(ledger, loaded, self.bodies, self.watch.silence, self.tally)
        self._holes = HoleWatch(ledger, self.folder, self._around.side_topic)
        checkpointer = Checkpointer(ledger, loaded, settings.worker_name)
        self.checkpoints = CheckpointSchedule(
            self.claim.queue_manager, settings, checkpointer, self._commit, self._beside
        )
        return loaded

    def _read_checkpoint(self) -> Loaded:
        ledger = self._ledger
        with ledger.reader(KAFKA_LOGGER) as reader:
            loaded = load(reader, ledger)
            loaded.anchors = anchors_on_lanes(reader, ledger)
            check_ahead(reader, ledger, loaded.anchors, loaded.state.position, loaded.chain)
            end = reader.ends(*ledger.operations)[1]
            self._answers_from, self.tally.live_from = end - 1, end
            return loaded

    async def _work(self, folder: Folder) -> bool:
        if await self._fold(folder):
            return True
        await self._between_slices(folder)
        now = time.monotonic()
        if now >= self._next_duty:
            self._next_duty = now + DUTY_SECONDS
            await self._duties(folder, now)
        return len(folder) > 0 and not self._holes.waits

    async def _fold(self, folder: Folder) -> bool:
        if not len(folder):
            return False
        if folder.next_offset != folder.expected:
            await self._close_gap(folder)
            return len(folder) > 0 and not self._holes.waits
        settings, state = self._settings, folder.state
        self._holes.waits = False
        try:
            folded = folder.fold_slice(settings.slice_records, settings.slice_bytes)
        except VersionUnknownError:
            await self._holes.begin_anew_if_skipped()
            raise
        crash_point("after-fold")
        if state.time_stood_still:
            await self.time.agree_time(state)
        await self.lanes.send(folded)
        if is_armed("after-produce"):
            self._around.producer.flush(10.0)
            crash_point("after-produce")
        self.time.folded_to(state)
        if folder.look_wanted:
            await self._holes.look_at_next()
        if self._held and not folder.crowded(settings, share=0.5):
            self._release()
        if not len(folder):
            return False
        await asyncio.sleep(0)
        await self._between_slices(folder)
        return True

    async def _between_slices(self, folder: Folder) -> None:
        """Answers questions and takes a checkpoint, between two operations."""
        checkpoints = self.checkpoints
        assert checkpoints is not None
        # Until it has folded what was there when it came, an owner would answer from the past; but
        # before a hole there is no more.
        if self.answers.waiting and (self._holes.waits or self.has_caught_up):
            checkpoints.wanted += await self.answers.answer_due(folder.state)
        checkpoints.look(folder, self.lanes, self.answers)

    @property
    def has_caught_up(self) -> bool:
        """Whether it has folded what was on the log when it came."""
        return self.folder is not None and self.folder.state.position >= self._answers_from

    @property
    def lag_seconds(self) -> float:
        """How long the next operation has waited to be folded, by the log's clock as estimated."""
        folder = self.folder
        if folder is None:
            return 0.0
        since_ms = folder.waiting_since_ms
        # What is on the log and was not fetched yet is younger than what was folded last.
        since_ms = folder.appended_ms if since_ms is None else since_ms
        if since_ms < 0:
            return 0.0
        return max(0.0, self._around.producer.clock.now_us() / 1_000_000 - since_ms / 1_000)

    async def _commit(self, offset: int) -> None:
        await self._around.consumer.commit_position(self.tp, offset)

    def _release(self) -> None:
        if self._held:
            self._held = False
            self._around.consumer.feed.go_on(self.tp)

    async def _close_gap(self, folder: Folder) -> None:
        """Seeks back when the next record is not the one after the last folded (H9)."""
        found, expected = folder.next_offset, folder.expected
        if self.end_offset is not None and 0 <= self.end_offset < expected:
            raise LogCutError(
                f"{self.claim.queue_manager}: {self.tp.topic}-{self.tp.partition} ends at "
                f"{self.end_offset}, but position {expected - 1} was folded already: the log was "
                "cut. Restore it; what was acknowledged before must be there."
            )
        if found is None:
            return
        position, times = self._seeks
        times = times + 1 if position == expected else 1
        self._seeks = (expected, times)
        if times > SEEKS_MAX or self._holes.is_known(expected):
            passed = await self._holes.pass_over()
            if passed:
                await self.lanes.send(passed)
            if passed is not None:
                return
            self._seeks = (expected, 1)
        self._log.info(
            "record %d came where %d was expected; seeking back",
            found,
            expected,
            position=expected,
        )
        folder.drop_backlog()
        self._release()
        self._around.consumer.seek_to(self.tp, expected)

    async def _duties(self, folder: Folder, now: float) -> None:
        self.time.folded_to(folder.state)
        heard, self._heartbeat_heard = self._heartbeat_heard, False
        await self.time.let_time_pass(folder.state, heartbeat_heard=heard)
        await self.time.offer_version(folder.state)
        if now >= self._next_silence:
            self._next_silence = now + SILENCE_SECONDS
            self.bodies.rest()
            if self._holes.end_is_due:
                self._beside(self._holes.look_at_end())
            silence = self.watch.silence
            silence.forget_gone(folder.state)
            idle = self._suspecting is None or self._suspecting.done()
            if idle and self.watch.is_anybody_doubtful(folder.state):
                self._suspecting = self._beside(self.watch.suspect(folder.state))

    async def write_last_checkpoint(self) -> None:
        """Has the next owner begin where this one is; folding goes on meanwhile."""
        if self.folder is not None and self.checkpoints is not None:
            await self.checkpoints.write_last(self.folder.state.position)

    async def close(self) -> None:
        """Lets go of everything; nothing is written any more."""
        self._closed = True
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._around.side_topic.leave(self.claim.partition, self)
        if self.checkpoints is not None:
            self.checkpoints.checkpointer.close()
        self.bodies.close()
        # What was kept from the collector's eyes; it comes seldom, and holds all others up.
        gc.unfreeze()
        folder, self.folder = self.folder, None
        if folder is not None:
            _take_apart(folder.state)


def _take_apart(state: QueueManager) -> None:
    """Frees the messages of a state that nobody uses any more, which is full of cycles."""
    stores = list(state.stores.values())
    parts: list[Any] = [group for store in stores for group in store.groups.values()]
    for one in (*parts, *stores, state):
        for field in fields(one):
            setattr(one, field.name, None)
