"""A worker's framing: it waits for the schema registry before it takes part in the group.

A worker that waits takes no queue manager from one that works. It says what it waits for in its log
and on `/health`, which then answers with status 503. What waiting cannot mend ends it: schemas
that the registry refuses.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from aiohttp import web

from ledgermq.errors import SchemaRefusedError, SchemaRegistryError
from ledgermq.wire.framing.confluent import ConfluentFraming
from ledgermq.wire.framing.schema_registry import framing_of

log = logging.getLogger(__name__)

AGAIN_SECONDS = 2.0


async def wait_for_framing(
    url: str, web_host: str, web_port: int | None
) -> ConfluentFraming | None:
    """The framing by a registry's ids, once it answers; None without one.

    Raises:
        SchemaRefusedError: The registry has versions that LedgerMQ's schemas do not fit.
    """
    if not url:
        return None
    try:
        return await asyncio.to_thread(framing_of, url)
    except SchemaRefusedError:
        raise
    except SchemaRegistryError as error:
        waited_for = str(error)
    log.warning("waiting, and folding nothing: %s", waited_for)
    async with _waiting_page(web_host, web_port, lambda: waited_for):
        while True:
            await asyncio.sleep(AGAIN_SECONDS)
            try:
                framing = await asyncio.to_thread(framing_of, url)
            except SchemaRefusedError:
                raise
            except SchemaRegistryError as error:
                if str(error) != waited_for:
                    waited_for = str(error)
                    log.warning("still waiting: %s", waited_for)
            else:
                log.info("the schema registry answers; going on")
                return framing


@asynccontextmanager
async def _waiting_page(
    host: str, port: int | None, reason: Callable[[], str]
) -> AsyncIterator[None]:
    """Says on the port of metrics and health that the worker waits, as long as the block runs."""
    if port is None:
        yield
        return

    async def health(_request: web.Request) -> web.Response:
        told = {"status": "waiting", "reason": reason(), "queue_managers": {}}
        return web.json_response(told, status=503)

    page = web.Application()
    page.router.add_get("/health", health)
    runner = web.AppRunner(page, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
        yield
    finally:
        await runner.cleanup()
