"""Faust's Kafka transport, changed where hazards ask for it: records travel in chunks.

Theory of operation. Faust hands every record through three asyncio tasks and several callbacks; a
chunk of records, drained from one partition by one poll, goes straight into the stream of the
agent instead (H10). The records themselves come from the feed; aiokafka only keeps the membership
of the group, and its own reading of the assigned partitions is paused. Three further rules live
here:

- a partition is read only while its owner says so (`feed.go_on`), so nothing comes before its
  state is loaded (H11);
- every seek that Faust makes to the group's committed offset is followed by one to the position
  that the owner wants (H9);
- nothing is ever committed to the group by Faust's own count of acknowledged events (H30):
  `commit_position` does that, when a checkpoint that covers the position is durable.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Any, NamedTuple, cast

from aiokafka import AIOKafkaConsumer
from aiokafka.errors import BrokerResponseError, KafkaError, kafka_errors
from aiokafka.structs import OffsetAndMetadata, TopicPartition
from faust.transport.drivers import aiokafka as driver
from faust.types import TP

from ledgermq.errors import LedgerMQError
from ledgermq.processor.faust_shell.feed import FeedError, RecordFeed
from ledgermq.processor.log.aiokafka_options import aiokafka_options
from ledgermq.processor.log.coordinators import look_up_coordinator

# Kafka takes a member that does not poll for long to be dead; so it is polled for nothing.
SHOW_LIFE_SECONDS = 1.0
REACTION_SECONDS = 30.0


class FencedInstanceError(BrokerResponseError):
    """Another member took the name of this one while the group was shared out."""

    errno = 82
    message = "FENCED_INSTANCE_ID"


# aiokafka takes the codes that it does not list for an unknown error of the broker.
kafka_errors[FencedInstanceError.errno] = FencedInstanceError


def _unwrapped(told: BaseException) -> BaseException:
    """What ended the coordination; answers to the second step of joining come wrapped, as text."""
    wrapped = isinstance(told, KafkaError) and repr(FencedInstanceError()) in str(told)
    return FencedInstanceError() if wrapped else told


class DrainedChunk(NamedTuple):
    """Records of one partition that one poll brought, in order of offset."""

    tp: TP
    records: list[Any]
    generation: int
    end_offset: int | None


class LogConsumerThread(driver.AIOKafkaConsumerThread):
    """The thread that talks to Kafka, with settings that Faust does not pass on."""

    logger = logging.getLogger("faust.consumer")

    def _create_consumer(self, loop: asyncio.AbstractEventLoop) -> Any:
        consumer = super()._create_consumer(loop)
        app: Any = self.consumer.app
        consumer._partition_assignment_strategy = (app.sharing,)
        return consumer

    def _create_worker_consumer(self, transport: driver.Transport) -> AIOKafkaConsumer:
        """As Faust does it, without tables and with the user's options of aiokafka."""
        conf = self.app.conf
        own = {
            "client_id": conf.broker_client_id,
            "group_id": conf.id,
            "group_instance_id": conf.consumer_group_instance_id,
            "bootstrap_servers": driver.server_list(transport.url, transport.default_port),
            "enable_auto_commit": False,
            "auto_offset_reset": conf.consumer_auto_offset_reset,
            "max_poll_records": conf.broker_max_poll_records,
            "max_poll_interval_ms": int((conf.broker_max_poll_interval or 0) * 1000),
            "max_partition_fetch_bytes": conf.consumer_max_fetch_size,
            "fetch_max_wait_ms": 1500,
            "request_timeout_ms": int(conf.broker_request_timeout * 1000),
            "check_crcs": conf.broker_check_crcs,
            "session_timeout_ms": int(conf.broker_session_timeout * 1000),
            "rebalance_timeout_ms": int(conf.broker_rebalance_timeout * 1000),
            "heartbeat_interval_ms": int(conf.broker_heartbeat_interval * 1000),
            "metadata_max_age_ms": conf.consumer_metadata_max_age_ms,
            "connections_max_idle_ms": conf.consumer_connections_max_idle_ms,
        }
        consumer = AIOKafkaConsumer(**own | aiokafka_options())
        client = consumer._client
        client.coordinator_lookup = partial(look_up_coordinator, client)
        return consumer

    async def show_life(self) -> None:
        """Polls for nothing: all partitions are paused, their records come from the feed."""
        consumer = self._ensure_consumer()
        consumer.pause(*consumer.assignment())
        await consumer.getmany(timeout_ms=0)

    async def leave_group(self) -> None:
        """Gives the partitions to others at once; a named member would keep them for a while."""
        coordinator: Any = self._ensure_consumer()._coordinator
        coordinator._group_instance_id = None
        await coordinator.close()

    async def join_again(self) -> None:
        """Has the group share out anew, by what this member tells of itself now."""
        coordinator: Any = self._ensure_consumer()._coordinator
        coordinator.request_rejoin()

    async def commit_to_group(self, tp: TP, offset: int) -> None:
        """Commits an offset; raises what Kafka answers, such as a generation that is over."""
        wanted = {TopicPartition(tp.topic, tp.partition): OffsetAndMetadata(offset, "")}
        await self._ensure_consumer().commit(wanted)


class LogConsumer(driver.Consumer):
    logger = logging.getLogger("faust.consumer")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._feed: RecordFeed | None = None
        self._showed_life_at = 0.0
        # Where to ask for the next position that each partition wants.
        self.wanted_positions: Callable[[], Mapping[TP, int]] = dict
        # Who is told of a partition whose next record is not there.
        self.on_missing: Callable[[TP, FeedError], None] | None = None
        # Who is told what ends the reading; Faust would tell it as a crash, with two tracebacks.
        self.on_failure: Callable[[BaseException], None] | None = None
        super().__init__(*args, **kwargs)

    def _new_consumer_thread(self) -> LogConsumerThread:
        return LogConsumerThread(self, loop=self.loop, beacon=self.beacon)

    @property
    def feed(self) -> RecordFeed:
        if self._feed is None:
            app: Any = self.app
            self._feed = RecordFeed(app.log_bootstrap, self._pass_on, missing=self.on_missing)
        return self._feed

    @property
    def _kafka(self) -> Any:
        """The thread that talks to Kafka, which has more here than Faust knows of."""
        return self._thread

    async def _in_thread(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Runs a coroutine in Kafka's thread; Faust's queue of methods would add its latency."""
        loop = self._kafka.thread_loop
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(coroutine, loop))

    def seek_to(self, tp: TP, offset: int) -> None:
        """Reads a partition on from an offset; what is under way is dropped."""
        self.feed.read_from(tp, offset)
        self._read_offset[tp] = offset or None

    async def perform_seek(self) -> None:
        """Seeks to the committed offsets as Faust wants, then to those that the state wants."""
        await super().perform_seek()
        for tp, offset in self.wanted_positions().items():
            self.seek_to(tp, offset)

    async def commit(self, *_unused: Any, **_unused_too: Any) -> bool:
        """Commits nothing: what Faust counts as acknowledged says nothing here (H30)."""
        return False

    async def commit_position(self, tp: TP, offset: int) -> None:
        """Commits the offset of the next record to the group: a hint, never the truth (D4).

        Raises:
            aiokafka.errors.KafkaError: The group gave the partition to somebody else, or Kafka
                did not answer.
        """
        await self._in_thread(self._kafka.commit_to_group(tp, offset))

    def verify_event_path(self, now: float, tp: TP) -> None:
        """Faust's watch over its own commits has nothing to watch here."""

    async def _drain_messages(self, fetcher: Any) -> None:
        """Keeps the membership alive; records are passed on as they arrive."""
        try:
            while not (self._stopped.is_set() or fetcher._stopped.is_set()):
                await self._look_after()
        except self.consumer_stopped_errors:
            if not self.transport.app.should_stop:
                raise
        except asyncio.CancelledError:
            if not self.transport.app.should_stop:
                raise
        except (LedgerMQError, KafkaError) as error:
            if self.on_failure is None:
                raise
            self.on_failure(_unwrapped(error))

    async def _look_after(self) -> None:
        # During a rebalance too: one whose coordination has ended would never be over.
        await self._show_life()
        if not self.flow_active:
            await self.wait_first(self.can_resume_flow.wait(), timeout=SHOW_LIFE_SECONDS)
            return
        self.feed.check()
        self._pass_on()
        await self.wait_first(self.suspend_flow.wait(), timeout=SHOW_LIFE_SECONDS)

    async def _show_life(self) -> None:
        """Lets Kafka know now and then that this member of the group works.

        Raises:
            aiokafka.errors.KafkaError: The coordination with the group has ended for good.
            TimeoutError: Kafka's thread does not react any more.
        """
        now = time.monotonic()
        if now - self._showed_life_at >= SHOW_LIFE_SECONDS:
            self._showed_life_at = now
            await asyncio.wait_for(self._in_thread(self._kafka.show_life()), REACTION_SECONDS)

    def check_membership(self) -> None:
        """Raises what ended the coordination with the group, also before there are partitions.

        aiokafka tells whoever reads, and waits for that; Faust waits for its first partitions
        before it does. So a worker that stands by would never take over.
        """
        coordinator = getattr(self._kafka._consumer, "_coordinator", None)
        told = getattr(coordinator, "_pending_exception", None)
        if told is not None:
            raise _unwrapped(told)

    async def leave_group(self) -> None:
        """Lets another worker take over at once; records go on coming until the stop."""
        if self._kafka._consumer is not None:
            await self._in_thread(self._kafka.leave_group())

    async def join_again(self) -> None:
        """Has the group share out anew, by what this member tells of itself now."""
        await self._in_thread(self._kafka.join_again())

    async def on_stop(self) -> None:
        if self._feed is not None:
            await self._feed.stop()
        await super().on_stop()

    def _pass_on(self) -> None:
        """Hands what has arrived to the agent's stream; during a rebalance it stays where it is.

        Nothing is awaited here, so no rebalance can begin in between (H10). Faust's conductor would
        do the same by way of two more tasks, which took a fifth of the worker's time.
        """
        feed, app = self._feed, cast(Any, self.app)
        while feed is not None and self.flow_active and app.flow_control.is_active():
            batch = feed.take()
            if batch is None:
                return
            chunk = DrainedChunk(
                batch.tp, batch.records, app.consumer_generation_id, batch.end_offset
            )
            for channel in app.topics._tp_index[batch.tp]:
                channel.queue.put_nowait(chunk)
            self._read_offset[batch.tp] = batch.records[-1].offset


class LogTransport(driver.Transport):
    Consumer = LogConsumer
