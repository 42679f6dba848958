"""Following the registry: read again when something was written to it, whatever that was."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from ledgermq.processor.worker.settings import WorkerSettings
from ledgermq.wire.topics.log_topics import Topics
from ledgermq.wire.topics.registry import Claim, RegistryError, list_queue_managers

log = logging.getLogger(__name__)

AGAIN_SECONDS = 1.0


class RegistryFollower:
    """Reads the registry once for all that was written meanwhile; `take` gets what counts."""

    def __init__(
        self, settings: WorkerSettings, topics: Topics, take: Callable[[list[Claim]], None]
    ) -> None:
        self._settings = settings
        self._topics = topics
        self._take = take
        self._unread = asyncio.Event()

    def changed(self) -> None:
        """Notes that a record was written."""
        self._unread.set()

    async def run(self) -> None:
        """Follows for as long as the worker runs."""
        while True:
            await self._unread.wait()
            self._unread.clear()
            try:
                claims = await asyncio.to_thread(
                    list_queue_managers,
                    self._settings.bootstrap,
                    self._topics,
                    timeout_seconds=self._settings.request_timeout_seconds,
                )
            except RegistryError as error:
                log.warning("%s; reading it again", error)
                self._unread.set()
                await asyncio.sleep(AGAIN_SECONDS)
            else:
                self._take(claims)
