"""The Faust application: partitions come and go, its agent hands chunks to their owners.

Faust is the shell: membership of the group, assignment, streams, web. What is folded, and when it
counts as done, is decided by owners and checkpoints (D4).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, ClassVar

import faust
from faust.app.base import BootStrategy
from faust.tables.manager import TableManager
from faust.web.drivers.aiohttp import Web

from ledgermq.processor.faust_shell.sharing import Sharing
from ledgermq.processor.faust_shell.transport import LogTransport
from ledgermq.processor.worker.membership import workers_group
from ledgermq.processor.worker.settings import WorkerSettings
from ledgermq.processor.worker.web_address import in_address
from ledgermq.wire.kafka.settings import ANSWERED_WITHIN_MS
from ledgermq.wire.topics.log_topics import Topics

# A member whose heartbeat is not answered for longer has lost its session in any case.
GROUP_ANSWER_SECONDS = 6.0


class LoopbackWeb(Web):
    """Faust's web server without any page of its own; above all without the tables (D4, D15)."""

    logger = logging.getLogger("faust.web")
    default_blueprints: ClassVar[list[Any]] = []
    production_blueprints: ClassVar[list[Any]] = []
    debug_blueprints: ClassVar[list[Any]] = []
    optional_blueprints: ClassVar[list[Any]] = []


class NoTables(TableManager):
    """Faust's manager of tables: there are none, so nobody need wait a second for them to come."""

    logger = logging.getLogger("faust.tables")

    async def on_start(self) -> None:
        """Says at once that all tables are known; the recovery hands out partitions."""
        await self._update_channels()
        await self.recovery.start()


class WithoutProducer(BootStrategy):
    """What Faust starts: nothing that writes, since outcomes have a producer of their own."""

    enable_kafka_producer = False


class WorkerApplication(faust.App):
    BootStrategy = WithoutProducer
    logger = logging.getLogger("faust.app")
    log_bootstrap = ""
    sharing: Sharing

    def _new_transport(self) -> Any:
        return LogTransport(self.conf.broker_consumer, self)

    def _new_web(self) -> Any:
        return LoopbackWeb(self)


def make_application(
    settings: WorkerSettings,
    topics: Topics,
    web_port: int | None,
    take_chunk: Callable[[Any], None],
    sharing: Sharing,
) -> WorkerApplication:
    """The application of a worker; `take_chunk` gets every drained chunk in order."""
    brokers = ";".join(f"kafka://{one.strip()}" for one in settings.bootstrap.split(","))
    app = WorkerApplication(
        workers_group(topics),
        broker=brokers,
        datadir=str(settings.data_directory / "faust"),
        store="memory://",
        TableManager=NoTables,
        processing_guarantee="at_least_once",
        topic_allow_declare=False,
        topic_disable_leader=True,
        # Faust's own assignor checks the web address of a member that comes back under its name,
        # which may be another by then; ours takes its place (`sharing`).
        table_standby_replicas=0,
        broker_session_timeout=settings.session_timeout_seconds,
        broker_heartbeat_interval=settings.heartbeat_seconds,
        broker_request_timeout=max(GROUP_ANSWER_SECONDS, settings.session_timeout_seconds * 2),
        consumer_connections_max_idle_ms=ANSWERED_WITHIN_MS,
        broker_max_poll_records=settings.poll_records,
        consumer_auto_offset_reset="earliest",
        consumer_group_instance_id=settings.name or None,
        # Records come from the feed; what aiokafka fetches before it is paused is thrown away.
        consumer_max_fetch_size=64 * 1024,
        # How much may wait is the owners' business: they hold their partitions back.
        stream_buffer_maxsize=0,
        stream_wait_empty=False,
        web_enabled=web_port is not None,
        web_bind=settings.web_host,
        web_host=in_address(settings.web_host),
        web_port=web_port or 6066,
        web_in_thread=False,
    )
    app.log_bootstrap = settings.bootstrap
    app.sharing = sharing
    # acks=False: what has been taken is no business of Faust's; a checkpoint says what is done.
    operations = app.topic(topics.operations, acks=False, allow_empty=True)

    @app.agent(operations, name="fold", concurrency=1)
    async def fold(stream: Any) -> None:
        async for chunk in stream:
            # What was drained before a rebalance is read again after it.
            if chunk.generation == app.consumer_generation_id and app.flow_control.is_active():
                take_chunk(chunk)

    return app
