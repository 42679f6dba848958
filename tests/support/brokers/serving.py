"""Serving in tests of services: until an event happens, or a limit has passed."""

import asyncio

LIMIT_SECONDS = 120


async def served(service, enough):
    """Serves until an event happens."""
    serving = asyncio.create_task(service.serve())
    waiting = asyncio.create_task(enough.wait())
    done, _ = await asyncio.wait(
        {serving, waiting}, timeout=LIMIT_SECONDS, return_when=asyncio.FIRST_COMPLETED
    )
    waiting.cancel()
    service.stop()
    await serving
    assert done, "the service did nothing"


def served_until_empty(service, connection, queue):
    """Serves until nothing is left in a queue."""

    async def serving():
        enough = asyncio.Event()
        serving = asyncio.create_task(served(service, enough))
        while (await asyncio.to_thread(connection.admin.queue_status, queue)).message_count:
            assert not serving.done(), "the service has ended"
            await asyncio.sleep(0.05)
        enough.set()
        await serving

    asyncio.run(asyncio.wait_for(serving(), LIMIT_SECONDS))
