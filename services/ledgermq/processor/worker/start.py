"""Starting a worker: log topics and queue managers are there, or are made, before it takes part."""

from __future__ import annotations

import asyncio
import logging
import os
from dataclasses import replace

from ledgermq.processor.log.aiokafka_options import aiokafka_options
from ledgermq.processor.worker.exit_codes import EXIT_REFUSED, EXIT_UNREACHABLE
from ledgermq.processor.worker.membership import check_may_join, session_timeout_seconds
from ledgermq.processor.worker.process import allow_many_files
from ledgermq.processor.worker.settings import SettingsError, WorkerSettings, misnamed
from ledgermq.processor.worker.worker import NOT_LET_IN, Worker
from ledgermq.wire.framing.schema_registry import SchemaRegistry
from ledgermq.wire.topics.log_topics import TopicError, Topics, ensure_topics
from ledgermq.wire.topics.registry import (
    Claim,
    RegistryError,
    RegistryLostError,
    check_not_lost,
    claim_queue_manager,
    list_queue_managers,
    queue_managers_on_log,
)

log = logging.getLogger(__name__)

JOIN_PATIENCE_SECONDS = 5.0


def run_worker(settings: WorkerSettings) -> int:
    """Runs a worker until it is told to stop (SIGTERM, SIGINT) or cannot go on; an exit code.

    Creates the log topics and claims queue managers in the registry where that is not done yet.

    Raises:
        AddressError, SettingsError: What was given cannot be used.
    """
    for text in misnamed(os.environ):
        log.warning("%s", text)
    topics = Topics(settings.topic_prefix)
    # Before anything is tried: what cannot be is wrong use.
    allow_many_files()
    aiokafka_options()
    if settings.schema_registry:
        SchemaRegistry(settings.schema_registry)
    try:
        claims = _prepare(settings, topics)
    except RegistryLostError as error:
        log.critical("%s", error)
        return EXIT_REFUSED
    except (TopicError, RegistryError, *NOT_LET_IN) as error:
        log.critical("%s", error)
        return EXIT_UNREACHABLE
    try:
        settings.data_directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SettingsError(
            f"data_directory is {settings.data_directory}, which cannot be made: {error.strerror}; "
            "name one that can be written"
        ) from error
    settings = replace(
        settings,
        session_timeout_seconds=session_timeout_seconds(
            settings.bootstrap,
            settings.session_timeout_seconds,
            settings.request_timeout_seconds,
        ),
    )
    return asyncio.run(Worker(settings, topics, claims).run())


def _prepare(settings: WorkerSettings, topics: Topics) -> list[Claim]:
    bootstrap, patience = settings.bootstrap, settings.request_timeout_seconds
    ensure_topics(
        bootstrap,
        topics,
        partitions=settings.partitions,
        lanes=settings.lanes,
        brokers_min=settings.brokers_min,
        timeout_seconds=patience,
    )
    check_may_join(bootstrap, topics, min(patience, JOIN_PATIENCE_SECONDS))
    claims = list_queue_managers(bootstrap, topics, timeout_seconds=patience)
    if not claims:
        on_log = queue_managers_on_log(bootstrap, topics, timeout_seconds=patience)
        # Again: entries of what another worker claimed meanwhile are no sign of a loss.
        if not list_queue_managers(bootstrap, topics, timeout_seconds=patience):
            check_not_lost(topics, on_log, settings.queue_managers)
        for name in settings.queue_managers:
            claim_queue_manager(
                bootstrap,
                topics,
                name,
                lanes=settings.lanes,
                timeout_seconds=patience,
                on_log=on_log,
            )
        claims = list_queue_managers(bootstrap, topics, timeout_seconds=patience)
    return claims
