"""An owner: everything one queue manager needs while its partition is assigned to this worker.

Theory of operation. One task per partition does all in turn, so nothing needs a lock: load the
state, then fold a slice, send its outcomes, answer questions, do the duties of time, take a
snapshot when one is due; then wait. The agent only hands records in.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, Protocol

from faust.types import TP

from ledgermq.errors import LedgerMQError
from ledgermq.processor.answers import Answerer, Question
from ledgermq.processor.bodies import BodyStore, LogReader
from ledgermq.processor.checkpoint_loading import Loaded, load, manifest_key
from ledgermq.processor.checkpoints import Checkpointer, CheckpointFailedError
from ledgermq.processor.crash_points import crash_point, is_armed
from ledgermq.processor.duties import Silence, TimeKeeper
from ledgermq.processor.folding import Folder
from ledgermq.processor.lanes import LaneWriter
from ledgermq.processor.log_reading import partition_reader
from ledgermq.processor.producer import LogProducer
from ledgermq.processor.settings import WorkerSettings
from ledgermq.processor.side_topic import SideTopic
from ledgermq.processor.transport import DrainedChunk
from ledgermq.wire.registry import Claim
from ledgermq.wire.topics import Topics

__all__ = ["LogCutError", "Owner", "Surroundings"]

log = logging.getLogger(__name__)

DUTY_SECONDS = 0.05
SILENCE_SECONDS = 0.5
LOOK_SECONDS = 0.2
SEEKS_MAX = 5


class LogCutError(LedgerMQError):
    """The operations log lost what was folded already, or has a hole."""

    code = "LMQ-2160"


class LogAccess(Protocol):
    """What an owner needs of the consumer."""

    def open_gate(self, tp: TP) -> None:
        """Lets records through."""

    def close_gate(self, tp: TP) -> None:
        """Holds records back."""

    async def seek_to(self, tp: TP, offset: int) -> None:
        """Reads on from an offset."""

    async def commit_position(self, tp: TP, offset: int) -> None:
        """Commits to the group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What the owners of a worker share."""

    settings: WorkerSettings
    topics: Topics
    producer: LogProducer
    consumer: LogAccess
    side_topic: SideTopic


class Owner:
    """Owns one queue manager."""

    def __init__(self, claim: Claim, around: Surroundings) -> None:
        settings, topics = around.settings, around.topics
        self.claim = claim
        self.tp = TP(topics.operations, claim.partition)
        self._around = around
        self._settings = settings
        reader = LogReader(
            settings.bootstrap, topics.operations, claim.partition, settings.request_timeout_seconds
        )
        self.bodies = BodyStore(settings.body_cache_bytes, reader)
        self.lanes = LaneWriter(claim, around.producer, self.bodies, settings.chunk_bytes)
        self.answers = Answerer(claim.queue_manager, settings.worker_name, self.lanes, self.bodies)
        self.silence = Silence()
        self.time = TimeKeeper(claim, around.producer, settings.worker_name)
        self.folder: Folder | None = None
        self.checkpointer: Checkpointer | None = None
        self.end_offset: int | None = None
        self._wake = asyncio.Event()
        self._held = False
        self._seeks: tuple[int, int] = (-1, 0)
        self._heartbeat_heard = False
        self._operations_at_checkpoint = 0
        self._checkpoint: asyncio.Task[None] | None = None
        self._next_look = 0.0
        self._checkpoint_tried_at = time.monotonic()
        self._wanted_checkpoints: list[Question] = []
        self._listening: asyncio.Task[None] | None = None
        self._silence_check: asyncio.Task[None] | None = None
        self._next_duty = self._next_silence = 0.0
        self._fault: BaseException | None = None

    # What the worker hands in -----------------------------------------------------------------

    @property
    def wanted_position(self) -> int | None:
        """The position to read on from, once the state is loaded."""
        return None if self.folder is None else self.folder.expected + len(self.folder)

    def take_records(self, chunk: DrainedChunk) -> None:
        """Takes records in; holds the partition back when too many wait."""
        if self.folder is None:
            return
        self.end_offset = chunk.end_offset
        self.folder.add(chunk.records)
        if len(self.folder) > self._settings.backlog_records and not self._held:
            self._held = True
            self._around.consumer.close_gate(self.tp)
        self._wake.set()

    def take_question(self, ask: dict[str, Any]) -> None:
        """Takes a question."""
        self.answers.take(ask)
        self._wake.set()

    def take_heartbeat(self, connection: bytes) -> None:
        """Takes a sign of life."""
        self.silence.heard(connection)
        self._heartbeat_heard = True

    def drop_unfolded(self) -> None:
        """Forgets records that wait: after a rebalance they are read again."""
        if self.folder is not None:
            self.folder.drop_backlog()
            self._release()

    def nudge(self) -> None:
        """Lets the owner look whether anything is due."""
        self._wake.set()

    # The owner's task --------------------------------------------------------------------------

    async def run(self) -> None:
        """Owns the queue manager until cancelled.

        Raises:
            LedgerMQError: It cannot go on; the text says why and what to do.
        """
        name = self.claim.queue_manager
        loaded = await self._load()
        folder = self.folder
        assert folder is not None
        log.info(
            "%s: state loaded at position %d (%s); reading on from there",
            name,
            loaded.state.position,
            "from a checkpoint" if loaded.manifest else "from the beginning",
        )
        consumer = self._around.consumer
        await consumer.seek_to(self.tp, folder.expected)
        consumer.open_gate(self.tp)
        self._listening = self._beside(self._listen())
        while True:
            self._wake.clear()
            worked = await self._turn(folder)
            if self._fault is not None:
                raise self._fault
            if not worked:
                await self._wake.wait()

    def _beside(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Runs something beside the turns; what it raises ends the owner."""
        task = asyncio.create_task(coroutine)

        def ended(done: asyncio.Task[None]) -> None:
            if not done.cancelled() and done.exception() is not None:
                self._fault = done.exception()
                self._wake.set()

        task.add_done_callback(ended)
        return task

    async def _load(self) -> Loaded:
        """Loads the state in a thread: the event loop stays free (H11)."""
        settings = self._settings

        def in_thread() -> Loaded:
            with partition_reader(settings.bootstrap, settings.request_timeout_seconds) as reader:
                return load(
                    reader,
                    settings.bootstrap,
                    self._around.topics,
                    self.claim,
                    settings.request_timeout_seconds,
                )

        loaded = await asyncio.to_thread(in_thread)
        self.folder = Folder(
            self.claim.queue_manager, loaded.state, loaded.chain, self.bodies, self.silence
        )
        self.checkpointer = Checkpointer(
            self.claim,
            loaded,
            bootstrap=settings.bootstrap,
            topics=self._around.topics,
            worker=settings.worker_name,
            timeout_seconds=settings.request_timeout_seconds,
        )
        return loaded

    async def _listen(self) -> None:
        """Hears the side topic, and lets silence count once it was read to its end (H5, H12)."""
        side_topic, partition = self._around.side_topic, self.claim.partition
        await side_topic.listen(partition, self)
        while not await side_topic.read_to_end(partition):
            await asyncio.sleep(0.2)
        if side_topic.hears(partition):
            self.silence.count_from_now()
        else:
            log.error(
                "%s: partition %d of the questions is not read beside that of the operations; "
                "no session will be suspected",
                self.claim.queue_manager,
                partition,
            )

    async def _turn(self, folder: Folder) -> bool:
        """Does what is to be done now; whether there is more of it."""
        if await self._fold(folder):
            return True
        state = folder.state
        if self.answers.waiting:
            self._wanted_checkpoints += await self.answers.answer_due(state)
        self._checkpoint_if_due(folder)
        now = time.monotonic()
        if now >= self._next_duty:
            self._next_duty = now + DUTY_SECONDS
            await self._duties(folder, now)
        return len(folder) > 0

    async def _fold(self, folder: Folder) -> bool:
        """Folds a slice and sends its outcomes; whether more records wait."""
        if not len(folder):
            return False
        if folder.next_offset != folder.expected:
            await self._close_gap(folder)
            return len(folder) > 0
        settings, state = self._settings, folder.state
        folded = folder.fold_slice(settings.slice_records, settings.slice_bytes)
        crash_point("after-fold")
        if state.time_stood_still:
            await self.time.agree_time(state)
        await self.lanes.send(folded)
        if is_armed("after-produce"):
            self._around.producer.flush(10.0)
            crash_point("after-produce")
        self.time.folded_to(state)
        if self._held and len(folder) < settings.backlog_records // 2:
            self._release()
        await asyncio.sleep(0)
        if not len(folder):
            return False
        if self.answers.waiting:
            self._wanted_checkpoints += await self.answers.answer_due(state)
        self._checkpoint_if_due(folder)
        return True

    def _release(self) -> None:
        if self._held:
            self._held = False
            self._around.consumer.open_gate(self.tp)

    async def _close_gap(self, folder: Folder) -> None:
        """Seeks back when the next record is not the one after the last folded (H9)."""
        found, expected = folder.next_offset, folder.expected
        if self.end_offset is not None and self.end_offset < expected:
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
        if times > SEEKS_MAX:
            raise LogCutError(
                f"{self.claim.queue_manager}: {self.tp.topic}-{self.tp.partition} has no record "
                f"at {expected}, the next one is at {found}. The ledger has no holes by itself: "
                "was it written to with Kafka transactions, or compacted?"
            )
        log.info(
            "%s: record %d came where %d was expected; seeking back",
            self.claim.queue_manager,
            found,
            expected,
        )
        folder.drop_backlog()
        self._release()
        await self._around.consumer.seek_to(self.tp, expected)

    async def _duties(self, folder: Folder, now: float) -> None:
        """What time asks for: ticks, agreed time, suspicion, rest."""
        self.time.folded_to(folder.state)
        heard, self._heartbeat_heard = self._heartbeat_heard, False
        await self.time.let_time_pass(folder.state, heartbeat_heard=heard)
        if now >= self._next_silence:
            self._next_silence = now + SILENCE_SECONDS
            self.bodies.rest()
            self.silence.forget_gone(folder.state)
            checking = self._silence_check is not None and not self._silence_check.done()
            if not checking and not self.time.busy and self.silence.silent(folder.state):
                self._silence_check = self._beside(self._suspect(folder))

    async def _suspect(self, folder: Folder) -> None:
        """Reads side topic and ledger to their ends, then suspects who is silent still (H5)."""
        side_topic, partition = self._around.side_topic, self.claim.partition
        if not side_topic.hears(partition) or not await side_topic.read_to_end(partition):
            return
        end = await side_topic.end_of_operations(partition)
        if end is None:
            return
        limit = time.monotonic() + 10.0
        while folder.expected < end:
            if time.monotonic() > limit:
                return
            await asyncio.sleep(0.01)
        await self.time.suspect(folder.state, self.silence.silent(folder.state))

    # Checkpoints -------------------------------------------------------------------------------

    def _checkpoint_if_due(self, folder: Folder) -> None:
        """Takes a snapshot and starts writing it, if it is time and none is being written."""
        state, checkpointer = folder.state, self.checkpointer
        assert checkpointer is not None
        if self._checkpoint is not None and not self._checkpoint.done():
            return
        now = time.monotonic()
        if now < self._next_look and not self._wanted_checkpoints:
            return
        self._next_look = now + LOOK_SECONDS
        durable = -1 if checkpointer.durable is None else checkpointer.durable["position"]
        wanted = self._wanted_checkpoints
        if state.position < 0 or state.position == durable:
            self._wanted_checkpoints = []
            for question in wanted:
                self._tell_checkpoint(question)
            return
        settings = self._settings
        changed = folder.operations - self._operations_at_checkpoint
        waited = now - self._checkpoint_tried_at
        blocks = sum(len(queue.touched_blocks) for queue in state.queues.values())
        due = (
            bool(wanted)
            or (changed > 0 and waited >= settings.checkpoint_seconds)
            or changed >= settings.checkpoint_operations
            or blocks >= settings.checkpoint_blocks
        )
        if not due or folder.last_record is None:
            return
        self._checkpoint_tried_at = now
        self._operations_at_checkpoint = folder.operations
        self._wanted_checkpoints = []
        snapshot = checkpointer.snapshot(
            state, folder.chain, folder.last_record, self.lanes.book.sent
        )

        async def write() -> None:
            try:
                await checkpointer.write(snapshot, self.lanes.book, self._commit)
            except CheckpointFailedError as error:
                log.error("%s; going on without it", error)
                self._wanted_checkpoints += wanted
            else:
                for question in wanted:
                    self._tell_checkpoint(question)
            self._wake.set()

        self._checkpoint = self._beside(write())

    async def _commit(self, offset: int) -> None:
        await self._around.consumer.commit_position(self.tp, offset)

    def _tell_checkpoint(self, question: Question) -> None:
        """Answers that a checkpoint is durable."""
        assert self.folder is not None
        assert self.checkpointer is not None
        name, manifest = self.claim.queue_manager, self.checkpointer.durable
        position = -1 if manifest is None else manifest["position"]
        document = {
            "position": position,
            "digest": None if manifest is None else manifest["digest"],
            "manifest": None if manifest is None else manifest_key(name, position),
        }
        self.answers.reply(self.folder.state, question, document, position=position)

    async def close(self) -> None:
        """Lets go of everything; nothing is written any more."""
        tasks = [self._checkpoint, self._listening, self._silence_check]
        for task in tasks:
            if task is not None:
                task.cancel()
        await asyncio.gather(*(task for task in tasks if task), return_exceptions=True)
        await self._around.side_topic.leave(self.claim.partition, self)
        if self.checkpointer is not None:
            self.checkpointer.close()
        self.bodies.close()
