"""A worker: owns the queue managers that the group gives it, until it ends."""

from __future__ import annotations

import asyncio
import errno
import logging
import signal
import threading
from collections.abc import Coroutine
from functools import partial
from typing import Any, Final

from aiokafka.errors import (
    GroupAuthorizationFailedError,
    InconsistentGroupProtocolError,
    InvalidSessionTimeoutError,
    TopicAuthorizationFailedError,
)
from faust.types import TP

from ledgermq.errors import (
    AccessDeniedError,
    AuthenticationFailedError,
    LedgerMQError,
    SchemaRefusedError,
)
from ledgermq.processor.checkpoints.loading import (
    CheckpointMismatchError,
    LogIncompleteError,
    VersionUnknownError,
)
from ledgermq.processor.faust_shell.application import make_application
from ledgermq.processor.faust_shell.feed import FeedError
from ledgermq.processor.faust_shell.sharing import Sharing, Standing
from ledgermq.processor.faust_shell.transport import DrainedChunk, FencedInstanceError
from ledgermq.processor.lanes.anchors import LogCutError
from ledgermq.processor.lanes.producer import LogProducer, WriteFailedError
from ledgermq.processor.metrics.collector import Scrape, encoder_for
from ledgermq.processor.owner.owner import Owner, Surroundings
from ledgermq.processor.owner.side_topic import SideTopic
from ledgermq.processor.owner.stopped import StoppedManagers
from ledgermq.processor.worker.exit_codes import (
    EXIT_FAULT,
    EXIT_REFUSED,
    EXIT_STOPPED,
    EXIT_UNREACHABLE,
)
from ledgermq.processor.worker.membership import (
    GroupSharedOtherwiseError,
    SessionTimeoutError,
    workers_group,
)
from ledgermq.processor.worker.process import in_time, leave_at_once
from ledgermq.processor.worker.readiness import wait_for_another_worker
from ledgermq.processor.worker.schema_ids import wait_for_framing
from ledgermq.processor.worker.settings import WorkerSettings
from ledgermq.processor.worker.web_address import WebAddressError, in_address, usable_port
from ledgermq.wire.framing.confluent import ConfluentFraming
from ledgermq.wire.kafka.access import missing_right
from ledgermq.wire.topics.ledger import Ledger
from ledgermq.wire.topics.log_topics import Topics
from ledgermq.wire.topics.registry import Claim, RegistryError, list_queue_managers

log = logging.getLogger(__name__)


class NameTakenError(LedgerMQError):
    """Another worker has the same name."""

    code = "name-taken"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"another worker is called {name} too; start this one with a name of its own (--name), "
            "or without any"
        )


NO_ADDRESS: Final = (errno.EADDRINUSE, errno.EADDRNOTAVAIL)

REFUSALS = (
    CheckpointMismatchError,
    FeedError,
    LogCutError,
    LogIncompleteError,
    NameTakenError,
    SchemaRefusedError,
    SessionTimeoutError,
    VersionUnknownError,
)
NOT_LET_IN = (AuthenticationFailedError, AccessDeniedError)
# What is wrong with the worker, and not with one queue manager.
OF_ALL = (*NOT_LET_IN, WriteFailedError)
REPLACED_MAX = 3
NUDGE_SECONDS = 0.05
REGISTRY_AGAIN_SECONDS = 1.0
LAST_CHECKPOINT_SECONDS = 5.0
LEAVE_SECONDS = 3.0
# How long a worker that stops waits for those that take over, and goes on beside them, at most.
OVERLAP_SECONDS = 10.0
STOP_SECONDS = 15.0
LAST_RESORT_SECONDS = 20.0


class Worker:
    def __init__(self, settings: WorkerSettings, topics: Topics, claims: list[Claim]) -> None:
        self._settings = settings
        self._topics = topics
        self._claims = {claim.partition: claim for claim in claims}
        self._sharing = Sharing(topics.operations, self._standing, lambda: list(self._claims))
        self._assigned: set[int] = set()
        # What is assigned is folded by an owner, unless its version is not known here (H3) or it is
        # stopped; what is tried again has an owner and counts as stopped.
        self._owners: dict[int, Owner] = {}
        self._unfit: set[int] = set()
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._closing: set[asyncio.Task[Any]] = set()
        self._stopped = StoppedManagers(self._closing_soon)
        self._generation, self._replaced = -1, 0
        self._registry_unread = asyncio.Event()
        # Both are there once it runs.
        self._ended: asyncio.Future[int]
        self._around: Surroundings
        self.web_port: int | None = None

    async def run(self) -> int:
        settings = self._settings
        loop = asyncio.get_running_loop()
        self._ended = loop.create_future()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._end, EXIT_STOPPED)
        try:
            self.web_port = usable_port(settings.web_host, settings.web_port)
        except WebAddressError as error:
            log.critical("%s", error)
            return EXIT_FAULT
        framing = await self._wait_for_framing()
        if self._ended.done():
            return self._ended.result()
        app: Any = make_application(
            settings, self._topics, self.web_port, self._take_chunk, self._sharing
        )
        self._add_pages(app)
        producer = LogProducer(
            settings.bootstrap, self._topics, self._fail, settings.outcomes_unsent_bytes, framing
        )
        side_topic = SideTopic(settings.bootstrap, self._topics, self._registry_unread.set)
        side_topic.start()
        app.on_partitions_assigned.connect(self._on_assigned)
        app.consumer.wanted_positions = self._wanted_positions
        app.consumer.on_failure = self._fail
        app.consumer.on_missing = self._record_missing
        self._around = Surroundings(
            settings=settings,
            topics=self._topics,
            producer=producer,
            consumer=app.consumer,
            side_topic=side_topic,
        )
        background = [
            self._watched(producer.run()),
            self._watched(side_topic.run()),
            self._watched(self._nudge(app.consumer)),
            self._watched(self._run_application(app)),
            self._watched(self._follow_registry()),
        ]
        log.info(
            "worker %s on %s started%s",
            settings.worker_name,
            settings.bootstrap,
            f"; metrics on http://{in_address(settings.web_host)}:{self.web_port}"
            if self.web_port
            else "",
        )
        code = await self._ended
        if code == EXIT_STOPPED:
            await self._hand_over(app)
        await self._stop(app, background)
        return code

    async def _wait_for_framing(self) -> ConfluentFraming | None:
        """The framing of what is written; None without a registry, or if the worker ends first."""
        settings, ended = self._settings, self._ended
        waiting = self._watched(
            wait_for_framing(settings.schema_registry, settings.web_host, self.web_port)
        )
        await asyncio.wait({waiting, ended}, return_when=asyncio.FIRST_COMPLETED)
        if waiting.done() and waiting.exception() is None:
            found: ConfluentFraming | None = waiting.result()
            return found
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        return None

    async def _run_application(self, app: Any) -> None:
        await app.start()
        await app._crashed.wait()
        raise app.crash_reason or RuntimeError("Faust stopped without saying why")

    def _watched(self, coroutine: Any) -> asyncio.Task[Any]:
        """Runs something that must not end before the worker does."""
        task: asyncio.Task[Any] = asyncio.ensure_future(coroutine)

        def ended(done: asyncio.Task[Any]) -> None:
            if not done.cancelled() and done.exception() is not None:
                self._fail(done.exception())

        task.add_done_callback(ended)
        return task

    def _fail(self, error: BaseException | None) -> None:
        """Ends the worker because of an error that a person should read."""
        if self._ended.done():
            return
        # Two of a name may turn each other away in one moment: started again, one of them stays.
        may_try_again = isinstance(error, FencedInstanceError)
        error = _explained(error, self._topics, self._settings)
        if isinstance(error, LedgerMQError):
            log.critical("%s", error)
        else:
            log.critical("the worker cannot go on: %r", error, exc_info=error)
        if isinstance(error, NOT_LET_IN):
            self._end(EXIT_UNREACHABLE)
        else:
            refused = isinstance(error, REFUSALS) and not may_try_again
            self._end(EXIT_REFUSED if refused else EXIT_FAULT)

    def _end(self, code: int) -> None:
        if not self._ended.done():
            self._ended.set_result(code)
            last_resort = threading.Timer(LAST_RESORT_SECONDS, leave_at_once, (code,))
            last_resort.daemon = True
            last_resort.start()

    # Records ----------------------------------------------------------------------------------

    def _take_chunk(self, chunk: DrainedChunk) -> None:
        """Hands a chunk to its owner; without one it is read again when there is one."""
        owner = self._owners.get(chunk.tp.partition)
        if owner is not None:
            owner.take_records(chunk)

    def _record_missing(self, tp: TP, error: FeedError) -> None:
        if tp.partition in self._owners:
            self._owners[tp.partition].fail(error)

    def _wanted_positions(self) -> dict[TP, int]:
        wanted = {owner.tp: owner.wanted_position for owner in self._owners.values()}
        return {tp: position for tp, position in wanted.items() if position is not None}

    async def _nudge(self, consumer: Any) -> None:
        while True:
            await asyncio.sleep(NUDGE_SECONDS)
            consumer.check_membership()
            for partition, owner in self._owners.items():
                owner.nudge()
                if partition in self._stopped and owner.has_caught_up:
                    self._served_again(partition)
            if self._stopped.due() - self._owners.keys():
                self._take_over()

    # Partitions -------------------------------------------------------------------------------

    def _standing(self) -> Standing:
        return Standing(
            generation=self._generation,
            owned=frozenset(list(self._owners)),
            unfit=frozenset(self._unfit),
            stopped=frozenset(self._stopped.partitions),
        )

    async def _on_assigned(self, app: Any, assigned: set[TP], **_unused: Any) -> None:
        """Takes partitions over and lets others go; loading runs beside this callback (H11)."""
        self._check_name(app.consumer_generation_id)
        self._assigned = {tp.partition for tp in assigned if tp.topic == self._topics.operations}
        for partition in list(self._owners):
            if partition in self._assigned:
                self._owners[partition].drop_unfolded()
            else:
                name = self._owners[partition].claim.queue_manager
                about = {"queue_manager": name}
                log.info("%s is owned by another worker from now on", name, extra=about)
                self._release(partition)
        for partition in set(self._stopped.partitions) - self._assigned:
            self._stopped.forget(partition)
        self._take_over()
        names = [owner.claim.queue_manager for owner in self._owners.values()]
        if names:
            log.info(
                "worker %s owns %s (partitions %s of %s)",
                self._settings.worker_name,
                ", ".join(sorted(names)),
                ", ".join(map(str, sorted(self._assigned))),
                self._topics.operations,
            )
        else:
            log.info(
                "worker %s stands by: another worker owns the queue managers, and this one takes "
                "over when that one is gone",
                self._settings.worker_name,
            )

    def _check_name(self, generation: int) -> None:
        """Ends the worker if another one has its name: the two would replace each other for ever.

        A rebalance has a new generation; a member that was replaced under its name comes back in
        the same one.
        """
        self._replaced = self._replaced + 1 if generation == self._generation else 0
        self._generation = generation
        if self._settings.name and self._replaced >= REPLACED_MAX:
            self._fail(NameTakenError(self._settings.name))

    def _take_over(self) -> None:
        resting = set(self._stopped.partitions) - self._stopped.due()
        for partition in sorted(self._assigned - set(self._owners) - self._unfit - resting):
            claim = self._claims.get(partition)
            if claim is None:
                continue
            if claim.lanes != self._settings.lanes:
                log.error(
                    "%s was claimed with %d lanes, the topics have %d for each queue manager; it "
                    "is left alone: start the worker with the number the topics were made with",
                    claim.queue_manager,
                    claim.lanes,
                    self._settings.lanes,
                    extra={"queue_manager": claim.queue_manager},
                )
                continue
            owner = Owner(claim, self._around)
            self._owners[partition] = owner
            self._tasks[partition] = task = asyncio.create_task(owner.run())
            task.add_done_callback(partial(self._owner_ended, partition))

    def _owner_ended(self, partition: int, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is None or self._tasks.get(partition) is not task:
            return
        others = self._owners.keys() - {partition, *self._stopped.partitions}
        if not others or isinstance(error, OF_ALL):
            # Where nothing else is served, whoever watches the worker is to see that it ends.
            self._fail(error)
        elif isinstance(error, VersionUnknownError):
            self._give_up(partition, error)
        else:
            self._release(partition)
            self._stopped.stop(self._claims[partition], self._around, error)

    def _served_again(self, partition: int) -> None:
        name = self._claims[partition].queue_manager
        log.warning("%s is served again", name, extra={"queue_manager": name})
        self._stopped.forget(partition)

    def _give_up(self, partition: int, error: VersionUnknownError) -> None:
        """Leaves a queue manager to a worker that knows its version; goes on with the others."""
        name = self._claims[partition].queue_manager
        log.critical("%s", error)
        log.warning("%s is left to a worker that knows its version; the others go on here", name)
        self._unfit.add(partition)
        self._stopped.forget(partition)
        if partition in self._owners:
            self._release(partition)
        self._closing_soon(self._around.consumer.join_again())

    def _release(self, partition: int) -> None:
        owner, task = self._owners.pop(partition), self._tasks.pop(partition)
        self._around.consumer.feed.leave(owner.tp)
        task.cancel()
        self._closing_soon(owner.close())

    def _closing_soon(self, work: Coroutine[Any, Any, None]) -> None:
        closing = asyncio.ensure_future(work)
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)

    async def _follow_registry(self) -> None:
        """Takes up queue managers that are claimed while the worker runs.

        The registry is read once for all that was written to it meanwhile.
        """
        settings = self._settings
        while True:
            await self._registry_unread.wait()
            self._registry_unread.clear()
            try:
                claims = await asyncio.to_thread(
                    list_queue_managers,
                    settings.bootstrap,
                    self._topics,
                    timeout_seconds=settings.request_timeout_seconds,
                )
            except RegistryError as error:
                log.warning("%s; reading it again", error)
                self._registry_unread.set()
                await asyncio.sleep(REGISTRY_AGAIN_SECONDS)
            else:
                self._claims.update({claim.partition: claim for claim in claims})
                self._take_over()

    # Pages and the end ------------------------------------------------------------------------

    def _add_pages(self, app: Any) -> None:
        async def metrics(web: Any, request: Any) -> Any:
            unsent = self._around.producer.unsent_bytes
            name, stopped = self._settings.worker_name, self._stopped.codes
            scrape = Scrape(self._owners.values(), unsent, name, stopped)
            encode, content_type = encoder_for(request.headers.get("Accept", ""))
            # Its text takes longer than reading it off the state, and holds nobody up in a thread.
            text = await asyncio.to_thread(encode, scrape)
            return web.bytes(text, headers={"Content-Type": content_type})

        async def health(web: Any, _request: Any) -> Any:
            owned: dict[str, Any] = {
                owner.claim.queue_manager: "loading"
                if owner.folder is None
                else owner.folder.state.position
                for owner in self._owners.values()
            }
            owned |= dict.fromkeys(self._stopped.codes, "stopped")
            name, ready = self._settings.worker_name, self._is_ready
            return web.json(
                {"status": "up", "worker": name, "ready": ready, "queue_managers": owned}
            )

        async def ready(web: Any, _request: Any) -> Any:
            return web.json({"ready": self._is_ready}, status=200 if self._is_ready else 503)

        app.page("/metrics")(metrics)
        app.page("/health")(health)
        app.page("/ready")(ready)

    @property
    def _is_ready(self) -> bool:
        """Whether it has joined its group and loaded all that it owns; so one that stands by is,
        and not one of whose queue managers all are stopped.
        """
        owners = [one for key, one in self._owners.items() if key not in self._stopped]
        loaded = all(one.folder is not None for one in owners)
        serves = bool(owners) or not self._stopped.partitions
        return not self._ended.done() and self._generation >= 0 and loaded and serves

    async def _hand_over(self, app: Any) -> None:
        """Lets others take over without a gap: this worker goes on until they do (D2).

        Two that fold the same do no harm, so the group is left before the folding ends; who takes
        over finds a checkpoint of just now.
        """
        owners = [one for key, one in self._owners.items() if key not in self._stopped]
        written = asyncio.gather(*(owner.write_last_checkpoint() for owner in owners))
        await in_time(written, LAST_CHECKPOINT_SECONDS)
        await in_time(app.consumer.leave_group(), LEAVE_SECONDS)
        if owners and self._sharing.workers > 1:
            log.info("worker %s goes on until others have taken over", self._settings.worker_name)
            await in_time(
                asyncio.gather(*(self._succeeded(owner.claim) for owner in owners)),
                OVERLAP_SECONDS,
            )

    async def _succeeded(self, claim: Claim) -> None:
        """Waits until another worker answers for a queue manager."""
        ledger = Ledger(self._settings.bootstrap, self._topics, claim, OVERLAP_SECONDS)
        await asyncio.to_thread(wait_for_another_worker, ledger, self._settings.worker_name)

    async def _stop(self, app: Any, background: list[asyncio.Task[Any]]) -> None:
        """Stops in order: the group is left, no more folding, what was folded goes out."""
        await in_time(app.consumer.leave_group(), LEAVE_SECONDS)
        for task in [*self._tasks.values(), *background[1:3]]:
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        unsent = await asyncio.to_thread(self._around.producer.flush, 5.0)
        if unsent:
            log.warning("%d records of outcomes were not acknowledged; they are sent again", unsent)
        await in_time(asyncio.gather(*(owner.close() for owner in self._owners.values())), 5.0)
        await in_time(self._around.side_topic.stop(), 5.0)
        await in_time(app.stop(), STOP_SECONDS)
        for task in background:
            task.cancel()
        log.info("worker %s stopped", self._settings.worker_name)


def _explained(
    error: BaseException | None, topics: Topics, settings: WorkerSettings
) -> BaseException | None:
    """The error for people where Kafka does not let us into the group, or an address is taken."""
    if isinstance(error, FencedInstanceError):
        return NameTakenError(settings.worker_name)
    if isinstance(error, InvalidSessionTimeoutError):
        return SessionTimeoutError(settings.session_timeout_seconds)
    if isinstance(error, InconsistentGroupProtocolError):
        return GroupSharedOtherwiseError(topics)
    if isinstance(error, GroupAuthorizationFailedError):
        return missing_right("group", workers_group(topics), "Read")
    if isinstance(error, TopicAuthorizationFailedError):
        names = error.args[0] if error.args else ()
        named = ", ".join(sorted(names)) if isinstance(names, set | list | tuple) else str(names)
        return missing_right("topic", named, "Read")
    if isinstance(error, OSError) and error.errno in NO_ADDRESS:
        return WebAddressError(settings.web_host, settings.web_port, error)
    return error
